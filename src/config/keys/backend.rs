//! Keys of `[backend.NAME]` and of its servers.

use super::{Default, Form, Key, Section, Shape, balance, built, key, not_yet};
use crate::config::defaults;

const ADDRESS: Form = Form::Text("an address such as `127.0.0.1:80`, `name:80` or `unix:/path`");

pub(super) const BACKEND: &[Key] = &[
    key(
        "servers",
        Form::Other(
            "a list of addresses or of tables",
            &[
                Shape::As(ADDRESS),
                Shape::As(Form::Table(Section::Server)),
                Shape::List(&[ADDRESS, Form::Table(Section::Server)], defaults::SERVERS_MAX),
            ],
        ),
        Default::Required,
        "Servers that answer: `\"HOST:PORT\"`, `\"unix:PATH\"` or `{ name, address, weight }`; at most 4095. A host name is \
         looked up once, when the file is loaded, and stands for its first address.",
    )
    .clause("LB-13"),
    key(
        "balance",
        Form::Other(
            "\"random\", \"roundrobin\", \"leastconn\", \"first\", \"sticky\", { random = N }, { hash = … } or \
             { policy = \"NAME\" }",
            &[Shape::As(balance::ALGORITHMS), Shape::As(Form::Table(Section::Balance))],
        ),
        Default::Word(defaults::BALANCE),
        "How a server is chosen: the less loaded of two random draws, smooth rotation by weight, fewest requests in flight, the \
         first with a free slot, one until it is gone, or by a hash of the request; or by a policy, and as its `fallback` says \
         where it has no say.",
    )
    .clause("LB-10, LB-20, LB-30, LB-42, LB-50"),
    key(
        "allbackups",
        Form::Flag,
        Default::Flag(false),
        "Servers with `backup` stand in for the others all together; otherwise the first of them that can does.",
    )
    .clause("LB-2"),
    key(
        "slowstart",
        Form::Duration(defaults::SLOWSTART_RANGE),
        Default::Said("at once"),
        "How long a server that comes back from maintenance takes to reach its full weight and limit.",
    )
    .clause("LB-60, Q-4"),
    key(
        "prefer-last-server",
        Form::Flag,
        Default::Flag(false),
        "A client's next request goes to the server that had the one before, while that has a free slot.",
    )
    .clause("LB-51"),
    key(
        "cookie",
        Form::Table(Section::Cookie),
        Default::Said("none"),
        "A cookie that is set by the first response and sends the client's next requests to the same server.",
    )
    .clause("LB-52"),
    key(
        "reuse",
        Form::Choice(&[built("never"), built("safe"), built("aggressive"), built("always")]),
        Default::Word(defaults::REUSE),
        "How server connections are shared between clients. `safe`: the first request of a client opens its own, later ones \
         use any idle one; `aggressive`: the first one too, if the connection has proven that its server keeps it; `always`: \
         any request uses any; `never`: each connection is one client's alone.",
    )
    .clause("POOL-11"),
    key(
        "reuse-policy",
        Form::Text("a policy's name"),
        Default::Said("none"),
        "A policy that is asked how the connection of each request is shared, how many there are to be, or both. It may \
         be the one that `balance` names.",
    )
    .clause("POOL-11"),
    key(
        "reuse-override",
        Form::Choice(&[built("refuse"), built("allow")]),
        Default::Word(defaults::REUSE_OVERRIDE),
        "Whether that policy may loosen `reuse`: with `refuse` it may only make it stricter, and a looser wish is counted.",
    )
    .clause("POOL-11"),
    key(
        "pool-low-conn",
        Form::Integer(defaults::POOL_CONNECTIONS),
        Default::Integer(0),
        "Idle connections of one server below which a worker opens its own instead of taking over a sibling's; so many are \
         also kept beyond the need. Twice the number of workers is a good start where take-overs are many.",
    )
    .clause("POOL-22, POOL-32"),
    key(
        "pool-max-conn",
        Form::Integer(defaults::POOL_CONNECTIONS),
        Default::Said("no limit"),
        "Idle connections of one server, at most; with 0 none is kept.",
    )
    .clause("POOL-32"),
    key(
        "pool-purge-delay",
        Form::Duration(defaults::POOL_PURGE_RANGE),
        Default::Duration(defaults::POOL_PURGE_DELAY),
        "Each time it passes, half of the idle connections that were not needed are closed; with `\"0s\"` none is kept.",
    )
    .clause("POOL-40"),
    key(
        "pool-keep",
        Form::Choice(&[built("first"), built("equal")]),
        Default::Word(defaults::POOL_KEEP),
        "How idle connections are divided among workers: who comes `first` keeps them, or each has an `equal` part. Then who \
         takes one over takes it from who has most, and a purge leaves `pool-low-conn` to a server in use.",
    )
    .clause("POOL-32"),
    key(
        "max-reuse",
        Form::Integer(defaults::MAX_REUSE_RANGE),
        Default::Said("no limit"),
        "Requests that one connection carries after its first, at most.",
    )
    .clause("POOL-53"),
    key(
        "strict-maxconn",
        Form::Integer(defaults::STRICT_MAXCONN_RANGE),
        Default::Said("no limit"),
        "Connections to one server, used or idle, at most. At the limit an idle one is closed for a request that cannot use \
         it; if none is idle, the request is refused (503).",
    )
    .clause("POOL-51"),
    key(
        "pool-conn-name",
        Form::Text("a text with placeholders such as `{host}`"),
        Default::Said("none"),
        "Only requests with the same value share a connection.",
    )
    .clause("POOL-2"),
    key(
        "source",
        Form::Text("an IP address of this machine"),
        Default::Said("the system's choice"),
        "The address that connections to the servers come from.",
    )
    .clause("POOL-2"),
    key(
        "prefer-idle",
        Form::Flag,
        Default::Flag(false),
        "Among servers that are equally good for `random` or `leastconn`, choose one to which a connection is idle.",
    )
    .clause("POOL-62"),
    key(
        "retry-on",
        Form::Words(&[
            built("conn-failure"),
            built("empty-response"),
            built("response-timeout"),
            built("none"),
        ]),
        Default::Said("`[\"conn-failure\", \"empty-response\"]`"),
        "What is tried again, up to `retries` times; what a server has begun to read only if it may be repeated (GET, HEAD, PUT, \
         DELETE, OPTIONS, TRACE). With all three, a client's first request may use an idle connection under `safe`, too.",
    )
    .clause("RT-7, POOL-11"),
    key(
        "retries",
        Form::Integer(defaults::RETRIES_RANGE),
        Default::Integer(defaults::RETRIES),
        "Attempts after the first; a request gives its slot back before each.",
    )
    .clause("RT-1, LB-4"),
    key(
        "redispatch",
        Form::Other(
            "`true`, `false` or a number",
            &[
                Shape::As(Form::Flag),
                Shape::As(Form::Signed(defaults::REDISPATCH_EVERY_RANGE)),
                Shape::As(Form::Signed(defaults::REDISPATCH_BEFORE_END_RANGE)),
            ],
        ),
        Default::Flag(true),
        "Whether another attempt may go to another server: at once, where nothing ties the request to the first one. Where \
         something does, on the last attempt, or with a number N on each N-th one, or with −N on the N-th from the last.",
    )
    .clause("RT-3, RT-4"),
    key(
        "retry-delay",
        Form::Duration(defaults::RETRY_DELAY_RANGE),
        Default::Duration(defaults::RETRY_DELAY),
        "Before the same server is tried again after a failed connect; never longer than `timeout-connect`.",
    )
    .clause("RT-5"),
    key(
        "retry-budget",
        Form::Share,
        Default::Said("none"),
        "Of the requests that a worker has under way here, this part may be on another attempt than their first; a failure \
         beyond it is answered, not tried again.",
    ),
    key(
        "retry-budget-min",
        Form::Integer(defaults::RETRY_BUDGET_MIN_RANGE),
        Default::Integer(defaults::RETRY_BUDGET_MIN),
        "So many may be in any case, on each worker.",
    ),
    key(
        "maxconn",
        Form::Integer(defaults::SLOTS_RANGE),
        Default::Said("no limit"),
        "Requests at one server at a time; others wait. A server may say otherwise.",
    )
    .clause("Q-3"),
    key(
        "minconn",
        Form::Integer(defaults::SLOTS_RANGE),
        Default::Said("none"),
        "With it the limit of a server moves with the load: from here to `maxconn`. A server may say otherwise.",
    )
    .clause("Q-4"),
    key(
        "fullconn",
        Form::Integer(defaults::FULLCONN_RANGE),
        Default::Said("the sum of the servers' `maxconn`"),
        "Requests in the backend, waiting or not, from which on the limit is `maxconn`.",
    )
    .clause("Q-4"),
    key(
        "maxqueue",
        Form::Integer(defaults::MAXQUEUE_RANGE),
        Default::Said("no limit"),
        "Requests that wait for one server and no other, at most; one more is balanced as if nothing tied it to that \
         server, or is answered with 503 under `redispatch = false`. With `leastconn`, so many wait at each server \
         before any waits for all. A server may say otherwise.",
    )
    .clause("Q-5, Q-7"),
    key(
        "timeout-connect",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_CONNECT),
        "From the start of a connect to its end.",
    ),
    key(
        "timeout-server",
        Form::Duration(defaults::TIMEOUT),
        Default::Duration(defaults::TIMEOUT_SERVER),
        "Without any progress from or to the server within a request; 504 before the head of its response.",
    ),
    key(
        "timeout-queue",
        Form::Duration(defaults::TIMEOUT),
        Default::Said("`timeout-connect`"),
        "How long a request may wait for a slot; 503 beyond.",
    )
    .clause("Q-14"),
    key(
        "queue-policy",
        Form::Text("a policy's name"),
        Default::Said("none"),
        "A policy that is asked about a request when it is about to wait: where it stands among the others, for how long \
         it may wait, and whether at all. It may be one that `balance` or `reuse-policy` names.",
    )
    .clause("Q-2, Q-14"),
    key(
        "load-report",
        Form::Other(
            "`true`, `false` or \"pass\"",
            &[Shape::As(Form::Flag), Shape::As(Form::Choice(&[built("pass")]))],
        ),
        Default::Flag(false),
        "Whether servers report their load in the response field `endpoint-load-metrics` (ORCA, as text or JSON), for \
         policies that read measures. The field is taken out of the response, unless this is \"pass\".",
    ),
    key(
        "load-report-max-age",
        Form::Duration(defaults::LOAD_REPORT_AGE_RANGE),
        Default::Duration(defaults::LOAD_REPORT_AGE),
        "How long a report counts; what a server last said before that is unknown.",
    ),
    key("request-headers", Form::Table(Section::Headers), Default::Said("none"), "Edits of requests, after those of the route."),
    key("response-headers", Form::Table(Section::Headers), Default::Said("none"), "Edits of responses, after those of the route."),
    not_yet("check", "Health checks."),
];

pub(super) const SERVER: &[Key] = &[
    key(
        "name",
        Form::Text("a name"),
        Default::Said("the address as written"),
        "Its name in logs, metrics and commands.",
    ),
    key("address", ADDRESS, Default::Required, "Where it listens."),
    key(
        "weight",
        Form::Integer(defaults::WEIGHT_RANGE),
        Default::Integer(defaults::WEIGHT),
        "Its part of the load; 0 sends it nothing new.",
    )
    .clause("LB-1"),
    key(
        "tags",
        Form::Other(
            "a table of names and strings",
            &[Shape::Strings(defaults::TAGS_MAX)],
        ),
        Default::Said("none"),
        "`{ zone = \"eu\" }`: what policies see of it; at most 16.",
    ),
    key(
        "maxconn",
        Form::Integer(defaults::SLOTS_RANGE),
        Default::Said("that of the backend"),
        "Requests here at a time; others wait.",
    )
    .clause("Q-3"),
    key(
        "minconn",
        Form::Integer(defaults::SLOTS_RANGE),
        Default::Said("that of the backend"),
        "Where a limit begins that moves with the load.",
    )
    .clause("Q-4"),
    key(
        "maxqueue",
        Form::Integer(defaults::MAXQUEUE_RANGE),
        Default::Said("that of the backend"),
        "Requests that wait for this server and no other, at most.",
    )
    .clause("Q-5"),
    key(
        "backup",
        Form::Flag,
        Default::Flag(false),
        "It gets requests only while no other server can take any.",
    )
    .clause("LB-2"),
    key(
        "cookie",
        Form::Text("the value of a cookie"),
        Default::Said("made from its name"),
        "What names it in the backend's `cookie`.",
    )
    .clause("LB-52"),
    not_yet("check", "Health checks of this server."),
];
