//! Where clients come from: IPv4, IPv6, Unix; which workers accept; what happens when descriptors run out.

use crate::kit::{
    Address, Client, Exchange, Gate, Origin, PATIENCE, Proxy, Setup, Signal, eventually, get, metrics, plain,
};
use std::time::{Duration, Instant};

/// Several addresses of one listener, among them IPv6, each printed once bound.
#[test]
fn a_listener_may_have_several_addresses() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).bind("[\"127.0.0.1:0\", \"[::1]:0\"]"));
    let addresses = eventually("two addresses", || {
        Some(proxy.addresses("web")).filter(|all| all.len() == 2)
    });
    assert!(
        matches!(&addresses[0], Address::Tcp(it) if it.is_ipv4()),
        "{addresses:?}"
    );
    assert!(
        matches!(&addresses[1], Address::Tcp(it) if it.is_ipv6()),
        "{addresses:?}"
    );
    for address in &addresses {
        assert_eq!(Client::connect(address).get("/").status, 200, "{address}");
    }
    let seen = origin.seen();
    assert_eq!(
        seen.last().expect("two").head.value("x-forwarded-for"),
        Some("::1")
    );
}

/// A Unix listener; its path is there while the proxy is, whatever was left behind by another one.
#[test]
fn a_listener_may_be_a_unix_socket() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).bind("\"unix:$DIR/web.sock\""));
    assert_eq!(proxy.web(), Address::Unix(proxy.path("web.sock")));
    for _ in 0..3 {
        let mut client = Client::of(&proxy);
        assert_eq!(client.get("/").status, 200);
        assert_eq!(client.get("/").status, 200);
    }
}

/// Servers may be Unix sockets, and reuse works there too.
#[test]
fn a_server_may_be_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("forebay-origin-{}.sock", std::process::id()));
    let origin = Origin::start_at(&Address::Unix(path.clone()), plain);
    let setup = Setup::before_servers(vec![format!("\"unix:{}\"", path.display())]).workers(1);
    let proxy = Proxy::start(&setup);
    let mut client = Client::of(&proxy);
    assert_eq!(
        (client.get("/").connection(), client.get("/").connection()),
        (1, 1)
    );
    origin.crash();
    let _ = std::fs::remove_file(path);
}

/// `workers = [n]`, counted from 1: only those accept on the listener and serve its clients, however many they are.
#[test]
fn a_listener_may_belong_to_one_worker() {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(3).listen("workers = [2]"));
    let mut clients: Vec<Client> = (0..40).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.get("/");
    }
    for what in ["worker_connections_total", "worker_current_sessions"] {
        eventually(&format!("{what}: all forty on worker 2"), || {
            let metrics = metrics(&proxy);
            let each = ["1", "2", "3"].map(|it| metrics.sum(what, &[("worker", it)]));
            (each == [0.0, 40.0, 0.0]).then_some(())
        });
    }
}

/// An address that is taken is an error at start that names it.
#[test]
fn a_taken_address_is_an_error() {
    let origin = Origin::start(plain);
    let taken = origin.address().to_string();
    let proxy = Proxy::spawn(&Setup::before(&origin).bind(&format!("\"{taken}\"")), None);
    assert!(!proxy.exit_within(PATIENCE).success());
    proxy.says("which address is taken", |line| line.contains(&taken));
}

/// Failures 8: out of descriptors the proxy stops accepting without burning CPU, serves those it has, and takes new
/// clients within a second of descriptors being free again.
#[test]
fn descriptors_may_run_out() {
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin)
        .workers(1)
        .listen("timeout-http-request = \"60s\"");
    let proxy = Proxy::start_with_descriptors(&setup, 64);
    let mut served = Client::of(&proxy);
    assert_eq!(served.get("/before").status, 200);
    let mut idle = Vec::new();
    for _ in 0..150 {
        let mut client = Client::of(&proxy);
        client.send("GET /never HTTP/1.1\r\nHost: app.test\r\n");
        idle.push(client);
    }
    served.listen_for(Duration::from_millis(300));
    let (ticks, begun) = (proxy.cpu_ticks(), Instant::now());
    served.listen_for(Duration::from_secs(1));
    let used = (proxy.cpu_ticks() - ticks) as f64 / 100.0;
    assert!(
        used < 0.3 * begun.elapsed().as_secs_f64(),
        "{used} s of CPU while nothing can be accepted"
    );
    assert_eq!(served.get("/meanwhile").status, 200);
    assert!(proxy.descriptors() >= 60, "the limit was not reached");
    drop(idle);
    let free = Instant::now();
    let mut client = Client::of(&proxy);
    client.send(get("/after"));
    assert_eq!(client.response("GET").status, 200);
    assert!(
        free.elapsed() < Duration::from_millis(2500),
        "{:?}",
        free.elapsed()
    );
}

/// Where clients have taken the descriptors, which POOL-50 does not see, an idle connection is given up for a request
/// that needs one.
#[test]
fn idle_connections_make_room() {
    const LIMIT: usize = 64;
    let gate = Gate::default();
    let held = {
        let gate = gate.clone();
        Origin::start(move |exchange: &mut Exchange| {
            gate.wait();
            plain(exchange);
        })
    };
    let other = Origin::start(plain);
    let setup = Setup::before(&held)
        .workers(1)
        .process("pool-low-fd-ratio = 100\npool-high-fd-ratio = 100")
        .route("match = { path = \"/other\" }\nbackend = \"other\"")
        .more(&format!("[backend.other]\nservers = [\"{}\"]", other.address()));
    let proxy = Proxy::start_with_descriptors(&setup, LIMIT as u32);
    let mut clients: Vec<Client> = Vec::new();
    while proxy.descriptors() + 2 <= LIMIT {
        let mut client = Client::of(&proxy);
        client.send(get("/held"));
        clients.push(client);
        gate.reached(clients.len());
    }
    assert!(clients.len() > 5, "{} clients", clients.len());
    let spare = (proxy.descriptors() < LIMIT).then(|| {
        let mut client = Client::of(&proxy);
        client.send("GET /never HTTP/1.1\r\n");
        client
    });
    eventually("no descriptor is left", || {
        (proxy.descriptors() == LIMIT).then_some(())
    });
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response("GET").status, 200);
    }
    assert_eq!(proxy.descriptors(), LIMIT, "all were kept");
    assert_eq!(clients[0].get("/other").status, 200);
    assert_eq!(other.seen().len(), 1);
    drop(spare);
}

/// SCH-8: connections are spread over the workers; no worker has all of them.
#[test]
fn workers_share_the_connections() {
    connections_are_shared("\"127.0.0.1:0\"");
}

/// SCH-8 where the kernel does not help: a Unix listener lives on one worker, which hands off what is too much.
#[test]
fn workers_hand_off_connections() {
    connections_are_shared("\"unix:$DIR/web.sock\"");
}

fn connections_are_shared(bind: &str) {
    let origin = Origin::start(plain);
    let proxy = Proxy::start(&Setup::before(&origin).workers(2).bind(bind));
    let mut clients: Vec<Client> = (0..200).map(|_| Client::of(&proxy)).collect();
    for client in &mut clients {
        client.get("/");
    }
    eventually("both have a fair part", || {
        let metrics = metrics(&proxy);
        let sessions = ["1", "2"].map(|it| metrics.sum("worker_current_sessions", &[("worker", it)]));
        (sessions[0] + sessions[1] == 200.0 && sessions.iter().all(|part| *part >= 50.0)).then_some(())
    });
}

/// After `kill -9` nothing stands in the way of the next start.
#[test]
fn a_killed_proxy_leaves_nothing_in_the_way() {
    let origin = Origin::start(plain);
    let setup = Setup::before(&origin).bind("\"unix:$DIR/web.sock\"");
    let killed = Proxy::start(&setup);
    let folder = killed.path("");
    killed.signal(Signal::KILL);
    killed.exit_within(PATIENCE);
    let text = setup.text(&folder);
    let again = Proxy::start(&Setup::raw(&text));
    assert_eq!(Client::of(&again).get("/").status, 200);
}
