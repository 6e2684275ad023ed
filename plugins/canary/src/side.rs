//! Which side a client is on.
//!
//! Each client has a *bucket* from 0 to 999 999, and a share is the buckets below it. So whoever is in a share of 5 % is
//! in one of 10 % as well. Of several shares each begins where the one before it ends, so that one that grows moves
//! clients of those after it. The bucket comes from a hash of what tells clients apart and of a name, so that two canaries
//! try two sets of clients; or from the cookie, where it was kept.

/// What decides.
pub struct Sides {
    /// The shares in their order, each with the bucket at which it ends.
    pub shares: Vec<Share>,
    /// The cookie's value that forces the client into the first share.
    pub on: String,
    /// The one that keeps it out.
    pub off: String,
    /// See [`salt`].
    pub salt: u64,
}

/// The clients of one backend.
pub struct Share {
    /// The cookie's value that forces a client in.
    pub backend: String,
    /// The first bucket that is not in it.
    pub until: i32,
}

/// Where a client is.
#[derive(Debug, PartialEq, Eq)]
pub struct Side {
    /// The place of its share; none if it is in no share.
    pub share: Option<usize>,
    /// Its bucket, if nothing that it sent said it.
    pub new: Option<i32>,
}

impl Side {
    /// Of a request that is not looked at.
    pub const OUT: Side = Side { share: None, new: None };
}

impl Sides {
    /// By what a tester wishes, by the cookie's value, or else by a hash of 31 bits that is asked for.
    pub fn of(&self, wish: Option<&str>, cookie: Option<&str>, hash: impl FnOnce() -> i32) -> Side {
        let forced = || wish.and_then(|word| self.forced(word)).or_else(|| self.forced(cookie?));
        if let Some(share) = forced() {
            return Side { share, new: None };
        }
        if let Some(bucket) = cookie.and_then(kept) {
            return Side { share: self.share(bucket), new: None };
        }
        let bucket = self.bucket(hash());
        Side { share: self.share(bucket), new: Some(bucket) }
    }

    /// Where a word forces a client to; `None` for a word that forces nothing.
    fn forced(&self, word: &str) -> Option<Option<usize>> {
        if word == self.off {
            return Some(None);
        }
        if word == self.on {
            return Some(Some(0));
        }
        self.shares.iter().position(|share| share.backend == word).map(Some)
    }

    fn share(&self, bucket: i32) -> Option<usize> {
        self.shares.iter().position(|share| bucket < share.until)
    }

    fn bucket(&self, hash: i32) -> i32 {
        let mut bits = (self.salt ^ hash as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((bits >> 32) * 1_000_000) >> 32) as i32
    }
}

/// A number for a name (FNV-1a).
pub fn salt(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A bucket out of the cookie; anything else there counts as no cookie.
fn kept(value: &str) -> Option<i32> {
    let digits = value.len() <= 6 && value.bytes().all(|it| it.is_ascii_digit());
    digits.then(|| value.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(share: i32, backend: &str) -> Sides {
        several(&[(backend, share)], backend)
    }

    /// Shares, each with its end.
    fn several(shares: &[(&str, i32)], name: &str) -> Sides {
        let share = |&(backend, until): &(&str, i32)| Share { backend: backend.into(), until };
        let shares = shares.iter().map(share).collect();
        Sides { shares, on: "always".into(), off: "never".into(), salt: salt(name) }
    }

    fn is_on(sides: &Sides, cookie: Option<&str>, hash: impl FnOnce() -> i32) -> bool {
        sides.of(None, cookie, hash).share.is_some()
    }

    fn hashes() -> impl Iterator<Item = i32> {
        (0..100_000_u64).map(|it| (it.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as i32)
    }

    #[test]
    fn the_cookie_forces() {
        let unasked = || -> i32 { unreachable!() };
        assert!(is_on(&sides(0, "c"), Some("always"), unasked));
        assert!(is_on(&sides(0, "c"), Some("c"), unasked));
        assert!(!is_on(&sides(1_000_000, "c"), Some("never"), unasked));
        let kept = sides(50_000, "c");
        assert!(is_on(&kept, Some("49999"), unasked) && !is_on(&kept, Some("50000"), unasked));
    }

    #[test]
    fn another_cookie_is_none() {
        for value in ["", "1000000", "-1", "+5", "5 ", "Always", "٣"] {
            let sides = sides(500_000, "c");
            assert_eq!(sides.of(None, Some(value), || 77), sides.of(None, None, || 77), "{value}");
        }
    }

    #[test]
    fn the_share_is_the_share() {
        for share in [0, 50_000, 333_333, 1_000_000] {
            let sides = sides(share, "c");
            let on = hashes().filter(|&hash| is_on(&sides, None, || hash)).count();
            assert!((on as i32 * 10 - share).abs() < 3_000, "{share}: {on}");
        }
    }

    #[test]
    fn a_growing_share_only_gains_and_the_kept_bucket_decides_alike() {
        for hash in hashes().take(10_000) {
            let (few, many) = (sides(50_000, "c"), sides(100_000, "c"));
            let side = few.of(None, None, || hash);
            assert!(side.share.is_none() || is_on(&many, None, || hash));
            let cookie = side.new.unwrap().to_string();
            assert_eq!(few.of(None, Some(&cookie), || unreachable!()).share, side.share);
        }
    }

    #[test]
    fn two_canaries_try_two_sets() {
        let both = |hash: &i32| {
            is_on(&sides(100_000, "a"), None, || *hash) && is_on(&sides(100_000, "b"), None, || *hash)
        };
        let both = hashes().filter(both).count();
        assert!((800..1_200).contains(&both), "{both}");
    }

    #[test]
    fn several_shares_lie_side_by_side() {
        let sides = several(&[("beta", 100_000), ("next", 400_000)], "canary");
        let mut counts = [0; 3];
        for hash in hashes() {
            counts[sides.of(None, None, || hash).share.unwrap_or(2)] += 1;
        }
        for (count, share) in counts.into_iter().zip([10_000_i32, 30_000, 60_000]) {
            assert!((count - share).abs() < 500, "{counts:?}");
        }
        // The last one grows at the cost of nobody but those who were in none.
        let grown = several(&[("beta", 100_000), ("next", 600_000)], "canary");
        for hash in hashes().take(10_000) {
            let before = sides.of(None, None, || hash).share;
            assert!(before.is_none() || grown.of(None, None, || hash).share == before);
        }
    }

    #[test]
    fn a_testers_wish_counts_before_the_cookie() {
        let sides = several(&[("beta", 100_000), ("next", 400_000)], "canary");
        let share = |wish, cookie| sides.of(wish, cookie, || 0).share;
        assert_eq!(share(Some("next"), Some("never")), Some(1));
        assert_eq!(share(Some("always"), Some("next")), Some(0));
        assert_eq!(share(Some("never"), Some("50000")), None);
        assert_eq!(share(Some("elsewhere"), Some("next")), Some(1), "a word that nobody knows is none");
        assert_eq!(share(None, Some("99999")), Some(0));
        assert_eq!(share(None, Some("100000")), Some(1));
    }

    /// Clients stay where they are when this plugin is updated.
    #[test]
    fn buckets_are_for_ever() {
        let buckets = [0, 1, 0x7fff_ffff].map(|hash| sides(0, "canary").bucket(hash));
        assert_eq!(buckets, [844_410, 35_105, 738_570]);
    }
}
