//! Routes in order, and what they do: backends, redirects, fixed responses, denials, header edits, forwarded fields.

use crate::kit::{Client, Origin, Proxy, Response, Setup, plain, request};

fn two() -> (Origin, Origin) {
    (
        Origin::start(|it| it.answer(200, "", b"app")),
        Origin::start(|it| it.answer(200, "", b"api")),
    )
}

fn api(origin: &Origin) -> String {
    format!("[backend.api]\nservers = [\"{}\"]", origin.address())
}

fn ask(proxy: &Proxy, method: &str, host: &str, target: &str) -> Response {
    let mut client = Client::of(proxy);
    client.send(format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    client.response(method)
}

/// Host (exact, any case, without its port, wildcard), path (exact, prefix by segments) and method decide; the first
/// match wins; the listener's backend is the default.
#[test]
fn the_first_matching_route_wins() {
    let (app, other) = two();
    let setup = Setup::before(&app)
        .route("match = { host = \"api.test\", path-prefix = \"/v1\" }\nbackend = \"api\"")
        .route("match = { host = \"*.wild.test\" }\nbackend = \"api\"")
        .route("match = { path = \"/exact\" }\nbackend = \"api\"")
        .route("match = { path = \"/exact\", method = \"GET\" }\ndeny = 410")
        .route("match = { method = [\"PUT\", \"DELETE\"] }\ndeny = 405")
        .more(&api(&other));
    let proxy = Proxy::start(&setup);
    for (method, host, target, status, body) in [
        ("GET", "api.test", "/v1", 200, "api"),
        ("GET", "API.test:8080", "/v1/things?q=1", 200, "api"),
        ("GET", "api.test", "/v2", 200, "app"),
        ("GET", "other.test", "/v1", 200, "app"),
        ("GET", "a.wild.test", "/", 200, "api"),
        ("GET", "wild.test", "/", 200, "app"),
        ("GET", "any.test", "/exact?x", 200, "api"),
        ("GET", "any.test", "/exact/more", 200, "app"),
        ("DELETE", "any.test", "/", 405, ""),
    ] {
        let response = ask(&proxy, method, host, target);
        assert_eq!(response.status, status, "{method} {host} {target}");
        if !body.is_empty() {
            assert_eq!(response.text(), body, "{method} {host} {target}");
        }
    }
}

/// A share sends about that part of the matching requests on, the rest further down.
#[test]
fn a_share_is_a_share() {
    let (app, other) = two();
    let setup = Setup::before(&app)
        .route("match = { share = \"25%\" }\nbackend = \"api\"")
        .more(&api(&other));
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    let hits = (0..400).filter(|_| client.get("/").text() == "api").count();
    assert!((60..=140).contains(&hits), "{hits} of 400 at 25 %");
}

/// RD-1, RD-2, RD-3, RD-4, RD-5, RD-6: the three kinds of redirect with their options; the connection goes on.
#[test]
fn redirects_say_where() {
    let (app, _other) = two();
    let setup = Setup::before(&app)
        .route("match = { path = \"/location\" }\nredirect = { location = \"https://new.test/x\", keep-query = true }")
        .route("match = { path-prefix = \"/old\" }\nredirect = { prefix = \"/new\", code = 308 }")
        .route("match = { path = \"/plain\" }\nredirect = { scheme = \"https\", code = 301 }")
        .route("match = { path = \"/drop\" }\nredirect = { prefix = \"/to\", drop-query = true, append-slash = true }")
        .route("match = { path = \"/cookie\" }\nredirect = { prefix = \"/\", set-cookie = \"SEEN=1\", code = 303 }")
        .route("match = { path = \"/clear\" }\nredirect = { prefix = \"/\", clear-cookie = \"SEEN\", code = 307 }")
        .route("match = { path = \"/templated\" }\nredirect = { location = \"http://{host}/go{path}\" }");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    for (target, status, location, no_cache) in [
        ("/location?a=b", 302, "https://new.test/x?a=b", true),
        ("/old/page?q=1", 308, "/new/old/page?q=1", false),
        ("/plain?q", 301, "https://app.test/plain?q", false),
        ("/drop?q", 302, "/to/drop/", true),
        ("/cookie?q", 303, "/cookie?q", true),
        ("/clear", 307, "/clear", true),
        ("/templated", 302, "http://app.test/go/templated", true),
    ] {
        let response = client.get(target);
        assert_eq!(
            (response.status, response.head.value("location")),
            (status, Some(location)),
            "{target}"
        );
        assert_eq!(response.head.value("content-length"), Some("0"), "{target}");
        let cached = response.head.value("cache-control");
        assert_eq!(cached, no_cache.then_some("no-cache"), "{target} (RD-5)");
        let cookie = match target {
            "/cookie?q" => Some("SEEN=1; path=/;"),
            "/clear" => Some("SEEN; path=/; Max-Age=0;"),
            _ => None,
        };
        assert_eq!(response.head.value("set-cookie"), cookie, "{target}");
    }
    assert_eq!(app.seen().len(), 0);
}

/// RD-6: nothing a client sends splits the response.
#[test]
fn a_redirect_cannot_be_split() {
    let (app, _other) = two();
    let route =
        "match = { path-prefix = \"/go\" }\nredirect = { location = \"http://x.test{path}?{query}\" }";
    let proxy = Proxy::start(&Setup::before(&app).route(route));
    for target in ["/go/%0d%0aSet-Cookie:x", "/go?a=%0d%0a%0d%0aHTTP/1.1"] {
        let response = ask(&proxy, "GET", "app.test", target);
        assert_eq!(response.status, 302);
        assert!(
            response
                .head
                .value("location")
                .is_some_and(|it| it.contains("%0d%0a")),
            "{response:?}"
        );
        assert!(response.head.values("set-cookie").is_empty());
    }
}

/// A fixed response and a denial come from the proxy; their connection goes on, and HEAD gets no body.
#[test]
fn fixed_responses_and_denials() {
    let (app, _other) = two();
    let setup = Setup::before(&app)
        .route(
            "match = { path = \"/ok\" }\n\
             respond = { status = 200, body = \"I am well\", content-type = \"text/x-health\" }",
        )
        .route("match = { path-prefix = \"/secret\" }\ndeny = 403");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    let response = client.get("/ok");
    assert_eq!((response.status, response.text().as_str()), (200, "I am well"));
    assert_eq!(response.head.value("content-type"), Some("text/x-health"));
    client.send(request("HEAD", "/ok", "", b""));
    let response = client.response("HEAD");
    assert_eq!(response.head.value("content-length"), Some("9"));
    assert_eq!(client.get("/secret/place").status, 403);
    client.send(request("POST", "/secret", "", b"with a body"));
    let response = client.response("POST");
    assert_eq!(response.status, 403);
    if !response.closes() {
        assert_eq!(client.get("/elsewhere").text(), "app");
    }
    assert!(app.seen().iter().all(|seen| seen.target == "/elsewhere"));
}

/// A listener whose routes all pass and that has no default answers for itself.
#[test]
fn no_route_is_an_answer() {
    let (app, _other) = two();
    let route = "match = { path = \"/only\" }\nbackend = \"app\"";
    let proxy = Proxy::start(&Setup::before(&app).without_default().route(route));
    assert_eq!(ask(&proxy, "GET", "app.test", "/only").status, 200);
    let status = ask(&proxy, "GET", "app.test", "/elsewhere").status;
    assert!([404, 503].contains(&status), "{status}");
}

/// Header edits of listener, route and backend apply in that order, on the way there and on the way back.
#[test]
fn header_edits_apply_in_order() {
    let origin = Origin::start(|exchange| {
        exchange.answer(
            200,
            "Server: secret/1.0\r\nX-Back: origin\r\nX-List: 1\r\n",
            b"ok",
        );
    });
    let setup = Setup::before(&origin)
        .listen(
            "request-headers = { set = { x-stage = \"listen\", x-who = \"{client-ip} {method} {path}\" }, \
             remove = [\"X-Gone\"] }\n\
             response-headers = { remove = [\"server\"], set = { x-back = \"listen\" } }",
        )
        .route(
            "match = { path-prefix = \"/r\" }\nbackend = \"app\"\n\
             request-headers = { set = { x-stage = \"route\" }, add = { x-list = \"2\" } }",
        )
        .backend("response-headers = { add = { x-list = \"2\" } }");
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    client.send(request(
        "GET",
        "/r/1",
        "X-Gone: 1\r\nX-Stage: client\r\nX-List: 1\r\nX-Stays: 1\r\n",
        b"",
    ));
    let response = client.response("GET");
    let seen = origin.saw_once("/r/1").head;
    assert_eq!(seen.value("x-stage"), Some("route"));
    assert_eq!(seen.value("x-who"), Some("127.0.0.1 GET /r/1"));
    assert_eq!(seen.values("x-list"), ["1", "2"]);
    assert_eq!((seen.value("x-gone"), seen.value("x-stays")), (None, Some("1")));
    assert_eq!(
        (response.head.value("server"), response.head.value("x-back")),
        (None, Some("listen"))
    );
    assert_eq!(response.head.values("x-list"), ["1", "2"]);
}

/// `X-Forwarded-*`: added to what the client sent, in its place, or not touched.
#[test]
fn forwarded_fields_as_configured() {
    let sent = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: fake.test\r\n";
    for (mode, before, proto, host) in [
        ("append", "192.0.2.7, 127.0.0.1", "http", "app.test"),
        ("replace", "127.0.0.1", "http", "app.test"),
        ("off", "192.0.2.7", "https", "fake.test"),
    ] {
        let origin = Origin::start(plain);
        let proxy = Proxy::start(&Setup::before(&origin).listen(&format!("x-forwarded = \"{mode}\"")));
        let mut client = Client::of(&proxy);
        client.send(request("GET", "/f", sent, b""));
        assert_eq!(client.response("GET").status, 200);
        let head = origin.saw_once("/f").head;
        assert_eq!(head.values("x-forwarded-for").join(", "), before, "{mode}");
        assert_eq!(head.value("x-forwarded-proto"), Some(proto), "{mode}");
        assert_eq!(head.value("x-forwarded-host"), Some(host), "{mode}");
    }
}

/// RFC 9110 §7.6.3: `Via` is added when it is switched on.
#[test]
fn via_on_request() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).listen("via = \"edge\""));
    assert_eq!(Client::of(&proxy).get("/v").status, 200);
    assert_eq!(origin.saw_once("/v").head.value("via"), Some("1.1 edge"));
}
