//! The control socket's file: made for its owner only, never taken from a living process, removed at the end.
//!
//! A file that nobody listens on was left by a process that died, and is replaced. Nobody can connect before the mode is
//! set, because listening begins after it.

use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a socket of ours; dropping it removes the file, unless somebody else's has taken its place.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

/// Listens on a socket at this path, which only its owner may open.
pub fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile {
        path: path.into(),
        identity: identity(path)?,
    };
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)?;
    Ok((UnixListener::from(OwnedFd::from(socket)), file))
}

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 64;

/// Who is at the other end, as far as the system knows.
pub fn issuer(stream: &UnixStream) -> String {
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) => format!("uid={} pid={}", peer.uid.as_raw(), peer.pid.as_raw_nonzero()),
        Err(_) => "unknown".into(),
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(about) => about.file_type(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let in_use = |why: &str| {
        Err(io::Error::new(
            ErrorKind::AddrInUse,
            format!("{}: {why}", path.display()),
        ))
    };
    if !kind.is_socket() {
        return in_use("a file that is no socket stands there");
    }
    match UnixStream::connect(path) {
        Ok(_) => in_use("another process answers there"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let about = fs::symlink_metadata(path)?;
    Ok((about.dev(), about.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::testing::Folder;

    #[test]
    fn only_its_owner_may_open_it_and_it_goes_with_us() {
        let folder = Folder::new("socket-mode");
        let path = folder.file("s");
        let (listener, file) = listen(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let client = UnixStream::connect(&path).unwrap();
        let pid = std::process::id();
        assert!(
            issuer(&client).ends_with(&format!(" pid={pid}")),
            "{}",
            issuer(&client)
        );
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced() {
        let folder = Folder::new("socket-stale");
        let path = folder.file("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let _ours = listen(&path).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_living_process_keeps_its_socket() {
        let folder = Folder::new("socket-alive");
        let path = folder.file("s");
        let _theirs = UnixListener::bind(&path).unwrap();
        let error = listen(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(
            error.to_string().contains("another process answers there"),
            "{error}"
        );
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = Folder::new("socket-file");
        let path = folder.file("s");
        fs::write(&path, "precious").unwrap();
        assert_eq!(listen(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    }

    #[test]
    fn a_successors_socket_is_not_removed() {
        let folder = Folder::new("socket-successor");
        let path = folder.file("s");
        let (listener, file) = listen(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _successor = UnixListener::bind(&path).unwrap();
        drop(file);
        assert!(path.exists());
        drop(listener);
    }
}
