wit_bindgen::generate!({ path: "../../wit", inline: "
    package my:policy;
    world own-first { export forebay:policy/balance-plan@0.1.0; }
" });
use exports::forebay::policy::balance_plan::{Allocation, Guest, Member, Selector, Server, Spill, Tier};

struct OwnFirst;

impl Guest for OwnFirst {
    /// Fills the servers tagged `cost = "own"` before any other is used.
    fn plan(_now: i64, servers: Vec<Server>) -> Option<Allocation> {
        let (mut own, mut rented) = (Vec::new(), Vec::new());
        for (index, server) in servers.iter().enumerate() {
            let ours = server.tags.iter().any(|tag| tag.name == "cost" && tag.value == "own");
            let members = if ours { &mut own } else { &mut rented };
            members.push(Member { server: index as i32, weight: server.weight, cap: -1 });
        }
        let tier = |members| Tier { selector: Selector::Leastconn, spill: Spill::WhenFull, members };
        let tiers = [own, rented].into_iter().filter(|members| !members.is_empty()).map(tier).collect();
        Some(Allocation { tiers, lifetime: -1 })
    }
}

export!(OwnFirst);
