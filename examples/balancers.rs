//! Draws what one slow server does to everybody, under each balancer: who gets how much, and how long requests wait.
//!
//! Eight servers with four slots each answer in 2 ms on average, but one takes 8 ms. Clients ask as soon as they have their
//! answer and have thought for a while. The shares are those of forty clients, who seldom have to wait; the waits those of
//! ninety, who ask for nearly all that the servers can do. Virtual time, the real balancers and queues; one seed is one picture.
//!
//! Where requests wait for *any* server, it hardly matters who chooses: the next free slot takes the next request. What is tied
//! to a server, or waits in its queue, waits for the slow one while others are free.
//!
//! `cargo run --no-default-features --example balancers -- balancers.svg`

use forebay::decide::balance::Algorithm;
use forebay::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
use forebay::shared::table::Queueing;
use forebay::sim::{Clients, Cluster, Load, Report, Span, VirtualServer};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SEED: u64 = 1;
const SERVERS: usize = 8;
const SLOTS: u32 = 4;
/// In µs.
const FAST: u64 = 2_000;
const SLOW: u64 = 4 * FAST;
/// Clients, and how long they think in µs.
const SOME: (u32, u64) = (40, 2_000);
const MANY: (u32, u64) = (90, 4_000);
const DURATION: u64 = 5_000_000;

type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// What the picture shows of one balancer.
pub(crate) struct Shown {
    pub(crate) name: &'static str,
    /// Of all requests, in percent.
    pub(crate) slow_share: f64,
    pub(crate) fast_share: f64,
    /// Of all requests, in ms.
    pub(crate) mean_delay: f64,
    /// Of those that waited, in ms.
    pub(crate) worst_delay: f64,
    /// From a request to its response, on average, in ms.
    pub(crate) response: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "balancers.svg".to_owned());
    let shown = all();
    println!(
        "{:<22} {:>8} {:>9} {:>12} {:>13} {:>16}",
        "balancer", "slow %", "a fast %", "response ms", "mean wait ms", "p99 of waits ms"
    );
    for of in &shown {
        println!(
            "{:<22} {:>8.1} {:>9.1} {:>12.2} {:>13.2} {:>16.1}",
            of.name, of.slow_share, of.fast_share, of.response, of.mean_delay, of.worst_delay
        );
    }
    draw(Path::new(&path), &shown)?;
    println!("{path}");
    Ok(())
}

/// Runs all of them.
pub(crate) fn all() -> Vec<Shown> {
    let show = |(name, balance, queue_max)| {
        show(
            name,
            &run(balance, queue_max, SOME),
            &run(balance, queue_max, MANY),
        )
    };
    balancers().map(show).into()
}

/// Draws them into a file.
pub(crate) fn draw(path: &Path, shown: &[Shown]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (1200, 860)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(430);
    bars(
        &above,
        "forty clients: requests of the slow server, and of a fast one (percent)",
        shown,
        [|of| of.slow_share, |of| of.fast_share],
    )?;
    bars(
        &below,
        "ninety clients: wait for a slot, mean of all requests, and 99th percentile of those that waited (ms)",
        shown,
        [|of| of.mean_delay, |of| of.worst_delay],
    )?;
    root.present()?;
    Ok(())
}

/// Their names, and how many may wait for one server and no other (`maxqueue`).
fn balancers() -> [(&'static str, Algorithm, Option<u32>); 8] {
    let hash = |bound, affinity| {
        Algorithm::Hash(Hash {
            mapping: Mapping::Consistent,
            bound,
            affinity,
            otherwise: Otherwise::RoundRobin,
        })
    };
    [
        ("leastconn", Algorithm::LeastConn, None),
        ("leastconn, maxqueue 8", Algorithm::LeastConn, Some(8)),
        ("random(2)", Algorithm::Random(2), None),
        ("roundrobin", Algorithm::RoundRobin, None),
        ("first", Algorithm::First, None),
        ("hash", hash(None, Affinity::Always), None),
        ("hash, bound 125", hash(Some(125), Affinity::Always), None),
        ("hash, to maxconn", hash(None, Affinity::Maxconn), None),
    ]
}

fn run(balance: Algorithm, queue_max: Option<u32>, (clients, think): (u32, u64)) -> Report {
    let server = |mean| VirtualServer {
        limit: SLOTS,
        queueing: Queueing {
            queue_max,
            ..Queueing::default()
        },
        weight: 8,
        ..VirtualServer::answering(Span::Exponential { mean })
    };
    let mut cluster = Cluster::new(4, SERVERS, server(FAST));
    cluster.servers[0] = server(SLOW);
    cluster.balance = balance;
    cluster.duration = DURATION;
    cluster.load = Load::Clients(Clients::thinking(clients, Span::Exponential { mean: think }));
    cluster.run(SEED).unwrap_or_else(|broken| panic!("{broken}"))
}

fn show(name: &'static str, some: &Report, many: &Report) -> Shown {
    let all: u64 = some.served_by.iter().sum();
    let share = |requests: u64| 100.0 * requests as f64 / all as f64;
    let slow = some.served_by[0];
    let waited = many.delays.mean() as f64 * many.delays.count() as f64;
    // Little's law: who does not think waits for a response.
    let cycle = f64::from(SOME.0) * DURATION as f64 / some.total().requests as f64;
    Shown {
        name,
        slow_share: share(slow),
        fast_share: share(all - slow) / (SERVERS - 1) as f64,
        response: (cycle - SOME.1 as f64) / 1_000.0,
        mean_delay: waited / many.total().requests as f64 / 1_000.0,
        worst_delay: many.delays.percentile(99) as f64 / 1_000.0,
    }
}

/// Two bars for each balancer.
fn bars(
    area: &Drawing<'_>,
    title: &str,
    shown: &[Shown],
    values: [fn(&Shown) -> f64; 2],
) -> Result<(), Box<dyn Error>> {
    let most = shown
        .iter()
        .flat_map(|of| values.map(|value| value(of)))
        .fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(14)
        .x_label_area_size(30)
        .y_label_area_size(45)
        .build_cartesian_2d(0.0..shown.len() as f64, 0.0..most * 1.1)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(8)
        .draw()?;
    for (at, of) in shown.iter().enumerate() {
        let left = at as f64 + 0.15;
        let colours = [RGBColor(200, 80, 40), RGBColor(60, 110, 170)];
        for ((value, colour), nth) in values.iter().zip(colours).zip(0..) {
            let (from, height) = (left + 0.35 * f64::from(nth), value(of));
            let bar = [(from, 0.0), (from + 0.33, height)];
            chart.draw_series(std::iter::once(Rectangle::new(bar, colour.filled())))?;
            let label = Text::new(
                format!("{height:.1}"),
                (from, height + most * 0.03),
                ("sans-serif", 12),
            );
            chart.draw_series(std::iter::once(label))?;
        }
        let (x, y) = chart.backend_coord(&(left, 0.0));
        area.draw_text(
            of.name,
            &("sans-serif", 12).into_text_style(area),
            (x - area.get_base_pixel().0, y - area.get_base_pixel().1 + 8),
        )?;
    }
    Ok(())
}
