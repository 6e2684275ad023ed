//! Many seeds of clusters in which everything is short and much goes wrong: the invariants of a run do the looking.
//!
//! `FOREBAY_SEEDS=10000 cargo test --release --test seeds` looks at so many; without it a few hundred. A seed that ever
//! failed is pinned in [`PINNED`]. With the feature `planted-queue-bug` the same seeds have to find it.

use forebay::sim::Invariant;
use forebay::sim::scenario::{Failure, Scenario};
use std::sync::atomic::{AtomicU64, Ordering};

/// Seeds that found something once.
const PINNED: [u64; 2] = [103, 4_283];

/// Seeds of a usual test.
const FEW: u64 = 300;
/// Within so many a planted bug has to be found.
const ENOUGH: u64 = 1_000;

/// A small cluster that the seed makes another one each time: slots, queues, pools, policies of reuse, algorithms, faults,
/// operators.
fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice(seed);
    let pick = |dice: &mut Dice, of: &[&'static str]| of[dice.below(of.len() as u64) as usize];
    let servers = 1 + dice.below(6);
    let balance = pick(
        &mut dice,
        &[
            "\"random\"",
            "\"roundrobin\"",
            "\"leastconn\"",
            "\"first\"",
            "\"sticky\"",
            "{ hash = \"uri\" }",
        ],
    );
    let reuse = pick(&mut dice, &["never", "safe", "aggressive", "always"]);
    let keep = pick(&mut dice, &["first", "equal"]);
    let maxconn = 1 + dice.below(4);
    let minconn = if dice.below(4) == 0 {
        "minconn = 1\nfullconn = 20\n"
    } else {
        ""
    };
    let maxqueue = if dice.below(3) == 0 { "maxqueue = 2\n" } else { "" };
    let strict = if dice.below(4) == 0 {
        "strict-maxconn = 3\n"
    } else {
        ""
    };
    let slowstart = if dice.below(4) == 0 {
        "slowstart = \"1s\"\n"
    } else {
        ""
    };
    let last = dice.below(4) == 0;
    let low = dice.below(5);
    let workers = 1 + dice.below(6);
    let clients = 5 + dice.below(40);
    let mean = 1 + dice.below(12);
    let shares = [dice.below(5), dice.below(5), dice.below(5), dice.below(2)];
    let mut text = format!(
        "[scenario]\nabout = \"seed {seed}\"\nworkers = {workers}\nduration = \"1s\"\nrequests = 1500\n\
         contention = 20\npatience = {{ mean = \"200ms\" }}\ndescriptors = {}\n\
         costs = {{ request = \"{}us\", response = \"10us\", open = \"20us\" }}\n\
         [backend.app]\nservers = [\"s[1-{servers}]\"]\nbalance = {balance}\nreuse = \"{reuse}\"\npool-keep = \"{keep}\"\n\
         pool-low-conn = {low}\npool-purge-delay = \"100ms\"\nmaxconn = {}\n{minconn}{maxqueue}{strict}{slowstart}\
         prefer-last-server = {last}\ntimeout-queue = \"{}ms\"\ntimeout-server = \"60ms\"\nretry-delay = \"10ms\"\n\
         [[server]]\nservice = {{ mean = \"{mean}ms\" }}\ncapacity = 3\nrefuses = {}\ndrops = {}\nerrors = {}\nhangs = {}\n\
         [[server]]\nname = \"app/s1\"\nservice = \"3ms\"\ncloses-after = 4\n\
         [[traffic]]\nclients = {clients}\nthink = {{ mean = \"5ms\" }}\nsession = 20\npath = \"/{{key}}\"\nkeys = {{ uniform = 30 }}\n\
         [[traffic]]\nrate = 200\nburst = 3\nclients = 9\nmethod = \"POST\"\n\
         [show]\ndecisions = 30\n",
        if dice.below(4) == 0 { 40 } else { 4096 },
        dice.below(60),
        maxconn.max(if minconn.is_empty() { 1 } else { 2 }),
        20 + dice.below(100),
        shares[0],
        shares[1],
        shares[2],
        shares[3],
    );
    // Operators and the weather: servers go and come, fail and recover.
    for nth in 0..dice.below(12) {
        let server = 1 + dice.below(servers);
        let at = 50 + nth * 70 + dice.below(60);
        let change = pick(
            &mut dice,
            &[
                "state = \"maint\"",
                "state = \"drain\"",
                "state = \"ready\"",
                "state = \"ready\"",
                "down = true",
                "down = false",
                "weight = 0",
                "weight = 7",
                "maxconn = 2",
                "service = \"30ms\"",
            ],
        );
        text += &format!("[[event]]\nat = \"{at}ms\"\nserver = \"app/s{server}\"\n{change}\n");
    }
    Scenario::parse(&text, &format!("seed-{seed}")).unwrap_or_else(|failure| panic!("{text}\n{failure}"))
}

/// Runs a seed; what an invariant says against it.
fn run(seed: u64) -> Option<forebay::sim::Broken> {
    match scenario(seed).run_with(seed) {
        Ok(outcome) => {
            assert!(outcome.report().latency.count() + outcome.report().failures.iter().sum::<u64>() > 0);
            None
        }
        Err(Failure::Broken(broken)) => Some(broken),
        Err(failure) => panic!("seed {seed}: {failure}"),
    }
}

/// All seeds from 0 on, on all cores, until one finds something.
fn search(seeds: u64) -> Option<(u64, forebay::sim::Broken)> {
    let (next, found) = (AtomicU64::new(0), parking_lot::Mutex::new(None));
    let look = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds || found.lock().is_some() {
                return;
            }
            if let Some(broken) = run(seed) {
                found.lock().get_or_insert((seed, broken));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(look)));
    });
    found.into_inner()
}

#[test]
fn no_seed_breaks_an_invariant() {
    if cfg!(feature = "planted-queue-bug") {
        let (seed, broken) = search(ENOUGH).expect("the planted bug is found");
        println!("found by seed {seed}: {broken}");
        let kinds = [Invariant::NobodyWaitsBesideAFreeSlot, Invariant::AllDrains];
        return assert!(kinds.contains(&broken.invariant), "{broken}");
    }
    for seed in PINNED {
        assert!(run(seed).is_none(), "seed {seed} has found something again");
    }
    let seeds = std::env::var("FOREBAY_SEEDS").map_or(FEW, |seeds| seeds.parse().expect("a number"));
    if let Some((seed, broken)) = search(seeds) {
        panic!("seed {seed}: {broken}");
    }
    println!("{seeds} seeds");
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(bound.max(1))) >> 64) as u64
    }
}
