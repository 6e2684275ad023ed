//! What a child process says, line by line, without ever making it wait for us.

use super::PATIENCE;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex};

/// The lines of a pipe, read by a thread of their own so that the program never blocks on us.
pub(super) struct Lines {
    state: Mutex<(Vec<String>, bool)>,
    changed: Condvar,
}

impl Lines {
    pub(super) fn of(pipe: impl Read + Send + 'static) -> Arc<Lines> {
        let lines = Arc::new(Lines {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mine = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                mine.state
                    .lock()
                    .expect("not poisoned")
                    .0
                    .push(String::from_utf8_lossy(&line).into_owned());
                mine.changed.notify_all();
            }
            mine.state.lock().expect("not poisoned").1 = true;
            mine.changed.notify_all();
        });
        lines
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.state.lock().expect("not poisoned").0.clone()
    }

    /// The first line that passes, waiting for it until the pipe ends or patience does.
    pub(super) fn wait_for(&self, test: impl Fn(&str) -> bool) -> Option<String> {
        let state = self.state.lock().expect("not poisoned");
        let missing = |state: &mut (Vec<String>, bool)| !state.1 && !state.0.iter().any(|line| test(line));
        let (state, _) = self
            .changed
            .wait_timeout_while(state, PATIENCE, missing)
            .expect("not poisoned");
        state.0.iter().find(|line| test(line)).cloned()
    }

    /// All of it, once the pipe has ended.
    pub(super) fn to_end(&self) -> Vec<u8> {
        self.wait_for(|_| false);
        self.all().join("\n").into_bytes()
    }
}
