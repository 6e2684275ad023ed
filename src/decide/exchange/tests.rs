//! Clauses by name, those of queues and redispatch apart (`waiting`); the whole machine as a table (`table`); whatever a
//! driver may say (`model`).

mod model;
mod table;
mod waiting;

use super::*;

const A: ServerIndex = ServerIndex(0);
const B: ServerIndex = ServerIndex(1);
const EFFORT: Effort = Effort {
    retries: 3,
    stale_max: 2,
    retry_on: RetryOn::USUAL,
    redispatch: Redispatch::USUAL,
};
const GET: Asked = Asked {
    idempotent: Idempotent::Yes,
    arrival: Arrival::Whole,
};
const POST: Asked = Asked {
    idempotent: Idempotent::No,
    arrival: Arrival::Whole,
};
const UPLOAD: Asked = Asked {
    idempotent: Idempotent::No,
    arrival: Arrival::BodyFollows,
};
/// A balanced choice: any other would have done.
const ON_A: Event = Event::Chosen(Chosen::Server(A, Bond::Loose));
const ON_B: Event = Event::Chosen(Chosen::Server(B, Bond::Loose));
const ANY: Wish = Wish {
    avoid: None,
    tie: Tie::Kept,
};
const NOT_A: Wish = Wish {
    avoid: Some(A),
    tie: Tie::Kept,
};
const REFUSED: Event = Event::ConnectFailed(ConnectFailure::Remote);

/// An exchange and what it said last.
struct Told {
    exchange: Exchange,
    said: Vec<Command>,
}

impl Told {
    fn start(asked: Asked) -> Told {
        let mut told = Told {
            exchange: Exchange::new(EFFORT),
            said: Vec::new(),
        };
        told.on(Event::Start(asked));
        told
    }

    /// As far as an idle connection of server A.
    fn on_idle(asked: Asked) -> Told {
        let mut told = Told::start(asked);
        told.all(&[ON_A, Event::Slot(Taken::Yes), Event::Lent(Found::Idle)]);
        told
    }

    /// As far as the connect to server A.
    fn connecting(asked: Asked) -> Told {
        let mut told = Told::start(asked);
        told.all(&[ON_A, Event::Slot(Taken::Yes), Event::Lent(Found::Nothing)]);
        told
    }

    /// As far as a fresh connection to server A.
    fn on_fresh(asked: Asked) -> Told {
        let mut told = Told::connecting(asked);
        told.on(Event::Connected);
        told
    }

    /// A budget that has room is not worth a line in every test.
    fn on(&mut self, event: Event) -> &[Command] {
        self.said = self.exchange.on(event).as_slice().to_vec();
        if self.said.last() == Some(&Command::Charge) {
            self.said.pop();
            let again = self.exchange.on(Event::Charged(Budget::Allows));
            self.said.extend_from_slice(again.as_slice());
        }
        &self.said
    }

    fn all(&mut self, events: &[Event]) -> &[Command] {
        events.iter().for_each(|event| {
            self.on(*event);
        });
        &self.said
    }
}

fn responded(afterwards: Afterwards) -> [Event; 3] {
    [
        Event::Written,
        Event::ResponseStarted,
        Event::ResponseComplete(afterwards),
    ]
}

#[test]
fn the_usual_way() {
    let mut told = Told::start(GET);
    assert_eq!(told.said, [Command::Choose(ANY)]);
    assert_eq!(told.on(ON_A), [Command::TakeSlot(A)]);
    assert_eq!(told.on(Event::Slot(Taken::Yes)), [Command::Lend(A)]);
    assert_eq!(told.on(Event::Lent(Found::Nothing)), [Command::Connect(A)]);
    assert_eq!(told.on(Event::Connected), [Command::Send]);
    let end = [
        Command::ReleaseSlot(A),
        Command::Park,
        Command::Next(Client::Whole),
    ];
    assert_eq!(told.all(&responded(Afterwards::Reusable)), end);
}

#[test]
fn what_becomes_of_the_connection() {
    for (afterwards, fate) in [
        (Afterwards::Reusable, Command::Park),
        (Afterwards::Ended, Command::CloseServer(Closing::Remote)),
        (Afterwards::ExcessData, Command::CloseServer(Closing::ExcessData)),
    ] {
        let mut told = Told::on_idle(GET);
        let end = [Command::ReleaseSlot(A), fate, Command::Next(Client::Whole)];
        assert_eq!(told.all(&responded(afterwards)), end);
    }
}

#[test]
fn no_server_and_no_slot() {
    assert_eq!(
        Told::start(GET).on(Event::Chosen(Chosen::Nobody)),
        [Command::Answer(Failure::NoServer)]
    );
    let mut told = Told::start(GET);
    let refused = told.all(&[ON_A, Event::Slot(Taken::Refused)]);
    assert_eq!(refused, [Command::Wait(None)]);
}

/// AC-6, DESIGN §3 (b): a GET goes once more, at once, on a fresh connection, and no retry is charged.
#[test]
fn get_on_a_reused_connection_that_dies_goes_on_a_fresh_one() {
    let mut told = Told::on_idle(GET);
    let again = [Command::CloseServer(Closing::Remote), Command::Connect(A)];
    assert_eq!(told.all(&[Event::Written, Event::ServerGone]), again);
    assert_eq!(told.on(Event::Connected), [Command::Send]);
    assert_eq!(told.exchange.retries_left, EFFORT.retries);
    told.all(&responded(Afterwards::Reusable));
    assert_eq!(told.said.last(), Some(&Command::Next(Client::Whole)));
}

/// AC-6, DESIGN §3 (c): a POST whose bytes may have arrived is not repeated; 502, and counted (POOL-16).
#[test]
fn post_on_a_reused_connection_that_dies_is_answered() {
    let mut told = Told::on_idle(POST);
    let end = [
        Command::CloseServer(Closing::Remote),
        Command::CountReuseAbort(A),
        Command::ReleaseSlot(A),
        Command::Answer(Failure::ServerClosed),
    ];
    assert_eq!(told.all(&[Event::Written, Event::ServerGone]), end);
    assert_eq!(Failure::ServerClosed.status(), 502);
}

/// AC-6, DESIGN §3 (a): a POST of which nothing was written looks for other idle connections, then opens one.
#[test]
fn post_of_which_nothing_was_written_goes_elsewhere() {
    let mut told = Told::on_idle(POST);
    for _ in 0..EFFORT.stale_max {
        let again = [Command::CloseServer(Closing::Remote), Command::Lend(A)];
        assert_eq!(told.on(Event::ServerGone), again);
        assert_eq!(told.on(Event::Lent(Found::Idle)), [Command::Send]);
    }
    let fresh = [Command::CloseServer(Closing::Remote), Command::Connect(A)];
    assert_eq!(told.on(Event::ServerGone), fresh);
    assert_eq!(told.exchange.retries_left, EFFORT.retries);
}

/// DESIGN §3 (a) says nothing of reuse: a fresh connection that dies unwritten costs nothing either, twice.
#[test]
fn fresh_connections_that_die_unwritten_are_free_but_not_for_ever() {
    let mut told = Told::on_fresh(POST);
    for _ in 0..EFFORT.stale_max {
        let again = [Command::CloseServer(Closing::Remote), Command::Connect(A)];
        assert_eq!(told.on(Event::ServerGone), again);
        told.on(Event::Connected);
    }
    let charged = [
        Command::CloseServer(Closing::Remote),
        Command::ReleaseSlot(A),
        Command::Choose(NOT_A),
    ];
    assert_eq!(told.on(Event::ServerGone), charged);
    assert_eq!(told.exchange.retries_left, EFFORT.retries - 1);
}

/// DESIGN §3 (b): once. What has killed two connections is not tried on a third (decision 0002).
#[test]
fn the_second_death_is_the_last() {
    for mut told in [Told::on_idle(GET), Told::on_fresh(GET)] {
        told.all(&[Event::Written, Event::ServerGone]);
        told.all(&[ON_B, Event::Slot(Taken::Yes)]); // asked only after a fresh one has died
        told.all(&[Event::Connected, Event::Written]);
        let commands = told.on(Event::ServerGone);
        assert_eq!(
            commands.last(),
            Some(&Command::Answer(Failure::ServerClosed)),
            "{commands:?}"
        );
    }
}

/// Bytes died once: idle connections stay out, whatever happens to the fresh ones.
#[test]
fn after_bytes_have_died_only_fresh_connections_are_used() {
    let mut told = Told::on_fresh(GET);
    told.all(&[Event::Written, Event::ServerGone, ON_B]);
    assert_eq!(told.on(Event::Slot(Taken::Yes)), [Command::Connect(B)]);
    told.all(&[REFUSED, ON_A]);
    assert_eq!(told.on(Event::Slot(Taken::Yes)), [Command::Connect(A)]);
    for _ in 0..EFFORT.stale_max {
        told.all(&[Event::Connected, Event::ServerGone]);
        assert_eq!(told.said.last(), Some(&Command::Connect(A)));
    }
    told.all(&[Event::Connected, Event::ServerGone, ON_B]);
    assert_eq!(told.on(Event::Slot(Taken::Yes)), [Command::Connect(B)]);
}

#[test]
fn a_fresh_connection_that_dies_is_no_lost_reuse() {
    let mut told = Told::on_fresh(POST);
    let end = [
        Command::CloseServer(Closing::Remote),
        Command::ReleaseSlot(A),
        Command::Answer(Failure::ServerClosed),
    ];
    assert_eq!(told.all(&[Event::Written, Event::ServerGone]), end);
}

#[test]
fn what_is_no_longer_held_is_not_repeated() {
    for lost in [&[Event::Written, Event::HeldLost][..], &[Event::HeldLost]] {
        for mut told in [Told::on_idle(GET), Told::on_fresh(GET)] {
            told.all(lost);
            assert!(!told.exchange.wants_held());
            assert_eq!(
                told.on(Event::ServerGone).last(),
                Some(&Command::Answer(Failure::ServerClosed))
            );
        }
    }
}

#[test]
fn what_is_held() {
    let mut get = Told::on_fresh(GET);
    get.on(Event::Written);
    assert!(get.exchange.wants_held());
    get.on(Event::ResponseStarted);
    assert!(!get.exchange.wants_held());
    let mut post = Told::on_fresh(POST);
    assert!(post.exchange.wants_held());
    post.on(Event::Written);
    assert!(!post.exchange.wants_held());
}

/// AC-30, RT-3, RT-6: another server at once, counted on the one that was left.
#[test]
fn redispatch_at_once() {
    let mut told = Told::connecting(POST);
    assert_eq!(
        told.on(REFUSED),
        [Command::ReleaseSlot(A), Command::Choose(NOT_A)]
    );
    let at_once = [Command::CountRedispatch(A), Command::TakeSlot(B)];
    assert_eq!(told.on(ON_B), at_once);
    assert_eq!(told.on(Event::Slot(Taken::Yes)), [Command::Lend(B)]);
}

/// AC-31, RT-1, RT-5: one server only; three retries, each after a pause without a slot, then 503.
#[test]
fn three_retries_with_a_pause_then_503() {
    let mut told = Told::connecting(GET);
    for _ in 0..3 {
        assert_eq!(
            told.on(REFUSED),
            [Command::ReleaseSlot(A), Command::Choose(NOT_A)]
        );
        assert_eq!(told.on(ON_A), [Command::CountRetry(A), Command::Pause]);
        assert_eq!(told.on(Event::PauseOver), [Command::TakeSlot(A)]);
        told.all(&[Event::Slot(Taken::Yes), Event::Lent(Found::Nothing)]);
        assert_eq!(told.said, [Command::Connect(A)]);
    }
    let end = [Command::ReleaseSlot(A), Command::Answer(Failure::ConnectRefused)];
    assert_eq!(told.on(REFUSED), end);
    assert_eq!(Failure::ConnectRefused.status(), 503);
}

/// AC-32, RT-5: a reused connection that fails leads to no pause, whatever was written.
#[test]
fn no_pause_after_a_reused_connection() {
    for before in [&[][..], &[Event::Written]] {
        let mut told = Told::on_idle(GET);
        told.all(before);
        let commands = told.on(Event::ServerGone);
        assert!(
            matches!(commands[1], Command::Lend(A) | Command::Connect(A)),
            "{commands:?}"
        );
    }
}

/// RT-5: a fresh connection that dies is an asynchronous failure, so the same server is given its moment.
#[test]
fn a_pause_after_a_fresh_connection() {
    let mut told = Told::on_fresh(GET);
    told.all(&[Event::Written, Event::ServerGone, ON_A]);
    assert_eq!(told.said, [Command::CountRetry(A), Command::Pause]);
}

#[test]
fn a_connect_that_takes_too_long() {
    let mut told = Told::connecting(GET);
    for _ in 0..3 {
        let again = [
            Command::CloseServer(Closing::Error),
            Command::ReleaseSlot(A),
            Command::Choose(NOT_A),
        ];
        assert_eq!(told.on(Event::Expired(Timer::Server)), again);
        told.all(&[ON_A, Event::PauseOver]);
        told.all(&[Event::Slot(Taken::Yes), Event::Lent(Found::Nothing)]);
    }
    let end = [
        Command::CloseServer(Closing::Error),
        Command::ReleaseSlot(A),
        Command::Answer(Failure::ConnectTimedOut),
    ];
    assert_eq!(told.on(Event::Expired(Timer::Server)), end);
}

/// RT-5: a failure of ours is retried without a pause, and no more often.
#[test]
fn a_connect_that_fails_here() {
    let local = Event::ConnectFailed(ConnectFailure::Local);
    let mut told = Told::connecting(GET);
    for _ in 0..3 {
        told.on(local);
        let at_once = [Command::CountRetry(A), Command::TakeSlot(A)];
        assert_eq!(told.on(ON_A), at_once);
        told.all(&[Event::Slot(Taken::Yes), Event::Lent(Found::Nothing)]);
    }
    let end = [Command::ReleaseSlot(A), Command::Answer(Failure::ConnectLocal)];
    assert_eq!(told.on(local), end);
}

#[test]
fn a_retry_may_end_without_a_server_or_a_slot() {
    let mut told = Told::connecting(GET);
    told.on(REFUSED);
    assert_eq!(
        told.on(Event::Chosen(Chosen::Nobody)),
        [Command::Answer(Failure::NoServer)]
    );
    let mut told = Told::connecting(GET);
    told.all(&[REFUSED, ON_A, Event::PauseOver]);
    told.on(Event::Slot(Taken::Refused));
    assert_eq!(
        told.on(Event::Expired(Timer::Queue)),
        [Command::Answer(Failure::QueueTimedOut)]
    );
}

#[test]
fn a_response_before_the_whole_request() {
    let mut told = Told::on_idle(UPLOAD);
    let end = [
        Command::ReleaseSlot(A),
        Command::CloseServer(Closing::Unfinished),
        Command::Next(Client::RequestLeft),
    ];
    assert_eq!(told.all(&responded(Afterwards::Reusable)), end);
    let mut told = Told::on_idle(UPLOAD);
    told.all(&[Event::Written, Event::ResponseStarted, Event::RequestComplete]);
    told.on(Event::ResponseComplete(Afterwards::Reusable));
    assert_eq!(told.said[1..], [Command::Park, Command::Next(Client::Whole)]);
}

#[test]
fn a_tunnel() {
    let end = [
        Command::ReleaseSlot(A),
        Command::CloseServer(Closing::Tunnel),
        Command::Next(Client::TunnelEnded),
    ];
    let ends = [
        Event::ServerGone,
        Event::Expired(Timer::Tunnel),
        Event::ResponseComplete(Afterwards::Ended),
    ];
    for event in ends {
        let mut told = Told::on_idle(GET);
        told.all(&[Event::Written, Event::Switched]);
        assert_eq!(told.on(Event::Expired(Timer::Server)), []);
        assert_eq!(told.on(Event::Expired(Timer::Client)), []);
        assert_eq!(told.on(event), end);
    }
}

#[test]
fn what_ends_an_awaited_response() {
    for (asked, event, closing, failure) in [
        (
            GET,
            Event::Expired(Timer::Server),
            Closing::Error,
            Failure::ServerTimedOut,
        ),
        (GET, Event::BadResponse, Closing::Error, Failure::BadResponse),
        (UPLOAD, Event::BadRequest, Closing::Aborted, Failure::BadRequest),
        (
            UPLOAD,
            Event::Expired(Timer::Client),
            Closing::Unfinished,
            Failure::ClientTimedOut,
        ),
    ] {
        let mut told = Told::on_idle(asked);
        let end = [
            Command::CloseServer(closing),
            Command::ReleaseSlot(A),
            Command::Answer(failure),
        ];
        assert_eq!(told.all(&[Event::Written, event]), end);
    }
}

#[test]
fn what_ends_a_response_in_its_middle() {
    for (event, closing, failure) in [
        (Event::ServerGone, Closing::Remote, Failure::Truncated),
        (Event::BadResponse, Closing::Error, Failure::BadResponse),
        (Event::BadRequest, Closing::Aborted, Failure::BadRequest),
        (Event::Expired(Timer::Server), Closing::Error, Failure::Stalled),
        (
            Event::Expired(Timer::Client),
            Closing::Aborted,
            Failure::ClientStalled,
        ),
    ] {
        let mut told = Told::on_fresh(UPLOAD);
        let end = [
            Command::CloseServer(closing),
            Command::ReleaseSlot(A),
            Command::Cut(failure),
        ];
        assert_eq!(told.all(&[Event::Written, Event::ResponseStarted, event]), end);
    }
}

/// Were it ignored, a client that takes no interim response would hold its slot, and its timer would never rest.
#[test]
fn a_client_that_does_not_take_an_interim_response() {
    let mut told = Told::on_fresh(GET);
    let end = [
        Command::CloseServer(Closing::Aborted),
        Command::ReleaseSlot(A),
        Command::Cut(Failure::ClientStalled),
    ];
    told.all(&[Event::Written, Event::HeldLost]);
    assert_eq!(told.on(Event::Expired(Timer::Client)), end);
}

#[test]
fn a_client_that_leaves() {
    let way = [
        Event::Start(GET),
        ON_A,
        Event::Slot(Taken::Yes),
        Event::Lent(Found::Nothing),
        REFUSED,
        ON_A,
        Event::PauseOver,
        Event::Slot(Taken::Refused),
        Event::Granted(A),
        Event::Lent(Found::Idle),
        Event::Written,
        Event::ResponseStarted,
    ];
    for steps in 0..=way.len() {
        let mut exchange = Exchange::new(EFFORT);
        for event in &way[..steps] {
            exchange.on(*event);
            exchange.on(Event::Charged(Budget::Allows));
        }
        let held: &[Command] = match exchange.server() {
            ServerSide::Lending(_) => &[Command::ReleaseSlot(A)],
            ServerSide::Connecting(_) | ServerSide::Holding(..) => {
                &[Command::CloseServer(Closing::Aborted), Command::ReleaseSlot(A)]
            }
            _ => &[],
        };
        let expected = [held, &[Command::Forget]].concat();
        assert_eq!(
            exchange.on(Event::ClientGone).as_slice(),
            expected,
            "after {steps} steps"
        );
        assert_eq!(
            exchange.on(Event::ClientGone).as_slice(),
            [],
            "twice, after {steps} steps"
        );
    }
    let mut told = Told::on_idle(GET);
    told.all(&[Event::Written, Event::Switched, Event::ClientGone]);
    assert_eq!(told.said.last(), Some(&Command::Forget));
}

#[test]
fn failures_have_places_and_words() {
    for (at, failure) in Failure::ALL.iter().enumerate() {
        assert_eq!(failure.index(), at);
        assert!(
            Failure::ALL[..at]
                .iter()
                .all(|other| other.word() != failure.word())
        );
    }
}

/// RT-7, `retry-on`: what is not named is not tried again; what is, as far as it may be repeated.
#[test]
fn only_what_is_named_is_tried_again() {
    let told = |retry_on, asked, fresh: bool| {
        let effort = Effort { retry_on, ..EFFORT };
        let mut told = Told {
            exchange: Exchange::new(effort),
            said: Vec::new(),
        };
        told.all(&[Event::Start(asked), ON_A, Event::Slot(Taken::Yes)]);
        if fresh {
            told.all(&[Event::Lent(Found::Nothing)]);
        }
        told
    };
    let answered = |said: &[Command], failure| said.last() == Some(&Command::Answer(failure));
    let again = |said: &[Command]| matches!(said.last(), Some(Command::Choose(NOT_A)));

    let mut refused = told(RetryOn::NOTHING, GET, true);
    assert!(answered(refused.on(REFUSED), Failure::ConnectRefused));
    let mut dead = told(RetryOn::NOTHING, GET, true);
    let said = dead.all(&[Event::Connected, Event::Written, Event::ServerGone]);
    assert!(answered(said, Failure::ServerClosed), "{said:?}");

    let timeouts = RetryOn {
        response_timeout: true,
        ..RetryOn::NOTHING
    };
    let late = [Event::Connected, Event::Written, Event::Expired(Timer::Server)];
    assert!(again(told(timeouts, GET, true).all(&late)));
    assert!(answered(
        told(timeouts, POST, true).all(&late),
        Failure::ServerTimedOut
    ));
    assert!(answered(
        told(RetryOn::USUAL, GET, true).all(&late),
        Failure::ServerTimedOut
    ));
    let mut begun = told(timeouts, GET, true);
    begun.all(&[Event::Connected, Event::Written, Event::ResponseStarted]);
    let said = begun.on(Event::Expired(Timer::Server));
    assert_eq!(said.last(), Some(&Command::Cut(Failure::Stalled)));
    let mut reused = told(timeouts, GET, false);
    reused.all(&[
        Event::Lent(Found::Idle),
        Event::Written,
        Event::Expired(Timer::Server),
    ]);
    let said = reused.all(&[ON_B, Event::Slot(Taken::Yes)]);
    assert_eq!(
        said,
        [Command::Connect(B)],
        "its bytes are out: a fresh connection"
    );
}
