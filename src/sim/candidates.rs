//! Who could have had a request, in one line.

use crate::decide::balance::servers;
use crate::policy::{ServerIndex, Table};
use crate::shared::table::{Admin, BackendTable};
use std::fmt::Write as _;

/// Servers that are shown one by one; of more only their numbers.
const SHOWN_MAX: usize = 8;

/// `a:3 b:0 c:4! d:-`: requests under way, `!` for who is full, `-` for who takes none.
pub(super) fn shown<C>(table: &BackendTable<C>) -> String {
    if table.len() > SHOWN_MAX {
        let usable = || servers(table).filter(|&server| table.usable(server));
        let free = usable().filter(|&server| !table.saturated(server)).count();
        return format!(
            "{free} free of {} usable, {} in all",
            usable().count(),
            table.len()
        );
    }
    let mut line = String::new();
    for server in servers(table) {
        let name = &table.at(server).server.name;
        // Writing to a String does not fail.
        let _ = write!(line, "{}{name}:", if line.is_empty() { "" } else { " " });
        let _ = match standing(table, server) {
            Standing::Free => write!(line, "{}", table.served(server)),
            Standing::Full => write!(line, "{}!", table.served(server)),
            Standing::Out => write!(line, "-"),
        };
    }
    line
}

enum Standing {
    Free,
    Full,
    Out,
}

fn standing<C>(table: &BackendTable<C>, server: ServerIndex) -> Standing {
    if table.at(server).state != Admin::Ready || !table.usable(server) {
        Standing::Out
    } else if table.saturated(server) {
        Standing::Full
    } else {
        Standing::Free
    }
}
