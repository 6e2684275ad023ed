//! Tables of what the pools do under loads that no test machine bears, in virtual time: `cargo bench
//! --no-default-features --bench simulate`, or `-- NAME…` for some of the tables. The figures are the same on every
//! machine; only the last column of some, real seconds, is not.

mod scenarios;

use forebay::decide::balance::Algorithm;
use forebay::decide::reuse::{CloseReason, KeepRule, Mode};
use forebay::sim::{Cluster, Estimate, Report, Second, Tally};
use std::ops::Range;
use std::time::Instant;

const SEED: u64 = 1;

type Table = (&'static str, fn());

const TABLES: [Table; 8] = [
    ("queues", queues),
    ("multiplexed", multiplexed),
    ("steady", steady),
    ("varying", varying),
    ("historic", historic),
    ("decay", decay),
    ("takeovers", takeovers),
    ("burst", burst),
];

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    for (name, table) in TABLES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("\n== {name}");
            table();
        }
    }
}

fn run(cluster: &Cluster) -> (Report, f64) {
    let begun = Instant::now();
    let report = cluster.run(SEED).unwrap_or_else(|broken| panic!("{broken}"));
    (report, begun.elapsed().as_secs_f64())
}

/// Requests per server, and how long they waited for a slot.
fn queues() {
    println!(
        "{:<34} {:>9} {:>8} {:>20} {:>8} {:>8} {:>8} {:>6}",
        "servers, maxconn, balance",
        "requests",
        "waited %",
        "per server max/min",
        "p50 µs",
        "p99 µs",
        "most µs",
        "took s"
    );
    for servers in [20, 100] {
        for limit in [1, 4, u32::MAX] {
            for balance in [Algorithm::LeastConn, Algorithm::RoundRobin] {
                let (report, took) = run(&scenarios::queues(servers, limit, balance));
                let (total, delays) = (report.total(), &report.delays);
                let shown = (limit != u32::MAX).then(|| limit.to_string());
                let name = format!(
                    "{servers:3} {:>4} {balance:?}",
                    shown.as_deref().unwrap_or("none")
                );
                println!(
                    "{name:<34} {:>9} {:>8.2} {:>20.4} {:>8} {:>8} {:>8} {took:>6.1}",
                    total.requests,
                    total.of_requests(total.waited, 100),
                    spread(&report.served_by),
                    delays.percentile(50),
                    delays.percentile(99),
                    delays.most()
                );
            }
        }
    }
}

/// AC-15: decision by decision.
fn multiplexed() {
    for mode in [Mode::Safe, Mode::Always] {
        println!("reuse {mode:?}");
        let report = run(&scenarios::multiplexed(mode)).0;
        report
            .decisions
            .iter()
            .for_each(|decision| println!("  {decision}"));
    }
}

/// 200 servers and 4 workers: 10 million requests at the default and with twice as many in reserve as there are workers,
/// 2 million elsewhere.
fn steady() {
    head("pool-low-conn, keep");
    for reserve in [0, 2, 4, 8, 32] {
        for keep in RULES {
            let mut cluster = scenarios::steady(reserve, keep);
            cluster.requests_max = if reserve == 0 || reserve == 8 {
                10_000_000
            } else {
                2_000_000
            };
            let (report, took) = run(&cluster);
            row(
                &format!("{reserve:2} {keep:?}"),
                0..report.seconds.len(),
                &report,
                took,
            );
        }
    }
}

/// 30,000 clients that come and go, after the first wave, which finds nothing there.
fn varying() {
    head("estimate, pool-low-conn, keep");
    let without = (Estimate::Off, KeepRule::Plain);
    for reserve in [0, 16] {
        for (estimate, keep) in [(Estimate::On, RULES[0]), (Estimate::On, RULES[1]), without] {
            let mut cluster = scenarios::varying(30_000, keep);
            cluster.estimate = estimate;
            cluster.pool.figures.idle_reserve = reserve;
            let (report, took) = run(&cluster);
            row(
                &format!("{estimate:?} {reserve:2} {keep:?}"),
                5..60,
                &report,
                took,
            );
            let total = report.between(5..60);
            println!(
                "    closed: {} need, {} purge; {} in the worst second",
                total.closed_for(CloseReason::Need),
                total.closed_for(CloseReason::Purge),
                report.seconds[5..]
                    .iter()
                    .map(|second| second.tally.closed())
                    .max()
                    .unwrap_or(0),
            );
        }
    }
}

/// History's experiment: 10 s after 5 s of warm-up. `busy` of a hundred searches meet a sibling at its shard.
fn historic() {
    head("low, closes after, keep, busy");
    for (closes_after, busy) in [(None, 0), (None, 50), (Some(5), 0)] {
        for reserve in [0, 32] {
            for keep in RULES {
                let mut cluster = scenarios::historic(reserve, closes_after, keep);
                cluster.contention = busy;
                let (report, took) = run(&cluster);
                let after = closes_after.map_or("never".to_owned(), |after| after.to_string());
                row(
                    &format!("{reserve:2} {after} {keep:?} {busy}"),
                    5..15,
                    &report,
                    took,
                );
            }
        }
    }
}

/// Close after 5, second by second.
fn decay() {
    for reserve in [0, 32] {
        let mut cluster = scenarios::historic(reserve, Some(5), KeepRule::Plain);
        cluster.duration = 60 * scenarios::SECOND;
        let report = run(&cluster).0;
        println!("pool-low-conn {reserve}: reuse in percent, take-overs per 1,000 requests");
        for (ten, seconds) in report.seconds.chunks(10).enumerate() {
            let each = |what: fn(&Tally) -> f64| {
                seconds
                    .iter()
                    .map(|second| format!("{:6.2}", what(&second.tally)))
                    .collect::<String>()
            };
            println!("  {:2} s {}", ten * 10, each(Tally::reuse_percent));
            println!(
                "       {}",
                each(|tally| tally.of_requests(tally.taken_over, 1_000))
            );
        }
        let (first, last) = (report.between(0..10), report.between(50..60));
        println!(
            "  first 10 s {:.3} %, last 10 s {:.3} %",
            first.reuse_percent(),
            last.reuse_percent()
        );
    }
}

/// AC-10: who takes over, and from whom.
fn takeovers() {
    let report = run(&scenarios::takeovers(60)).0;
    let total = report.total();
    println!(
        "{} requests, {} taken over in 60 s",
        total.requests, total.taken_over
    );
    println!(
        "taken by   {:?}: max/min {:.3}",
        report.taken_by,
        spread(&report.taken_by)
    );
    println!(
        "given by   {:?}: max/min {:.3}",
        report.given_by,
        spread(&report.given_by)
    );
}

/// AC-11: idle connections at the end of each second after a burst of 100.
fn burst() {
    let report = run(&scenarios::burst()).0;
    for what in ["idle", "need"] {
        let of = |second: &Second| if what == "idle" { second.idle } else { second.need };
        println!(
            "{what} {}",
            report
                .seconds
                .iter()
                .map(|second| format!("{} ", of(second)))
                .collect::<String>()
        );
    }
    print!("{}", report.total());
}

/// The most by the least.
fn spread(of: &[u64]) -> f64 {
    let (most, least) = (of.iter().max(), of.iter().min());
    *most.unwrap_or(&0) as f64 / *least.unwrap_or(&1) as f64
}

const RULES: [KeepRule; 2] = [KeepRule::Plain, KeepRule::EqualShare];

fn head(first: &str) {
    println!(
        "{first:<34} {:>9} {:>8} {:>9} {:>9} {:>9} {:>7} {:>7} {:>6}",
        "requests", "reuse %", "takeovers", "opened", "closed", "used", "idle", "took s"
    );
    println!("{:<34} {:>9} {:>8} {:>29}", "", "", "", "per 1,000 requests");
}

fn row(name: &str, seconds: Range<usize>, report: &Report, took: f64) {
    let tally = report.between(seconds.clone());
    let per_thousand = |part| tally.of_requests(part, 1_000);
    let last = report.seconds[seconds.end - 1];
    println!(
        "{name:<34} {:>9} {:>8.3} {:>9.3} {:>9.3} {:>9.3} {:>7} {:>7} {took:>6.1}",
        tally.requests,
        tally.reuse_percent(),
        per_thousand(tally.taken_over),
        per_thousand(tally.opened()),
        per_thousand(tally.closed()),
        last.used,
        last.idle,
    );
}
