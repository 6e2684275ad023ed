//! `forebay demo`: the whole thing on one machine, with nothing to set up.
//!
//! Three [`origin`]s of different speed, a configuration in front of them as anybody could write it, and a [`report`] of who
//! answers. The proxy itself is not special here: [`run_with`] hands the configuration text to whoever serves it, and is told
//! the servers' totals every [`EVERY`].

pub mod origin;
pub mod report;

use crate::observe::snapshot::Snapshot;
use anyhow::Context;
use clap::Args;
use origin::{Origins, Speed};
use parking_lot::Mutex;
use report::{Choices, Report, Seen};
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a line about the traffic is written.
pub const EVERY: Duration = Duration::from_secs(3);

/// The three servers.
pub const SPEEDS: [Speed; 3] = [
    Speed {
        name: "fast",
        mean: Duration::from_millis(1),
    },
    Speed {
        name: "medium",
        mean: Duration::from_millis(3),
    },
    Speed {
        name: "slow",
        mean: Duration::from_millis(9),
    },
];

/// What may choose; the first is the default.
#[cfg(feature = "wasm")]
const BALANCES: [&str; 4] = [POLICY, "random", "roundrobin", "leastconn"];
#[cfg(not(feature = "wasm"))]
const BALANCES: [&str; 3] = ["random", "roundrobin", "leastconn"];

/// The policy of the demo: it plans by latency.
#[cfg(feature = "wasm")]
const POLICY: &str = "least-latency";
#[cfg(feature = "wasm")]
const COMPONENT: &[u8] = include_bytes!("../../../plugins/least-latency/least-latency.wasm");

/// Start the proxy before three small servers of different speed and show who answers
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Port on 127.0.0.1; the next free one is taken if somebody has it, any if 0
    #[arg(long, default_value_t = 8080)]
    pub port: u16,
    /// How a server is chosen: by the policy least-latency, or by a native algorithm
    #[arg(long, default_value = BALANCES[0], value_parser = BALANCES)]
    pub balance: String,
    /// Worker threads [default: one per core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: Option<u16>,
}

/// What a demo needs from whoever serves it.
pub struct Demo {
    /// The configuration, as TOML.
    pub config: String,
    /// To be called every [`EVERY`], and a last time after the last request, with the totals of all servers.
    pub observe: Observe,
}

/// Takes the totals of all servers, and who chose them.
pub type Observe = Box<dyn FnMut(&[Seen], Choices) + Send>;

/// Runs the demo until a signal ends it.
pub fn run(args: &DemoArgs) -> anyhow::Result<ExitCode> {
    run_with(args, |demo| {
        let config = crate::config::parse(&demo.config, "demo")?;
        let mut observe = demo.observe;
        super::run::serve(
            config,
            move |snapshot| observe(&seen(snapshot), choices(snapshot)),
            EVERY,
        )
    })
}

fn choices(snapshot: &Snapshot) -> Choices {
    let by = |source: &str| {
        let counts = snapshot.backends.iter().flat_map(|backend| &backend.choices);
        counts
            .filter(|count| count.cause == source)
            .map(|count| count.total)
            .sum()
    };
    Choices {
        plan: by("plan"),
        pick: by("pick"),
        native: by("native"),
    }
}

fn seen(snapshot: &Snapshot) -> Vec<Seen> {
    let servers = snapshot.backends.iter().flat_map(|backend| &backend.servers);
    let seen = servers.map(|server| Seen {
        name: server.name.clone(),
        responses: server.totals.responses.by_class[1..].iter().sum(),
        response_time_us: server.totals.response_time,
        reuses: server.totals.reuses,
        connects: server.totals.connects,
        failures: server.totals.connect_failures + server.totals.reuse_aborts,
    });
    seen.collect()
}

/// The demo around `serve`, which returns when the proxy has ended.
pub fn run_with(
    args: &DemoArgs,
    serve: impl FnOnce(Demo) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let origins = Origins::start(&SPEEDS).context("cannot start the demo's own servers")?;
    let component = Component::of(args)?;
    let listen = free_address(args.port)?;
    say(&welcome(args, listen, origins.addresses()));
    let report = Arc::new(Mutex::new(Report::new(format!("curl http://{listen}/"))));
    let (ours, started) = (report.clone(), Instant::now());
    let observe = Box::new(move |seen: &[Seen], choices: Choices| {
        let line = ours.lock().look(seen, choices, started.elapsed());
        if let Some(line) = line {
            say(&line);
        }
    });
    let code = serve(Demo {
        config: config(args, listen, origins.addresses(), component.0.as_deref()),
        observe,
    })?;
    say(&format!("\n{}", report.lock().summary()));
    Ok(code)
}

/// The first address from `port` on that nobody has. It is free now; the proxy binds it a moment later.
fn free_address(port: u16) -> anyhow::Result<SocketAddr> {
    let last = if port == 0 {
        0
    } else {
        port.saturating_add(PORTS_TRIED - 1)
    };
    for port in port..=last {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| listener.local_addr()) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            result => return result.with_context(|| format!("cannot listen on 127.0.0.1:{port}")),
        }
    }
    anyhow::bail!("ports {port} to {last} of 127.0.0.1 are all taken; choose another with --port")
}

fn config(args: &DemoArgs, listen: SocketAddr, servers: &[SocketAddr], component: Option<&Path>) -> String {
    let workers = args
        .workers
        .map(|workers| format!("workers = {workers}\n"))
        .unwrap_or_default();
    let server = |(speed, address): (&Speed, &SocketAddr)| {
        format!("    {{ name = \"{}\", address = \"{address}\" }},\n", speed.name)
    };
    let servers: String = SPEEDS.iter().zip(servers).map(server).collect();
    let (balance, policy) = match component {
        Some(component) => (
            format!("{{ policy = \"{}\" }}", args.balance),
            format!(
                "\n[policy.{}]\ncomponent = {:?}\nfallback = \"random\"\ninterval = \"500ms\"\n",
                args.balance,
                component.display().to_string()
            ),
        ),
        None => (format!("\"{}\"", args.balance), String::new()),
    };
    format!(
        "[process]\n{workers}log = {{ to = \"none\" }}\n\n\
         [[listen]]\nname = \"demo\"\nbind = \"{listen}\"\nbackend = \"demo\"\n\n\
         [backend.demo]\nbalance = {balance}\nservers = [\n{servers}]\n{policy}"
    )
}

/// The component of the demo's policy, in a folder of its own that goes with the value.
struct Component(Option<PathBuf>);

impl Component {
    #[cfg(feature = "wasm")]
    fn of(args: &DemoArgs) -> anyhow::Result<Component> {
        if args.balance != POLICY {
            return Ok(Component(None));
        }
        let folder = std::env::temp_dir().join(format!("forebay-demo-{}", std::process::id()));
        std::fs::create_dir_all(&folder).context("cannot make a folder for the demo's policy")?;
        let path = folder.join("least-latency.wasm");
        std::fs::write(&path, COMPONENT).context("cannot write the demo's policy")?;
        Ok(Component(Some(path)))
    }

    #[cfg(not(feature = "wasm"))]
    fn of(_: &DemoArgs) -> anyhow::Result<Component> {
        Ok(Component(None))
    }
}

impl Drop for Component {
    fn drop(&mut self) {
        if let Some(folder) = self.0.as_deref().and_then(Path::parent) {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn welcome(args: &DemoArgs, listen: SocketAddr, servers: &[SocketAddr]) -> String {
    let moved = match args.port {
        0 => String::new(),
        port if port == listen.port() => String::new(),
        port => format!("Port {port} is taken, so this is on port {}.\n", listen.port()),
    };
    let server = |(speed, address): (&Speed, &SocketAddr)| {
        format!(
            "  {:<8}{address}   about {} ms\n",
            speed.name,
            speed.mean.as_millis()
        )
    };
    let servers: String = SPEEDS.iter().zip(servers).map(server).collect();
    format!(
        "{moved}Forebay on http://{listen}/ before three servers, chosen by {}:\n{servers}\n  \
         curl -i http://{listen}/               one answer, and who gave it\n  \
         curl -i http://{listen}/chunked        in chunks; /slow takes 300 ms, /large is 1 MiB\n  \
         curl -d hello http://{listen}/         a body, sent back\n  \
         wrk -t2 -c64 -d30s http://{listen}/    load\n\n\
         Every {} s: share of the responses and mean latency of each server. Ctrl-C ends it.\n",
        args.balance,
        EVERY.as_secs()
    )
}

/// To standard output; that nobody reads it is no reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

const PORTS_TRIED: u16 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpStream;

    fn args(port: u16) -> DemoArgs {
        DemoArgs {
            port,
            balance: "leastconn".to_owned(),
            workers: Some(2),
        }
    }

    fn addresses() -> (SocketAddr, Vec<SocketAddr>) {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        (at(8081), vec![at(9001), at(9002), at(9003)])
    }

    #[test]
    fn the_configuration_is_one_that_anybody_could_write() {
        let (listen, servers) = addresses();
        insta::assert_snapshot!(config(&args(8080), listen, &servers, None), @r#"
        [process]
        workers = 2
        log = { to = "none" }

        [[listen]]
        name = "demo"
        bind = "127.0.0.1:8081"
        backend = "demo"

        [backend.demo]
        balance = "leastconn"
        servers = [
            { name = "fast", address = "127.0.0.1:9001" },
            { name = "medium", address = "127.0.0.1:9002" },
            { name = "slow", address = "127.0.0.1:9003" },
        ]
        "#);
    }

    #[test]
    fn the_welcome_has_lines_to_paste() {
        let (listen, servers) = addresses();
        insta::assert_snapshot!(welcome(&args(8080), listen, &servers), @"
        Port 8080 is taken, so this is on port 8081.
        Forebay on http://127.0.0.1:8081/ before three servers, chosen by leastconn:
          fast    127.0.0.1:9001   about 1 ms
          medium  127.0.0.1:9002   about 3 ms
          slow    127.0.0.1:9003   about 9 ms

          curl -i http://127.0.0.1:8081/               one answer, and who gave it
          curl -i http://127.0.0.1:8081/chunked        in chunks; /slow takes 300 ms, /large is 1 MiB
          curl -d hello http://127.0.0.1:8081/         a body, sent back
          wrk -t2 -c64 -d30s http://127.0.0.1:8081/    load

        Every 3 s: share of the responses and mean latency of each server. Ctrl-C ends it.
        ");
        assert!(!welcome(&args(8081), listen, &servers).contains("taken"));
    }

    #[test]
    fn a_taken_port_is_passed_over() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap();
        let holder = TcpListener::bind(taken).unwrap();
        let found = free_address(taken.port());
        assert_ne!(found.unwrap().port(), taken.port());
        drop(holder);
        assert_ne!(free_address(0).unwrap().port(), 0);
    }

    #[test]
    fn whoever_serves_finds_the_servers_running_and_its_exit_code_is_the_demos() {
        let code = run_with(&args(0), |mut demo| {
            let table: toml::Table = demo.config.parse()?;
            let servers = table["backend"]["demo"]["servers"].as_array().unwrap();
            for server in servers {
                let mut stream = TcpStream::connect(server["address"].as_str().unwrap())?;
                stream.write_all(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer)?;
                assert!(answer.contains(&format!("server={} total=1 ", server["name"].as_str().unwrap())));
            }
            (demo.observe)(
                &[Seen {
                    name: "fast".to_owned(),
                    responses: 1,
                    ..Seen::default()
                }],
                Choices::default(),
            );
            Ok(ExitCode::from(7))
        });
        assert_eq!(format!("{:?}", code.unwrap()), format!("{:?}", ExitCode::from(7)));
    }
}
