//! What makes two server connections interchangeable (POOL-2).
//!
//! A key is everything that a connection was opened with and a request can see: its name (SNI), its destination
//! where that is not fixed, the address it was bound to, the PROXY header sent on it, its socket options, a
//! tenant's tag. The server itself is not in it: every server has its own [`Pool`](super::pool::Pool).
//!
//! Two keys are equal when all their bytes are. The 128-bit fingerprint, keyed with a secret of the process, only
//! finds the candidate fast; a collision, found or forged, never shares a connection across tenants.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_128_with_secret;

/// What a connection is opened with. Absent parts are the common case: every connection of a plain server to a
/// fixed address has the key of `Parts::default()`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts<'a> {
    /// Where the server is, as text: one that has moved starts afresh.
    pub server: Option<&'a [u8]>,
    /// The name asked for: `pool-conn-name`, or the SNI that was sent.
    pub name: Option<&'a [u8]>,
    /// Where it goes, when the server does not fix it.
    pub destination: Option<SocketAddr>,
    /// The address it is bound to; the port is ignored.
    pub source: Option<IpAddr>,
    /// The PROXY header that it began with.
    pub proxy_header: Option<&'a [u8]>,
    /// Type of service and firewall mark.
    pub marks: Option<(u8, u32)>,
    /// A policy's tag that keeps tenants apart.
    pub tag: Option<&'a [u8]>,
}

/// The key of a connection in a pool. Cheap to clone; the same key once made is known by its address,
/// others are compared by fingerprint first, then in full.
#[derive(Clone, Debug)]
pub struct PoolKey {
    fingerprint: u128,
    /// Shared without anything to order: it never changes, so no model checker need see it.
    whole: Arc<[u8]>,
}

impl PoolKey {
    /// The key of connections opened with these parts.
    pub fn new(secret: &KeySecret, parts: &Parts) -> Self {
        let whole = parts.bytes();
        let fingerprint = xxh3_128_with_secret(&whole, &secret.0);
        PoolKey {
            fingerprint,
            whole: whole.into(),
        }
    }
}

impl PartialEq for PoolKey {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.whole, &other.whole)
            || (self.fingerprint == other.fingerprint && self.whole == other.whole)
    }
}

impl Eq for PoolKey {}

impl Hash for PoolKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.fingerprint as u64);
    }
}

/// The secret that fingerprints are keyed with: one per process, so that nobody can prepare colliding names.
#[derive(Clone)]
pub struct KeySecret([u8; KeySecret::LENGTH]);

impl KeySecret {
    /// Bytes of a secret (XXH3 wants at least 136).
    const LENGTH: usize = 192;

    /// A new secret from the system's randomness.
    pub fn random() -> Self {
        Self::from_words(|| RandomState::new().build_hasher().finish())
    }

    /// The secret of a simulation: one seed is one run.
    pub fn from_seed(seed: u64) -> Self {
        let mut counter = seed;
        Self::from_words(|| {
            counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            xxhash_rust::xxh3::xxh3_64(&counter.to_le_bytes())
        })
    }

    fn from_words(mut word: impl FnMut() -> u64) -> Self {
        let mut secret = [0; Self::LENGTH];
        for bytes in secret.chunks_exact_mut(8) {
            bytes.copy_from_slice(&word().to_le_bytes());
        }
        KeySecret(secret)
    }
}

impl std::fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

impl Parts<'_> {
    /// One encoding per value: each present part is its number, its length and its bytes, in order.
    fn bytes(&self) -> Vec<u8> {
        let mut whole = Vec::new();
        put(&mut whole, 0, self.server);
        put(&mut whole, NAME, self.name);
        put(&mut whole, 2, self.destination.map(destination_bytes).as_deref());
        put(&mut whole, 3, self.source.map(address_bytes).as_deref());
        put(&mut whole, 4, self.proxy_header);
        put(&mut whole, 5, self.marks.map(marks_bytes).as_deref());
        put(&mut whole, TAG, self.tag);
        whole
    }
}

/// The number of [`Parts::name`].
const NAME: u8 = 1;
/// The number of [`Parts::tag`].
const TAG: u8 = 6;

/// Keys that requests bring with them, made once each: the same name or tag again costs a hash and a look-up, and
/// allocates nothing. One worker's own.
#[derive(Debug, Default)]
pub struct KeyCache {
    known: HashMap<u128, PoolKey>,
    whole: Vec<u8>,
}

impl KeyCache {
    /// Keys that are remembered. Beyond, all are forgotten, and made again as they come.
    const MAX: usize = 4096;

    /// The key of connections like those of `base`, which has neither, with this name and this tag.
    pub fn with(
        &mut self,
        secret: &KeySecret,
        base: &PoolKey,
        name: Option<&[u8]>,
        tag: Option<&[u8]>,
    ) -> PoolKey {
        self.whole.clear();
        self.whole.extend_from_slice(&base.whole);
        put(&mut self.whole, NAME, name);
        put(&mut self.whole, TAG, tag);
        let fingerprint = xxh3_128_with_secret(&self.whole, &secret.0);
        match self.known.get(&fingerprint) {
            Some(known) if *known.whole == *self.whole => return known.clone(),
            _ => {}
        }
        if self.known.len() >= Self::MAX {
            self.known.clear();
        }
        let key = PoolKey {
            fingerprint,
            whole: self.whole.as_slice().into(),
        };
        self.known.insert(fingerprint, key.clone());
        key
    }
}

fn put(whole: &mut Vec<u8>, part: u8, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else { return };
    whole.push(part);
    whole.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    whole.extend_from_slice(bytes);
}

fn destination_bytes(destination: SocketAddr) -> Vec<u8> {
    let mut bytes = address_bytes(destination.ip());
    bytes.extend_from_slice(&destination.port().to_be_bytes());
    if let SocketAddr::V6(address) = destination {
        bytes.extend_from_slice(&address.scope_id().to_be_bytes());
    }
    bytes
}

fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn marks_bytes((service, mark): (u8, u32)) -> Vec<u8> {
    let mut bytes = vec![service];
    bytes.extend_from_slice(&mark.to_be_bytes());
    bytes
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::*;

    fn key(parts: Parts) -> PoolKey {
        PoolKey::new(&KeySecret::from_seed(1), &parts)
    }

    /// AC-5: every part tells connections apart, and no part can pass for another.
    #[test]
    fn every_part_counts() {
        let none = Parts::default();
        let keys = [
            key(none),
            key(Parts {
                name: Some(b"a"),
                ..none
            }),
            key(Parts {
                name: Some(b""),
                ..none
            }),
            key(Parts {
                name: Some(b"b"),
                ..none
            }),
            key(Parts {
                tag: Some(b"a"),
                ..none
            }),
            key(Parts {
                proxy_header: Some(b"a"),
                ..none
            }),
            key(Parts {
                server: Some(b"a"),
                ..none
            }),
            key(Parts {
                name: Some(b"a"),
                tag: Some(b"a"),
                ..none
            }),
            key(Parts {
                destination: Some("127.0.0.1:80".parse().unwrap()),
                ..none
            }),
            key(Parts {
                destination: Some("127.0.0.1:81".parse().unwrap()),
                ..none
            }),
            key(Parts {
                destination: Some("[fe80::1%1]:80".parse().unwrap()),
                ..none
            }),
            key(Parts {
                destination: Some("[fe80::1%2]:80".parse().unwrap()),
                ..none
            }),
            key(Parts {
                source: Some("127.0.0.1".parse().unwrap()),
                ..none
            }),
            key(Parts {
                source: Some("::1".parse().unwrap()),
                ..none
            }),
            key(Parts {
                marks: Some((0, 1)),
                ..none
            }),
            key(Parts {
                marks: Some((1, 0)),
                ..none
            }),
        ];
        for (i, a) in keys.iter().enumerate() {
            for (j, b) in keys.iter().enumerate() {
                assert_eq!(a == b, i == j, "keys {i} and {j}");
            }
        }
    }

    #[test]
    fn equal_parts_made_apart_are_one_key() {
        let parts = Parts {
            name: Some(b"example.com"),
            ..Parts::default()
        };
        assert_eq!(key(parts), key(parts));
    }

    /// The same name is the same key, made once; names and tags are never mixed up.
    #[test]
    fn keys_of_requests_are_made_once() {
        let secret = KeySecret::from_seed(1);
        let base = key(Parts {
            server: Some(b"10.0.0.1:80"),
            ..Parts::default()
        });
        let mut cache = KeyCache::default();
        let first = cache.with(&secret, &base, Some(b"a"), None);
        let again = cache.with(&secret, &base, Some(b"a"), None);
        assert!(Arc::ptr_eq(&first.whole, &again.whole));
        let others = [
            cache.with(&secret, &base, None, Some(b"a")),
            cache.with(&secret, &base, Some(b"a"), Some(b"a")),
            cache.with(&secret, &base, Some(b""), None),
            base,
        ];
        assert!(others.iter().all(|other| *other != first));
        let base = key(Parts::default());
        for name in 0..2 * KeyCache::MAX as u32 {
            cache.with(&secret, &base, Some(&name.to_le_bytes()), None);
        }
        assert!(cache.known.len() <= KeyCache::MAX);
    }

    /// What happened elsewhere with a bare checksum as the key cannot happen here.
    #[test]
    fn a_collision_of_fingerprints_shares_nothing() {
        let a = key(Parts {
            name: Some(b"tenant-a"),
            ..Parts::default()
        });
        let mut b = key(Parts {
            name: Some(b"tenant-b"),
            ..Parts::default()
        });
        b.fingerprint = a.fingerprint;
        assert_ne!(a, b);
    }

    #[test]
    fn secrets_change_the_fingerprint() {
        let parts = Parts {
            name: Some(b"example.com"),
            ..Parts::default()
        };
        let fingerprint = |secret| PoolKey::new(&secret, &parts).fingerprint;
        assert_eq!(
            fingerprint(KeySecret::from_seed(7)),
            fingerprint(KeySecret::from_seed(7))
        );
        assert_ne!(
            fingerprint(KeySecret::from_seed(7)),
            fingerprint(KeySecret::from_seed(8))
        );
        assert_ne!(fingerprint(KeySecret::random()), fingerprint(KeySecret::random()));
    }
}
