//! An open place for access log lines: standard output, standard error or a file.
//!
//! A write takes whole lines and says how many of them went out. What was refused is not kept: the caller counts it.
//! A line that was cut in the middle is ended before the next one, so that one failure spoils one line.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to a file, which is created with mode 0640.
    File(PathBuf),
}

/// How long the thread naps between two looks at the lanes: the delay of a line under load.
pub const NAP: Duration = Duration::from_millis(10);
/// How long a target that takes nothing just now, and says so, is waited for.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// An open target.
#[derive(Debug)]
pub(super) struct Outlet {
    file: File,
    /// Whether the last write ended within a line.
    torn: bool,
}

impl From<OwnedFd> for Outlet {
    fn from(open: OwnedFd) -> Outlet {
        Outlet {
            file: File::from(open),
            torn: false,
        }
    }
}

impl Outlet {
    /// Opens the target; a file is appended to.
    pub(super) fn open(target: &Target) -> io::Result<Outlet> {
        let open = match target {
            Target::Stdout => io::stdout().as_fd().try_clone_to_owned()?,
            Target::Stderr => io::stderr().as_fd().try_clone_to_owned()?,
            Target::File(path) => OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o640)
                .open(path)?
                .into(),
        };
        Ok(Outlet::from(open))
    }

    /// Writes whole lines; says how many went out.
    pub(super) fn write(&mut self, lines: &[u8]) -> (u64, io::Result<()>) {
        if self.torn {
            if let (_, Err(error)) = self.write_bytes(b"\n") {
                return (0, Err(error));
            }
            self.torn = false;
        }
        let (written, result) = self.write_bytes(lines);
        let out = &lines[..written];
        self.torn = out.last().is_some_and(|byte| *byte != b'\n');
        (memchr::memchr_iter(b'\n', out).count() as u64, result)
    }

    fn write_bytes(&mut self, mut bytes: &[u8]) -> (usize, io::Result<()>) {
        let all = bytes.len();
        let mut naps = PATIENCE.as_millis() / NAP.as_millis();
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return (all - bytes.len(), Err(ErrorKind::WriteZero.into())),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Whoever shares our standard output may have made it non-blocking.
                Err(error) if error.kind() == ErrorKind::WouldBlock && naps > 0 => {
                    naps -= 1;
                    thread::sleep(NAP);
                }
                Err(error) => return (all - bytes.len(), Err(error)),
            }
        }
        (all, Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Folder;
    use super::*;

    #[test]
    fn a_broken_pipe_is_a_failure_of_lines_not_of_the_process() {
        let (reader, pipe) = io::pipe().unwrap();
        drop(reader);
        let (lines, result) = Outlet::from(OwnedFd::from(pipe)).write(b"a\nb\n");
        assert_eq!((lines, result.unwrap_err().kind()), (0, ErrorKind::BrokenPipe));
    }

    #[test]
    fn a_torn_line_is_ended_before_the_next_one() {
        let folder = Folder::new("torn");
        let path = folder.file("log");
        let mut outlet = Outlet::open(&Target::File(path.clone())).unwrap();
        assert_eq!(outlet.write(b"whole\nhal").0, 1);
        assert_eq!(outlet.write(b"next\n").0, 1);
        assert_eq!(std::fs::read_to_string(path).unwrap(), "whole\nhal\nnext\n");
    }

    #[test]
    fn a_file_is_appended_to_and_not_for_everybody_to_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("append");
        let path = folder.file("log");
        for line in ["one\n", "two\n"] {
            Outlet::open(&Target::File(path.clone()))
                .unwrap()
                .write(line.as_bytes())
                .1
                .unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o007, 0);
    }

    #[test]
    fn a_target_that_is_busy_for_a_moment_is_waited_for() {
        use std::io::Read;
        let (mut reader, pipe) = io::pipe().unwrap();
        let pipe = OwnedFd::from(pipe);
        rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::NONBLOCK).unwrap();
        let lines = "x".repeat(99) + "\n";
        let lines = lines.repeat(3000);
        let reading = thread::spawn(move || {
            thread::sleep(NAP * 3);
            let mut text = String::new();
            reader.read_to_string(&mut text).map(|_| text)
        });
        let (written, result) = Outlet::from(pipe).write(lines.as_bytes());
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(written, 3000);
        assert!(reading.join().unwrap().unwrap() == lines);
    }
}
