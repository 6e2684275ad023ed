//! Keys of `balance = { … }`, of what it hashes, and of the cookie that a backend inserts.

use super::{Default, Form, Key, Section, Shape, built, key};
use crate::config::defaults;

/// Algorithms that are a word.
pub(super) const ALGORITHMS: Form = Form::Choice(&[
    built("random"),
    built("roundrobin"),
    built("leastconn"),
    built("first"),
    built("sticky"),
]);

/// Keys of the long form where a policy cannot stand.
pub(super) const NATIVE: &[&str] = &[
    "random", "hash", "type", "bound", "affinity", "else", "hash-key", "function",
];

pub(super) const BALANCE: &[Key] = &[
    key(
        "random",
        Form::Integer(defaults::RANDOM_DRAWS_RANGE),
        Default::Said("2, with `balance = \"random\"`"),
        "So many draws; the least loaded of them is chosen.",
    )
    .clause("LB-30"),
    key(
        "policy",
        Form::Text("a policy's name"),
        Default::Said("none"),
        "This policy chooses; its `fallback` does where it has no say.",
    ),
    key(
        "hash",
        Form::Other(
            "\"source\", \"uri\", \"path\" or a table",
            &[
                Shape::As(Form::Choice(&[built("source"), built("uri"), built("path")])),
                Shape::As(Form::Table(Section::Hash)),
            ],
        ),
        Default::Said("none"),
        "What of a request decides: the client's address, path and query, the path alone, or what the table says. The same \
         value goes to the same server.",
    )
    .clause("LB-42"),
    key(
        "type",
        Form::Choice(&[built("consistent"), built("map-based")]),
        Default::Word(defaults::HASH_TYPE),
        "How values are mapped to servers. `consistent`: a server that goes takes only its own values with it; `map-based`: \
         shares are exact, and any change moves most values.",
    )
    .clause("LB-41, LB-42"),
    key(
        "bound",
        Form::Integer(defaults::HASH_BOUND_RANGE),
        Default::Said("no bound"),
        "The most that a server has in flight, in percent of its part of all; beyond, the next one is taken.",
    )
    .clause("LB-43"),
    key(
        "affinity",
        Form::Choice(&[built("always"), built("maxconn"), built("maxqueue")]),
        Default::Word(defaults::HASH_AFFINITY),
        "Until when a value stays with its server: `always` while it is up, so that its requests wait for it; until it is full \
         (`maxconn`); or until its queue is, too (`maxqueue`).",
    )
    .clause("LB-43"),
    key(
        "else",
        Form::Other(
            "\"roundrobin\", \"leastconn\", \"random\", \"first\" or { random = N }",
            &[
                Shape::As(Form::Choice(&[
                    built("roundrobin"),
                    built("leastconn"),
                    built("random"),
                    built("first"),
                ])),
                Shape::Part(Section::Balance, &["random"]),
            ],
        ),
        Default::Word(defaults::HASH_ELSE),
        "The algorithm for a request that has no such value.",
    )
    .clause("LB-40"),
    key(
        "hash-key",
        Form::Choice(&[built("name"), built("address")]),
        Default::Word(defaults::HASH_KEY),
        "What of a server decides which values are its own. Two proxies agree about them if these are the same there, in \
         whatever order.",
    )
    .clause("LB-42"),
    key(
        "function",
        Form::Choice(&[built("xxh3-64")]),
        Default::Word(defaults::HASH_FUNCTION),
        "The hash function, of values and of servers.",
    )
    .clause("LB-42"),
];

pub(super) const HASH: &[Key] = &[
    key(
        "header",
        Form::Text("a header's name"),
        Default::Said("none"),
        "The values of this field, all of them.",
    ),
    key(
        "cookie",
        Form::Text("a cookie's name"),
        Default::Said("none"),
        "The value of this cookie.",
    ),
    key(
        "query",
        Form::Text("a parameter's name"),
        Default::Said("none"),
        "The first value of this query parameter, as sent.",
    ),
    key(
        "path-prefix",
        Form::Integer(defaults::HASH_SEGMENTS),
        Default::Said("none"),
        "So many first segments of the path: `/a/b` for 2 of `/a/b/c`.",
    ),
    key(
        "path-part",
        Form::Integer(defaults::HASH_SEGMENTS),
        Default::Said("none"),
        "The segment of this number: `b` for 2 of `/a/b/c`.",
    ),
];

pub(super) const COOKIE: &[Key] = &[
    key(
        "name",
        Form::Text("a cookie's name"),
        Default::Required,
        "Its name. The client's next requests go to the server that it names.",
    )
    .clause("LB-52"),
    key(
        "http-only",
        Form::Flag,
        Default::Flag(true),
        "Scripts of a page do not see it.",
    ),
    key(
        "secure",
        Form::Flag,
        Default::Flag(false),
        "Clients send it over TLS only; right wherever TLS ends before this proxy.",
    ),
    key(
        "same-site",
        Form::Choice(&[built("lax"), built("strict"), built("none")]),
        Default::Word(defaults::COOKIE_SAME_SITE),
        "Whether requests that come from other sites carry it; `none` needs `secure`.",
    ),
    key(
        "path",
        Form::Text("a path"),
        Default::Word("/"),
        "Below which paths clients send it.",
    ),
    key(
        "domain",
        Form::Text("a host name"),
        Default::Said("the host that was asked"),
        "To which hosts clients send it, sub-domains included.",
    ),
    key(
        "max-age",
        Form::Duration(defaults::COOKIE_MAX_AGE_RANGE),
        Default::Said("the client's session"),
        "How long a client keeps it, in whole seconds; it is not renewed before.",
    ),
    key(
        "private",
        Form::Flag,
        Default::Flag(true),
        "A response that sets it also says `Cache-Control: private`, so that no shared cache gives it to others.",
    ),
];
