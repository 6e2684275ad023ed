//! The clusters that are looked at, for the program and, smaller, for the tests.

use forebay::decide::balance::Algorithm;
use forebay::decide::reuse::{KeepRule, Mode};
use forebay::sim::{Clients, Cluster, Costs, Load, Phase, ScriptedRequest, Span, VirtualServer};

/// Microseconds of a second.
pub(crate) const SECOND: u64 = 1_000_000;

/// 200 servers that answer in 2 ms on average, 4 workers, 1,000 clients that think for 10 ms on average.
pub(crate) fn steady(reserve: u32, keep: KeepRule) -> Cluster {
    let server = VirtualServer::answering(Span::Exponential { mean: 2_000 });
    let mut cluster = Cluster::new(4, 200, server);
    cluster.load = Load::Clients(Clients::thinking(1_000, Span::Exponential { mean: 10_000 }));
    cluster.pool.figures.idle_reserve = reserve;
    cluster.pool.figures.rule = keep;
    cluster.duration = 600 * SECOND;
    cluster
}

/// 8 workers, 50 servers that answer in 5 ms on average, and clients that think for 1 s on average: all of `clients`
/// for two seconds, then a tenth of them for three.
pub(crate) fn varying(clients: u32, keep: KeepRule) -> Cluster {
    let server = VirtualServer::answering(Span::Exponential { mean: 5_000 });
    let mut cluster = Cluster::new(8, 50, server);
    let phase = |seconds, clients| Phase {
        lasts: seconds * SECOND,
        clients,
    };
    cluster.load = Load::Clients(Clients {
        ramp: SECOND,
        phases: vec![phase(2, clients), phase(3, clients / 10)],
        ..Clients::thinking(clients, Span::Exponential { mean: SECOND })
    });
    cluster.pool.figures.rule = keep;
    cluster.duration = 60 * SECOND;
    cluster
}

/// History's experiment: 16 workers, 210 servers answering in 1 ms, 10,000 clients that do not think. A worker needs
/// 45 µs for a request and its response, which makes the 350,000 requests a second that history measured; a
/// connection to open costs it as much again, one to take over 5 µs. These costs are assumed.
pub(crate) fn historic(reserve: u32, closes_after: Option<u32>, keep: KeepRule) -> Cluster {
    let server = VirtualServer {
        closes_after,
        ..VirtualServer::answering(Span::Constant(1_000))
    };
    let mut cluster = Cluster::new(16, 210, server);
    cluster.costs = Costs {
        request: 25,
        response: 20,
        open: 45,
        takeover: 5,
        grant: 0,
    };
    cluster.balance = Algorithm::RoundRobin;
    cluster.load = Load::Clients(Clients::thinking(10_000, Span::Constant(0)));
    cluster.pool.figures.idle_reserve = reserve;
    cluster.pool.figures.rule = keep;
    cluster.duration = 15 * SECOND;
    cluster
}

/// 16 workers, 1,000 clients that do not think, servers that answer in 2 ms on average and take `limit` at a time. A worker
/// needs 45 µs for a request and its response, and 10 µs more where it had to wait. These costs are assumed.
pub(crate) fn queues(servers: usize, limit: u32, balance: Algorithm) -> Cluster {
    let mut server = VirtualServer::answering(Span::Exponential { mean: 2_000 });
    server.limit = limit;
    let mut cluster = Cluster::new(16, servers, server);
    cluster.balance = balance;
    cluster.costs = Costs {
        request: 25,
        response: 20,
        open: 45,
        takeover: 5,
        grant: 10,
    };
    cluster.load = Load::Clients(Clients::thinking(1_000, Span::Constant(0)));
    cluster.duration = 5 * SECOND;
    cluster
}

/// A server that is multiplexed, and one worker: two clients with overlapping requests, twice, and later one more of
/// each.
pub(crate) fn multiplexed(mode: Mode) -> Cluster {
    let server = VirtualServer {
        streams: 8,
        ..VirtualServer::answering(Span::Constant(10_000))
    };
    let mut cluster = Cluster::new(1, 1, server);
    cluster.pool.mode = mode;
    let lines = [
        (0, 0),
        (1_000, 1),
        (2_000, 0), // still overlaps with all before it
        (3_000, 1),
        (100_000, 1),
        (101_000, 0),
        (200_000, 0),
        (300_000, 1),
    ];
    cluster.load = Load::Script(lines.map(|(at, client)| ScriptedRequest { at, client }).into());
    cluster.decisions_max = 100;
    cluster.duration = SECOND;
    cluster
}

/// One server that answers in 2 ms on average, four workers and sixteen clients at work without a break.
pub(crate) fn takeovers(seconds: u64) -> Cluster {
    let server = VirtualServer::answering(Span::Exponential { mean: 2_000 });
    let mut cluster = Cluster::new(4, 1, server);
    cluster.load = Load::Clients(Clients::thinking(16, Span::Exponential { mean: 2_000 }));
    cluster.duration = seconds * SECOND;
    cluster
}

/// A burst of 100 connections, then two clients.
pub(crate) fn burst() -> Cluster {
    let server = VirtualServer::answering(Span::Constant(20_000));
    let mut cluster = Cluster::new(4, 1, server);
    cluster.load = Load::Clients(Clients {
        phases: vec![
            Phase {
                lasts: SECOND / 2,
                clients: 100,
            },
            Phase {
                lasts: 1_000 * SECOND,
                clients: 2,
            },
        ],
        ..Clients::thinking(100, Span::Constant(0))
    });
    cluster.duration = 60 * SECOND;
    cluster
}
