//! The servers that a policy is shown: how many, how they do, and what is extreme about them.

use crate::policy::{
    Columns, Draw, Live, Measure, PlanServer, PlanView, Reading, ServerIndex, Shown, State, Windowed,
};
use crate::sim::random::Dice;
use std::sync::Arc;
use std::time::Duration;

/// Some servers at one moment.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) name: String,
    pub(super) servers: Vec<Server>,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) zone: &'static str,
    pub(super) weight: u32,
    pub(super) state: State,
    pub(super) limit: Option<u32>,
    /// In µs.
    pub(super) latency: Option<u32>,
    pub(super) in_flight: u32,
    pub(super) queued: u32,
    pub(super) idle: u32,
    pub(super) completed: u64,
    pub(super) failed: u64,
}

/// Zones of servers that differ.
const ZONES: [&str; 3] = ["a", "b", ""];
/// What stands at the ends of each figure.
const EXTREMES: [u32; 4] = [0, 1, i32::MAX as u32, u32::MAX];

impl Server {
    /// One that takes requests, has none, and is known to answer within 10 ms.
    pub(super) fn idle(at: usize) -> Server {
        Server {
            name: format!("s{at}"),
            zone: ZONES[0],
            weight: 16,
            state: State::Ready,
            limit: None,
            latency: Some(10_000),
            in_flight: 0,
            queued: 0,
            idle: 4,
            completed: 100,
            failed: 0,
        }
    }

    /// One in which no figure is like that of another.
    fn unlike(at: usize) -> Server {
        let figure = at as u32;
        Server {
            zone: ZONES[at % ZONES.len()],
            weight: 16 * (figure % 9 + 1),
            limit: Some(10 + figure),
            latency: Some(5_000 + 300 * figure),
            in_flight: figure % 7 + 1,
            queued: figure % 2,
            idle: figure % 5,
            completed: 100 + u64::from(figure),
            failed: u64::from(figure % 4),
            ..Server::idle(at)
        }
    }

    /// One with each figure at one of its ends.
    fn extreme(at: usize) -> Server {
        let end = |digit: usize| EXTREMES[at / 4_usize.pow(digit as u32) % 4];
        let known = |end: u32| (end != u32::MAX).then_some(end);
        Server {
            name: match at % 4 {
                0 => "n".repeat(255),
                1 => "\u{1f40c}\u{301}".to_owned(),
                2 => String::new(),
                _ => format!("s{at}"),
            } + &at.to_string(),
            zone: ZONES[at % ZONES.len()],
            weight: end(0).min(4096),
            state: match at % 5 {
                0 => State::Down,
                1 => State::Draining,
                _ => State::Ready,
            },
            limit: known(end(1)),
            latency: known(end(2)),
            in_flight: end(1),
            queued: end(0),
            idle: end(2),
            completed: u64::from(end(1)),
            failed: u64::from(end(1)),
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        self.state == State::Ready && self.weight > 0
    }
}

impl Scene {
    fn new(name: &str, servers: Vec<Server>) -> Scene {
        Scene {
            name: name.to_owned(),
            servers,
        }
    }

    /// So many equal servers, all idle.
    pub(super) fn equal(count: usize) -> Scene {
        let name = match count {
            0 => "no server".to_owned(),
            1 => "one server".to_owned(),
            _ => format!("{count} equal servers"),
        };
        Scene::new(&name, (0..count).map(Server::idle).collect())
    }

    /// So many servers, no two of them alike.
    pub(super) fn unlike(count: usize) -> Scene {
        let servers = (0..count).map(Server::unlike).collect();
        Scene::new(&format!("{count} servers that differ"), servers)
    }

    /// So many servers with some requests each.
    pub(super) fn busy(count: usize, dice: &mut Dice) -> Scene {
        let mut scene = Scene::equal(count);
        for server in &mut scene.servers {
            server.in_flight = dice.draw(20);
            server.queued = dice.draw(3);
            server.latency = Some(5_000 + dice.draw(10_000));
        }
        scene.named(format!("{count} busy servers"))
    }

    pub(super) fn named(mut self, name: impl Into<String>) -> Scene {
        self.name = name.into();
        self
    }

    /// The same with these servers in that state.
    pub(super) fn with(mut self, servers: impl IntoIterator<Item = usize>, state: State) -> Scene {
        for at in servers {
            self.servers[at].state = state;
        }
        self
    }

    /// The same without one of them.
    pub(super) fn without(mut self, server: usize) -> Scene {
        self.servers.remove(server);
        self
    }

    /// The same in another order.
    pub(super) fn shuffled(mut self, dice: &mut Dice) -> Scene {
        for last in (1..self.servers.len()).rev() {
            self.servers.swap(last, dice.draw(last as u32 + 1) as usize);
        }
        self
    }

    pub(super) fn is_usable(&self, server: ServerIndex) -> bool {
        self.servers.get(server.at()).is_some_and(Server::is_usable)
    }

    pub(super) fn has_usable(&self) -> bool {
        self.servers.iter().any(Server::is_usable)
    }

    /// As it is shown to who picks.
    pub(super) fn shown(&self) -> Shown {
        Shown {
            columns: Arc::new(columns(&self.servers)),
            live: self.live(),
        }
    }

    fn live(&self) -> Arc<dyn Live> {
        Arc::new(Still(self.servers.clone()))
    }

    /// As it is shown to who plans.
    pub(super) fn view<R>(&self, now: Duration, see: impl FnOnce(&PlanView<'_>) -> R) -> R {
        let tags: Vec<[(&str, &str); 2]> = self.servers.iter().map(tags).collect();
        let servers: Vec<PlanServer<'_>> = self
            .servers
            .iter()
            .zip(&tags)
            .map(|(server, tags)| planned(server, tags))
            .collect();
        see(&PlanView {
            now,
            servers: &servers,
            live: Some(&self.live()),
        })
    }
}

/// As columns.
pub(super) fn columns(servers: &[Server]) -> Columns {
    let signed = |figure: Option<u32>| figure.map_or(-1, |it| i32::try_from(it).unwrap_or(i32::MAX));
    let each = |read: &dyn Fn(&Server) -> i32| servers.iter().map(read).collect::<Vec<i32>>();
    Columns {
        names: servers.iter().map(|server| server.name.clone()).collect(),
        zones: servers.iter().map(|server| server.zone.to_owned()).collect(),
        weights: each(&|server| server.weight as i32),
        states: each(&|server| server.state as i32),
        limits: each(&|server| signed(server.limit)),
        latencies: each(&|server| signed(server.latency)),
    }
}

/// In the order of their names. Those of a zone and those without have different tags, so that plans by tag have a choice.
fn tags(server: &Server) -> [(&'static str, &'static str); 2] {
    let cost = if server.zone == ZONES[0] { "own" } else { "rented" };
    [("cost", cost), ("zone", server.zone)]
}

fn planned<'a>(server: &'a Server, tags: &'a [(&'a str, &'a str)]) -> PlanServer<'a> {
    PlanServer {
        name: &server.name,
        tags,
        weight: server.weight,
        state: server.state,
        limit: server.limit,
        in_flight: server.in_flight,
        queued: server.queued,
        used: server.in_flight,
        idle: server.idle,
        need: server.in_flight,
        opened: server.completed,
        latency: server.latency.map(|us| Duration::from_micros(us.into())),
        completed: server.completed,
        failed: server.failed,
    }
}

/// Figures that do not move.
struct Still(Vec<Server>);

impl Live for Still {
    fn in_flight(&self, server: ServerIndex) -> u32 {
        self.0[server.at()].in_flight
    }
    fn queued(&self, server: ServerIndex) -> u32 {
        self.0[server.at()].queued
    }
    fn idle(&self, server: ServerIndex) -> u32 {
        self.0[server.at()].idle
    }
    /// Reports say everything, in their way: the first of their values is as good as any.
    fn find(&self, measure: &Measure) -> Option<Reading> {
        Some(match measure {
            Measure::SafeIdle => Reading::SafeIdle,
            Measure::Window(windowed) => Reading::Window(*windowed),
            Measure::Report(_) => Reading::Report(0),
        })
    }
    fn measure(&self, server: ServerIndex, reading: Reading, _: Duration) -> Option<u32> {
        let server = &self.0[server.at()];
        match reading {
            Reading::SafeIdle => Some(server.idle),
            Reading::Window(Windowed::Median) => server.latency,
            Reading::Window(Windowed::Tail) => server.latency.map(|median| median.saturating_mul(4)),
            Reading::Window(Windowed::Failures) => {
                let share = (server.failed * 10_000).checked_div(server.completed)?;
                u32::try_from(share).ok()
            }
            // Who has never answered has never reported.
            Reading::Report(_) => server.latency.map(|_| server.in_flight.saturating_mul(1000)),
        }
    }
}

/// All scenes, so that each follows from the one before as tables do: servers come, go, come back and change places.
pub(super) fn all(seed: u64) -> Vec<Scene> {
    let dice = &mut Dice::new(seed);
    let hundred = || Scene::equal(100);
    vec![
        Scene::equal(0),
        Scene::equal(1),
        Scene::equal(4),
        Scene::equal(4)
            .with([2], State::Draining)
            .named("one of 4 drained"),
        Scene::equal(4)
            .with(0..4, State::Down)
            .named("4 servers, all down"),
        Scene::equal(4)
            .with(0..4, State::Maintenance)
            .named("4 servers, all in maintenance"),
        Scene::equal(4).named("4 equal servers that came back"),
        hundred(),
        hundred()
            .without(50)
            .named("100 equal servers of which one was removed"),
        hundred()
            .shuffled(dice)
            .named("100 equal servers that changed places"),
        Scene::unlike(50),
        Scene::equal(1_000),
        Scene::busy(1_000, dice),
        Scene::new(
            "64 servers with every figure at an end",
            (0..64).map(Server::extreme).collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_what_they_are_called() {
        let scenes = all(1);
        let sizes: Vec<usize> = scenes.iter().map(|scene| scene.servers.len()).collect();
        assert_eq!(sizes, [0, 1, 4, 4, 4, 4, 4, 100, 99, 100, 50, 1_000, 1_000, 64]);
        let usable: Vec<bool> = scenes.iter().map(Scene::has_usable).collect();
        assert_eq!(usable.iter().filter(|it| !**it).count(), 3);
    }

    #[test]
    fn no_two_servers_share_a_name() {
        for scene in all(1) {
            let mut names: Vec<&str> = scene.servers.iter().map(|server| &*server.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), scene.servers.len(), "{}", scene.name);
        }
    }

    #[test]
    fn a_shuffle_keeps_everybody() {
        let mut scene = Scene::equal(10).shuffled(&mut Dice::new(1));
        let moved = (0..)
            .zip(&scene.servers)
            .filter(|(at, it)| it.name != format!("s{at}"));
        assert!(moved.count() > 5);
        scene.servers.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<String> = (0..10).map(|at| format!("s{at}")).collect();
        assert!(scene.servers.iter().map(|server| &server.name).eq(&names));
    }
}
