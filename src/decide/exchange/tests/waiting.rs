//! Queues (Q-5…7, Q-13, Q-14), ties and redispatch (RT-3), the retry budget.

use super::*;

const PREFERS_A: Event = Event::Chosen(Chosen::Server(A, Bond::Preferred));
const TIED_TO_A: Event = Event::Chosen(Chosen::Server(A, Bond::Tied));
const FREELY: Wish = Wish {
    avoid: None,
    tie: Tie::Forgotten,
};

fn started(effort: Effort) -> Told {
    let mut told = Told {
        exchange: Exchange::new(effort),
        said: Vec::new(),
    };
    told.on(Event::Start(GET));
    told
}

fn with(redispatch: Redispatch) -> Told {
    started(Effort { redispatch, ..EFFORT })
}

/// who would take any server waits for any; who is chosen for one, for that one.
#[test]
fn where_a_request_waits() {
    for (chosen, place) in [(ON_A, None), (PREFERS_A, Some(A)), (TIED_TO_A, Some(A))] {
        let mut told = Told::start(GET);
        told.on(chosen);
        assert_eq!(told.on(Event::Slot(Taken::Refused)), [Command::Wait(place)]);
        assert_eq!(told.on(Event::Granted(A)), [Command::Lend(A)]);
    }
    let mut told = Told::start(GET);
    assert_eq!(told.on(Event::Chosen(Chosen::Anyone)), [Command::Wait(None)]);
    assert_eq!(told.on(Event::Granted(B)), [Command::Lend(B)]);
}

/// too long is 503 `sQ`; a client that leaves is forgotten; neither gives back a slot that nobody had.
#[test]
fn a_wait_that_ends_in_nothing() {
    for (event, end) in [
        (
            Event::Expired(Timer::Queue),
            Command::Answer(Failure::QueueTimedOut),
        ),
        (Event::NotAdmitted, Command::Answer(Failure::NotAdmitted)),
        (Event::ClientGone, Command::Forget),
    ] {
        let mut told = Told::start(GET);
        told.on(Event::Chosen(Chosen::Anyone));
        assert_eq!(told.on(event), [end]);
        assert_eq!(
            told.on(Event::Granted(A)),
            [],
            "too late: the driver gives it back"
        );
    }
    assert_eq!(Failure::QueueTimedOut.status(), 503);
    assert_eq!(Failure::QueueTimedOut.termination(), *b"sQ");
    assert_eq!(Failure::QueueFull.termination(), *b"PQ");
}

/// full. The tie is forgotten, once; where it may not be, 503.
#[test]
fn a_full_queue() {
    for chosen in [PREFERS_A, TIED_TO_A] {
        let mut told = with(Redispatch::USUAL);
        told.all(&[chosen, Event::Slot(Taken::Refused)]);
        assert_eq!(told.on(Event::Full), [Command::Choose(FREELY)]);
        told.all(&[PREFERS_A, Event::Slot(Taken::Refused)]);
        assert_eq!(told.on(Event::Full), [Command::Wait(None)], "once");
        assert_eq!(told.on(Event::Full), [Command::Answer(Failure::QueueFull)]);
    }
    let mut told = with(Redispatch::Never);
    told.all(&[TIED_TO_A, Event::Slot(Taken::Refused)]);
    assert_eq!(told.on(Event::Full), [Command::Answer(Failure::QueueFull)]);
    let mut told = with(Redispatch::Never);
    told.all(&[PREFERS_A, Event::Slot(Taken::Refused)]);
    assert_eq!(told.on(Event::Full), [Command::Choose(FREELY)], "nothing ties it");
}

/// its server has gone; it chooses again, as often as that happens.
#[test]
fn sent_back() {
    let mut told = Told::start(GET);
    told.all(&[TIED_TO_A, Event::Slot(Taken::Refused)]);
    assert_eq!(told.on(Event::SentBack), [Command::Choose(ANY)]);
    told.on(Event::Chosen(Chosen::Anyone));
    assert_eq!(told.on(Event::SentBack), [Command::Choose(ANY)]);
    assert_eq!(
        told.on(Event::Chosen(Chosen::Nobody)),
        [Command::Answer(Failure::NoServer)]
    );
}

/// RT-6: an attempt that had to wait is counted by where it went. No pause: it has waited.
#[test]
fn a_second_attempt_that_waits() {
    for (granted, counted) in [(A, Command::CountRetry(A)), (B, Command::CountRedispatch(A))] {
        let mut told = Told::connecting(GET);
        told.all(&[REFUSED, Event::Chosen(Chosen::Anyone)]);
        assert_eq!(told.said, [Command::Wait(None)]);
        assert_eq!(
            told.on(Event::Granted(granted)),
            [counted, Command::Lend(granted)]
        );
    }
    let mut told = Told::connecting(GET);
    told.all(&[REFUSED, Event::Chosen(Chosen::Anyone)]);
    assert_eq!(told.on(Event::SentBack), [Command::Choose(NOT_A)]);
}

/// Another table, in which A has B's place and B is gone.
#[test]
fn a_table_that_changes_under_a_wait() {
    let mut told = Told::connecting(GET);
    told.all(&[REFUSED, Event::Chosen(Chosen::Anyone)]);
    told.exchange.renumber(|server| (server == A).then_some(B));
    assert_eq!(
        told.on(Event::Granted(B)),
        [Command::CountRetry(B), Command::Lend(B)]
    );
    let mut told = Told::connecting(GET);
    told.all(&[REFUSED, Event::Chosen(Chosen::Anyone)]);
    told.exchange.renumber(|_| None);
    assert_eq!(told.on(Event::Granted(B)), [Command::Lend(B)]);
    assert_eq!(told.exchange.server(), ServerSide::Lending(B));
    told.exchange.renumber(|_| None);
    assert_eq!(
        told.exchange.server(),
        ServerSide::Lending(B),
        "it holds a slot of this table"
    );
}

/// What each of three refused connects leads to, the first server being what `chosen` says.
fn wishes(redispatch: Redispatch, chosen: Event) -> Vec<Command> {
    let mut told = with(redispatch);
    told.on(chosen);
    let mut wishes = Vec::new();
    for _ in 0..EFFORT.retries {
        told.all(&[Event::Slot(Taken::Yes), Event::Lent(Found::Nothing)]);
        wishes.push(told.on(REFUSED)[1]);
        told.all(&[chosen, Event::PauseOver]);
    }
    wishes
}

/// RT-3, RT-4: who is tied to nothing leaves at once; who is tied, on the last retry, or as often as is said.
#[test]
fn when_a_server_is_left() {
    let stay = Command::Choose(ANY);
    let leave = Command::Choose(NOT_A);
    let untie = Command::Choose(Wish {
        avoid: Some(A),
        tie: Tie::Forgotten,
    });
    for chosen in [ON_A, PREFERS_A] {
        assert_eq!(wishes(Redispatch::USUAL, chosen), [leave; 3]);
    }
    assert_eq!(wishes(Redispatch::USUAL, TIED_TO_A), [stay, stay, untie]);
    assert_eq!(
        wishes(Redispatch::BeforeEnd(2), TIED_TO_A),
        [stay, untie, untie_kept()]
    );
    assert_eq!(wishes(Redispatch::Every(1), TIED_TO_A)[0], untie);
    assert_eq!(wishes(Redispatch::Every(3), TIED_TO_A), [stay, stay, untie]);
    for chosen in [ON_A, PREFERS_A, TIED_TO_A] {
        let again = wishes(Redispatch::Never, chosen);
        assert_eq!(again, [Command::CountRetry(A); 3], "the same, nobody is asked");
    }
}

/// A tie that was forgotten stays so.
fn untie_kept() -> Command {
    Command::Choose(FREELY)
}

/// RT-3 with figures that leave nothing: never due, and no division by zero.
#[test]
fn a_redispatch_that_is_never_due() {
    for redispatch in [Redispatch::Never, Redispatch::Every(0), Redispatch::BeforeEnd(9)] {
        assert!(
            (1..=3).all(|count| !redispatch.is_due(count, 3)),
            "{redispatch:?}"
        );
    }
    let due = |redispatch: Redispatch| (1..=6).filter(move |count| redispatch.is_due(*count, 6));
    assert_eq!(due(Redispatch::Every(2)).collect::<Vec<_>>(), [2, 4, 6]);
    assert_eq!(due(Redispatch::BeforeEnd(1)).collect::<Vec<_>>(), [6]);
}

/// A budget that is spent: the failure is answered, and no attempt is charged.
#[test]
fn no_attempt_beyond_the_budget() {
    let mut told = Told::connecting(GET);
    assert_eq!(
        told.exchange.on(REFUSED).as_slice(),
        [Command::ReleaseSlot(A), Command::Charge]
    );
    assert_eq!(
        told.on(Event::Charged(Budget::Spent)),
        [Command::Answer(Failure::ConnectRefused)]
    );
    assert_eq!(told.exchange.retries_left, EFFORT.retries);
}
