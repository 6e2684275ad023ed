//! SIGHUP: a new configuration takes over between two requests, or not at all (DESIGN §4, RE-2).

use crate::kit::{Client, Gate, Origin, Proxy, Setup, Signal, Why, eventually, get, metrics, plain, request};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Answers with its name, so that a response says which backend it came from.
fn named(name: &'static str) -> Origin {
    Origin::start(move |exchange| exchange.answer(200, "", name.as_bytes()))
}

/// Clients in parallel that ask without a pause, on kept and on fresh connections in turn, until told to stop. Any
/// answer but a complete 200 fails the test; a connection may only end where the proxy announced it.
pub(crate) struct Load {
    stop: AtomicBool,
    served: AtomicU32,
}

/// Stops the load, also when a test fails in the middle of it.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Load {
    pub(crate) fn new() -> Load {
        Load {
            stop: AtomicBool::new(false),
            served: AtomicU32::new(0),
        }
    }

    /// Does something while so many clients ask.
    pub(crate) fn around(&self, proxy: &Proxy, clients: usize, act: impl FnOnce()) {
        std::thread::scope(|scope| {
            let _end = End(&self.stop);
            for _ in 0..clients {
                scope.spawn(|| self.ask(proxy));
            }
            act();
        });
    }

    /// Waits until so many more requests have been served.
    #[track_caller]
    pub(crate) fn goes_on(&self, more: u32) {
        let before = self.served();
        eventually("the load goes on", || {
            (self.served() > before + more).then_some(())
        });
    }

    fn ask(&self, proxy: &Proxy) {
        let address = proxy.web();
        let mut client = Client::connect(&address);
        while !self.stop.load(Ordering::Relaxed) {
            let response = client.get("/load");
            assert_eq!(response.status, 200, "{response:?}");
            let served = self.served.fetch_add(1, Ordering::Relaxed);
            if response.closes() || served.is_multiple_of(7) {
                client = Client::connect(&address);
            }
        }
    }

    fn served(&self) -> u32 {
        self.served.load(Ordering::Relaxed)
    }
}

/// Routes and servers change under load, again and again: no request fails, and each change takes hold.
#[test]
fn a_reload_loses_nothing() {
    let (first, second) = (named("first"), named("second"));
    let both = Setup::before_all(&[&first, &second]);
    let marked = |setup: &Setup, number: usize| {
        setup
            .clone()
            .route(&format!("match = {{ path = \"/mark/{number}\" }}\ndeny = 410"))
    };
    let proxy = Proxy::start(&both);
    let load = Load::new();
    load.around(&proxy, 4, || {
        for number in 0..10 {
            let setup = match number % 3 {
                0 => Setup::before(&first),
                1 => Setup::before(&second),
                _ => both.clone(),
            };
            proxy.reload(&marked(&setup, number));
            eventually("the new route", || {
                (Client::of(&proxy).get(&format!("/mark/{number}")).status == 410).then_some(())
            });
            load.goes_on(50);
        }
    });
    assert!(load.served() >= 500);
}

/// A changed set of servers is the one that is used; what is parked of servers that are gone ends, unasked.
#[test]
fn servers_come_and_go() {
    let (first, second) = (named("first"), named("second"));
    let proxy = Proxy::start(&Setup::before(&first).workers(1));
    let mut client = Client::of(&proxy);
    assert_eq!(client.get("/").text(), "first");
    proxy.reload(&Setup::before(&second).workers(1));
    eventually("connections to the server that is gone end", || {
        (first.open() == 0).then_some(())
    });
    assert_eq!(client.get("/").text(), "second");
}

/// A request in flight ends with the configuration it began with, on a server that has vanished since, whose connection
/// is not kept then (POOL-52).
#[test]
fn a_request_in_flight_finishes_where_it_is() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let old = Origin::start(move |exchange| {
        if exchange.target == "/held" {
            at_origin.wait();
        }
        exchange.answer(200, "", b"old");
    });
    let new = named("new");
    let proxy = Proxy::start(&Setup::before(&old));
    let mut client = Client::of(&proxy);
    client.send(get("/held"));
    gate.reached(1);
    proxy.reload(&Setup::before(&new));
    eventually("the new server", || {
        (Client::of(&proxy).get("/").text() == "new").then_some(())
    });
    gate.open();
    assert_eq!(client.response("GET").text(), "old");
    eventually("the old server's connections end", || {
        (old.open() == 0).then_some(())
    });
}

/// DESIGN §4 *Identity*: counters of a server survive; the generation is counted.
#[test]
fn statistics_survive() {
    let origin = named("app");
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut client = Client::of(&proxy);
    for _ in 0..5 {
        client.get("/");
    }
    proxy.reload(&Setup::before(&origin).route("match = { path = \"/new\" }\ndeny = 410"));
    eventually("the new route", || {
        (Client::of(&proxy).get("/new").status == 410).then_some(())
    });
    client.get("/");
    eventually("what the origin saw in all", || {
        let sum = metrics(&proxy).sum(
            "server_http_responses_total",
            &[("proxy", "app"), ("code", "2xx")],
        );
        (sum == origin.seen().len() as f64 && sum >= 6.0).then_some(())
    });
}

/// A configuration with mistakes changes nothing; the message says what is wrong and where.
#[test]
fn a_bad_configuration_changes_nothing() {
    let origin = named("app");
    let proxy = Proxy::start(&Setup::before(&origin));
    let mut kept = Client::of(&proxy);
    assert_eq!(kept.get("/").text(), "app");
    let load = Load::new();
    load.around(&proxy, 1, || {
        for (text, said) in [
            ("this is = not [ toml", "forebay.toml"),
            ("[[listen]]\nbind = \"127.0.0.1:0\"\nbakend = \"app\"\n", "bakend"),
            (
                "[[listen]]\nbind = \"127.0.0.1:0\"\nbackend = \"nowhere\"\n",
                "nowhere",
            ),
        ] {
            proxy.rewrite(text);
            proxy.signal(Signal::HUP);
            proxy.says("what is wrong", |line| line.contains(said));
            load.goes_on(20);
        }
    });
    assert_eq!(kept.get("/").text(), "app");
    assert!(proxy.runs());
}

/// A listener that cannot be bound fails the reload whole: routes of the new file are not taken either.
#[test]
fn a_reload_fails_whole() {
    let origin = named("app");
    let proxy = Proxy::start(&Setup::before(&origin));
    let taken = origin.address();
    let more = format!("[[listen]]\nname = \"more\"\nbind = \"{taken}\"\nbackend = \"app\"\n");
    proxy.reload(
        &Setup::before(&origin)
            .route("match = { path = \"/new\" }\ndeny = 410")
            .more(&more),
    );
    proxy.says("which address is taken", |line| line.contains(&taken.to_string()));
    assert_eq!(Client::of(&proxy).get("/new").status, 200);
}

/// Listeners may be added and taken away; a client of one that is gone finishes its request, however long it takes.
#[test]
fn listeners_come_and_go() {
    let gate = Gate::default();
    let at_origin = gate.clone();
    let origin = Origin::start(move |exchange| {
        if exchange.target == "/held" {
            at_origin.wait();
            exchange.send(exchange.answer_head(200, "Content-Length: 10\r\n"));
            exchange.send("first");
            exchange.stall(Duration::from_millis(400));
            exchange.send("later");
        } else {
            exchange.answer(200, "", b"app");
        }
    });
    let proxy = Proxy::start(&Setup::before(&origin));
    let more = "[[listen]]\nname = \"more\"\nbind = \"127.0.0.1:0\"\nbackend = \"app\"\n";
    proxy.reload(&Setup::before(&origin).more(more));
    let added = proxy.address("more");
    let mut client = Client::connect(&added);
    assert_eq!(client.get("/").text(), "app");
    let mut busy = Client::connect(&added);
    busy.send(get("/held"));
    gate.reached(1);
    proxy.reload(&Setup::before(&origin));
    eventually("the port refuses", || added.connect().is_err().then_some(()));
    gate.open();
    assert_eq!(busy.response("GET").text(), "firstlater");
    if let Ok(()) = client.try_send(get("/last")) {
        match client.try_response("GET") {
            Ok(response) => assert_eq!((response.text().as_str(), response.closes()), ("app", true)),
            Err(broken) => assert_eq!(
                (broken.why, broken.got.len()),
                (Why::Closed, 0),
                "closed while idle"
            ),
        }
    }
    assert_eq!(Client::of(&proxy).get("/").text(), "app");
}

/// Many reloads leave nothing behind: descriptors stay the same, resident memory within 4 MiB of the tenth.
#[test]
fn reloads_do_not_leak() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    let reload = |number: usize| {
        proxy.reload(
            &Setup::before(&origin).route(&format!("match = {{ path = \"/mark/{number}\" }}\ndeny = 410")),
        );
        eventually("the new route", || {
            (Client::of(&proxy).get(&format!("/mark/{number}")).status == 410).then_some(())
        });
    };
    (0..10).for_each(reload);
    let (memory, descriptors) = (proxy.resident(), proxy.descriptors());
    (10..60).for_each(reload);
    let grown = proxy.resident().saturating_sub(memory);
    assert!(grown < 4 << 20, "{grown} bytes more after fifty reloads");
    eventually("descriptors as before", || {
        (proxy.descriptors() <= descriptors + 4).then_some(())
    });
}

/// A signal while another reload is under way is not lost: the last file wins.
#[test]
fn the_last_of_many_signals_wins() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin));
    for number in 0..20 {
        proxy.reload(
            &Setup::before(&origin).route(&format!("match = {{ path = \"/mark/{number}\" }}\ndeny = 410")),
        );
    }
    eventually("the last file", || {
        (Client::of(&proxy).get("/mark/19").status == 410).then_some(())
    });
    let mut client = Client::of(&proxy);
    client.send(request("GET", "/mark/18", "", b""));
    assert_eq!(client.response("GET").status, 200);
    assert!(!client.listen_for(Duration::from_millis(20)));
}
