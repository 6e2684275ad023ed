//! Looks up the host names of a file, each once, several at a time, and lists every one that fails.
//!
//! A name stands for the first address that the system gives for it, for as long as this configuration lives. The
//! lookup itself is an argument, so that tests and tools need no network.

use super::defaults::RESOLVERS_MAX;
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Asks for the addresses of `host:port`; an error in words.
pub type Lookup<'f> = dyn Fn(&str, u16) -> Result<SocketAddr, String> + Sync + 'f;

/// Asks the system (`/etc/hosts`, DNS, …).
pub fn system(host: &str, port: u16) -> Result<SocketAddr, String> {
    match (host, port).to_socket_addrs() {
        Ok(mut addresses) => addresses.next().ok_or_else(|| "it has no address".to_owned()),
        Err(error) => Err(error
            .to_string()
            .replace("failed to lookup address information: ", "")),
    }
}

/// The answers for names that were asked for.
pub(super) struct Answers(BTreeMap<String, Result<SocketAddr, String>>);

impl Answers {
    /// Looks all of them up, at most [`RESOLVERS_MAX`] at a time: a dead name server costs its timeout once, not per name.
    pub(super) fn of(names: impl IntoIterator<Item = String>, lookup: &Lookup<'_>) -> Answers {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names.dedup();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut answers = Vec::new();
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                answers.push((name.clone(), lookup(name, 0)));
            }
            answers
        };
        let found = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..names.len().min(RESOLVERS_MAX))
                .map(|_| scope.spawn(work))
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().unwrap_or_default())
                .collect()
        });
        Answers(found)
    }

    /// The address of a name with this port.
    pub(super) fn get(&self, name: &str, port: u16) -> Result<SocketAddr, String> {
        let answer = self
            .0
            .get(name)
            .cloned()
            .unwrap_or_else(|| Err("it was not looked up".into()));
        answer.map(|mut address| {
            address.set_port(port);
            address
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_asked_once() {
        let asked = AtomicUsize::new(0);
        let lookup = |host: &str, port| {
            asked.fetch_add(1, Ordering::Relaxed);
            if host == "dead" {
                Err("nobody".to_owned())
            } else {
                Ok(SocketAddr::from(([10, 0, 0, 1], port)))
            }
        };
        let answers = Answers::of(["a", "dead", "a", "b"].map(str::to_owned), &lookup);
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        assert_eq!(answers.get("a", 80), Ok("10.0.0.1:80".parse().unwrap()));
        assert_eq!(answers.get("dead", 80), Err("nobody".to_owned()));
    }
}
