//! A record as bytes: how it crosses from a worker to the log thread.
//!
//! It is appended to the worker's batch: no allocation of its own, no reference into the worker's buffers, one copy.
//! Layout, little endian: length of the rest (`u32`), the fixed part, then each text with its length (`u16`). The form
//! is private to one process and may change with every version.
//!
//! Texts are cut at a bound when they are encoded, for a client may choose them; numbers never are.

use super::record::{Ahead, Dispatch, EndedBy, Phase, Record, Reuse, Termination, Timers};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Most bytes of a target that are kept.
pub const TARGET_MAX: usize = 2048;
/// Most bytes of a host that are kept.
pub const HOST_MAX: usize = 256;
/// Most bytes of a method, a name or a cause that are kept.
pub const NAME_MAX: usize = 128;

impl Record<'_> {
    /// Appends the record. Allocates only when `out` has to grow.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let texts = [
            (self.listener.as_bytes(), NAME_MAX),
            (self.backend.as_bytes(), NAME_MAX),
            (self.server.as_bytes(), NAME_MAX),
            (self.cause.as_bytes(), NAME_MAX),
            (self.opened.as_bytes(), NAME_MAX),
            (self.closed.as_bytes(), NAME_MAX),
            (self.method, NAME_MAX),
            (self.host, HOST_MAX),
            (self.target, TARGET_MAX),
        ];
        let bound = |(text, max): (&[u8], usize)| text.len().min(max);
        let length = FIXED + texts.iter().map(|text| 2 + bound(*text)).sum::<usize>();
        out.reserve(4 + length);
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&self.fixed_part());
        for (text, max) in texts {
            let kept = &text[..bound((text, max))];
            out.extend_from_slice(&(kept.len() as u16).to_le_bytes());
            out.extend_from_slice(kept);
        }
    }

    fn fixed_part(&self) -> [u8; FIXED] {
        let mut fixed = [0; FIXED];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            fixed[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.at_unix_ms.to_le_bytes());
        let (family, ip, port) = address_bytes(self.client);
        put(&ip);
        put(&port.to_le_bytes());
        for number in [self.bytes_in, self.bytes_out] {
            put(&number.to_le_bytes());
        }
        let Timers {
            request,
            queue,
            connect,
            response,
            total,
        } = self.timers;
        for timer in [request, queue, connect, response, total] {
            put(&timer.to_le_bytes());
        }
        for number in [self.route.unwrap_or(NO_ROUTE), self.status, self.retries] {
            put(&number.to_le_bytes());
        }
        for ahead in [self.ahead.server, self.ahead.backend] {
            put(&ahead.unwrap_or(NOBODY_AHEAD).to_le_bytes());
        }
        let Termination { by, phase } = self.termination;
        let letters = [
            by.letter(),
            phase.letter(),
            self.reuse.letter(),
            self.dispatch.letter(),
        ];
        put(&letters);
        put(&[family, self.minor_version]);
        debug_assert_eq!(at, FIXED);
        fixed
    }
}

/// Bytes of the fixed part: moment, address, two byte counts, five timers, three numbers, two places, six letters.
const FIXED: usize = 8 + 18 + 2 * 8 + 5 * 8 + 3 * 2 + 2 * 4 + 6;
/// Stands for a queue in which it did not wait; none is that long.
const NOBODY_AHEAD: u32 = u32::MAX;
/// Stands for no route; a listener has fewer.
const NO_ROUTE: u16 = u16::MAX;

fn address_bytes(address: Option<SocketAddr>) -> (u8, [u8; 16], u16) {
    match address {
        None => (0, [0; 16], 0),
        Some(SocketAddr::V4(v4)) => (4, v4.ip().to_ipv6_mapped().octets(), v4.port()),
        Some(SocketAddr::V6(v6)) => (6, v6.ip().octets(), v6.port()),
    }
}

/// The records of a batch, in order.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

/// Reads back what [`Record::encode`] appended. Ends at the first byte that is not a whole record.
pub fn decode(batch: &[u8]) -> Records<'_> {
    Records { rest: batch }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut all = Reader { bytes: self.rest };
        let length = u32::from_le_bytes(all.array()?) as usize;
        let record = Reader {
            bytes: all.take(length)?,
        }
        .record()?;
        self.rest = all.bytes;
        Some(record)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn record(&mut self) -> Option<Record<'a>> {
        let at_unix_ms = self.u64()?;
        let ip = Ipv6Addr::from(self.array::<16>()?);
        let port = self.u16()?;
        let (bytes_in, bytes_out) = (self.u64()?, self.u64()?);
        let timers = Timers {
            request: self.i64()?,
            queue: self.i64()?,
            connect: self.i64()?,
            response: self.i64()?,
            total: self.i64()?,
        };
        let (route, status, retries) = (self.u16()?, self.u16()?, self.u16()?);
        let mut place = || Some(self.u32()?).map(|ahead| (ahead != NOBODY_AHEAD).then_some(ahead));
        let ahead = Ahead {
            server: place()?,
            backend: place()?,
        };
        let [by, phase, reuse, dispatch, family, minor_version] = self.array()?;
        Some(Record {
            at_unix_ms,
            client: address(family, ip, port),
            listener: self.name()?,
            backend: self.name()?,
            server: self.name()?,
            cause: self.name()?,
            opened: self.name()?,
            closed: self.name()?,
            method: self.text()?,
            host: self.text()?,
            target: self.text()?,
            route: (route != NO_ROUTE).then_some(route),
            minor_version,
            status,
            bytes_in,
            bytes_out,
            timers,
            retries,
            ahead,
            dispatch: Dispatch::of_letter(dispatch)?,
            termination: Termination {
                by: EndedBy::of_letter(by)?,
                phase: Phase::of_letter(phase)?,
            },
            reuse: Reuse::of_letter(reuse)?,
        })
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }

    /// A name of ours. One that was cut within a character loses the rest of that character.
    fn name(&mut self) -> Option<&'a str> {
        let text = self.text()?;
        match str::from_utf8(text) {
            Ok(name) => Some(name),
            Err(cut) => str::from_utf8(&text[..cut.valid_up_to()]).ok(),
        }
    }
}

fn address(family: u8, ip: Ipv6Addr, port: u16) -> Option<SocketAddr> {
    let ip = match family {
        4 => IpAddr::V4(ip.to_ipv4_mapped()?),
        6 => IpAddr::V6(ip),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{example_record as example, refused_record as refused};
    use super::*;
    use proptest::prelude::*;

    fn encoded(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_batch_reads_back_in_order() {
        let mut batch = encoded(&example());
        refused().encode(&mut batch);
        let v6 = Record {
            client: Some("[2001:db8::7]:9".parse().unwrap()),
            ..example()
        };
        v6.encode(&mut batch);
        assert_eq!(decode(&batch).collect::<Vec<_>>(), [example(), refused(), v6]);
    }

    #[test]
    fn what_a_client_chooses_is_bounded() {
        let long = vec![b'x'; 100_000];
        let bytes = encoded(&Record {
            method: &long,
            host: &long,
            target: &long,
            ..example()
        });
        let record = decode(&bytes).next().unwrap();
        assert_eq!((record.method.len(), record.host.len()), (NAME_MAX, HOST_MAX));
        assert_eq!(record.target.len(), TARGET_MAX);
        assert_eq!(record.bytes_out, 2750);
    }

    #[test]
    fn a_name_cut_within_a_character_loses_that_character_only() {
        let name = "é".repeat(NAME_MAX);
        let odd = format!("x{name}");
        let bytes = encoded(&Record {
            listener: &odd,
            ..example()
        });
        let record = decode(&bytes).next().unwrap();
        assert_eq!(record.listener, format!("x{}", "é".repeat(NAME_MAX / 2 - 1)));
    }

    #[test]
    fn encoding_into_a_buffer_with_room_keeps_its_memory() {
        let mut batch = Vec::with_capacity(4096);
        let before = batch.as_ptr();
        for _ in 0..4 {
            example().encode(&mut batch);
        }
        assert_eq!(batch.as_ptr(), before);
    }

    proptest! {
        #[test]
        fn any_record_reads_back(
            numbers in any::<(u64, u64, u64, u16, u16)>(),
            timers in any::<[i64; 5]>(),
            ahead in proptest::option::of(0..NOBODY_AHEAD),
            address in any::<Option<([u16; 8], u16)>>(),
            route in proptest::option::of(0..NO_ROUTE),
            method in proptest::collection::vec(any::<u8>(), 0..40),
            host in proptest::collection::vec(any::<u8>(), 0..300),
            target in proptest::collection::vec(any::<u8>(), 0..3000),
            backend in "[a-zé]{0,40}",
        ) {
            let [request, queue, connect, response, total] = timers;
            let record = Record {
                at_unix_ms: numbers.0,
                bytes_in: numbers.1,
                bytes_out: numbers.2,
                status: numbers.3,
                retries: numbers.4,
                ahead: Ahead { server: ahead, backend: None },
                timers: Timers { request, queue, connect, response, total },
                client: address.map(|(ip, port)| SocketAddr::new(IpAddr::from(ip), port)),
                route,
                method: &method,
                host: &host[..host.len().min(HOST_MAX)],
                target: &target[..target.len().min(TARGET_MAX)],
                backend: &backend,
                ..example()
            };
            let bytes = encoded(&record);
            prop_assert_eq!(decode(&bytes).collect::<Vec<_>>(), vec![record]);
            for end in 0..bytes.len() {
                prop_assert_eq!(decode(&bytes[..end]).next(), None);
            }
        }

        #[test]
        fn noise_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&bytes).count();
        }
    }
}
