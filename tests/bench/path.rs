//! The pure request path with everything a worker would put around it but sockets: what the instruction count, the
//! bench and the allocation test all measure.
//!
//! One request of a named [`Shape`]: parse, route, edits and own lines, rewrite, and then the machine of
//! [`exchange`](forebay::decide::exchange), whose commands are carried out against real slots and a real pool: pick,
//! slot, lend, response, verbatim decision, release, park. Sixteen servers, `random`, everything else as the defaults
//! of the configuration have it. What `worker/begin.rs` and `worker/relay.rs` do in between is done here in the same
//! order; a change there belongs here too.

use forebay::decide::additions;
use forebay::decide::balance::Algorithm;
use forebay::decide::edit::{Edit, Edits, FieldName};
use forebay::decide::exchange::{
    Afterwards, Arrival, Asked, Bond, Chosen, Command, Effort, Event, Exchange, Found, Idempotent,
    Redispatch, RetryOn, Taken,
};
use forebay::decide::host::HostPattern;
use forebay::decide::pattern::{MethodName, PathPattern};
use forebay::decide::reuse::{self, Descriptors, Figures, Mode, Proven, Released, Retryable};
use forebay::decide::route::{self, Action, BackendRef, Matcher, Outcome, Priority, Route, RouteTable};
use forebay::decide::settings::{Forwarded, ListenerSettings};
use forebay::decide::template::Template;
use forebay::http1::{
    self, Body, ClientConnection, Limits, Output, Parsed, RequestContext, RequestHead, ResponseHead,
    TrailerLimits,
};
use forebay::policy::{BackendId, Draw, ServerId, ServerIndex, WorkerId};
use forebay::shared::key::{KeySecret, Parts, PoolKey};
use forebay::shared::queue::Grants;
use forebay::shared::server::Server;
use forebay::shared::table::{BackendTable, Entry};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// One kind of exchange: what comes from the client and what from the server, each in one piece.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    request: &'static [u8],
    response: &'static [u8],
}

/// Every shape that is measured.
pub(crate) const SHAPES: [Shape; 4] = [
    Shape {
        name: "small",
        request: b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n",
        response: SMALL_RESPONSE,
    },
    Shape {
        name: "browser",
        request: b"GET /shop/cart/items?sort=price&page=2 HTTP/1.1\r\n\
            Host: www.example.com\r\n\
            User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n\
            Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
            Accept-Language: en-US,en;q=0.5\r\n\
            Accept-Encoding: gzip, deflate, br, zstd\r\n\
            Referer: https://www.example.com/shop/cart\r\n\
            Connection: keep-alive\r\n\
            Cookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n\
            Upgrade-Insecure-Requests: 1\r\n\
            Cache-Control: max-age=0\r\n\r\n",
        response: b"HTTP/1.1 200 OK\r\n\
            Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n\
            Server: nginx\r\n\
            Content-Type: text/html; charset=utf-8\r\n\
            Content-Length: 32\r\n\
            Connection: keep-alive\r\n\
            Vary: Accept-Encoding\r\n\
            ETag: \"6749f1d0-20\"\r\n\
            Cache-Control: private, max-age=0\r\n\r\n\
            <!doctype html><title>a</title>\n",
    },
    Shape {
        name: "post",
        request: &POST,
        response: SMALL_RESPONSE,
    },
    Shape {
        name: "chunked",
        request: b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n",
        response: b"HTTP/1.1 200 OK\r\n\
            Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n\
            Content-Type: text/plain\r\n\
            Transfer-Encoding: chunked\r\n\r\n\
            20\r\n0123456789abcdef0123456789abcdef\r\n\
            40\r\n0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\r\n\
            0\r\n\r\n",
    },
];

const SMALL_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Date: Mon, 30 Nov 2026 12:00:00 GMT\r\n\
    Content-Type: text/plain\r\n\
    Content-Length: 12\r\n\r\n\
    hello world\n";

const POST_HEAD: &[u8] = b"POST /api/orders HTTP/1.1\r\n\
    Host: api.example.com\r\n\
    Content-Type: application/json\r\n\
    Content-Length: 1024\r\n\r\n";

const POST: [u8; POST_HEAD.len() + 1024] = {
    let mut whole = [b'x'; POST_HEAD.len() + 1024];
    whole.split_at_mut(POST_HEAD.len()).0.copy_from_slice(POST_HEAD);
    whole
};

const SERVERS: u16 = 16;
const SLOTS: u32 = 100;
const WORKER: WorkerId = WorkerId(0);
const TRAILERS: TrailerLimits = TrailerLimits {
    bytes_max: 8 << 10,
    fields_max: 64,
};
const REQUEST_LIMITS: Limits = Limits {
    head_max: 16 << 10,
    request_line_max: 8 << 10,
    headers_max: 100,
};
const RESPONSE_LIMITS: Limits = Limits {
    head_max: 60 << 10,
    request_line_max: 8 << 10,
    headers_max: 256,
};
const EFFORT: Effort = Effort {
    retries: 3,
    stale_max: 2,
    retry_on: RetryOn::USUAL,
    redispatch: Redispatch::USUAL,
};

/// A server connection without its socket.
#[derive(Debug)]
struct Connection {
    requests: u32,
    /// As large as the real one, so that moving it costs the same.
    _rest: [u64; 5],
}

/// One worker's part of the path, with the buffers that it uses again.
pub(crate) struct Path {
    listener: ListenerSettings,
    request_edits: Edits,
    table: BackendTable<Connection>,
    keys: Box<[PoolKey]>,
    random: Random,
    request: RequestHead,
    response: ResponseHead,
    additions: Vec<u8>,
    /// What goes to the server and, if it had to be written anew, to the client.
    pub(crate) out: Vec<u8>,
    rewritten: Vec<u8>,
    chosen: ServerIndex,
    grants: Grants,
    lent: Option<Connection>,
}

impl Path {
    /// Servers without connections; some of them hold slots, so that draws differ.
    pub(crate) fn new() -> Path {
        let entries = (0..SERVERS).map(entry).collect();
        let secret = KeySecret::from_seed(1);
        Path {
            listener: listener(),
            request_edits: Edits::default(),
            table: BackendTable::first(BackendId(0), "app", Algorithm::Random(2), entries),
            keys: (0..SERVERS)
                .map(|_| PoolKey::new(&secret, &Parts::default()))
                .collect(),
            random: Random(0x9E37_79B9_7F4A_7C15),
            request: RequestHead::default(),
            response: ResponseHead::default(),
            additions: Vec::with_capacity(512),
            out: Vec::with_capacity(2 << 10),
            rewritten: Vec::new(),
            chosen: ServerIndex(0),
            grants: Grants::new(),
            lent: None,
        }
    }

    /// One request from its first byte to the parking of its connection. Answers the bytes that would have gone to the
    /// client.
    #[inline(never)]
    pub(crate) fn serve(&mut self, shape: &Shape) -> usize {
        let mut head = std::mem::take(&mut self.request);
        let parsed = http1::parse_request(shape.request, &REQUEST_LIMITS, &mut head);
        assert_eq!(parsed, Ok(Parsed::Complete));
        let (mut machine, start) = self.begin(&mut head, shape.request);
        let context = RequestContext {
            method: head.method,
            upgrade: head.upgrade,
            client: head.version,
        };
        self.request = head;
        self.drive(&mut machine, start);
        machine.on(Event::Written);
        let answered = self.answer(&mut machine, context, shape.response);
        self.drive(&mut machine, Event::ResponseComplete(Afterwards::Reusable));
        answered
    }

    fn begin(&mut self, head: &mut RequestHead, bytes: &[u8]) -> (Exchange, Event) {
        let asked = route::Asked {
            method: head.method_name(bytes),
            host: head.authority(bytes),
            path: head.path(bytes),
            query: head.query(bytes),
            client: Some(IpAddr::V4(Ipv4Addr::new(192, 168, 17, 203))),
            scheme: "http",
        };
        let choice = self.listener.routes.choose(&asked, &mut self.random);
        assert!(matches!(choice.outcome, Outcome::Backend(_)));
        let (edits, lines) = (&self.request_edits, &mut self.additions);
        additions::prepare(&self.listener, choice.route, edits, &asked, head, bytes, lines);
        self.out.clear();
        http1::write_request(bytes, head, &self.additions, &mut self.out);
        let mut body = Body::new(head.framing, TRAILERS);
        let rest = &bytes[head.length..];
        if !rest.is_empty() && !body.is_done() {
            let step = body.advance(rest, &mut self.out).expect("a sound body");
            if let Output::Verbatim(n) = step.output {
                self.out.extend_from_slice(&rest[..n]);
            }
        }
        let asked = Asked {
            idempotent: if head.method.is_idempotent() {
                Idempotent::Yes
            } else {
                Idempotent::No
            },
            arrival: if body.is_done() {
                Arrival::Whole
            } else {
                Arrival::BodyFollows
            },
        };
        (Exchange::new(EFFORT), Event::Start(asked))
    }

    /// As `worker/drive.rs` does it.
    fn drive(&mut self, machine: &mut Exchange, event: Event) {
        let commands = machine.on(event);
        for command in commands.as_slice() {
            match *command {
                Command::Choose(wish) => {
                    assert!(!self.table.is_queued());
                    let chosen = self.table.pick(wish.avoid, &mut self.random).server;
                    self.chosen = chosen.expect("every server is usable");
                    self.drive(machine, Event::Chosen(Chosen::Server(self.chosen, Bond::Loose)));
                }
                Command::TakeSlot(server) => {
                    let taken = if self.table.take(server) {
                        Taken::Yes
                    } else {
                        Taken::Refused
                    };
                    self.drive(machine, Event::Slot(taken));
                }
                Command::Lend(server) => {
                    let found = self.lend(server);
                    self.drive(machine, Event::Lent(found));
                }
                Command::Connect(server) => {
                    self.table.at(server).server.pool.need.opened();
                    self.lent = Some(Connection {
                        requests: 0,
                        _rest: [0; 5],
                    });
                    self.drive(machine, Event::Connected);
                }
                Command::ReleaseSlot(server) => {
                    self.table.release(server, &mut self.grants);
                    assert!(self.grants.is_empty());
                }
                Command::Park => self.park(),
                Command::Send | Command::Next(_) => {}
                unexpected => panic!("no request of this path comes to {unexpected:?}"),
            }
        }
    }

    fn lend(&mut self, server: ServerIndex) -> Found {
        let wanted = reuse::wanted(Mode::Always, Retryable::Yes).expect("sharing is on");
        let pool = &self.table.at(server).server.pool;
        self.lent = pool.lend(WORKER, &self.keys[server.at()], wanted);
        match self.lent {
            Some(_) => Found::Idle,
            None => Found::Nothing,
        }
    }

    /// The response in one piece: as it came where it may, else its head written anew.
    fn answer(&mut self, machine: &mut Exchange, context: RequestContext, bytes: &[u8]) -> usize {
        let mut head = std::mem::take(&mut self.response);
        let parsed = http1::parse_response(bytes, &RESPONSE_LIMITS, context, &mut head);
        assert_eq!(parsed, Ok(Parsed::Complete));
        let connection = head.connection_for(context.client, ClientConnection::KeepAlive);
        assert!(head.keep_alive && connection == ClientConnection::KeepAlive);
        self.rewritten.clear();
        let mut body = Body::new(head.framing, TRAILERS);
        let rest = &bytes[head.length..];
        let step = body.advance(rest, &mut self.rewritten).expect("a sound body");
        assert!(step.done && step.consumed == rest.len());
        let Output::Verbatim(n) = step.output else {
            panic!("a body in plain chunks goes on as it came")
        };
        let answered = if head.goes_verbatim(connection, context.client, b"") {
            head.length + n
        } else {
            self.out.clear();
            http1::write_response(bytes, &head, connection, context.client, b"", &mut self.out);
            self.out.extend_from_slice(&rest[..n]);
            self.out.len()
        };
        machine.on(Event::ResponseStarted);
        self.response = head;
        answered
    }

    fn park(&mut self) {
        let mut connection = self.lent.take().expect("what is parked was lent");
        connection.requests += 1;
        let pool = &self.table.at(self.chosen).server.pool;
        let released = Released {
            mode: Mode::Always,
            private: false,
            maintenance: false,
            purge_delay: true,
            reverse: false,
            streams: 0,
            free_streams: 1,
            proven: Proven::after(connection.requests),
            reuses_left: None,
            descriptors: Descriptors::new(SERVERS.into(), 4096, 20, 25),
            figures: Figures::default(),
        };
        let key = &self.keys[self.chosen.at()];
        if pool.release(WORKER, key, &released, connection).is_err() {
            panic!("one connection of each server is kept");
        }
    }
}

/// A server of which others hold no slot, one or two.
fn entry(number: u16) -> Entry<Connection> {
    let server = Server::new(ServerId(number.into()), "app", "server", 1);
    for _ in 0..number % 3 {
        assert!(server.slots.take(SLOTS));
    }
    Entry {
        limit: SLOTS,
        ..Entry::new(Arc::new(server))
    }
}

/// A few rules that most requests pass by, and one edit of each kind.
fn listener() -> ListenerSettings {
    let path = |prefix| Matcher {
        paths: vec![PathPattern::prefix(prefix).unwrap()],
        ..Matcher::default()
    };
    let api = Matcher {
        hosts: vec![HostPattern::parse("api.example.com").unwrap()],
        methods: vec![MethodName::parse("POST").unwrap()],
        ..Matcher::default()
    };
    let name = |text| FieldName::parse(text).unwrap();
    let value = |text| Template::parse(text).unwrap();
    ListenerSettings {
        http_request: 10_000_000,
        inactivity: 60_000_000,
        http_keep_alive: 60_000_000,
        tunnel: 3_600_000_000,
        limits: REQUEST_LIMITS,
        session_private_max: 5,
        named: Default::default(),
        routes: RouteTable {
            routes: vec![
                rule(path("/admin"), Action::Deny(403), Edits::default()),
                rule(path("/static"), Action::Backend(BackendRef(0)), Edits::default()),
                rule(
                    api,
                    Action::Backend(BackendRef(0)),
                    Edits {
                        list: vec![Edit::Add(name("X-Tenant"), value("{host}"))],
                    },
                ),
            ],
            default: Some(BackendRef(0)),
        },
        request_edits: Edits {
            list: vec![
                Edit::Set(name("X-Proxy"), value("forebay")),
                Edit::Remove(name("X-Debug")),
            ],
        },
        response_edits: Edits::default(),
        forwarded: Forwarded::Append,
        via: Box::from(&b"Via: 1.1 forebay\r\n"[..]),
    }
}

fn rule(matcher: Matcher, action: Action, request_edits: Edits) -> Route {
    Route {
        matcher,
        action,
        request_edits,
        response_edits: Edits::default(),
        priority: Priority::default(),
    }
}

/// The same generator as the worker's.
struct Random(u64);

impl Draw for Random {
    fn draw(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32;
        ((u64::from(high) * u64::from(bound)) >> 32) as u32
    }
}
