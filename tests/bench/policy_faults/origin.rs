//! A server that answers everything at once, on a thread for each connection of the proxy.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What it answers with.
pub(crate) const BODY: &[u8] = b"ok\n";
const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";
/// To a request that carries what a faulty policy tried to write into it.
const EVIL: &[u8] = b"HTTP/1.1 500 Injected\r\nContent-Length: 0\r\n\r\n";

/// A server, until the program ends.
pub(crate) struct Origin {
    pub(crate) address: SocketAddr,
}

impl Origin {
    pub(crate) fn start() -> io::Result<Origin> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // A connection that breaks is the proxy's to notice.
                thread::spawn(move || serve(connection));
            }
        });
        Ok(Origin { address })
    }
}

fn serve(mut connection: TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    let (mut buffer, mut filled) = ([0; 8192], 0);
    loop {
        let got = connection.read(&mut buffer[filled..])?;
        if got == 0 {
            return Ok(());
        }
        filled += got;
        if buffer[..filled].ends_with(b"\r\n\r\n") {
            let head = buffer[..filled].to_ascii_lowercase();
            let evil = memchr::memmem::find(&head, b"x-evil").is_some();
            connection.write_all(if evil { EVIL } else { GOOD })?;
            filled = 0;
        }
    }
}
