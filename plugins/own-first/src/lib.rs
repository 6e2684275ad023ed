wit_bindgen::generate!({ path: "../../wit", inline: "
    package my:policy;
    world own-first { export forebay:policy/balance-plan@0.1.0; }
" });
use exports::forebay::policy::balance_plan::*;

struct OwnFirst;

impl Guest for OwnFirst {
    /// Fills the servers tagged `cost = "own"`; when they are full, the configured algorithm chooses among all.
    fn plan(_now: i64, servers: Vec<Server>) -> Option<Allocation> {
        let own = |server: &Server| server.tags.iter().any(|tag| tag.name == "cost" && tag.value == "own");
        let ours = (0..).zip(&servers).filter(|(_, it)| own(it));
        let members: Vec<Member> =
            ours.map(|(server, it)| Member { server, weight: it.weight, cap: -1 }).collect();
        let tier = Tier { selector: Selector::Leastconn, spill: Spill::WhenFull, members };
        (!tier.members.is_empty()).then(|| Allocation { tiers: vec![tier], lifetime: 10_000 })
    }
}

export!(OwnFirst);
