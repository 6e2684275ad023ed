//! Bodies: every byte of them, in both framings and both directions, without holding them.

use crate::kit::{Client, Framing, Gate, Numbers, Origin, Proxy, Setup, hash, request, willing};
use std::time::Duration;

/// RFC 9112 §6, §7: bodies of 1 B…10 MiB, uniform in the logarithm of their size, by length and chunked, there and
/// back; digests compared at both ends. `FOREBAY_BODIES=full` runs 2,000 of them, else 60 up to 1 MiB.
#[test]
fn bodies_arrive_byte_for_byte() {
    let (count, max) = if full() { (2000, 10 << 20) } else { (60, 1 << 20) };
    exchange_bodies(count, max);
}

/// The same with many small ones: 20,000 below 64 KiB by `FOREBAY_BODIES=full`, else 400.
#[test]
fn small_bodies_arrive_byte_for_byte() {
    exchange_bodies(if full() { 20_000 } else { 400 }, 64 * 1024 - 1);
}

fn full() -> bool {
    std::env::var("FOREBAY_BODIES").is_ok_and(|value| value == "full")
}

/// Four clients in parallel send `count` bodies between them. Each origin answers with what it got, in the framing
/// that the client asks for; both ends say the digest.
fn exchange_bodies(count: usize, max: usize) {
    let origin = Origin::start(|exchange| {
        let body = exchange.body().unwrap_or_default().to_vec();
        let digest = hash(&body);
        if exchange.target.ends_with("/chunked") {
            let chunk = body.len() / 3 + 1;
            let chunks: Vec<&[u8]> = body.chunks(chunk).collect();
            exchange.answer_chunked(&chunks, &format!("X-Hash: {digest}\r\n"));
        } else {
            exchange.answer(200, &format!("X-Hash: {digest}\r\n"), &body);
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin).log("none"));
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let proxy = &proxy;
            scope.spawn(move || {
                let mut numbers = Numbers::seeded(seed);
                let mut client = Client::of(proxy);
                for _ in 0..count / 4 {
                    let size = numbers.size(max);
                    let body = numbers.bytes(size);
                    let chunked = numbers.below(2) == 1;
                    let back = if numbers.below(2) == 1 {
                        "/chunked"
                    } else {
                        "/length"
                    };
                    let message = match chunked {
                        true => chunked_request(back, &body, &mut numbers),
                        false => request("POST", back, "", &body),
                    };
                    let response = client.exchange("POST", &message).expect("an answer");
                    assert_eq!(response.status, 200);
                    assert_eq!(
                        hash(&response.body),
                        hash(&body),
                        "{back} {size} chunked={chunked}"
                    );
                    if let Some(there) = response.head.value("x-hash") {
                        assert_eq!(there, hash(&body), "at the origin: {size} chunked={chunked}");
                    }
                }
            });
        }
    });
    for seen in origin.seen() {
        assert!(seen.body.is_some(), "{} was cut", seen.target);
    }
}

fn chunked_request(path: &str, body: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut message =
        format!("POST {path} HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    let mut rest = body;
    while !rest.is_empty() {
        let size = numbers.size(rest.len().min(40_000));
        message.extend_from_slice(format!("{size:x}\r\n").as_bytes());
        message.extend_from_slice(&rest[..size]);
        message.extend_from_slice(b"\r\n");
        rest = &rest[size..];
    }
    message.extend_from_slice(b"0\r\n\r\n");
    message
}

/// RFC 9112 §7.1: chunk boundaries in every possible place of a segment change nothing; extensions end here.
#[test]
fn chunks_may_come_byte_by_byte() {
    let origin = Origin::start(willing);
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send_in_pieces(
        "POST /echo HTTP/1.1\r\nHost: app.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         4;ext=\"a b\"\r\none,\r\nA\r\n0123456789\r\n0\r\n\r\n",
        1,
        Duration::from_millis(1),
    );
    assert_eq!(client.response("POST").text(), "one,0123456789");
}

/// RFC 9112 §7.1.2, RFC 9110 §6.5: trailers pass behind the last chunk, to the server and to a client that takes them;
/// fields that frame or route a message do not.
#[test]
fn trailers_pass_and_forbidden_ones_do_not() {
    let origin = Origin::start(|exchange| exchange.answer_chunked(&[b"abc"], "X-Sum: 9\r\n"));
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(
        "POST /t HTTP/1.1\r\nHost: app.test\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n\
         3\r\nabc\r\n0\r\nX-In: 7\r\nContent-Length: 5\r\nHost: evil.test\r\n\r\n",
    );
    let response = client.response("POST");
    if response.status == 400 {
        assert!(
            response.closes(),
            "a refusal of the forbidden trailers ends the connection"
        );
        assert!(
            origin.seen().iter().all(|seen| seen.body.is_none()),
            "nothing whole reached the server"
        );
        return;
    }
    assert_eq!(
        (response.text().as_str(), &response.trailers[..]),
        ("abc", &[pair("x-sum", "9")][..])
    );
    let seen = origin.saw_once("/t");
    assert_eq!(seen.body.as_deref(), Some(&b"abc"[..]));
    assert_eq!(seen.trailers, [pair("x-in", "7")]);
    assert_eq!(seen.head.values("host"), ["app.test"]);
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A response streams: its first part is with the client while the server still holds the second.
#[test]
fn a_response_is_not_held_back() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        exchange.body();
        exchange.send(exchange.answer_head(200, "Content-Length: 10\r\n"));
        exchange.send("first");
        at_origin.wait();
        exchange.send("later");
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/", "", b""));
    assert!(client.head().expect("a head").line.contains("200"));
    assert_eq!(
        client.body(Framing::Length(5)).expect("the first part").bytes,
        b"first"
    );
    gate.open();
    assert_eq!(
        client.body(Framing::Length(5)).expect("the second part").bytes,
        b"later"
    );
}

/// A request streams: its first part is with the server before the client sends the second.
#[test]
fn a_request_is_not_held_back() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        exchange.wait_for_body_bytes(5);
        at_origin.wait();
        exchange.echo();
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    client.send("POST /echo HTTP/1.1\r\nHost: app.test\r\nContent-Length: 10\r\n\r\nfirst");
    gate.reached(1);
    gate.open();
    client.send("later");
    assert_eq!(client.response("POST").text(), "firstlater");
}

/// Back-pressure: a client that does not read costs the proxy buffers, not the size of the response, and gets all of
/// it when it reads. (8 slow downloads of 8 MiB; resident memory grows by less than 12 MiB in all.)
#[test]
fn a_slow_reader_does_not_fill_memory() {
    const SIZE: usize = 8 << 20;
    let origin = Origin::start(|exchange| {
        let body = vec![b'm'; SIZE];
        exchange.answer(200, "", &body);
    });
    let proxy = Proxy::start(&Setup::before(&origin).listen("timeout-client = \"60s\""));
    let mut warm = Client::of(&proxy);
    warm.get("/warm");
    let before = proxy.resident();
    let mut clients: Vec<Client> = (0..8).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.send(request("GET", "/large", "", b""));
        client.head().expect("a head");
    }
    let most = (0..20).map(|_| {
        warm.listen_for(Duration::from_millis(25));
        proxy.resident()
    });
    let most = most.max().expect("some");
    assert!(most < before + (12 << 20), "{before} grew to {most} bytes");
    for client in &mut clients {
        assert_eq!(
            client.body(Framing::Length(SIZE)).expect("the whole").bytes.len(),
            SIZE
        );
    }
}

/// Back-pressure the other way: an origin that does not read stops the client, and the upload still arrives whole.
#[test]
fn a_slow_server_does_not_fill_memory() {
    const SIZE: usize = 16 << 20;
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        if exchange.target == "/upload" {
            at_origin.wait();
        }
        let size = exchange.body().map(<[u8]>::len).unwrap_or_default();
        exchange.answer(200, "", size.to_string().as_bytes());
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    Client::of(&proxy).get("/warm");
    let before = proxy.resident();
    std::thread::scope(|scope| {
        let upload = scope.spawn(|| {
            let message = request("POST", "/upload", "", &vec![b'u'; SIZE]);
            Client::of(&proxy)
                .exchange("POST", &message)
                .expect("an answer")
                .text()
        });
        gate.reached(1);
        let mut other = Client::of(&proxy);
        for _ in 0..20 {
            other.listen_for(Duration::from_millis(25));
            let now = proxy.resident();
            assert!(now < before + (8 << 20), "{before} grew to {now} bytes");
        }
        gate.open();
        assert_eq!(upload.join().expect("no panic"), SIZE.to_string());
    });
}

/// RFC 9112 §8: a body that ends early is not made to look whole, by length, by chunks or by the close, closed or reset;
/// nor is one whose chunks are taken apart for HTTP/1.0.
#[test]
fn a_cut_response_looks_cut() {
    let origin = Origin::start(|exchange| {
        let (framing, part) = match exchange.target.split('/').nth(1) {
            Some("chunked") => ("Transfer-Encoding: chunked\r\n", "4\r\npart\r\n"),
            Some("length") => ("Content-Length: 100\r\n", "part"),
            _ => ("", "part"),
        };
        exchange.send(exchange.answer_head(200, framing));
        exchange.send(part);
        match exchange.target.contains("reset") {
            true => exchange.reset(),
            false => exchange.close(),
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    for path in [
        "/length/close",
        "/length/reset",
        "/chunked/close",
        "/chunked/reset",
        "/to-the-end/reset",
    ] {
        for version in ["1.0", "1.1"] {
            let mut client = Client::of(&proxy);
            client.send(format!("GET {path} HTTP/{version}\r\nHost: app.test\r\n\r\n"));
            if let Ok(response) = client.try_response("GET") {
                assert_eq!(response.status, 502, "{path} looked whole in HTTP/{version}");
            }
        }
    }
}
