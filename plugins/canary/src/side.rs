//! Which side a client is on.
//!
//! Each client has a *bucket* from 0 to 999 999, and the share is all buckets below it. So whoever is in a share of 5 %
//! is in one of 10 % as well. The bucket comes from a hash of what tells clients apart and of the backend's name, so that
//! two canaries try two sets of clients; or from the cookie, where it was kept.

/// What decides.
pub struct Sides {
    /// Millionths.
    pub share: i32,
    /// The cookie's value that forces the client in.
    pub on: String,
    /// The one that keeps it out.
    pub off: String,
    /// See [`salt`].
    pub salt: u64,
}

/// Where a client is.
#[derive(Debug, PartialEq, Eq)]
pub struct Side {
    /// In the share.
    pub on: bool,
    /// Its bucket, if the cookie did not say it.
    pub new: Option<i32>,
}

impl Side {
    /// Of a request that is not looked at.
    pub const OUT: Side = Side { on: false, new: None };
}

impl Sides {
    /// By the cookie's value, or else by a hash of 31 bits that is asked for.
    pub fn of(&self, cookie: Option<&str>, hash: impl FnOnce() -> i32) -> Side {
        let known = |on| Side { on, new: None };
        match cookie {
            Some(value) if value == self.on => return known(true),
            Some(value) if value == self.off => return known(false),
            Some(value) => {
                if let Some(bucket) = kept(value) {
                    return known(bucket < self.share);
                }
            }
            None => {}
        }
        let bucket = self.bucket(hash());
        Side { on: bucket < self.share, new: Some(bucket) }
    }

    fn bucket(&self, hash: i32) -> i32 {
        let mut bits = (self.salt ^ hash as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((bits >> 32) * 1_000_000) >> 32) as i32
    }
}

/// A number for the backend's name (FNV-1a).
pub fn salt(backend: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    backend.bytes().fold(0xcbf2_9ce4_8422_2325, step)
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
        Sides { share, on: "always".into(), off: "never".into(), salt: salt(backend) }
    }

    fn hashes() -> impl Iterator<Item = i32> {
        (0..100_000_u64).map(|it| (it.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as i32)
    }

    #[test]
    fn the_cookie_forces() {
        let unasked = || -> i32 { unreachable!() };
        assert!(sides(0, "c").of(Some("always"), unasked).on);
        assert!(!sides(1_000_000, "c").of(Some("never"), unasked).on);
        let kept = sides(50_000, "c");
        assert!(kept.of(Some("49999"), unasked).on && !kept.of(Some("50000"), unasked).on);
    }

    #[test]
    fn another_cookie_is_none() {
        for value in ["", "1000000", "-1", "+5", "5 ", "Always", "٣"] {
            let sides = sides(500_000, "c");
            assert_eq!(sides.of(Some(value), || 77), sides.of(None, || 77), "{value}");
        }
    }

    #[test]
    fn the_share_is_the_share() {
        for share in [0, 50_000, 333_333, 1_000_000] {
            let sides = sides(share, "c");
            let on = hashes().filter(|&hash| sides.of(None, || hash).on).count();
            assert!((on as i32 * 10 - share).abs() < 3_000, "{share}: {on}");
        }
    }

    #[test]
    fn a_growing_share_only_gains_and_the_kept_bucket_decides_alike() {
        for hash in hashes().take(10_000) {
            let (few, many) = (sides(50_000, "c"), sides(100_000, "c"));
            let side = few.of(None, || hash);
            assert!(!side.on || many.of(None, || hash).on);
            let cookie = side.new.unwrap().to_string();
            assert_eq!(few.of(Some(&cookie), || unreachable!()).on, side.on);
        }
    }

    #[test]
    fn two_canaries_try_two_sets() {
        let both = |hash: &i32| {
            sides(100_000, "a").of(None, || *hash).on && sides(100_000, "b").of(None, || *hash).on
        };
        let both = hashes().filter(both).count();
        assert!((800..1_200).contains(&both), "{both}");
    }

    /// Clients stay where they are when this plugin is updated.
    #[test]
    fn buckets_are_for_ever() {
        let buckets = [0, 1, 0x7fff_ffff].map(|hash| sides(0, "canary").bucket(hash));
        assert_eq!(buckets, [844_410, 35_105, 738_570]);
    }
}
