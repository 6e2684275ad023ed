//! What an exchange wants done, as data.

use super::Failure;
use crate::policy::ServerIndex;

/// What to do. Commands of one event are carried out in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Say who is to have the request.
    Choose(Wish),
    /// Take a slot of this server.
    TakeSlot(ServerIndex),
    /// Wait for a slot of this server, or of any. The end of the wait is an event; its beginning is none.
    Wait(Option<ServerIndex>),
    /// Ask the budget for another attempt; answered before anything else.
    Charge,
    /// Give the slot of this server back.
    ReleaseSlot(ServerIndex),
    /// Look for an idle connection to this server (POOL-10).
    Lend(ServerIndex),
    /// Open a new connection to this server.
    Connect(ServerIndex),
    /// Send what is held of the request, from its first byte.
    Send,
    /// Wait for the turn-around delay (RT-5).
    Pause,
    /// Count a retry on the same server.
    CountRetry(ServerIndex),
    /// Count a retry that left this server for another one (RT-6).
    CountRedispatch(ServerIndex),
    /// Count a request lost because a reused connection died under it (POOL-16).
    CountReuseAbort(ServerIndex),
    /// Give the connection to the pool, if the keep rule lets it (POOL-32).
    Park,
    /// Close the connection.
    CloseServer(Closing),
    /// Answer the client ourselves.
    Answer(Failure),
    /// The exchange is over; the client's connection goes on, or closes after `Afterwards` was announced.
    Next(Client),
    /// The response cannot be completed: make the client see that.
    Cut(Failure),
    /// The client is gone: nothing more is to be said to anybody.
    Forget,
}

/// What is asked of whoever chooses a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Another than this one, if there is one (LB-3).
    pub avoid: Option<ServerIndex>,
    /// Whether what ties the request to a server still counts.
    pub tie: Tie,
}

/// Whether a request stays with the server that something ties it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// It does.
    Kept,
    /// No more: it is balanced like any other (RT-3, Q-5).
    Forgotten,
}

/// Why a server connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The server ended it, or said it would.
    Remote,
    /// It failed, sent nonsense or was too slow.
    Error,
    /// Bytes nobody asked for.
    ExcessData,
    /// The response came before the whole request: the rest of the request was never sent.
    Unfinished,
    /// The client left in the middle.
    Aborted,
    /// The end of a tunnel.
    Tunnel,
}

/// What becomes of the client's connection when the response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The whole request was read: the next one may come.
    Whole,
    /// A part of the request was not read: the connection closes, slowly.
    RequestLeft,
    /// A tunnel has ended: close.
    TunnelEnded,
}

/// The commands of one event; a buffer of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Commands {
    list: [Command; Commands::MAX],
    length: u8,
}

impl Commands {
    /// No event emits more.
    pub(super) const MAX: usize = 6;

    /// An empty buffer.
    pub fn new() -> Commands {
        Commands {
            list: [Command::Forget; Commands::MAX],
            length: 0,
        }
    }

    pub(super) fn push(&mut self, command: Command) {
        self.list[usize::from(self.length)] = command;
        self.length += 1;
    }

    /// The commands, in order.
    pub fn as_slice(&self) -> &[Command] {
        &self.list[..usize::from(self.length)]
    }
}

impl Default for Commands {
    fn default() -> Self {
        Commands::new()
    }
}
