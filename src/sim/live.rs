//! A request under way: what a worker keeps of it.

use super::connections::Name;
use super::decision::Decision;
use super::steering::Current;
use crate::decide::exchange::Exchange;
use crate::decide::reuse::OpenReason;
use crate::decide::settings::Micros;
use crate::decide::sharing::Sharing;
use crate::decide::usher::Said;
use crate::policy::{Priority, ServerId, ServerIndex, WorkerId};
use crate::shared::key::PoolKey;
use crate::shared::queue::{Rank, Waiter};
use slab::Slab;
use std::sync::Arc;

/// A request under way.
#[derive(Debug)]
pub(super) struct Live {
    /// Tells it from others at its place.
    pub(super) number: u32,
    pub(super) machine: Exchange,
    pub(super) worker: WorkerId,
    pub(super) client: u32,
    /// Which of the client's streams goes on when it is over.
    pub(super) stream: Option<u32>,
    pub(super) generation: Arc<Current>,
    pub(super) backend: u16,
    pub(super) came: Micros,
    pub(super) seat: Seat,
    pub(super) connection: Option<Name>,
    /// Its hash, where the algorithm hashes.
    pub(super) hash: Option<u64>,
    /// The server that its cookie names.
    pub(super) cookie: Option<ServerId>,
    /// The one that it needs ([`World::tied`](super::World::tied)).
    pub(super) needs: Option<ServerId>,
    pub(super) sharing: Sharing,
    pub(super) key: Option<PoolKey>,
    /// What the policy that picks asked to see, and the one that is asked about its waiting.
    pub(super) for_picker: Option<Vec<u8>>,
    pub(super) for_usher: Option<Vec<u8>>,
    pub(super) said: Option<Said>,
    /// Whether somebody else than the balancer has chosen.
    pub(super) asked: bool,
    pub(super) server: Option<ServerIndex>,
    pub(super) open_reason: OpenReason,
    /// How long its server takes, if that is known.
    pub(super) service: Option<Micros>,
    /// Counts what it has been sent off to wait for: an event of a former attempt says nothing.
    pub(super) attempt: u16,
    pub(super) sent: Micros,
    /// What its server will answer.
    pub(super) status: u16,
    /// What it counts for in the retry budget.
    pub(super) weighed: Weighed,
    /// Its key, where that is watched.
    pub(super) named: Option<Box<str>>,
    /// Its line of the transcript, if it has one.
    pub(super) decision: Option<Box<Decision>>,
}

/// What it holds of a server's slots and of queues.
#[derive(Debug, Default)]
pub(super) struct Seat {
    pub(super) slot: Option<(ServerId, ServerIndex)>,
    pub(super) wait: Option<Wait>,
    pub(super) priority: Priority,
    /// When it came to a queue for the first time.
    pub(super) arrived: Option<Micros>,
    /// When its waiting ends.
    pub(super) until: Micros,
    pub(super) sent_back: bool,
    pub(super) turned_away: bool,
}

/// A wait in a queue.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) waiter: Arc<Waiter>,
    pub(super) place: Option<ServerIndex>,
    pub(super) rank: Rank,
    pub(super) since: Micros,
}

/// What a request counts for in the retry budget of its backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weighed {
    No,
    Live,
    Trying,
}

/// How events name a request.
pub(super) type Token = u64;

/// All requests under way.
#[derive(Debug, Default)]
pub(super) struct Lives {
    places: Slab<Live>,
    begun: u32,
}

impl Lives {
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn insert(&mut self, mut live: Live) -> Token {
        self.begun = self.begun.wrapping_add(1);
        live.number = self.begun;
        let slot = self.places.insert(live);
        u64::from(self.begun) << 32 | slot as u64
    }

    pub(super) fn get(&self, token: Token) -> Option<&Live> {
        let live = self.places.get(token as u32 as usize)?;
        (live.number == (token >> 32) as u32).then_some(live)
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut Live> {
        let live = self.places.get_mut(token as u32 as usize)?;
        (live.number == (token >> 32) as u32).then_some(live)
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<Live> {
        self.get(token)?;
        Some(self.places.remove(token as u32 as usize))
    }
}

impl Live {
    /// A request that has just come.
    pub(super) fn new(machine: Exchange, generation: Arc<Current>, backend: u16, sharing: Sharing) -> Live {
        Live {
            number: 0,
            machine,
            worker: WorkerId(0),
            client: 0,
            stream: None,
            generation,
            backend,
            came: 0,
            seat: Seat::default(),
            connection: None,
            hash: None,
            cookie: None,
            needs: None,
            sharing,
            key: None,
            for_picker: None,
            for_usher: None,
            said: None,
            asked: false,
            server: None,
            open_reason: OpenReason::None,
            service: None,
            attempt: 0,
            sent: 0,
            status: 200,
            weighed: Weighed::No,
            named: None,
            decision: None,
        }
    }

    /// The backend that it is for, in the generation that it has.
    pub(super) fn entry(&self) -> &crate::shared::generation::BackendEntry<Name, super::Nowhere> {
        &self.generation.backends[usize::from(self.backend)]
    }
}
