//! Draws what one slow server does to everybody, under each balancer: who gets how much, and how long requests wait.
//!
//! Eight servers with four slots each answer in 2 ms on average, but one takes 8 ms. Forty clients ask, each as soon as it has
//! its answer and has thought for 2 ms. Virtual time, the real balancers and queues; one seed is one picture.
//!
//! `cargo run --no-default-features --example balancers -- balancers.svg`

use forebay::decide::balance::Algorithm;
use forebay::decide::balance::hash::{Affinity, Hash, Mapping, Otherwise};
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
const THINK: u64 = 2_000;
const CLIENTS: u32 = 40;
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
    /// In a second.
    pub(crate) requests: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "balancers.svg".to_owned());
    let shown = all();
    println!(
        "{:<20} {:>10} {:>10} {:>12} {:>14} {:>12}",
        "balancer", "slow %", "a fast %", "mean wait ms", "p99 of waits ms", "requests/s"
    );
    for of in &shown {
        println!(
            "{:<20} {:>10.1} {:>10.1} {:>12.2} {:>14.1} {:>12.0}",
            of.name, of.slow_share, of.fast_share, of.mean_delay, of.worst_delay, of.requests
        );
    }
    draw(Path::new(&path), &shown)?;
    println!("{path}");
    Ok(())
}

/// Runs all of them.
pub(crate) fn all() -> Vec<Shown> {
    balancers()
        .map(|(name, balance)| show(name, &run(balance)))
        .into()
}

/// Draws them into a file.
pub(crate) fn draw(path: &Path, shown: &[Shown]) -> Result<(), Box<dyn Error>> {
    let root = SVGBackend::new(path, (1000, 860)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(430);
    bars(
        &above,
        "requests of the slow server, and of a fast one (percent)",
        shown,
        [|of| of.slow_share, |of| of.fast_share],
    )?;
    bars(
        &below,
        "wait for a slot: mean of all requests, and 99th percentile of those that waited (ms)",
        shown,
        [|of| of.mean_delay, |of| of.worst_delay],
    )?;
    root.present()?;
    Ok(())
}

fn balancers() -> [(&'static str, Algorithm); 8] {
    let hash = |bound, affinity| {
        Algorithm::Hash(Hash {
            mapping: Mapping::Consistent,
            bound,
            affinity,
            otherwise: Otherwise::RoundRobin,
        })
    };
    [
        ("leastconn", Algorithm::LeastConn),
        ("random(2)", Algorithm::Random(2)),
        ("random(1)", Algorithm::Random(1)),
        ("roundrobin", Algorithm::RoundRobin),
        ("first", Algorithm::First),
        ("hash", hash(None, Affinity::Always)),
        ("hash, bound 125", hash(Some(125), Affinity::Always)),
        ("hash, to maxconn", hash(None, Affinity::Maxconn)),
    ]
}

fn run(balance: Algorithm) -> Report {
    let server = |mean| VirtualServer {
        limit: SLOTS,
        weight: 8,
        ..VirtualServer::answering(Span::Exponential { mean })
    };
    let mut cluster = Cluster::new(4, SERVERS, server(FAST));
    cluster.servers[0] = server(SLOW);
    cluster.balance = balance;
    cluster.duration = DURATION;
    cluster.load = Load::Clients(Clients::thinking(CLIENTS, Span::Exponential { mean: THINK }));
    cluster.run(SEED).unwrap_or_else(|broken| panic!("{broken}"))
}

fn show(name: &'static str, report: &Report) -> Shown {
    let (total, delays) = (report.total(), &report.delays);
    let all: u64 = report.served_by.iter().sum();
    let share = |requests: u64| 100.0 * requests as f64 / all as f64;
    let slow = report.served_by[0];
    let waited = delays.mean() as f64 * delays.count() as f64;
    Shown {
        name,
        slow_share: share(slow),
        fast_share: share(all - slow) / (SERVERS - 1) as f64,
        mean_delay: waited / total.requests as f64 / 1_000.0,
        worst_delay: delays.percentile(99) as f64 / 1_000.0,
        requests: total.requests as f64 * 1_000_000.0 / DURATION as f64,
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
            &("sans-serif", 14).into_text_style(area),
            (x - area.get_base_pixel().0, y - area.get_base_pixel().1 + 8),
        )?;
    }
    Ok(())
}
