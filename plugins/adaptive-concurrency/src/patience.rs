//! How long a request may wait that finds no server.
//!
//! A queue is good for a burst: it is gone a moment later, and nobody was turned away. A queue that stands is good for
//! nothing: each request waits as long as the one before it, and servers do no more than without it. So the time that
//! requests may wait is long as long as the queue is empty now and then, and short once it has not been for a while.
//!
//! The queue is seen only by requests that join it. Who finds nobody there, or comes when nobody has joined for that
//! while, is the first of a new one.

/// What is known of the queue, in ms.
pub struct Patience {
    wait: i64,
    wait_standing: i64,
    standing_after: i64,
    /// When the queue was empty last.
    empty: i64,
    /// When somebody joined it last.
    joined: i64,
}

impl Patience {
    pub const fn new(wait: i64, wait_standing: i64, standing_after: i64) -> Patience {
        Patience { wait, wait_standing, standing_after, empty: 0, joined: 0 }
    }

    /// For one who joins it now behind so many.
    pub fn for_one(&mut self, now: i64, queued: i32) -> i32 {
        if queued <= 0 || now - self.joined > self.standing_after {
            self.empty = now;
        }
        self.joined = now;
        let stands = now - self.empty > self.standing_after;
        (if stands { self.wait_standing } else { self.wait }) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_may_wait_and_what_stands_may_not() {
        let mut patience = Patience::new(100, 10, 50);
        assert_eq!(patience.for_one(1_000, 0), 100);
        assert_eq!(patience.for_one(1_050, 30), 100);
        assert_eq!(patience.for_one(1_051, 30), 10);
        assert_eq!(patience.for_one(1_060, 0), 100, "it was empty");
        assert_eq!(patience.for_one(1_100, 3), 100);
        assert_eq!(patience.for_one(1_140, 3), 10);
    }

    #[test]
    fn another_worker_may_have_been_the_first() {
        let mut patience = Patience::new(100, 10, 50);
        assert_eq!(patience.for_one(1_000, 7), 100);
        assert_eq!(patience.for_one(9_000, 7), 100, "nobody has joined for long");
        assert_eq!(patience.for_one(9_040, 7), 100);
        assert_eq!(patience.for_one(9_080, 7), 10);
    }
}
