//! A blocking stream that is given up at a deadline, however slowly the other side trickles.
//!
//! For the small servers beside the proxy (metrics, runtime commands) and their client: one thread per connection,
//! plain reads and writes. The deadline covers everything until it is set anew. Not for traffic.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What a deadline needs of a stream.
pub trait Stream: Read + Write + Send + 'static {
    /// Gives up each later read and write after `patience`, which is not zero.
    fn give_up_after(&self, patience: Duration) -> io::Result<()>;
    /// Says that nothing more will be written.
    fn end(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn give_up_after(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn give_up_after(&self, patience: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(patience))?;
        self.set_write_timeout(Some(patience))
    }

    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// A stream with a deadline. Past it every read and write is `TimedOut`.
#[derive(Debug)]
pub struct Timed<S> {
    stream: S,
    until: Instant,
}

impl<S: Stream> Timed<S> {
    /// Everything until further notice within `patience` from now.
    pub fn new(stream: S, patience: Duration) -> Timed<S> {
        Timed {
            stream,
            until: Instant::now() + patience,
        }
    }

    /// From now on, everything within `patience` from now.
    pub fn renew(&mut self, patience: Duration) {
        self.until = Instant::now() + patience;
    }

    /// The stream itself.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Ends what we write, then reads a little of what the other side still sends: closing over unread bytes would
    /// reset the connection and could take our answer with it.
    pub fn close(mut self, patience: Duration) {
        self.renew(patience);
        let mut scrap = [0; 4096];
        let mut left = LINGER_MAX;
        if self.stream.end().is_err() {
            return;
        }
        while let Ok(length @ 1..) = self.read(&mut scrap) {
            left = left.saturating_sub(length);
            if left == 0 {
                return;
            }
        }
    }

    fn arm(&self) -> io::Result<()> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => self.stream.give_up_after(left),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }
}

/// Most bytes that are read and thrown away while closing.
const LINGER_MAX: usize = 64 * 1024;

impl<S: Stream> Read for Timed<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.arm()?;
        self.stream.read(into).map_err(timed_out)
    }
}

impl<S: Stream> Write for Timed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.arm()?;
        self.stream.write(bytes).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// A socket whose timeout ran out says `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::WouldBlock {
        ErrorKind::TimedOut.into()
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const SHORT: Duration = Duration::from_millis(60);

    #[test]
    fn a_trickle_does_not_outlast_the_deadline() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let trickle = thread::spawn(move || {
            while theirs.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let mut timed = Timed::new(ours, SHORT);
        let mut text = Vec::new();
        assert_eq!(
            timed.read_to_end(&mut text).unwrap_err().kind(),
            ErrorKind::TimedOut
        );
        assert!(!text.is_empty());
        drop(timed);
        trickle.join().unwrap();
    }

    #[test]
    fn a_reader_that_does_not_read_is_given_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let mut timed = Timed::new(ours, SHORT);
        let error = timed.write_all(&vec![b'x'; 16 * 1024 * 1024]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        timed.renew(SHORT);
        assert_eq!(timed.read(&mut [0]).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn closing_waits_for_the_other_side_and_no_longer_than_said() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"unread").unwrap();
        Timed::new(ours, SHORT).close(SHORT);
        let mut text = Vec::new();
        theirs.read_to_end(&mut text).unwrap();
        assert!(text.is_empty());
    }
}
