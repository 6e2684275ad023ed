//! What every test needs: hosts, a journal that remembers, a backend of three servers.

use crate::guests::Guest;
use forebay::policy::{
    Asked, Attached, Attachment, Columns, Fault, Journal, Level, Live, Pick, Policy, RouteAsked, ServerIndex,
    Setup, Shown,
};
use forebay::wasm::{Host, Limits, LoadError, Loaded, Mode, Settings};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tempfile::TempDir;

/// What was told to operators, a line each.
#[derive(Default)]
pub(crate) struct Notes(pub(crate) Mutex<Vec<String>>);

impl Notes {
    pub(crate) fn any(&self, part: &str) -> bool {
        self.0.lock().iter().any(|line| line.contains(part))
    }

    fn add(&self, who: &Attached, line: String) {
        self.0.lock().push(format!("{}@{} {line}", who.policy, who.place));
    }
}

impl Journal for Notes {
    fn said(&self, who: &Attached, level: Level, text: &str) {
        self.add(who, format!("said {level:?} {text}"));
    }
    fn fault(&self, who: &Attached, fault: Fault, detail: &str) {
        self.add(who, format!("fault {} {detail}", fault.word()));
    }
    fn paused(&self, who: &Attached, why: Fault, pause: Duration) {
        self.add(who, format!("paused {} {pause:?}", why.word()));
    }
    fn resumed(&self, who: &Attached) {
        self.add(who, "resumed".into());
    }
}

/// A host and what it told.
pub(crate) struct Bench {
    pub(crate) host: Arc<Host>,
    pub(crate) notes: Arc<Notes>,
    folder: TempDir,
}

impl Bench {
    pub(crate) fn new(mode: Mode) -> Bench {
        let notes = Arc::new(Notes::default());
        let settings = Settings {
            mode,
            threads: 2,
            attachments: 4,
            cache: None,
        };
        let journal: Arc<dyn Journal> = Arc::<Notes>::clone(&notes);
        let host = Host::new(&settings, journal).expect("an engine");
        Bench {
            host,
            notes,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    }

    /// Each guest has a file of its own: tests run beside each other.
    pub(crate) fn load_bytes(&self, bytes: &[u8]) -> Result<Loaded, LoadError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("guest-{}.wasm", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.host.load(&self.file(&name, bytes), None)
    }

    pub(crate) fn attach(&self, guest: &Guest) -> Result<Arc<dyn Attachment>, LoadError> {
        self.attach_within(guest, limits())
    }

    pub(crate) fn attach_within(
        &self,
        guest: &Guest,
        limits: Limits,
    ) -> Result<Arc<dyn Attachment>, LoadError> {
        self.load_bytes(&guest.component())?
            .attach(&setup(), limits, Duration::ZERO)
    }

    /// An instance.
    pub(crate) fn policy_unshown(&self, guest: &Guest) -> Box<dyn Policy> {
        let attachment = self.attach(guest).unwrap_or_else(|error| panic!("{error}"));
        attachment.policy(Duration::ZERO).expect("an instance")
    }

    /// An instance that has seen three servers.
    pub(crate) fn policy(&self, guest: &Guest) -> Box<dyn Policy> {
        let mut policy = self.policy_unshown(guest);
        policy.table(&three(), Duration::ZERO).expect("a table");
        policy
    }
}

/// A host for serving, shared by tests that only look at answers: reserving its address space is slow.
pub(crate) static LIVE: LazyLock<Bench> = LazyLock::new(|| Bench::new(Mode::Live));

/// Time is no matter: a build for debugging on a busy machine is slow.
pub(crate) fn limits() -> Limits {
    Limits {
        mean_max: None,
        ..Limits::default()
    }
}

pub(crate) fn setup() -> Setup {
    Setup {
        policy: "shard".into(),
        attachment: "app".into(),
        config: "{}".into(),
        backends: vec!["a".into(), "b".into()],
        redirects: vec!["old".into()],
        responses: Vec::new(),
    }
}

/// Three servers: 5, 6 and 7 in flight.
pub(crate) fn three() -> Shown {
    struct Figures;
    impl Live for Figures {
        fn in_flight(&self, server: ServerIndex) -> u32 {
            u32::from(server.0) + 5
        }
        fn queued(&self, _: ServerIndex) -> u32 {
            0
        }
        fn idle(&self, _: ServerIndex) -> u32 {
            u32::MAX
        }
    }
    let columns = Columns {
        names: vec!["a".into(), "b".into(), "c".into()],
        zones: vec![String::new(); 3],
        weights: vec![16; 3],
        states: vec![0; 3],
        limits: vec![-1; 3],
        latencies: vec![-1; 3],
    };
    Shown {
        columns: Arc::new(columns),
        live: Arc::new(Figures),
    }
}

/// A request of user `mary` for `/a`.
pub(crate) fn asked(now: Duration) -> Asked<'static> {
    Asked {
        now,
        seed: 7,
        attributes: &[Some(b"mary"), Some(b"/a")],
    }
}

pub(crate) fn route_asked() -> RouteAsked<'static> {
    RouteAsked {
        asked: asked(Duration::ZERO),
        method: b"GET",
        host: b"example.com",
        path: b"/a",
    }
}

pub(crate) fn pick(policy: &mut dyn Policy) -> Result<Option<Pick>, Fault> {
    policy.pick(&asked(Duration::ZERO), None)
}

/// First this one, then that one.
pub(crate) fn choice(first: u16, second: Option<u16>) -> Option<Pick> {
    Some(Pick {
        first: ServerIndex(first),
        second: second.map(ServerIndex),
    })
}
