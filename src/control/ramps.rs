//! Slow starts: which servers are on their way back, and when their next step is due (LB-60).
//!
//! Whoever waits for plans steps them too: each step is a new table. A reload keeps them; a server that goes again, or
//! whose time is over, is forgotten.

use super::Control;
use super::settings::micros;
use crate::decide::balance::ramp::Ramp;
use crate::policy::ServerId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The slow starts of all servers.
#[derive(Debug, Default)]
pub(super) struct Ramps {
    under_way: BTreeMap<ServerId, Start>,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    since: Instant,
    whole: Duration,
    next: Instant,
    /// As it is in the table.
    ramp: Ramp,
}

impl Ramps {
    /// A server comes back.
    pub(super) fn begin(&mut self, server: ServerId, whole: Duration, now: Instant) {
        let start = Start {
            since: now,
            whole,
            next: now + step(whole),
            ramp: Ramp::at(0, micros(whole)),
        };
        self.under_way.insert(server, start);
    }

    /// A server goes.
    pub(super) fn end(&mut self, server: ServerId) {
        self.under_way.remove(&server);
    }

    /// How far a server is.
    pub(super) fn of(&self, server: ServerId) -> Ramp {
        self.under_way.get(&server).map_or(Ramp::FULL, |start| start.ramp)
    }

    /// When the next step is due; nothing while no server is on its way.
    pub(super) fn next(&self) -> Option<Instant> {
        self.under_way.values().map(|start| start.next).min()
    }

    /// Steps whoever is due; tells whether a table changes.
    pub(super) fn advance(&mut self, now: Instant) -> Step {
        let mut step_made = Step::Nothing;
        for start in self.under_way.values_mut().filter(|start| start.next <= now) {
            start.ramp = Ramp::at(micros(now - start.since), micros(start.whole));
            start.next = (now + step(start.whole)).min(start.since + start.whole);
            step_made = Step::Made;
        }
        self.under_way.retain(|_, start| !start.ramp.is_full());
        step_made
    }
}

/// Whether there is something to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Made,
    Nothing,
}

fn step(whole: Duration) -> Duration {
    Duration::from_micros(Ramp::step(micros(whole))).min(whole)
}

impl Control {
    /// Steps the slow starts that are due, and publishes; tells when the next one is.
    pub(super) fn step_ramps(&self, now: Instant) -> Option<Instant> {
        let mut state = self.state.lock();
        let ramps = state.registry.ramps();
        if ramps.advance(now) == Step::Made {
            let next = ramps.next();
            self.publish_anew(&mut state);
            return next;
        }
        ramps.next()
    }

    /// Builds the next generation from what is known, and publishes it.
    pub(super) fn publish_anew(&self, steering: &mut super::Steering) {
        let super::Steering {
            registry,
            config,
            policies,
            ..
        } = steering;
        self.publish(registry.build(config, policies));
        self.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AC-45, in steps of a twentieth.
    #[test]
    fn a_slow_start_has_steps_and_an_end() {
        let (mut ramps, server, begun) = (Ramps::default(), ServerId(3), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert_eq!((ramps.next(), ramps.of(server)), (None, Ramp::FULL));
        ramps.begin(server, Duration::from_secs(60), begun);
        assert_eq!((ramps.next(), ramps.of(server).weight(10)), (Some(at(3)), 10));
        assert_eq!(ramps.advance(at(2)), Step::Nothing);
        assert_eq!(ramps.advance(at(4)), Step::Made);
        assert_eq!((ramps.next(), ramps.of(server).weight(10)), (Some(at(7)), 20));
        assert_eq!(ramps.advance(at(59)), Step::Made);
        assert_eq!((ramps.next(), ramps.of(server).weight(10)), (Some(at(60)), 160));
        assert!(!ramps.of(server).is_full(), "its limit is not");
        assert_eq!(ramps.advance(at(60)), Step::Made);
        assert_eq!((ramps.next(), ramps.of(server)), (None, Ramp::FULL));
        ramps.begin(server, Duration::from_secs(60), begun);
        ramps.end(server);
        assert_eq!(ramps.of(server), Ramp::FULL);
    }
}
