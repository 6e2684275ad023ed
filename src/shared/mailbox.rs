//! What one worker sends to another, or the control thread to a worker.
//!
//! Two lanes lead into a mailbox. *Mail* (tables, grants of slots, commands) is never dropped, and bounded by what it
//! is about: live exchanges, publications. *Hand-offs* (client connections for a less loaded worker, SCH-8) are
//! bounded by a number, and a sender who finds the lane full gets its connection back and keeps it.
//!
//! A burst of messages wakes the reader once ([`Bell`]). Sending takes no lock of ours and is never done under one.

use super::bell::Bell;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};
use std::fmt;
use std::sync::Arc;

/// What gets a worker out of its poll.
pub trait Wake: Send + Sync {
    /// Makes the poll return, now or the next time it is called. Called from any thread, under no lock.
    fn wake(&self);
}

/// A mailbox whose hand-off lane holds so many, and the way to send to it.
pub fn mailbox<M, H>(hand_offs_max: usize, reader: Arc<dyn Wake>) -> (Postbox<M, H>, Mailbox<M, H>) {
    let (mail_in, mail) = unbounded();
    let (hand_off_in, hand_offs) = bounded(hand_offs_max);
    let bell = Arc::new(Bell::new());
    let postbox = Postbox {
        mail: mail_in,
        hand_offs: hand_off_in,
        bell: bell.clone(),
        reader,
    };
    (
        postbox,
        Mailbox {
            mail,
            hand_offs,
            bell,
        },
    )
}

/// The sending side; one for each who sends.
pub struct Postbox<M, H> {
    mail: Sender<M>,
    hand_offs: Sender<H>,
    bell: Arc<Bell>,
    reader: Arc<dyn Wake>,
}

impl<M, H> Postbox<M, H> {
    /// Sends a message. `Err`: the reader is gone.
    pub fn send(&self, message: M) -> Result<(), M> {
        self.mail.send(message).map_err(|refused| refused.0)?;
        self.ring();
        Ok(())
    }

    /// Hands a client connection off. `Err`: the lane is full, or the reader gone; keep it.
    pub fn hand_off(&self, connection: H) -> Result<(), H> {
        match self.hand_offs.try_send(connection) {
            Ok(()) => {
                self.ring();
                Ok(())
            }
            Err(TrySendError::Full(connection) | TrySendError::Disconnected(connection)) => Err(connection),
        }
    }

    /// Hand-offs that the reader has not taken yet: part of its load.
    pub fn hand_offs_waiting(&self) -> usize {
        self.hand_offs.len()
    }

    fn ring(&self) {
        if self.bell.ring() {
            self.reader.wake();
        }
    }
}

impl<M, H> Clone for Postbox<M, H> {
    fn clone(&self) -> Self {
        Postbox {
            mail: self.mail.clone(),
            hand_offs: self.hand_offs.clone(),
            bell: self.bell.clone(),
            reader: self.reader.clone(),
        }
    }
}

impl<M, H> fmt::Debug for Postbox<M, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Postbox({} mail, {} hand-offs)",
            self.mail.len(),
            self.hand_offs.len()
        )
    }
}

/// The reading side; its worker's alone.
#[derive(Debug)]
pub struct Mailbox<M, H> {
    mail: Receiver<M>,
    hand_offs: Receiver<H>,
    bell: Arc<Bell>,
}

impl<M, H> Mailbox<M, H> {
    /// Once per turn, before anything is received. `false`: there is nothing new in either lane. After `true`,
    /// receive until both lanes are empty, or remember to come back: the bell does not ring again for what is left.
    pub fn silence(&self) -> bool {
        self.bell.silence()
    }

    /// The next message, if any.
    pub fn receive(&self) -> Option<M> {
        self.mail.try_recv().ok()
    }

    /// The next handed-off connection, if any.
    pub fn receive_hand_off(&self) -> Option<H> {
        self.hand_offs.try_recv().ok()
    }
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_burst_wakes_once_and_arrives_in_order() {
        let wakes = Arc::new(Wakes::default());
        let (postbox, mailbox) = mailbox::<_, ()>(1, wakes.clone());
        for message in 0..5 {
            postbox.clone().send(message).unwrap();
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(mailbox.silence());
        assert_eq!(
            std::iter::from_fn(|| mailbox.receive()).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        assert!(!mailbox.silence());
        postbox.send(5).unwrap();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_full_lane_gives_the_connection_back() {
        let (postbox, mailbox) = mailbox::<(), _>(2, Arc::new(Wakes::default()));
        assert_eq!(
            [
                postbox.hand_off("a"),
                postbox.hand_off("b"),
                postbox.hand_off("c")
            ],
            [Ok(()), Ok(()), Err("c")]
        );
        assert_eq!(postbox.hand_offs_waiting(), 2);
        assert_eq!(mailbox.receive_hand_off(), Some("a"));
        assert_eq!(postbox.hand_off("c"), Ok(()));
    }

    #[test]
    fn who_sends_to_a_reader_that_is_gone_keeps_it() {
        let wakes = Arc::new(Wakes::default());
        let (postbox, mailbox) = mailbox(1, wakes.clone());
        drop(mailbox);
        assert_eq!(postbox.send(1), Err(1));
        assert_eq!(postbox.hand_off(2), Err(2));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    }

    /// Readers that sleep until they are woken get every message of several senders.
    #[test]
    fn nothing_is_left_behind() {
        const SENDERS: u64 = 4;
        const EACH: u64 = 500;
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(&self) {
                self.0.unpark();
            }
        }
        let (postbox, mailbox) = mailbox::<u64, ()>(1, Arc::new(Unpark(std::thread::current())));
        std::thread::scope(|scope| {
            for _ in 0..SENDERS {
                let postbox = postbox.clone();
                scope.spawn(move || (0..EACH).for_each(|message| postbox.send(message).unwrap()));
            }
            let (mut received, mut sum) = (0, 0);
            while received < SENDERS * EACH {
                if !mailbox.silence() {
                    std::thread::park();
                    continue;
                }
                while let Some(message) = mailbox.receive() {
                    received += 1;
                    sum += message;
                }
            }
            assert_eq!(sum, SENDERS * (EACH * (EACH - 1) / 2));
        });
    }
}
