//! The first server with a free slot, in the order of the table (LB-50): as few servers as the load needs, so that the
//! others can sleep or be taken away.

use super::servers;
use crate::policy::{ServerIndex, Table};

/// The lowest place that is usable and has a free slot; the avoided server only if there is no other (LB-3).
pub fn pick(table: &impl Table, avoid: Option<ServerIndex>) -> Option<ServerIndex> {
    let free = |&server: &ServerIndex| table.usable(server) && !table.saturated(server);
    servers(table)
        .filter(|&server| Some(server) != avoid)
        .find(free)
        .or_else(|| avoid.filter(free))
}

#[cfg(all(test, not(any(feature = "loom", feature = "shuttle"))))]
mod tests {
    use super::super::column::Columns;
    use super::*;

    /// LB-50, LB-3.
    #[test]
    fn a_server_fills_up_before_the_next_one_begins() {
        let mut table = Columns::of(&[1, 1, 1]);
        table.limits = vec![2; 3];
        let mut picks = Vec::new();
        while let Some(server) = pick(&table, None) {
            table.served[server.at()] += 1;
            picks.push(server.0);
        }
        assert_eq!(picks, [0, 0, 1, 1, 2, 2]);
        table.served = vec![1, 2, 2];
        assert_eq!(pick(&table, None), Some(ServerIndex(0)), "the first again");
        assert_eq!(
            pick(&table, Some(ServerIndex(0))),
            Some(ServerIndex(0)),
            "no other"
        );
        table.usable[0] = false;
        assert_eq!(pick(&table, None), None);
        table.served[2] = 0;
        assert_eq!(pick(&table, None), Some(ServerIndex(2)));
    }
}
