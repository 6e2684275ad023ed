//! Waiting beside its model: a list of who waits, and the rules read one by one. Whatever happens, in whatever order, both
//! say the same.

use super::*;
use proptest::prelude::{Just, Strategy, prop, prop_oneof, proptest};

const SERVERS: u16 = 3;

/// What happens.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request comes that needs this server, or any, of this class.
    Comes(Option<u16>, i16),
    /// One of those who hold a slot of this server leaves.
    Leaves(u16),
    /// The one that waits at this place in the list of all gives up.
    GivesUp(usize),
    /// The limit of this server is another one.
    Limit(u16, u32),
    /// The operator's word.
    State(u16, Admin),
}

fn event() -> impl Strategy<Value = Event> {
    let server = || 0..SERVERS;
    let state = prop_oneof![Just(Admin::Ready), Just(Admin::Drain), Just(Admin::Maint)];
    prop_oneof![
        4 => (prop::option::of(server()), -1..=1_i16).prop_map(|(place, class)| Event::Comes(place, class)),
        3 => server().prop_map(Event::Leaves),
        1 => (0..20_usize).prop_map(Event::GivesUp),
        1 => (server(), 1..4_u32).prop_map(|(server, limit)| Event::Limit(server, limit)),
        1 => (server(), state).prop_map(|(server, state)| Event::State(server, state)),
    ]
}

/// One that waits, as the model knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waits {
    token: u64,
    place: Option<u16>,
    class: i16,
}

struct Model {
    waiting: Vec<Waits>,
    served: [u32; SERVERS as usize],
    limit: [u32; SERVERS as usize],
    state: [Admin; SERVERS as usize],
}

impl Model {
    /// Who gets a slot of that server: of those who may have it the lowest class, then who came first.
    fn next(&self, server: u16) -> Option<usize> {
        let is_ready = self.state[usize::from(server)] == Admin::Ready;
        let may = |waits: &Waits| waits.place.map_or(is_ready, |place| place == server);
        let better = |(_, waits): &(usize, &Waits)| (waits.class, waits.token);
        let waiting = self.waiting.iter().enumerate();
        let next = waiting.filter(|(_, waits)| may(waits)).min_by_key(better);
        next.map(|(place, _)| place)
    }

    /// Serves those who wait with what is free of a server; tells whom.
    fn serve(&mut self, server: u16, told: &mut Vec<u64>) {
        while self.served[usize::from(server)] < self.limit[usize::from(server)] {
            let Some(next) = self.next(server) else { return };
            told.push(self.waiting.remove(next).token);
            self.served[usize::from(server)] += 1;
        }
    }

    fn has_usable(&self) -> bool {
        self.state.contains(&Admin::Ready)
    }

    fn send_back(&mut self, told: &mut Vec<u64>) {
        let (state, has_usable) = (self.state, self.has_usable());
        self.waiting.retain(|waits| {
            let stays = waits
                .place
                .map_or(has_usable, |place| state[usize::from(place)] != Admin::Maint);
            if !stays {
                told.push(waits.token);
            }
            stays
        });
    }
}

struct Beside {
    table: Arc<Backend>,
    model: Model,
    /// All who have waited, by token; with the table that they waited with.
    guests: Vec<(Arc<Waiter>, Option<Rank>, Arc<Backend>)>,
}

impl Beside {
    fn new() -> Self {
        let table = backend((0..u32::from(SERVERS)).map(|id| entry(id, 1)).collect());
        table.open();
        Beside {
            table: Arc::new(table),
            model: Model {
                waiting: Vec::new(),
                served: [0; SERVERS as usize],
                limit: [1; SERVERS as usize],
                state: [Admin::Ready; SERVERS as usize],
            },
            guests: Vec::new(),
        }
    }

    /// Does it to both; answers with whom each tells.
    fn happen(&mut self, event: Event) -> (Vec<u64>, Vec<u64>) {
        let (mut grants, mut told) = (Grants::new(), Vec::new());
        match event {
            Event::Comes(place, class) => self.comes(place, class, &mut grants, &mut told),
            Event::Leaves(server) => self.leaves(server, &mut grants, &mut told),
            Event::GivesUp(guest) => self.gives_up(guest),
            Event::Limit(server, limit) => {
                self.model.limit[usize::from(server)] = limit;
                self.replace(
                    |entries| entries[usize::from(server)].limit = limit,
                    &mut grants,
                    &mut told,
                );
            }
            Event::State(server, state) => {
                self.model.state[usize::from(server)] = state;
                self.replace(
                    |entries| entries[usize::from(server)].state = state,
                    &mut grants,
                    &mut told,
                );
            }
        }
        assert!(!grants.take_unfinished());
        (grants.drain().map(|grant| grant.token).collect(), told)
    }

    fn comes(&mut self, place: Option<u16>, class: i16, grants: &mut Grants, told: &mut Vec<u64>) {
        let model = &mut self.model;
        let token = self.guests.len() as u64;
        let waiter = Arc::new(Waiter::new(WorkerId(0), token));
        let arrival = (class, token as i64);
        let waiting = self
            .table
            .wait(place.map(ServerIndex), waiter.clone(), arrival, grants);
        let open = place.map_or(model.has_usable(), |place| {
            model.state[usize::from(place)] != Admin::Maint
        });
        let rank = match waiting {
            Waiting::Queued { rank, ahead } => {
                let before = model.waiting.iter().filter(|waits| waits.place == place).count();
                assert!(open && ahead as usize == before);
                Some(rank)
            }
            Waiting::Closed => None,
            Waiting::Full => panic!("there is no maxqueue"),
        };
        assert_eq!(rank.is_some(), open);
        self.guests.push((waiter, rank, self.table.clone()));
        if open {
            model.waiting.push(Waits { token, place, class });
            (0..SERVERS).for_each(|server| model.serve(server, told));
        }
    }

    fn leaves(&mut self, server: u16, grants: &mut Grants, told: &mut Vec<u64>) {
        let (model, number) = (&mut self.model, usize::from(server));
        if model.served[number] == 0 {
            return;
        }
        self.table.release(at(server), grants);
        model.served[number] -= 1;
        model.serve(server, told);
    }

    fn gives_up(&mut self, guest: usize) {
        let Some((waiter, Some(rank), with)) = self.guests.get(guest) else {
            return;
        };
        let at = self
            .model
            .waiting
            .iter()
            .position(|waits| waits.token == guest as u64);
        let place = at.map(|at| self.model.waiting.remove(at).place);
        match place {
            Some(place) => assert_eq!(with.cancel(place.map(ServerIndex), *rank, waiter), Ok(())),
            None => assert!(waiter.outcome().is_some(), "it has ended before"),
        }
    }

    fn replace(&mut self, change: impl Fn(&mut [Entry<()>]), grants: &mut Grants, told: &mut Vec<u64>) {
        let mut entries = self.table.entries.to_vec();
        change(&mut entries);
        let next = Arc::new(self.table.next(self.table.algorithm(), entries));
        next.open();
        next.send_back(&self.table, grants);
        next.look(grants);
        self.table = next;
        self.model.send_back(told);
        (0..SERVERS).for_each(|server| self.model.serve(server, told));
    }

    fn check(&self) {
        let (table, model) = (&self.table, &self.model);
        for (server, number) in (0..SERVERS).map(ServerIndex).zip(0..) {
            let own = model.waiting.iter().filter(|waits| waits.place == Some(server.0));
            assert_eq!(
                (table.served(server), table.waiting(server) as usize),
                (model.served[number], own.count())
            );
        }
        let any = model.waiting.iter().filter(|waits| waits.place.is_none());
        assert_eq!(table.queued() as usize, any.count());
    }
}

proptest! {
    /// …15: everybody is told what the rules say, in any order of events.
    #[test]
    fn waiting_is_as_the_rules_say(events in prop::collection::vec(event(), 0..120)) {
        let mut beside = Beside::new();
        for event in events {
            let (mut told, mut expected) = beside.happen(event);
            // Several who are told at once may be told in any order.
            told.sort_unstable();
            expected.sort_unstable();
            assert_eq!(told, expected, "{event:?}");
            beside.check();
        }
    }
}
