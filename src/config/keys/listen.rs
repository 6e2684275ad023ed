//! Keys of `[[listen]]`, of its routes and of header edits.

use super::{Default, Form, Key, Section, built, key};
use crate::config::defaults;

const REQUEST_HEADERS: Form = Form::Table(Section::Headers);
const NONE: Default = Default::Said("none");

pub(super) const LISTEN: &[Key] = &[
    key(
        "name",
        Form::Text("a name"),
        Default::Said("`listen-N`"),
        "Its name in logs, metrics and messages.",
    ),
    key(
        "bind",
        Form::Texts(
            "an address such as `127.0.0.1:80`, `[::1]:80`, `*:80` (both families), `name:80` or `unix:/path`",
        ),
        Default::Required,
        "Addresses to listen at; port 0 picks a free one, which is printed.",
    ),
    key(
        "workers",
        Form::Integers(defaults::WORKERS),
        Default::Said("all"),
        "The workers that accept here, counted from 1.",
    ),
    key(
        "backend",
        Form::Text("a backend's name"),
        NONE,
        "Where requests go that no route takes; without it, 503.",
    ),
    key(
        "route",
        Form::Tables(Section::Route),
        NONE,
        "Routes in order; the first that matches decides.",
    ),
    key(
        "timeout-http-request",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_HTTP_REQUEST),
        "From the first byte of a request to the end of its head; 408 beyond.",
    )
    .clause("RFC 9110 §15.5.9"),
    key(
        "timeout-client",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_CLIENT),
        "Without any progress from or to the client within a request.",
    ),
    key(
        "timeout-http-keep-alive",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_HTTP_KEEP_ALIVE),
        "Between two requests of a client.",
    ),
    key(
        "timeout-tunnel",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_TUNNEL),
        "Without any byte in either direction after an upgrade.",
    ),
    key(
        "max-session-srv-conns",
        Form::Integer(defaults::SESSION_PRIVATE_RANGE),
        Default::Integer(defaults::SESSION_PRIVATE),
        "Idle server connections of its own that one client connection may hold (`reuse = \"never\"`, NTLM).",
    )
    .clause("POOL-61"),
    key(
        "head-max",
        Form::Size(defaults::HEAD_MAX_RANGE),
        Default::Size(defaults::HEAD_MAX),
        "Bytes of a request's head; 431 beyond.",
    )
    .clause("RFC 6585 §5"),
    key(
        "request-line-max",
        Form::Size(defaults::REQUEST_LINE_MAX_RANGE),
        Default::Size(defaults::REQUEST_LINE_MAX),
        "Bytes of a request line; 414 beyond. Never above `head-max`.",
    )
    .clause("RFC 9112 §3"),
    key(
        "headers-max",
        Form::Integer(defaults::HEADERS_MAX_RANGE),
        Default::Integer(defaults::HEADERS_MAX),
        "Header fields of one message; 431 beyond.",
    )
    .clause("RFC 6585 §5"),
    key(
        "request-headers",
        REQUEST_HEADERS,
        NONE,
        "Edits of every request that goes to a server, before those of the route.",
    ),
    key(
        "response-headers",
        REQUEST_HEADERS,
        NONE,
        "Edits of every response that comes from a server, before those of the route.",
    ),
    key(
        "x-forwarded",
        Form::Choice(&[built("append"), built("replace"), built("off")]),
        Default::Word(defaults::X_FORWARDED),
        "`append` adds the client's address to its `X-Forwarded-For` and sets `-Proto` and `-Host`; `replace` drops what \
         the client sent first; `off` touches nothing.",
    ),
    key(
        "via",
        Form::Text("a pseudonym, or \"off\""),
        Default::Word(defaults::VIA),
        "Our name in the `Via` field of requests.",
    )
    .clause("RFC 9110 §7.6.3"),
    key(
        "route-policy",
        Form::Text("a policy's name"),
        NONE,
        "A policy that is asked after the routes, and may choose otherwise.",
    ),
];

pub(super) const ROUTE: &[Key] = &[
    key(
        "name",
        Form::Text("a name"),
        NONE,
        "What a policy calls this `redirect` or `respond`; with `match = { share = 0 }` it happens only then.",
    ),
    key(
        "match",
        Form::Table(Section::Match),
        Default::Said("everything"),
        "Which requests it takes.",
    ),
    key(
        "backend",
        Form::Text("a backend's name"),
        NONE,
        "Send the request there.",
    ),
    key(
        "redirect",
        Form::Table(Section::Redirect),
        NONE,
        "Answer with a redirect.",
    )
    .clause("RD-1…6"),
    key(
        "respond",
        Form::Table(Section::Respond),
        NONE,
        "Answer with a fixed response.",
    ),
    key(
        "deny",
        Form::Integer(defaults::STATUS_DENY),
        NONE,
        "Answer with this status.",
    ),
    key(
        "priority-class",
        Form::Signed(defaults::PRIORITY_CLASS_RANGE),
        Default::Said("`0`"),
        "Where requests wait, those of a lower class are served first.",
    )
    .clause("Q-2"),
    key(
        "priority-offset",
        Form::Offset(defaults::PRIORITY_OFFSET_RANGE),
        Default::Said("`\"0s\"`"),
        "Within a class requests are served as if they had come so much later, or earlier.",
    )
    .clause("Q-2"),
    key(
        "request-headers",
        REQUEST_HEADERS,
        NONE,
        "Edits of the request, after those of the listener.",
    ),
    key(
        "response-headers",
        REQUEST_HEADERS,
        NONE,
        "Edits of the response, after those of the listener.",
    ),
];

pub(super) const MATCH: &[Key] = &[
    key(
        "host",
        Form::Texts("a host such as `example.com` or `*.example.com`"),
        Default::Said("any"),
        "Any of these; the port of the request does not count, `*.` stands for one or more labels.",
    ),
    key(
        "path",
        Form::Texts("a path that begins with `/`"),
        Default::Said("any"),
        "Exactly any of these paths, without the query.",
    ),
    key(
        "path-prefix",
        Form::Texts("a path that begins with `/`"),
        Default::Said("any"),
        "The path begins with any of these; with `path` given too, either is enough.",
    ),
    key(
        "method",
        Form::Texts("a method such as \"GET\""),
        Default::Said("any"),
        "Any of these methods; case counts.",
    )
    .clause("RFC 9110 §9.1"),
    key(
        "share",
        Form::Share,
        Default::Said("`\"100%\"`"),
        "This part of what matches otherwise, at random for each request.",
    ),
];

pub(super) const REDIRECT: &[Key] = &[
    key(
        "location",
        Form::Text("a template"),
        NONE,
        "The new location. One of `location`, `prefix`, `scheme` is needed.",
    )
    .clause("RD-1"),
    key(
        "prefix",
        Form::Text("a template"),
        NONE,
        "Put before path and query; `\"/\"` adds nothing.",
    )
    .clause("RD-2"),
    key(
        "scheme",
        Form::Text("a template"),
        NONE,
        "The same host, path and query under this scheme.",
    )
    .clause("RD-3"),
    key(
        "code",
        Form::Integer(301..=308),
        Default::Integer(defaults::REDIRECT_CODE),
        "301, 302, 303, 307 or 308.",
    )
    .clause("RD-4"),
    key(
        "keep-query",
        Form::Flag,
        Default::Flag(false),
        "With `location`: append the query of the request.",
    )
    .clause("RD-1"),
    key(
        "ignore-empty",
        Form::Flag,
        Default::Flag(false),
        "With `location`: go on with the next route when it comes out empty.",
    )
    .clause("RD-1"),
    key(
        "drop-query",
        Form::Flag,
        Default::Flag(false),
        "With `prefix` or `scheme`: without the query of the request.",
    )
    .clause("RD-2"),
    key(
        "append-slash",
        Form::Flag,
        Default::Flag(false),
        "With `drop-query`: end with `/`.",
    )
    .clause("RD-2"),
    key(
        "set-cookie",
        Form::Text("`NAME` or `NAME=value`"),
        NONE,
        "Set this cookie.",
    )
    .clause("RD-4"),
    key(
        "clear-cookie",
        Form::Text("`NAME`"),
        NONE,
        "Let this cookie expire.",
    )
    .clause("RD-4"),
];

pub(super) const RESPOND: &[Key] = &[
    key(
        "status",
        Form::Integer(defaults::STATUS),
        Default::Required,
        "The status.",
    ),
    key(
        "body",
        Form::Text("a text"),
        Default::Said("a line that names the status"),
        "The body, at most 64 KiB.",
    ),
    key(
        "content-type",
        Form::Text("a media type"),
        Default::Said("`\"text/plain; charset=utf-8\"`"),
        "What the body is.",
    ),
];

pub(super) const HEADERS: &[Key] = &[
    key(
        "remove",
        Form::Texts("a header name"),
        NONE,
        "Fields of these names are dropped.",
    ),
    key(
        "set",
        Form::Fields,
        NONE,
        "`{ name = \"template\" }`: fields of that name are dropped, then this one is added.",
    ),
    key(
        "add",
        Form::Fields,
        NONE,
        "`{ name = \"template\" }`, or a list of templates: added to whatever is there.",
    ),
];
