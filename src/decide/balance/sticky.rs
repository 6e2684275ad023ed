//! One server for everybody until it is gone (LB-50): primary and stand-by, without a way back.
//!
//! Who keeps the name of the server between two picks is the caller. A full server is still the one: requests are tied
//! to it and wait there. A server that comes back does not get its place back, so that it does not flap.

use super::servers;
use crate::policy::{ServerIndex, Table};

/// Who gets a request, and who is kept from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// This one gets the request.
    pub server: ServerIndex,
    /// This one is kept.
    pub kept: ServerIndex,
}

/// The kept server while it is usable, else the first that is. A request that is to avoid the kept server goes to
/// another one, if there is (LB-3), and everybody else stays.
pub fn pick(table: &impl Table, kept: Option<ServerIndex>, avoid: Option<ServerIndex>) -> Option<Pick> {
    let usable = |&server: &ServerIndex| table.usable(server);
    let first = || servers(table).find(usable);
    let kept = kept.filter(usable).or_else(first)?;
    let server = if avoid == Some(kept) {
        let other = servers(table).find(|server| *server != kept && usable(server));
        other.unwrap_or(kept)
    } else {
        kept
    };
    Some(Pick { server, kept })
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::column::Columns;
    use super::*;

    /// LB-50, LB-3.
    #[test]
    fn one_server_until_it_is_gone() {
        let mut table = Columns::of(&[1, 0, 1]);
        table.limits = vec![1; 3];
        let of = |table: &Columns, kept: Option<u16>, avoid: Option<u16>| {
            let pick = pick(table, kept.map(ServerIndex), avoid.map(ServerIndex));
            pick.map(|pick| (pick.server.0, pick.kept.0))
        };
        assert_eq!(of(&table, None, None), Some((0, 0)));
        table.served[0] = 1;
        assert_eq!(of(&table, Some(0), None), Some((0, 0)), "full, and still the one");
        assert_eq!(
            of(&table, Some(0), Some(0)),
            Some((2, 0)),
            "only this request goes elsewhere"
        );
        table.usable[0] = false;
        assert_eq!(of(&table, Some(0), None), Some((2, 2)));
        table.usable[0] = true;
        assert_eq!(of(&table, Some(2), None), Some((2, 2)), "no way back");
        table.usable[0] = false;
        assert_eq!(of(&table, Some(2), Some(2)), Some((2, 2)), "no other");
        table.usable[2] = false;
        assert_eq!(of(&table, Some(2), None), None);
    }
}
