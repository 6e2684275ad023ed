//! Behaviour over virtual time: the pools under loads, with every invariant of a run looked at (`src/sim`). Small ones
//! of the clusters that `cargo bench --no-default-features --bench simulate` prints tables of.
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

#[path = "bench/simulate/scenarios.rs"]
#[allow(dead_code, reason = "the bench looks at all of them")]
mod scenarios;

#[path = "../examples/balancers.rs"]
#[allow(dead_code, reason = "the example prints more")]
mod balancers;

use forebay::decide::balance::Algorithm;
use forebay::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
use forebay::decide::reuse::{CloseReason, Descriptors, KeepRule, Mode, OpenReason, Sharing};
use forebay::shared::table::{Admin, Queueing};
use forebay::sim::{
    Change, Clients, Cluster, Estimate, Lent, Load, Report, ScriptedRequest, Span, Tally, VirtualServer,
};
use scenarios::SECOND;
use std::num::NonZeroU64;

fn run(cluster: &Cluster, seed: u64) -> Report {
    cluster.run(seed).unwrap_or_else(|broken| panic!("{broken}"))
}

/// A small cluster in which everything can happen.
fn busy() -> Cluster {
    let server = VirtualServer::answering(Span::Exponential { mean: 3_000 });
    let mut cluster = Cluster::new(4, 5, server);
    cluster.load = Load::Clients(Clients {
        session: Some(20),
        ..Clients::thinking(60, Span::Exponential { mean: 20_000 })
    });
    cluster.contention = 10;
    cluster.duration = 3 * SECOND;
    cluster
}

/// The text of a run, to the byte: every machine makes the same, also without optimisation.
#[test]
fn one_seed_is_one_run() {
    let mut cluster = busy();
    cluster.decisions_max = 20;
    let report = run(&cluster, 7);
    assert_eq!(report, run(&cluster, 7));
    assert_ne!(report, run(&cluster, 8));
    insta::assert_snapshot!(report.to_string());
}

/// Every mode, algorithm, keep rule and limit, with seeds: the invariants of a run do the looking.
#[test]
fn nothing_is_broken_in_any_mode() {
    let mut seed = 0;
    for mode in [Mode::Never, Mode::Safe, Mode::Aggressive, Mode::Always] {
        for (streams, closes_after) in [(1, None), (1, Some(5)), (4, None), (4, Some(7))] {
            for balance in [Algorithm::Random(2), Algorithm::RoundRobin, Algorithm::LeastConn] {
                for keep in [KeepRule::Plain, KeepRule::EqualShare] {
                    let mut cluster = busy();
                    (cluster.pool.mode, cluster.balance, cluster.pool.figures.rule) = (mode, balance, keep);
                    for server in &mut cluster.servers {
                        (server.streams, server.closes_after) = (streams, closes_after);
                    }
                    if let Load::Clients(clients) = &mut cluster.load {
                        clients.streams = 2;
                    }
                    seed += 1;
                    let report = run(&cluster, seed);
                    assert!(report.total().requests > 5_000, "{report}");
                }
            }
        }
    }
    assert_eq!(seed, 96);
}

/// POOL-51 and POOL-50: limits of connections, of slots and of descriptors, all short.
#[test]
fn limits_hold_where_everything_is_short() {
    for seed in 0..10 {
        let mut cluster = busy();
        cluster.pool.strict_max = Some(3);
        cluster.pool.max_reuse = Some(9);
        let report = run(&cluster, seed);
        assert!(report.total().refused > 0, "places were short: {report}");

        let mut cluster = busy();
        cluster.descriptor_limit = 30;
        let marks = Descriptors::new(0, 30, 20, 25);
        assert_eq!((marks.low, marks.high), (6, 8));
        let total = run(&cluster, seed).total();
        assert!(total.closed_for(CloseReason::DescriptorsHigh) > 0, "{total}");

        let mut cluster = busy();
        cluster.servers.iter_mut().for_each(|server| server.limit = 1);
        let total = run(&cluster, seed).total();
        assert!(total.waited > total.requests / 2 && total.refused == 0, "{total}");
    }
}

/// Q-5…15, whatever is short: slots, places in a queue, time, patience, servers. The invariants of a run do the looking.
#[test]
fn nothing_is_broken_where_requests_wait() {
    let mut seen = Tally::default();
    let mut seed = 0;
    for balance in [Algorithm::Random(2), Algorithm::RoundRobin, Algorithm::LeastConn] {
        for (limit, minconn) in [(1, 0), (3, 0), (6, 1)] {
            for (queue_max, tied) in [(None, 0), (None, 30), (Some(2), 30)] {
                let mut cluster = busy();
                cluster.balance = balance;
                for server in &mut cluster.servers {
                    server.limit = limit;
                    server.queueing = Queueing {
                        minconn,
                        fullconn: 40,
                        queue_max,
                    };
                    server.service = Span::Exponential { mean: 9_000 };
                }
                cluster.waiting.tied = tied;
                cluster.waiting.timeout = 60_000;
                cluster.waiting.leaves_after = Some(Span::Exponential { mean: 150_000 });
                cluster.changes = going_and_coming(5);
                seed += 1;
                seen += run(&cluster, seed).total();
            }
        }
    }
    let Tally {
        waited,
        timed_out,
        left,
        sent_back,
        refused,
        ..
    } = seen;
    assert!(
        [waited, timed_out, left, sent_back, refused]
            .iter()
            .all(|some| *some > 100),
        "{seen}"
    );
}

/// Servers go one after the other until none is left, and come back in another order; twice.
fn going_and_coming(servers: u16) -> Vec<Change> {
    let going = (0..servers).map(|server| (server, Admin::Maint));
    let drained = (0..servers).map(|server| (server, Admin::Drain));
    let coming = (0..servers).rev().map(|server| (server, Admin::Ready));
    let once = going.chain(coming.clone()).chain(drained).chain(coming);
    let at = |(place, (server, state))| Change {
        at: 300_000 + place * 60_000,
        server,
        state,
    };
    (0_u64..).zip(once).map(at).collect()
}

fn script(of: &[(u64, u32)]) -> Load {
    Load::Script(
        of.iter()
            .map(|&(at, client)| ScriptedRequest { at, client })
            .collect(),
    )
}

/// One server that is busy with the first for 2 s, and five who wait for it.
fn six_for_one_slot() -> Cluster {
    let mut server = VirtualServer::answering(Span::Constant(2 * SECOND));
    server.limit = 1;
    let mut cluster = Cluster::new(2, 1, server);
    cluster.load = script(&[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]);
    cluster.waiting.timeout = SECOND;
    cluster
}

/// AC-25, Q-13: the last server goes, and those who wait are refused at once, not after the timeout.
#[test]
fn who_waits_for_the_last_server_is_refused_when_it_goes() {
    let mut cluster = six_for_one_slot();
    cluster.changes = vec![Change {
        at: SECOND / 2,
        server: 0,
        state: Admin::Maint,
    }];
    let report = run(&cluster, 1);
    let first = report.between(0..1);
    assert_eq!(
        (first.waited, first.sent_back, first.refused, first.timed_out),
        (5, 5, 5, 0)
    );
    assert_eq!(report.served_by, [1]);
}

/// AC-26, Q-14: after `timeout-queue`, and not before.
#[test]
fn who_waits_too_long_is_refused() {
    let mut cluster = six_for_one_slot();
    cluster.waiting.timeout = SECOND;
    let report = run(&cluster, 1);
    assert_eq!(
        (report.between(0..1).timed_out, report.between(1..2).timed_out),
        (0, 5)
    );
    cluster.waiting.timeout = SECOND - 3;
    let report = run(&cluster, 1);
    assert_eq!(
        (report.between(0..1).timed_out, report.between(1..2).timed_out),
        (2, 3)
    );
}

/// AC-27, Q-14: a client that leaves takes no slot with it.
#[test]
fn a_client_that_leaves_the_queue_takes_no_slot() {
    let mut cluster = six_for_one_slot();
    cluster.waiting.timeout = 10 * SECOND;
    cluster.waiting.leaves_after = Some(Span::Constant(3 * SECOND));
    let report = run(&cluster, 1);
    assert_eq!((report.total().left, report.served_by), (4, vec![2]));
    assert_eq!(
        report.delays.most(),
        2 * SECOND + 99,
        "and 100 µs to connect, less 1 to come"
    );
}

/// AC-15, POOL-14: a multiplexed connection is one client's as long as it carries a stream, and anybody's after that.
#[test]
fn overlapping_clients_share_a_multiplexed_connection_only_one_after_the_other() {
    let report = run(&scenarios::multiplexed(Mode::Safe), 1);
    let lent: Vec<(u64, Lent)> = report
        .decisions
        .iter()
        .filter_map(|decision| Some((decision.connection, decision.lent?)))
        .collect();
    let first = Lent::Opened(OpenReason::FirstRequest);
    assert_eq!(
        lent[..4],
        [(1, first), (2, first), (1, Lent::Attached), (2, Lent::Attached)],
        "two clients at the same time"
    );
    assert_eq!(
        lent[4..],
        [(2, Lent::Own), (1, Lent::Own), (1, Lent::Own), (1, Lent::Own)],
        "each takes what was used last and is free, whoever had it"
    );
}

/// POOL-10 b, 14, 15: under `always` its free streams are everybody's as soon as it is open.
#[test]
fn under_always_streams_of_a_busy_connection_are_shared() {
    let report = run(&scenarios::multiplexed(Mode::Always), 1);
    let total = report.total();
    assert_eq!((total.opened(), total.requests), (1, 8));
    assert_eq!(total.joined, 4, "{report}");
}

/// 200 servers and 4 workers, in steady state, with twice as many in reserve as there are workers.
#[test]
fn a_steady_load_reuses_and_takes_little_over() {
    let mut cluster = scenarios::steady(8, KeepRule::Plain);
    cluster.requests_max = 300_000;
    let report = run(&cluster, 1);
    let late = report.between(2..report.seconds.len());
    assert!(late.reuse_percent() > 98.0, "{late}");
    assert!(late.of_requests(late.taken_over, 100) < 3.0, "{late}");
}

/// What `pool-keep = "equal"` is for: with a reserve, fewer are opened and fewer taken over than under the plain rule.
#[test]
fn equal_shares_open_and_take_over_less() {
    let late = |keep| {
        let mut cluster = scenarios::historic(8, None, keep);
        cluster.workers = 4;
        cluster.servers.truncate(40);
        cluster.pool.purge_delay = NonZeroU64::new(SECOND / 2);
        cluster.duration = 4 * SECOND;
        if let Load::Clients(clients) = &mut cluster.load {
            clients.count = 400;
            clients.think = Span::Exponential { mean: 2_000 };
        }
        let report = run(&cluster, 1);
        report.between(1..4)
    };
    let (plain, equal) = (late(KeepRule::Plain), late(KeepRule::EqualShare));
    assert!(equal.opened() * 2 < plain.opened(), "{equal}{plain}");
    assert!(equal.taken_over * 10 < plain.taken_over * 9, "{equal}{plain}");
}

/// POOL-44: without the estimate, a pool empties itself between two waves.
#[test]
fn the_estimate_spares_closes_where_load_varies() {
    let closed = |estimate| {
        let mut cluster = scenarios::varying(2_000, KeepRule::Plain);
        cluster.duration = 30 * SECOND;
        cluster.estimate = estimate;
        run(&cluster, 1).between(5..30).closed()
    };
    let (with, without) = (closed(Estimate::On), closed(Estimate::Off));
    assert!(with * 2 < without, "{with} with, {without} without");
}

/// Servers that close after five responses: four of five requests reuse, and it does not get worse.
#[test]
fn closes_after_five_do_not_add_up() {
    let mut cluster = scenarios::historic(0, Some(5), KeepRule::Plain);
    cluster.workers = 4;
    cluster.servers.truncate(40);
    cluster.duration = 4 * SECOND;
    if let Load::Clients(clients) = &mut cluster.load {
        clients.count = 400;
    }
    let report = run(&cluster, 1);
    let (first, last) = (report.between(0..1), report.between(3..4));
    assert!(last.reuse_percent() > 79.0, "{last}");
    assert!(last.reuse_percent() >= first.reuse_percent(), "{first}{last}");
}

/// AC-10.
#[test]
fn take_overs_are_spread_evenly() {
    let report = run(&scenarios::takeovers(20), 1);
    for spread in [&report.taken_by, &report.given_by] {
        let (most, least) = (*spread.iter().max().unwrap(), *spread.iter().min().unwrap());
        assert!(least > 100 && most * 10 < least * 12, "{spread:?}");
    }
}

/// AC-11: idle ones decrease by about half of the excess in each period of 5 s, and end at 0 to 2.
#[test]
fn a_burst_is_purged_step_by_step() {
    let report = run(&scenarios::burst(), 1);
    let idle: Vec<u32> = report.seconds.iter().map(|second| second.idle).collect();
    assert!(idle[3] >= 90, "{idle:?}");
    assert!(idle.windows(2).skip(1).all(|pair| pair[1] <= pair[0]), "{idle:?}");
    assert!(*idle.last().unwrap() <= 2, "{idle:?}");
    let total = report.total();
    let beyond_need = [CloseReason::Purge, CloseReason::Need].map(|reason| total.closed_for(reason));
    assert!(
        total.closed() >= 98 && total.closed() == beyond_need.iter().sum::<u64>(),
        "{total}"
    );
}

/// POOL-21.
#[test]
fn without_sharing_nothing_is_taken_over() {
    let mut cluster = busy();
    cluster.sharing = Sharing::Off;
    let total = run(&cluster, 1).total();
    assert_eq!(total.taken_over, 0);
    assert!(total.opened_for(OpenReason::SharingOff) > 0, "{total}");
}

/// Every algorithm before servers that fill up and go: whoever waits ends once, and nobody beside a free slot.
#[test]
fn every_algorithm_keeps_the_invariants() {
    let hash = |bound, affinity| {
        Algorithm::Hash(Hash {
            mapping: Mapping::Consistent,
            bound,
            affinity,
            otherwise: Otherwise::RoundRobin,
        })
    };
    for balance in [
        Algorithm::Random(2),
        Algorithm::RoundRobin,
        Algorithm::LeastConn,
        Algorithm::First,
        Algorithm::Sticky,
        hash(None, Affinity::Always),
        hash(Some(150), Affinity::Maxconn),
        hash(None, Affinity::Maxqueue),
    ] {
        let mut cluster = busy();
        cluster.balance = balance;
        cluster.servers.iter_mut().for_each(|server| {
            server.limit = 3;
            server.queueing.queue_max = Some(4);
        });
        let change = |at, server, state| Change { at, server, state };
        cluster.changes = vec![
            change(SECOND / 2, 0, Admin::Maint),
            change(SECOND, 1, Admin::Drain),
            change(3 * SECOND / 2, 0, Admin::Ready),
            change(2 * SECOND, 1, Admin::Ready),
        ];
        for seed in 0..3 {
            let report = run(&cluster, seed);
            assert!(report.total().requests > 1_000, "{balance:?}: {report}");
        }
    }
}

/// The picture of `examples/balancers.rs` shows what it is there for.
#[test]
fn one_slow_server_under_each_balancer() {
    let shown = balancers::all();
    let of = |name: &str| {
        shown
            .iter()
            .find(|shown| shown.name == name)
            .expect("it is drawn")
    };
    let (least, turns, hash) = (of("leastconn"), of("roundrobin"), of("hash"));
    assert!(
        least.slow_share < turns.slow_share && least.response < turns.response,
        "it gets less where its load is looked at"
    );
    assert!(
        hash.mean_delay > 2.0 * least.mean_delay,
        "who is tied waits for the slow one"
    );
    assert!(hash.mean_delay > of("hash, to maxconn").mean_delay);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("balancers.svg");
    balancers::draw(&path, &shown).expect("it is drawn");
    let picture = std::fs::read_to_string(path).expect("it is there");
    for shown in &shown {
        assert!(
            picture.contains(shown.name),
            "{} is not in the picture",
            shown.name
        );
    }
}
