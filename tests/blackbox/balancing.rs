//! Who gets a request: hashes, backups, cookies, slow starts (LB-*).

use crate::kit::{Client, Gate, Origin, Proxy, Response, Setup, ctl, eventually, metrics, plain, request};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Origins, and the servers `a`, `b`, `c` … that they are, with these keys of their own.
fn servers(keys: &[&str]) -> (Vec<Origin>, Setup) {
    let origins: Vec<Origin> = keys.iter().map(|_| Origin::start(plain)).collect();
    let setup = before(&origins, keys);
    (origins, setup)
}

fn before(origins: &[Origin], keys: &[&str]) -> Setup {
    let listed = origins.iter().zip(keys).zip('a'..).map(|((origin, keys), name)| {
        let comma = if keys.is_empty() { "" } else { ", " };
        format!(
            "{{ name = \"{name}\", address = \"{}\"{comma}{keys} }}",
            origin.address()
        )
    });
    Setup::before_servers(listed.collect())
}

/// How many requests each has seen.
fn shares(origins: &[Origin]) -> Vec<usize> {
    origins.iter().map(|origin| origin.seen().len()).collect()
}

/// The origin that gets what this asks for.
fn place(origins: &[Origin], ask: impl FnOnce()) -> usize {
    let before = shares(origins);
    ask();
    let after = shares(origins);
    let changed: Vec<_> = (0..origins.len()).filter(|&at| after[at] > before[at]).collect();
    assert_eq!(changed.len(), 1, "{before:?} → {after:?}");
    changed[0]
}

fn with(proxy: &Proxy, fields: &str) -> Response {
    let mut client = Client::of(proxy);
    client.send(request("GET", "/", fields, b""));
    client.response("GET")
}

/// LB-42, AC-44, LB-40: one value, one server, whatever client and worker; a server that goes takes only its own with it; and
/// without a value all take turns.
#[test]
fn a_hash_keeps_its_server() {
    let (origins, setup) = servers(&[""; 4]);
    let setup = setup.backend("balance = { hash = { header = \"x-user\" }, type = \"consistent\" }");
    let proxy = Proxy::start(&setup);
    let of = |user: usize| place(&origins, || drop(with(&proxy, &format!("x-user: u{user}\r\n"))));
    let homes: Vec<_> = (0..40).map(of).collect();
    assert_eq!((0..40).map(of).collect::<Vec<_>>(), homes);
    assert_eq!(homes.iter().collect::<BTreeSet<_>>().len(), 4, "{homes:?}");
    ctl(&proxy, &["set", "server", "app/b", "state", "maint"]).expect("done");
    let gone = homes
        .iter()
        .position(|&home| home == 1)
        .expect("somebody is at home there");
    eventually("b is not used any more", || (of(gone) != 1).then_some(()));
    for (user, &home) in homes.iter().enumerate() {
        let now = of(user);
        assert!(now == home || home == 1, "u{user} went from {home} to {now}");
    }
    ctl(&proxy, &["set", "server", "app/b", "state", "ready"]).expect("done");
    eventually("b is used again", || (of(gone) == 1).then_some(()));
    assert_eq!(
        (0..40).map(of).collect::<Vec<_>>(),
        homes,
        "all are at home again"
    );
    let turns: BTreeSet<_> = (0..4)
        .map(|_| place(&origins, || drop(with(&proxy, ""))))
        .collect();
    assert_eq!(turns.len(), 4, "round robin");
}

/// LB-3, LB-42: a server that fails loses each value to one other server, the next along the way.
#[test]
fn a_hash_walks_on_past_a_server_that_fails() {
    let (origins, setup) = servers(&[""; 5]);
    let keys = "balance = { hash = { header = \"x-user\" } }\nretry-delay = \"1ms\"";
    let proxy = Proxy::start(&setup.backend(keys));
    let of = |user: usize| {
        let ask = || assert_eq!(with(&proxy, &format!("x-user: u{user}\r\n")).status, 200);
        place(&origins, ask)
    };
    let homeless: Vec<_> = (0..60).filter(|&user| of(user) == 0).collect();
    assert!(homeless.len() > 2, "{homeless:?}");
    origins[0].crash();
    for user in homeless {
        let other = of(user);
        assert!(other != 0 && (0..4).all(|_| of(user) == other), "u{user}");
    }
}

/// LB-42: another proxy with its servers in another order sends the same to the same.
#[test]
fn the_order_of_the_file_does_not_matter() {
    let (origins, _) = servers(&[""; 3]);
    let named = |order: [usize; 3]| {
        let name = |at: usize| ["x", "y", "z"][at];
        let one = |at: usize| {
            format!(
                "{{ name = \"{}\", address = \"{}\" }}",
                name(at),
                origins[at].address()
            )
        };
        Setup::before_servers(order.map(one).into()).backend("balance = { hash = \"path\" }")
    };
    let (one, other) = (Proxy::start(&named([0, 1, 2])), Proxy::start(&named([2, 0, 1])));
    for at in 0..20 {
        let path = format!("/{at}");
        let of = |proxy: &Proxy| place(&origins, || drop(Client::of(proxy).get(&path)));
        assert_eq!(of(&one), of(&other), "{path}");
    }
}

/// LB-43: a value that everybody asks for does not drown its server.
#[test]
fn a_bounded_load_spreads_what_is_hot() {
    let gate = Gate::default();
    let held = gate.clone();
    let origins: Vec<Origin> = (0..4)
        .map(|_| {
            let gate = held.clone();
            Origin::start(move |exchange| {
                gate.wait();
                plain(exchange);
            })
        })
        .collect();
    let setup = before(&origins, &[""; 4]).workers(1);
    let proxy = Proxy::start(&setup.backend("balance = { hash = \"path\", bound = 125 }"));
    let mut clients: Vec<_> = (0..20).map(|_| Client::of(&proxy)).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        client.send(request("GET", "/hot", "", b""));
        gate.reached(at + 1);
    }
    // Of 20 in flight, ⌈20 × 1.25⌉ = 25 slots in four parts: 6 or 7 each.
    let most = shares(&origins).into_iter().max();
    assert!(most <= Some(7), "{:?}", shares(&origins));
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response("GET").status, 200);
    }
}

/// LB-50.
#[test]
fn first_and_sticky_use_one_server() {
    let (origins, setup) = servers(&[""; 3]);
    for algorithm in ["first", "sticky"] {
        let before = shares(&origins);
        let proxy = Proxy::start(&setup.clone().backend(&format!("balance = \"{algorithm}\"")));
        for _ in 0..6 {
            assert_eq!(with(&proxy, "").status, 200);
        }
        let after = shares(&origins);
        assert_eq!(after[0] - before[0], 6, "{algorithm}: {after:?}");
        ctl(&proxy, &["set", "server", "app/a", "state", "maint"]).expect("done");
        eventually("the next one is used", || {
            (place(&origins, || drop(with(&proxy, ""))) == 1).then_some(())
        });
        ctl(&proxy, &["set", "server", "app/a", "state", "ready"]).expect("done");
        if algorithm == "first" {
            eventually("the first one again", || {
                (place(&origins, || drop(with(&proxy, ""))) == 0).then_some(())
            });
        } else {
            for _ in 0..20 {
                assert_eq!(
                    place(&origins, || drop(with(&proxy, ""))),
                    1,
                    "there is no way back"
                );
            }
        }
    }
}

/// LB-2: backups stand in, one or all of them.
#[test]
fn backups_stand_in() {
    for (all, used) in [(false, vec![1]), (true, vec![1, 2])] {
        let (origins, setup) = servers(&["", "backup = true", "backup = true"]);
        let proxy = Proxy::start(&setup.backend(&format!("balance = \"roundrobin\"\nallbackups = {all}")));
        (0..8).for_each(|_| drop(with(&proxy, "")));
        assert_eq!(shares(&origins), [8, 0, 0]);
        ctl(&proxy, &["set", "server", "app/a", "state", "maint"]).expect("done");
        eventually("a is not used any more", || {
            (place(&origins, || drop(with(&proxy, ""))) != 0).then_some(())
        });
        let now: BTreeSet<_> = (0..8)
            .map(|_| place(&origins, || drop(with(&proxy, ""))))
            .collect();
        assert_eq!(now.into_iter().collect::<Vec<_>>(), used, "allbackups = {all}");
        ctl(&proxy, &["set", "server", "app/a", "state", "ready"]).expect("done");
        eventually("a is used again", || {
            (place(&origins, || drop(with(&proxy, ""))) == 0).then_some(())
        });
    }
}

/// The cookie that a response sets, as a client sends it back.
fn cookie_of(response: &Response) -> Option<String> {
    let line = response.head.value("set-cookie")?;
    Some(line.split(';').next().expect("a first part").to_owned())
}

/// LB-52, AC-42: set once, followed by every worker, also to who drains; replaced where it leads nowhere, and counted.
#[test]
fn a_cookie_binds_a_client() {
    let (origins, setup) = servers(&["cookie = \"one\"", "", "", ""]);
    let setup = setup.backend("balance = \"roundrobin\"\ncookie = { name = \"srv\" }");
    let proxy = Proxy::start(&setup);
    let mut bound = Vec::new();
    for _ in 0..4 {
        let mut response = None;
        let at = place(&origins, || response = Some(with(&proxy, "")));
        let response = response.expect("asked");
        let line = response.head.value("set-cookie").expect("it is set").to_owned();
        assert!(line.ends_with("; Path=/; SameSite=Lax; HttpOnly"), "{line}");
        assert_eq!(response.head.value("cache-control"), Some("private"));
        bound.push((at, cookie_of(&response).expect("a cookie")));
    }
    assert!(bound.contains(&(0, "srv=one".to_owned())), "{bound:?}");
    let follow = |cookie: &str| {
        let mut response = None;
        let at = place(&origins, || {
            response = Some(with(&proxy, &format!("Cookie: x=1; {cookie}\r\n")))
        });
        (at, cookie_of(&response.expect("asked")))
    };
    for (at, cookie) in bound.iter().chain(&bound) {
        assert_eq!(follow(cookie), (*at, None), "followed, and not set again");
    }
    let (_, home) = bound
        .iter()
        .find(|(at, _)| *at == 2)
        .expect("all have had one")
        .clone();
    ctl(&proxy, &["set", "server", "app/c", "state", "drain"]).expect("done");
    eventually("c gets no new client", || {
        let at: Vec<_> = (0..8)
            .map(|_| place(&origins, || drop(with(&proxy, ""))))
            .collect();
        (!at.contains(&2)).then_some(())
    });
    assert_eq!(follow(&home), (2, None), "who was there stays (AC-42)");
    ctl(&proxy, &["set", "server", "app/c", "state", "maint"]).expect("done");
    eventually("c gets nobody", || {
        let (at, new) = follow(&home);
        (at != 2 && new.is_some()).then_some(())
    });
    let (_, new) = follow("srv=nobody");
    assert!(new.is_some(), "who names nobody is bound anew");
    let counted = metrics(&proxy);
    let missed = |cause| {
        counted.sum(
            "backend_cookies_missed_total",
            &[("proxy", "app"), ("cause", cause)],
        )
    };
    assert_eq!(missed("unknown"), 1.0);
    assert!(missed("unavailable") >= 1.0);
    let followed = counted.sum("backend_choices_total", &[("proxy", "app"), ("source", "cookie")]);
    assert!(followed >= 9.0, "{followed}");
}

/// LB-52, RT-3: a server that cannot be reached loses its client to the one that answers.
#[test]
fn a_cookie_gives_way_to_a_failure() {
    let (origins, setup) = servers(&["cookie = \"one\"", "cookie = \"two\""]);
    let proxy = Proxy::start(&setup.backend("balance = \"roundrobin\"\ncookie = { name = \"srv\" }"));
    origins[0].crash();
    let response = with(&proxy, "Cookie: srv=one\r\n");
    assert_eq!(
        (response.status, cookie_of(&response).as_deref()),
        (200, Some("srv=two"))
    );
}

/// LB-51.
#[test]
fn a_client_stays_where_it_was() {
    let (origins, setup) = servers(&[""; 3]);
    let proxy = Proxy::start(&setup.backend("balance = \"roundrobin\"\nprefer-last-server = true"));
    for _ in 0..3 {
        let mut client = Client::of(&proxy);
        let home = place(&origins, || drop(client.get("/")));
        for _ in 0..5 {
            assert_eq!(place(&origins, || drop(client.get("/"))), home);
        }
    }
    let all = shares(&origins);
    assert_eq!(all, [6, 6, 6], "each new client is balanced");
}

/// LB-60, AC-45: a server that comes back from maintenance begins with a sixteenth.
#[test]
fn a_returning_server_begins_slowly() {
    const SLOW: Duration = Duration::from_secs(4);
    let (origins, setup) = servers(&["weight = 16", "weight = 16"]);
    let proxy = Proxy::start(&setup.backend("balance = \"roundrobin\"\nslowstart = \"4s\""));
    let mut client = Client::of(&proxy);
    let mut share = |requests: usize| {
        let before = shares(&origins)[1];
        (0..requests).for_each(|_| drop(client.get("/")));
        (shares(&origins)[1] - before) as f64 / requests as f64
    };
    assert_eq!(share(20), 0.5, "never at the start of the process");
    ctl(&proxy, &["set", "server", "app/b", "state", "maint"]).expect("done");
    eventually("b is not used any more", || (share(20) == 0.0).then_some(()));
    let begun = Instant::now();
    ctl(&proxy, &["set", "server", "app/b", "state", "ready"]).expect("done");
    let first = share(100);
    if begun.elapsed() < SLOW / 4 {
        assert!(first < 0.12, "{first} of the requests at once");
    }
    eventually("b has its whole share", || (share(40) == 0.5).then_some(()));
    assert!(begun.elapsed() > SLOW / 2, "after {:?}", begun.elapsed());
}
