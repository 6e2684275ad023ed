//! What a simulated server does with a request: how long it takes, and what goes wrong.

use super::connections::Name;
use super::random::{Dice, Span};
use super::world::{Faults, Model};
use crate::decide::settings::Micros;
use crate::policy::ServerId;
use crate::shared::server::Server;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// All servers, by id.
#[derive(Debug, Default)]
pub(super) struct Machines(Vec<Machine>);

#[derive(Debug)]
struct Machine {
    model: Model,
    /// When it is through with each of the requests that it works on, if it works on so many at a time only.
    busy: BinaryHeap<Reverse<Micros>>,
}

/// What comes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A response, at that time, with that status.
    Answer(Micros, u16),
    /// The connection is closed instead, at that time.
    Drop(Micros),
    /// Nothing.
    Silence,
}

impl Machines {
    /// Takes over how all servers behave from now on.
    pub(super) fn learn(&mut self, servers: &[Arc<Server<Name>>], model: impl Fn(&Server<Name>) -> Model) {
        for (at, server) in servers.iter().enumerate() {
            let model = model(server);
            match self.0.get_mut(at) {
                Some(machine) => machine.model = model,
                None => self.0.push(Machine {
                    model,
                    busy: BinaryHeap::new(),
                }),
            }
        }
    }

    pub(super) fn model(&self, server: ServerId) -> &Model {
        &self.0[server.0 as usize].model
    }

    /// Whether a connect is refused.
    pub(super) fn refuses(&self, server: ServerId, dice: &mut Dice) -> bool {
        let Faults { refuses, down, .. } = self.model(server).faults;
        down || dice.share(refuses)
    }

    /// What comes of a request that reaches it at `at` and takes so long, if that is known.
    pub(super) fn serve(
        &mut self,
        server: ServerId,
        at: Micros,
        service: Option<Micros>,
        dice: &mut Dice,
    ) -> Outcome {
        let machine = &mut self.0[server.0 as usize];
        let faults = machine.model.faults;
        if faults.down {
            return Outcome::Drop(at + 1);
        }
        let span = service.map_or(machine.model.service, Span::Constant);
        let done = machine.through(at, dice.time(span).max(1));
        if dice.share(faults.hangs) {
            Outcome::Silence
        } else if dice.share(faults.drops) {
            Outcome::Drop(done)
        } else if dice.share(faults.errors) {
            Outcome::Answer(done, 500)
        } else {
            Outcome::Answer(done, 200)
        }
    }
}

impl Machine {
    /// When it is through with a request: at once, or after those before it.
    fn through(&mut self, at: Micros, service: Micros) -> Micros {
        let Some(capacity) = self.model.capacity else {
            return at + service;
        };
        let begins = if self.busy.len() < capacity as usize {
            at
        } else {
            let Reverse(free) = self.busy.pop().expect("it works on one at least");
            free.max(at)
        };
        // What a smaller capacity has left over.
        while self.busy.len() >= capacity.max(1) as usize {
            self.busy.pop();
        }
        self.busy.push(Reverse(begins + service));
        begins + service
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Faults;

    fn machines(model: Model) -> Machines {
        let mut machines = Machines::default();
        machines.learn(&[Arc::new(Server::new(ServerId(0), "app", "a", 1))], |_| {
            model.clone()
        });
        machines
    }

    #[test]
    fn a_capacity_makes_requests_wait_inside() {
        let mut machines = machines(Model {
            capacity: Some(2),
            ..Model::answering(Span::Constant(10))
        });
        let mut dice = Dice::new(1);
        let mut at = |at| machines.serve(ServerId(0), at, None, &mut dice);
        let done = [at(0), at(0), at(0), at(5), at(40)];
        let answered = |at| Outcome::Answer(at, 200);
        assert_eq!(done, [10, 10, 20, 20, 50].map(answered));
    }

    #[test]
    fn faults_come_as_often_as_they_are_said_to() {
        let mut machines = machines(Model {
            faults: Faults {
                drops: 1_000,
                errors: 2_500,
                hangs: 100,
                refuses: 5_000,
                down: false,
            },
            ..Model::answering(Span::Constant(1))
        });
        let mut dice = Dice::new(3);
        let mut counts = [0_u32; 4];
        for _ in 0..10_000 {
            counts[match machines.serve(ServerId(0), 0, None, &mut dice) {
                Outcome::Answer(_, 200) => 0,
                Outcome::Answer(..) => 1,
                Outcome::Drop(_) => 2,
                Outcome::Silence => 3,
            }] += 1;
        }
        assert!((6_500..6_900).contains(&counts[0]) && (2_100..2_350).contains(&counts[1]));
        assert!(
            (900..1_090).contains(&counts[2]) && (70..140).contains(&counts[3]),
            "{counts:?}"
        );
        let refused = (0..1_000)
            .filter(|_| machines.refuses(ServerId(0), &mut dice))
            .count();
        assert!((440..560).contains(&refused), "{refused}");
    }
}
