//! Configuration texts for tests: one listener `web` before one backend `app`, with what a test adds.
//!
//! `$DIR` in any text becomes the proxy's own folder. The access log goes to `$DIR/access.log`, runtime commands to
//! `$DIR/control.sock`, metrics to a port of their own.

use super::Origin;
use std::path::Path;

/// A configuration in the making.
#[derive(Clone)]
pub(crate) struct Setup {
    workers: u32,
    log: String,
    process: String,
    bind: String,
    default: bool,
    listen: String,
    routes: Vec<String>,
    servers: Vec<String>,
    backend: String,
    more: String,
    raw: Option<String>,
}

impl Setup {
    /// Two workers; everything goes to this origin.
    pub(crate) fn before(origin: &Origin) -> Setup {
        Setup::before_all(&[origin])
    }

    /// Two workers; everything goes to the backend of these origins.
    pub(crate) fn before_all(origins: &[&Origin]) -> Setup {
        Setup::before_servers(
            origins
                .iter()
                .map(|origin| format!("\"{}\"", origin.address()))
                .collect(),
        )
    }

    /// The same with the servers as they are written in the file.
    pub(crate) fn before_servers(servers: Vec<String>) -> Setup {
        Setup {
            workers: 2,
            log: "$DIR/access.log".to_owned(),
            process: String::new(),
            bind: "\"127.0.0.1:0\"".to_owned(),
            default: true,
            listen: String::new(),
            routes: Vec::new(),
            servers,
            backend: String::new(),
            more: String::new(),
            raw: None,
        }
    }

    /// Exactly this text.
    pub(crate) fn raw(text: &str) -> Setup {
        Setup {
            raw: Some(text.to_owned()),
            ..Setup::before_servers(Vec::new())
        }
    }

    /// So many workers.
    pub(crate) fn workers(mut self, workers: u32) -> Setup {
        self.workers = workers;
        self
    }

    /// Writes the access log elsewhere; `none` for no log.
    pub(crate) fn log(mut self, to: &str) -> Setup {
        self.log = to.to_owned();
        self
    }

    /// Adds keys to `[process]`.
    pub(crate) fn process(mut self, keys: &str) -> Setup {
        self.process += &format!("{keys}\n");
        self
    }

    /// Binds `web` elsewhere: a TOML value.
    pub(crate) fn bind(mut self, value: &str) -> Setup {
        self.bind = value.to_owned();
        self
    }

    /// Adds keys to the listener.
    pub(crate) fn listen(mut self, keys: &str) -> Setup {
        self.listen += &format!("{keys}\n");
        self
    }

    /// Adds a route, after those there are.
    pub(crate) fn route(mut self, keys: &str) -> Setup {
        self.routes.push(keys.to_owned());
        self
    }

    /// Leaves the listener without a default backend.
    pub(crate) fn without_default(mut self) -> Setup {
        self.default = false;
        self
    }

    /// Adds keys to the backend.
    pub(crate) fn backend(mut self, keys: &str) -> Setup {
        self.backend += &format!("{keys}\n");
        self
    }

    /// Adds whole sections at the end.
    pub(crate) fn more(mut self, sections: &str) -> Setup {
        self.more += &format!("{sections}\n");
        self
    }

    /// The text of the file in that folder.
    pub(crate) fn text(&self, folder: &Path) -> String {
        let text = self.raw.clone().unwrap_or_else(|| self.whole());
        text.replace("$DIR", folder.to_str().expect("a plain path"))
    }

    fn whole(&self) -> String {
        let Setup {
            workers,
            log,
            process,
            bind,
            listen,
            backend,
            more,
            ..
        } = self;
        let default = if self.default { "backend = \"app\"\n" } else { "" };
        let routes: String = self
            .routes
            .iter()
            .map(|keys| format!("[[listen.route]]\n{keys}\n"))
            .collect();
        let servers = self.servers.join(", ");
        format!(
            "[process]\nworkers = {workers}\ncontrol = \"$DIR/control.sock\"\nmetrics = \"127.0.0.1:0\"\n\
             log = {{ format = \"json\", to = \"{log}\" }}\n{process}\
             [[listen]]\nname = \"web\"\nbind = {bind}\n{default}{listen}{routes}\
             [backend.app]\nservers = [{servers}]\n{backend}{more}"
        )
    }
}
