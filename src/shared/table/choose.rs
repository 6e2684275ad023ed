//! Who gets a request about which only its backend's table decides: no session, no cookie and no policy has named a server.

use super::{BackendTable, Choice, Source, Tie};
use crate::decide::balance::{Algorithm, servers};
use crate::decide::exchange::{self, Bond, Chosen};
use crate::policy::{Draw, ServerIndex, Table};

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balanced {
    /// What the exchange is told.
    pub chosen: Chosen,
    /// Who decided; nobody where no algorithm was asked.
    pub source: Option<Source>,
}

impl<C> BackendTable<C> {
    /// The choice of the plan, or of the configured algorithm, for a request whose hash is `number`, if it has one that
    /// counts ([`hashed`]).
    pub fn balance(&self, avoid: Option<ServerIndex>, number: Option<u64>, draw: &mut impl Draw) -> Balanced {
        // RT-5: who would only wait for the server that failed waits a moment for it, and holds no place meanwhile.
        if let Some(failed) = avoid.filter(|&failed| self.is_alone(failed)) {
            return Balanced {
                chosen: Chosen::Server(failed, Bond::Loose),
                source: None,
            };
        }
        // whoever is there before has found nothing.
        if self.is_queued() && !self.ties(number) {
            return Balanced {
                chosen: self.anyone(),
                source: None,
            };
        }
        let choice = self.pick_for(number, avoid, draw);
        let chosen = match choice.server {
            Some(server) => Chosen::Server(server, self.bond(server, &choice)),
            None => self.anyone(),
        };
        Balanced {
            chosen,
            source: Some(choice.source),
        }
    }

    /// Nobody is free: somebody will be, if anybody takes requests at all.
    fn anyone(&self) -> Chosen {
        if self.has_usable() {
            Chosen::Anyone
        } else {
            Chosen::Nobody
        }
    }

    /// Whether a server is the only one that takes requests.
    fn is_alone(&self, server: ServerIndex) -> bool {
        let usable = servers(self).filter(|&other| self.usable(other));
        self.usable(server) && usable.count() == 1
    }

    /// `leastconn` chooses a full server only where requests may wait for one, and imposes none (RT-3).
    fn bond(&self, server: ServerIndex, choice: &Choice) -> Bond {
        let queues = self.at(server).queueing.queue_max.is_some();
        match (self.algorithm(), choice.tie) {
            (Algorithm::LeastConn, _) if queues => Bond::Preferred,
            (_, Tie::Server) => Bond::Tied,
            (_, Tie::Free) => Bond::Loose,
        }
    }
}

/// The hash that counts: who has left a full server goes as if nothing tied it; who has left one that failed, to the next
/// along the way (LB-3, LB-42).
pub fn hashed(
    number: Option<u64>,
    tie: exchange::Tie,
    avoid: Option<ServerIndex>,
    turned_away: bool,
) -> Option<u64> {
    match tie {
        exchange::Tie::Kept if !turned_away => number,
        exchange::Tie::Forgotten if avoid.is_some() => number,
        exchange::Tie::Kept | exchange::Tie::Forgotten => None,
    }
}
