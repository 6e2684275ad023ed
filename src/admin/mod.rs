//! Runtime commands over a Unix socket: look at the running process, change a server's state, weight or limit.
//!
//! One line is one or more commands separated by `;` (CLI-1). Each is answered by text and an empty line; then the
//! connection is closed. An answer that begins with `error: ` is a refusal, of one line, and changed nothing (CLI-4).
//! Whoever can open the socket (mode 0600) may do everything.
//!
//! It acts through [`Control`] only and knows no worker, no table, no socket of the proxy. A slow or silent client
//! holds up its own thread until its deadline and nobody else ([`crate::observe::acceptor`]).

pub mod answer;
pub mod command;
mod live;
pub mod socket;
pub mod stat;

use crate::observe::acceptor::Acceptor;
use crate::observe::messages::Messages;
use crate::observe::snapshot::Snapshot;
use crate::observe::timed::Timed;
use answer::Desk;
use command::Setting;
use socket::SocketFile;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the runtime commands can see and do.
pub trait Control: Send + Sync + 'static {
    /// All numbers, now.
    fn snapshot(&self) -> Snapshot;
    /// Decides something about a server. The error says in one line why it cannot be.
    fn set_server(&self, backend: &str, server: &str, setting: Setting) -> Result<(), String>;
}

/// Connections that are served at a time; others wait.
pub const CONNECTIONS_MAX: usize = 8;
/// How long a client may take to say its line, and again to take its answer.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client is given to close after its answer.
const CLOSE_PATIENCE: Duration = Duration::from_millis(500);

/// The runtime commands at work, until dropped; then the socket is removed.
#[derive(Debug)]
pub struct Admin {
    // Goes first: as long as we listen, no other socket's file can be mistaken for ours.
    _file: SocketFile,
    _acceptor: Acceptor,
}

impl Admin {
    /// Binds the socket and starts answering. A socket file left by a dead process is replaced.
    pub fn start(path: &Path, control: Arc<dyn Control>, messages: Messages) -> io::Result<Admin> {
        Admin::with_patience(path, Desk { control, messages }, PATIENCE)
    }

    fn with_patience(path: &Path, desk: Desk, patience: Duration) -> io::Result<Admin> {
        let (listener, file) = socket::listen(path)?;
        let serve = move |stream| serve(&desk, stream, patience);
        let acceptor = Acceptor::start("admin", listener, CONNECTIONS_MAX, serve)?;
        Ok(Admin {
            _file: file,
            _acceptor: acceptor,
        })
    }
}

fn serve(desk: &Desk, stream: UnixStream, patience: Duration) {
    let issuer = socket::issuer(&stream);
    let mut stream = Timed::new(stream, patience);
    let answer = match command::read_line(&mut stream) {
        Ok(line) => desk.answer(&line, &issuer),
        Err(refusal) => refusal.text(),
    };
    stream.renew(patience);
    if stream.write_all(answer.as_bytes()).is_ok() {
        stream.close(CLOSE_PATIENCE.min(patience));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::{Folder, LONG, collecting, example_snapshot, wait_until};
    use parking_lot::Mutex;
    use std::io::Read;

    /// Notes what it is told; knows the server `api/a` only.
    #[derive(Debug, Default)]
    pub(super) struct Noted(pub(super) Mutex<Vec<String>>);

    impl Control for Noted {
        fn snapshot(&self) -> Snapshot {
            example_snapshot()
        }

        fn set_server(&self, backend: &str, server: &str, setting: Setting) -> Result<(), String> {
            if (backend, server) != ("api", "a") {
                return Err(format!("no server {backend}/{server}"));
            }
            self.0.lock().push(format!("{backend}/{server} {setting:?}"));
            Ok(())
        }
    }

    fn ask(path: &Path, line: &str) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn start(folder: &Folder, patience: Duration) -> (Admin, Arc<Noted>, std::path::PathBuf) {
        let path = folder.file("control.sock");
        let noted = Arc::new(Noted::default());
        let desk = Desk {
            control: noted.clone(),
            messages: collecting().0,
        };
        (Admin::with_patience(&path, desk, patience).unwrap(), noted, path)
    }

    #[test]
    fn a_command_is_answered_acted_upon_and_the_connection_closed() {
        let folder = Folder::new("admin");
        let (admin, noted, path) = start(&folder, PATIENCE);
        assert_eq!(ask(&path, "set server api/a state drain\n"), "\n");
        assert_eq!(
            ask(&path, "set server api/x state drain\n"),
            "error: no server api/x\n\n"
        );
        assert_eq!(*noted.0.lock(), ["api/a State(Drain)"]);
        let answer = ask(&path, "show stat; show version\nignored\n");
        assert!(answer.starts_with("# pxname,svname,"), "{answer}");
        assert!(
            answer.ends_with(&format!("\n\nforebay {}\n\n", env!("CARGO_PKG_VERSION"))),
            "{answer}"
        );
        drop(admin);
        assert!(!path.exists());
    }

    #[test]
    fn the_end_of_the_stream_ends_a_line_too() {
        let folder = Folder::new("admin-eof");
        let (_admin, _, path) = start(&folder, PATIENCE);
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"show version").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("forebay "), "{answer}");
    }

    #[test]
    fn silent_clients_hold_up_others_only_until_their_deadline() {
        let folder = Folder::new("admin-slow");
        let (_admin, _, path) = start(&folder, Duration::from_millis(500));
        let mut silent: Vec<_> = (0..CONNECTIONS_MAX - 1)
            .map(|_| UnixStream::connect(&path).unwrap())
            .collect();
        assert!(
            ask(&path, "show version\n").starts_with("forebay "),
            "a place is left"
        );
        silent.extend((0..2).map(|_| UnixStream::connect(&path).unwrap()));
        assert!(
            ask(&path, "show version\n").starts_with("forebay "),
            "after the deadline of the silent"
        );
        let mut answer = String::new();
        silent[0].read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "error: no command came in time\n\n");
    }

    #[test]
    fn a_client_that_does_not_read_is_given_up() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let desk = Desk {
            control: Arc::new(Large),
            messages: collecting().0,
        };
        let serving = std::thread::spawn(move || serve(&desk, theirs, Duration::from_millis(100)));
        (&ours).write_all(b"show stat json\n").unwrap();
        wait_until("given up", || serving.is_finished());
    }

    /// Has more to tell than a socket's buffers hold.
    struct Large;

    impl Control for Large {
        fn snapshot(&self) -> Snapshot {
            let mut snapshot = example_snapshot();
            let servers = &mut snapshot.backends[0].servers;
            *servers = servers.iter().cycle().take(3000).cloned().collect();
            snapshot
        }

        fn set_server(&self, _: &str, _: &str, _: Setting) -> Result<(), String> {
            Ok(())
        }
    }
}
