//! Whatever a driver may say, in any order: the sums of slots and connections are right, and there is one end.

use super::*;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::strategy::Just;

/// What the exchange has asked and was not told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    Server,
    Slot(ServerIndex),
    Wait(Option<ServerIndex>),
    Charge,
    Idle,
    Connect,
    Pause,
}

/// A server connection of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    No,
    Opening,
    Yes,
}

/// A driver: keeps the books of what it was told to do, and refuses what makes no sense.
#[derive(Debug)]
struct Driver {
    exchange: Exchange,
    effort: Effort,
    asked: Asked,
    question: Option<Question>,
    slot: Option<ServerIndex>,
    connection: Open,
    /// Whether a byte has left on any connection, or on this one.
    ever_written: bool,
    written: bool,
    held_lost: bool,
    response: bool,
    response_complete: bool,
    end: Option<Command>,
    takes: u32,
    waits: u32,
    sent_back: u32,
    lends: u32,
    connects: u32,
    pauses: u32,
    reuse_aborts: u32,
}

impl Driver {
    fn new(effort: Effort, asked: Asked) -> Driver {
        Driver {
            exchange: Exchange::new(effort),
            effort,
            asked,
            question: None,
            slot: None,
            connection: Open::No,
            ever_written: false,
            written: false,
            held_lost: false,
            response: false,
            response_complete: false,
            end: None,
            takes: 0,
            waits: 0,
            sent_back: 0,
            lends: 0,
            connects: 0,
            pauses: 0,
            reuse_aborts: 0,
        }
    }

    /// Whether a driver can have this to say now.
    fn may_say(&self, event: Event) -> bool {
        let started = !matches!(self.exchange.server(), ServerSide::Unasked);
        let open = self.connection == Open::Yes;
        match event {
            Event::Start(_) => !started,
            _ if !started => false,
            Event::Chosen(_) => self.question == Some(Question::Server),
            Event::Slot(_) => matches!(self.question, Some(Question::Slot(_))),
            Event::Granted(server) => match self.question {
                Some(Question::Wait(place)) => place.is_none_or(|place| place == server),
                _ => false,
            },
            Event::SentBack | Event::Full | Event::NotAdmitted | Event::Expired(Timer::Queue) => {
                matches!(self.question, Some(Question::Wait(_)))
            }
            Event::Charged(_) => self.question == Some(Question::Charge),
            Event::Lent(_) => self.question == Some(Question::Idle),
            Event::Connected | Event::ConnectFailed(_) => self.question == Some(Question::Connect),
            Event::PauseOver => self.question == Some(Question::Pause),
            Event::Written => open,
            // An interim response may come before a byte is written.
            Event::HeldLost | Event::ServerGone | Event::BadResponse => open,
            Event::ResponseStarted | Event::Switched => open && !self.response,
            Event::ResponseComplete(_) => open && self.response,
            Event::RequestComplete | Event::BadRequest => {
                self.end.is_none() && self.exchange.request() == RequestSide::Arriving
            }
            Event::ClientGone => self.end.is_none(),
            Event::Expired(Timer::Client) => {
                self.end.is_none() && self.exchange.response() != ResponseSide::Tunnel
            }
            Event::Expired(Timer::Server) => self.connection != Open::No,
            Event::Expired(Timer::Tunnel) => self.exchange.response() == ResponseSide::Tunnel,
        }
    }

    fn say(&mut self, event: Event) {
        if let (Event::Granted(server), Some(Question::Wait(Some(place)))) = (event, self.question)
            && place != server
        {
            return; // who waits for one server is never granted another's slot: no driver says that
        }
        if !self.may_say(event) {
            let before = format!("{:?}", self.exchange);
            let commands = self.exchange.on(event);
            assert!(
                commands.as_slice().is_empty(),
                "{event:?} came late, but {commands:?}"
            );
            assert_eq!(before, format!("{:?}", self.exchange), "{event:?} came late");
            return;
        }
        self.enter(event);
        let commands = self.exchange.on(event);
        let commands = commands.as_slice();
        assert!(commands.len() <= Commands::MAX);
        for (at, command) in commands.iter().enumerate() {
            self.obey(*command);
            let last = at + 1 == commands.len();
            let asks = matches!(
                command,
                Command::Choose(_)
                    | Command::TakeSlot(_)
                    | Command::Wait(_)
                    | Command::Charge
                    | Command::Lend(_)
                    | Command::Connect(_)
                    | Command::Pause
            );
            assert!(last || !asks, "a question is the last command: {commands:?}");
            assert!(
                last || self.end.is_none(),
                "the end is the last command: {commands:?}"
            );
        }
        self.check();
    }

    /// What an event changes in the books.
    fn enter(&mut self, event: Event) {
        match (event, self.question) {
            (Event::Slot(Taken::Yes), Some(Question::Slot(server))) => self.slot = Some(server),
            (Event::Granted(server), _) => self.slot = Some(server),
            (Event::SentBack, _) => self.sent_back += 1,
            (Event::Lent(Found::Idle), _) | (Event::Connected, _) => self.connection = Open::Yes,
            (Event::ConnectFailed(_), _) => self.connection = Open::No,
            (Event::Written, _) => {
                self.written = true;
                self.ever_written = true;
            }
            (Event::HeldLost, _) => self.held_lost = true,
            (Event::ResponseStarted | Event::Switched, _) => self.response = true,
            (Event::ResponseComplete(_), _) => self.response_complete = true,
            (Event::ServerGone | Event::Expired(Timer::Tunnel), _) => {
                self.response_complete = self.exchange.response() == ResponseSide::Tunnel;
            }
            _ => {}
        }
        let answered = matches!(
            event,
            Event::Chosen(_)
                | Event::Slot(_)
                | Event::Granted(_)
                | Event::SentBack
                | Event::Full
                | Event::NotAdmitted
                | Event::Expired(Timer::Queue)
                | Event::Charged(_)
                | Event::Lent(_)
                | Event::Connected
                | Event::ConnectFailed(_)
                | Event::PauseOver
        );
        if answered {
            self.question = None;
        }
    }

    fn ask(&mut self, question: Question) {
        assert_eq!(self.question, None);
        self.question = Some(question);
    }

    fn obey(&mut self, command: Command) {
        assert_eq!(self.end, None, "{command:?} after the end");
        match command {
            Command::Choose(_) => {
                assert_eq!((self.slot, self.connection), (None, Open::No));
                self.ask(Question::Server);
            }
            Command::TakeSlot(server) => {
                assert_eq!(self.slot, None);
                self.takes += 1;
                self.ask(Question::Slot(server));
            }
            Command::Wait(place) => {
                assert_eq!((self.slot, self.connection), (None, Open::No));
                self.waits += 1;
                self.ask(Question::Wait(place));
            }
            Command::Charge => {
                assert_eq!((self.slot, self.connection), (None, Open::No), "LB-4");
                self.ask(Question::Charge);
            }
            Command::ReleaseSlot(server) => assert_eq!(self.slot.take(), Some(server)),
            Command::Lend(server) => {
                assert_eq!((self.slot, self.connection), (Some(server), Open::No));
                assert!(
                    !self.ever_written,
                    "bytes have died: only a fresh connection will do"
                );
                self.lends += 1;
                self.ask(Question::Idle);
            }
            Command::Connect(server) => {
                assert_eq!((self.slot, self.connection), (Some(server), Open::No));
                self.connects += 1;
                self.connection = Open::Opening;
                self.ask(Question::Connect);
            }
            Command::Send => self.send(),
            Command::Pause => {
                assert_eq!((self.slot, self.connection), (None, Open::No));
                self.pauses += 1;
                self.ask(Question::Pause);
            }
            Command::CountRetry(_) | Command::CountRedispatch(_) => {}
            Command::CountReuseAbort(_) => self.reuse_aborts += 1,
            Command::Park => {
                assert_eq!((self.connection, self.response_complete), (Open::Yes, true));
                assert_eq!(self.exchange.request(), RequestSide::Complete);
                self.connection = Open::No;
            }
            Command::CloseServer(_) => {
                assert_ne!(self.connection, Open::No);
                if self.connection == Open::Opening {
                    self.question = None;
                }
                self.connection = Open::No;
            }
            Command::Answer(_) | Command::Next(_) | Command::Cut(_) | Command::Forget => self.finish(command),
        }
    }

    fn send(&mut self) {
        assert_eq!(self.connection, Open::Yes);
        assert!(!self.held_lost, "what is not held cannot be sent again");
        let repeatable = self.asked.idempotent == Idempotent::Yes;
        assert!(
            repeatable || !self.ever_written,
            "sent twice though a byte had left"
        );
        self.written = false;
    }

    fn finish(&mut self, command: Command) {
        assert_eq!((self.slot, self.connection), (None, Open::No));
        match command {
            Command::Answer(failure) => {
                assert!(!self.response);
                assert_ne!(failure.status(), 0);
            }
            Command::Next(_) => assert!(self.response && self.response_complete),
            Command::Cut(failure) => assert!(self.response || failure == Failure::ClientStalled),
            _ => {}
        }
        // Whoever drives withdraws what is still open.
        self.question = None;
        self.end = Some(command);
    }

    fn check(&self) {
        let (retries, stale) = (u32::from(self.effort.retries), u32::from(self.effort.stale_max));
        // One choice more after a full queue, and one each time that its server went.
        let choices = 2 + retries + self.sent_back;
        assert!(self.takes <= choices, "{self:?}");
        assert!(self.waits <= choices + 1, "{self:?}");
        assert!(self.pauses <= retries, "{self:?}");
        assert!(self.lends <= 1 + retries + stale, "{self:?}");
        assert!(self.connects <= 2 + retries + stale, "{self:?}");
        assert!(self.reuse_aborts <= 1, "{self:?}");
        assert_eq!(self.end.is_some(), self.exchange.response() == ResponseSide::Over);
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let idempotent = prop_oneof![Just(Idempotent::Yes), Just(Idempotent::No)];
    let arrival = prop_oneof![Just(Arrival::Whole), Just(Arrival::BodyFollows)];
    (idempotent, arrival).prop_map(|(idempotent, arrival)| Asked { idempotent, arrival })
}

fn effort() -> impl Strategy<Value = Effort> {
    let causes = (any::<bool>(), any::<bool>(), any::<bool>());
    let redispatch = prop_oneof![
        Just(Redispatch::Never),
        (0u8..4).prop_map(Redispatch::Every),
        (0u8..4).prop_map(Redispatch::BeforeEnd),
    ];
    (0u8..5, 0u8..4, causes, redispatch).prop_map(|(retries, stale_max, causes, redispatch)| {
        let (conn_failure, empty_response, response_timeout) = causes;
        let retry_on = RetryOn {
            conn_failure,
            empty_response,
            response_timeout,
        };
        Effort {
            retries,
            stale_max,
            retry_on,
            redispatch,
        }
    })
}

/// Everything that may be said; what leads on stands there more than once.
fn sayings() -> Vec<Event> {
    let mut sayings = vec![
        Event::ClientGone,
        Event::BadRequest,
        Event::BadResponse,
        Event::HeldLost,
    ];
    sayings.extend([
        Event::ResponseStarted,
        Event::Switched,
        Event::Chosen(Chosen::Nobody),
    ]);
    sayings.extend([Event::SentBack, Event::Full, Event::NotAdmitted]);
    sayings.push(Event::Charged(Budget::Spent));
    sayings.extend([
        Event::Slot(Taken::Refused),
        Event::Start(GET),
        Event::Start(UPLOAD),
    ]);
    sayings.extend([Timer::Client, Timer::Queue, Timer::Server, Timer::Tunnel].map(Event::Expired));
    let afterwards = [Afterwards::Reusable, Afterwards::Ended, Afterwards::ExcessData];
    sayings.extend(afterwards.map(Event::ResponseComplete));
    let failures = [
        ConnectFailure::Remote,
        ConnectFailure::TimedOut,
        ConnectFailure::Local,
    ];
    sayings.extend(failures.map(Event::ConnectFailed));
    for _ in 0..6 {
        for server in [0, 1, 2].map(ServerIndex) {
            let bonds = [Bond::Loose, Bond::Preferred, Bond::Tied];
            sayings.extend(bonds.map(|bond| Event::Chosen(Chosen::Server(server, bond))));
            sayings.push(Event::Granted(server));
        }
        sayings.extend([Event::Chosen(Chosen::Anyone), Event::Charged(Budget::Allows)]);
        sayings.extend([Event::Slot(Taken::Yes), Event::Slot(Taken::Yes), Event::PauseOver]);
        sayings.extend([Found::Idle, Found::Nothing].map(Event::Lent));
        sayings.extend([
            Event::Connected,
            Event::Written,
            Event::ServerGone,
            Event::RequestComplete,
        ]);
    }
    sayings
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// Slots and connections are taken and given back once, there is one end and nothing after it, attempts are
    /// bounded, and no request that may not be repeated goes out twice. One saying in 32 comes too late, or too early.
    #[test]
    fn the_books_balance(
        effort in effort(),
        asked in asked(),
        picks in vec((any::<u16>(), 0u8..32), 0..80),
    ) {
        let sayings = sayings();
        let mut driver = Driver::new(effort, asked);
        driver.say(Event::Start(asked));
        for (pick, late) in picks {
            let fits = |event: &&Event| late == 0 || driver.may_say(**event);
            let choice: Vec<&Event> = sayings.iter().filter(fits).collect();
            let Some(at) = usize::from(pick).checked_rem(choice.len()) else { break };
            driver.say(*choice[at]);
        }
        driver.say(Event::ClientGone);
        assert!(driver.end.is_some());
        assert_eq!((driver.slot, driver.connection, driver.question), (None, Open::No, None));
        sayings.iter().for_each(|event| driver.say(*event));
    }
}
