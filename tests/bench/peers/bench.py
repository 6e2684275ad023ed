#!/usr/bin/env python3
"""Peers harness: measures reverse proxies side by side on one small, noisy machine.

  bench.py run [--scen ka4,lat5k,...] [--peers a,b,...] [--rounds 5] [--out results/NAME.jsonl] [--peer-file ours.json]
  bench.py report results/NAME.jsonl [--base haproxy]      the tables (medians, ratios against the base peer)
  bench.py pairs results/NAME.jsonl                        the policies against the native balancer (scenarios policy4, policy16)
  bench.py matrix results/NAME.jsonl                       one table: CPU us/req of every peer in every scenario
  bench.py history [--rounds 3] [--peers forebay,haproxy26] [--scen series]   reuse and take-overs of the pools, 16 workers and 9,000 clients
  bench.py queues [--rounds 3] [--peers forebay,haproxy26]                    slots and queues: maxconn 1, 4 and none, 16 workers and 1,000 clients
  bench.py syscalls | memory | seeds | profile [...]                 the special runs
  bench.py list

How it stays honest on 2 shared cores
  * peers are interleaved A B C, A B C, ... over the rounds; medians over rounds, ratios paired within a round
  * the robust figure is the proxy's own CPU microseconds per request (ns from /proc/PID/task/*/schedstat, whole process tree,
    sampled by the load generator itself at both ends of the measured window), not requests/s
  * upstream connections and requests are counted by the backend, not by the proxy
  * each cell runs under a machine-wide lock; CPU burnt by anything else in the window is measured, and a noisy cell is run again
  * every process is started here and ended here by its pid (and asks to die with its parent); loopback only

To add a proxy: write a function with @peer below, or a JSON file for --peer-file:
  {"name": "ours", "cmd": ["/path/proxy", "-c", "{dir}/p.toml"], "env": {}, "server": "[[server]]\\naddr = \\"{ip}:{port}\\"\\n",
   "files": {"p.toml": "listen = \\"127.0.0.1:{port}\\"\\nthreads = {threads}\\nalgo = \\"{algo}\\"\\n{servers}"}}
  placeholders: {dir} {port} {tls_port} {threads} {algo} {crt} {key} {both} {plugin} {servers} {nservers}
"""
import argparse, fcntl, json, mmap, os, random, re, resource, shutil, signal, socket, statistics as st, struct, subprocess, sys, tempfile, time, ctypes

HERE = os.path.dirname(os.path.abspath(__file__))
CWD = os.getcwd()                                  # run it from the project's root
RUN = os.path.join(tempfile.gettempdir(), "forebay-bench")
os.makedirs(RUN, exist_ok=True)
TOOLS = os.environ.get("BENCH_TOOLS", CWD + "/target/bench-tools/release")
TLS = os.environ.get("BENCH_TLS", RUN + "/tls")
WASM = os.environ.get("BENCH_WASM", HERE + "/wasm")
BIN = {   # a peer whose binary is missing is left out; BENCH_<NAME> names another place
    "forebay": CWD + "/target/release/forebay",
    "haproxy26": "/usr/sbin/haproxy", "haproxy35": "", "nginx": "/usr/sbin/nginx", "caddy": "/usr/bin/caddy",
    "envoy": "", "pingora": CWD + "/target/bench-tools/release/pingora-lb", "sozu": "",
}
for _k in BIN: BIN[_k] = os.environ.get("BENCH_" + _k.upper(), BIN[_k]) or "/nonexistent"
LOCK = RUN + "/lock"
def tls_files():
    if not os.path.exists(TLS + "/both.pem"):
        os.makedirs(TLS, exist_ok=True)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=bench.test",
                        "-addext", "subjectAltName=DNS:bench.test", "-keyout", TLS + "/key.pem", "-out", TLS + "/crt.pem"], check=True, capture_output=True)
        open(TLS + "/both.pem", "w").write(open(TLS + "/crt.pem").read() + open(TLS + "/key.pem").read())
NCPU = os.cpu_count()
TICK = os.sysconf("SC_CLK_TCK")
NOFILE = resource.getrlimit(resource.RLIMIT_NOFILE)[1]   # 20000 on the machine this was written on: hence 9000 rather than 10000 active connections
LIBC = ctypes.CDLL(None, use_errno=True)

# ---------------------------------------------------------------- peers

class Ctx:
    """What a peer's function gets: where to listen, the servers, threads, algorithm, TLS, plugin, a work folder."""
    def __init__(s, **k):
        s.threads, s.algo, s.tls, s.plugin, s.opt, s.srv_opt, s.maxconn = 2, "rr", False, None, {}, "", 0
        s.__dict__.update(k)

PEERS, EXTERNAL = {}, {}
def peer(name):
    def d(f): PEERS[name] = f; return f
    return d

def haproxy_conf(c, extra_global="", lua=None):
    bal = {"rr": "roundrobin", "leastconn": "leastconn", "random": "random(2)"}[c.algo]
    plug = {None: "", "native": "  http-request set-header x-plugin 1\n", "lua": "  http-request lua.addhdr\n", "luanoop": "  http-request lua.noop\n", "luapt": "  http-request lua.addhdr\n"}[c.plugin]
    g = f"global\n  nbthread {c.threads}\n  tune.pool-high-fd-ratio 95\n  tune.pool-low-fd-ratio 90\n  stats socket {c.dir}/ha.sock mode 600 level admin\n{extra_global}"
    if c.plugin in ("lua", "luanoop"): g += f"  lua-load {c.dir}/p.lua\n"          # one Lua state and one lock for all threads
    if c.plugin == "luapt": g += f"  lua-load-per-thread {c.dir}/p.lua\n"           # one state for each thread
    s = "".join(f"  server s{i} {ip}:{p}{' maxconn %d' % c.maxconn if c.maxconn else ''}{c.srv_opt}\n" for i, (ip, p) in enumerate(c.servers))
    bind = f"  bind 127.0.0.1:{c.port} backlog 4096\n" + (f"  bind 127.0.0.1:{c.tls_port} ssl crt {TLS}/both.pem alpn h2,http/1.1\n" if c.tls else "")
    return g + f"""defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  timeout http-keep-alive 600s
  timeout queue 60s
  option http-keep-alive
  http-reuse {c.opt.get('reuse', 'always')}
frontend f
{bind}{plug}  default_backend b
backend b
  balance {bal}
{c.opt.get('backend', '')}{s}"""

LUA = """core.register_action("addhdr", {"http-req"}, function(txn)
  local p = txn.f:path()
  if p and string.byte(p, 1) == 47 then txn.http:req_set_header("x-plugin", "1") end
end, 0)
core.register_action("noop", {"http-req"}, function(txn) end, 0)
"""
for _v in ("haproxy35", "haproxy26"):
    def _f(c, v=_v):
        return {"h.cfg": haproxy_conf(c, c.opt.get("global", "")), "p.lua": LUA}, [BIN[v], "-db", "-f", "{dir}/h.cfg"]
    PEERS[_v] = _f

@peer("forebay")
def forebay(c):
    """Configured after src/manual/configuration.md. The ratios are of server connections alone: 9,000 clients have the rest of 20,000 descriptors."""
    low = re.search(r"pool-low-conn (\d+)", c.srv_opt)
    bal = {"rr": '"roundrobin"', "leastconn": '"leastconn"', "random": '"random"'}[c.algo]
    pol = policy(c) if c.plugin else None                    # every policy pair has the metrics on, for the calls
    routes = c.plugin in ("route", "remembered", "route5")
    extra = "".join(["reuse = \"%s\"\n" % c.opt.get("reuse", "always"), "pool-low-conn = %s\n" % low[1] if low else "", "maxconn = %d\n" % c.maxconn if c.maxconn else "", c.opt.get("forebay", "")])
    srv = ", ".join('"%s:%d"' % s for s in c.servers)
    conf = f"""[process]
workers = {c.threads}
log = {{ to = "none" }}
{f'metrics = "127.0.0.1:{c.tls_port}"' if c.plugin or c.opt.get("metrics") else ""}
pool-low-fd-ratio = 45
pool-high-fd-ratio = 50
[[listen]]
bind = "127.0.0.1:{c.port}"
backend = "b"
timeout-client = "600s"
timeout-http-keep-alive = "600s"
{"route-policy = 'bench'" if routes else ""}
[backend.b]
balance = {"{ policy = 'bench' }" if pol and not routes else bal}
timeout-connect = "5s"
timeout-server = "600s"
timeout-queue = "60s"
{extra}servers = [{srv}]
""" + (f"[policy.bench]\ncomponent = \"{pol}\"\nfallback = \"roundrobin\"\n" if pol else "")
    return {"f.toml": conf}, [BIN["forebay"], "run", "{dir}/f.toml"]

def policy(c):
    """The component of a policy: `plan` is the shipped least-latency, `pick` and `route` are packed from wasm/*.wat; none for `native`."""
    if c.plugin == "plan": return os.path.join(HERE, "../../../plugins/least-latency/least-latency.wasm")
    if c.plugin not in ("pick", "route", "remembered", "route5"): return None
    world = "picker" if c.plugin == "pick" else "router"
    wat = f"{HERE}/wasm/{'route' if c.plugin == 'remembered' else c.plugin}.wat"
    if c.plugin == "remembered":   # the same, but its answer may be given again for an hour
        text = open(wat).read().replace("(i32.store (i32.const 56) (i32.const 0))", "(i32.store (i32.const 56) (i32.const 3600000))")
        wat = f"{c.dir}/remembered.wat"; open(wat, "w").write(text)
    out = f"{c.dir}/{c.plugin}.wasm"
    subprocess.run([BIN["forebay"], "plugin", "build", wat, "--world", world, "-o", out], check=True, stdout=subprocess.DEVNULL)
    return out

# one peer for each policy, so that they are pairs within a round; `native` and `same` are the pair that tells the noise
for _x in ("native", "same", "plan", "pick", "route", "remembered", "route5"):
    def _f(c, x=_x): c.plugin = x; return forebay(c)
    PEERS["fb_" + _x] = _f

@peer("fb_equal")
def fb_equal(c):
    c.opt["forebay"] = 'pool-keep = "equal"\n'
    return forebay(c)

def metrics(s):
    """A function that sums the samples of a name, with part of a label."""
    with socket.create_connection(("127.0.0.1", s.tls_port), 5) as k:
        k.sendall(b"GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n")
        t = b"".join(iter(lambda: k.recv(65536), b"")).decode()
    return lambda name, label="": sum(float(l.rsplit(" ", 1)[1]) for l in t.splitlines() if l.startswith("forebay_" + name) and label in l)

def policy_figures(s):
    """Calls of policies, faults, and who chose the servers."""
    v = metrics(s)
    return dict(calls=v("policy_calls_total"), faults=v("policy_faults_total"), **{"by_" + x: v("backend_choices_total", f'source="{x}"') for x in ("plan", "pick", "native")})

def _loop(flag, value):
    def f(c):
        files, argv = forebay(c)
        return files, argv + [flag, str(value)]
    return f
LOOP = {"fb_d32": ("--depth", 32), "fb_d93": ("--depth", 93), "fb_d280": ("--depth", 280), "fb_a4": ("--max-accept", 4), "fb_a64": ("--max-accept", 64)}
for _n, _a in LOOP.items(): PEERS[_n] = _loop(*_a)

@peer("nginx")
def nginx(c):
    plug = {None: "", "native": "proxy_set_header x-plugin 1;", "njs": "proxy_set_header x-plugin $plug;"}[c.plugin]
    js = ("load_module /usr/lib/nginx/modules/ngx_http_js_module.so;\n", f"js_path {c.dir}; js_import p.js; js_set $plug p.plug;") if c.plugin == "njs" else ("", "")
    srv = "".join(f"    server {ip}:{p}{' max_conns=%d' % c.maxconn if c.maxconn else ''};\n" for ip, p in c.servers)
    tls = f"listen 127.0.0.1:{c.tls_port} ssl http2 reuseport backlog=4096; ssl_certificate {TLS}/crt.pem; ssl_certificate_key {TLS}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;" if c.tls else ""
    return {"n.conf": js[0] + f"""worker_processes {c.threads};
daemon off; user root;
pid {c.dir}/n.pid; error_log {c.dir}/err.log crit;
worker_rlimit_nofile {NOFILE};
events {{ worker_connections {NOFILE}; }}
http {{
  access_log off; keepalive_requests 1000000000; keepalive_timeout 600s; tcp_nodelay on;
  client_body_temp_path {c.dir}/t1; proxy_temp_path {c.dir}/t2; fastcgi_temp_path {c.dir}/t3; uwsgi_temp_path {c.dir}/t4; scgi_temp_path {c.dir}/t5;
  {js[1]}
  upstream b {{ zone b 4m; {'least_conn;' if c.algo == 'leastconn' else 'random two least_conn;' if c.algo == 'random' else ''}
{srv}    keepalive 4096; keepalive_requests 1000000000; keepalive_timeout 600s; }}
  server {{ listen 127.0.0.1:{c.port} reuseport backlog=4096; {tls} http2_max_concurrent_streams 256;
    location / {{ proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host; proxy_max_temp_file_size 0; {plug} }} }}
}}""", "p.js": "function plug(r) { return r.uri.charCodeAt(0) == 47 ? '1' : '0'; }\nexport default { plug };\n"}, [BIN["nginx"], "-c", "{dir}/n.conf", "-e", "{dir}/err.log"]

def envoy_conf(c):
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router", "suppress_envoy_headers": True, "dynamic_stats": False}}
    filt = []
    if c.plugin and c.plugin.startswith("wasm"):
        filt.append({"name": "envoy.filters.http.wasm", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm", "config": {
            "name": "f", "root_id": "f", "vm_config": {"vm_id": "f", "runtime": "envoy.wasm.runtime.v8", "code": {"local": {"filename": f"{WASM}/f{c.plugin[4:]}.wasm"}}}}}})
    if c.plugin == "lua":
        filt.append({"name": "envoy.filters.http.lua", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua", "default_source_code": {"inline_string":
            'function envoy_on_request(h) local p = h:headers():get(":path"); if p and string.byte(p,1)==47 then h:headers():add("x-plugin","1") end end'}}})
    rt = {"name": "r", "virtual_hosts": [{"name": "v", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "b", "timeout": "0s"}}]}]}
    if c.plugin == "native": rt["request_headers_to_add"] = [{"header": {"key": "x-plugin", "value": "1"}}]
    def lis(port, tls):
        hcm = {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "stat_prefix": "h", "codec_type": "AUTO",
               "generate_request_id": False, "route_config": rt, "http_filters": filt + [router], "stream_idle_timeout": "0s", "common_http_protocol_options": {"idle_timeout": "600s"}}
        fc = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": hcm}]}
        if tls: fc["transport_socket"] = {"name": "envoy.transport_sockets.tls", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {"alpn_protocols": ["h2", "http/1.1"], "tls_certificates": [{"certificate_chain": {"filename": TLS + "/crt.pem"}, "private_key": {"filename": TLS + "/key.pem"}}]}}}
        return {"name": f"l{port}", "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}}, "filter_chains": [fc], "enable_reuse_port": True, "tcp_backlog_size": 4096}
    big = 1000000
    return {"static_resources": {"listeners": [lis(c.port, False)] + ([lis(c.tls_port, True)] if c.tls else []),
        "clusters": [{"name": "b", "type": "STATIC", "lb_policy": {"rr": "ROUND_ROBIN", "leastconn": "LEAST_REQUEST", "random": "RANDOM"}[c.algo], "connect_timeout": "5s",
            "circuit_breakers": {"thresholds": [{"max_connections": big, "max_pending_requests": big, "max_requests": big, "max_retries": big}]},
            "load_assignment": {"cluster_name": "b", "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": ip, "port_value": p}}}} for ip, p in c.servers]}]}}]}}

@peer("envoy")
def envoy(c):
    return {"e.json": json.dumps(envoy_conf(c))}, [BIN["envoy"], "-c", "{dir}/e.json", "--concurrency", str(c.threads), "--disable-hot-restart", "-l", "error"]

@peer("caddy")
def caddy(c):
    h = [{"handler": "reverse_proxy", "load_balancing": {"selection_policy": {"policy": {"rr": "round_robin", "leastconn": "least_conn", "random": "random"}[c.algo]}},
          "transport": {"protocol": "http", "compression": False, "keep_alive": {"enabled": True, "max_idle_conns": 0, "max_idle_conns_per_host": 4096, "idle_timeout": "600s"}},
          "upstreams": [{"dial": f"{ip}:{p}"} for ip, p in c.servers]}]
    if c.plugin == "native": h[0]["headers"] = {"request": {"set": {"x-plugin": ["1"]}}}
    sv = {"s": {"listen": [f"127.0.0.1:{c.port}"], "automatic_https": {"disable": True}, "routes": [{"handle": h}], "idle_timeout": "600s"}}
    apps = {"http": {"servers": sv, "grace_period": "10ms"}}
    if c.tls:
        sv["t"] = {"listen": [f"127.0.0.1:{c.tls_port}"], "automatic_https": {"disable": True}, "routes": [{"handle": h}], "tls_connection_policies": [{}], "protocols": ["h1", "h2"]}
        apps["tls"] = {"certificates": {"load_files": [{"certificate": TLS + "/crt.pem", "key": TLS + "/key.pem"}]}}
    return {"c.json": json.dumps({"admin": {"disabled": True}, "logging": {"logs": {"default": {"level": "ERROR"}}}, "apps": apps})}, \
        [BIN["caddy"], "run", "--config", "{dir}/c.json"], {"GOMAXPROCS": str(c.threads), "XDG_DATA_HOME": c.dir, "XDG_CONFIG_HOME": c.dir, "HOME": c.dir}

@peer("pingora")
def pingora(c):
    a = [BIN["pingora"], "--listen", f"127.0.0.1:{c.port}", "--threads", str(c.threads), "--upstreams", "{dir}/ups"]
    if c.tls: a += ["--tls", f"127.0.0.1:{c.tls_port}", TLS + "/crt.pem", TLS + "/key.pem", "--h2"]
    if c.plugin == "native": a += ["--addhdr"]
    return {"ups": "\n".join(f"{ip}:{p}" for ip, p in c.servers)}, a

@peer("sozu")
def sozu(c):
    be = ",\n".join(f'  {{ address = "{ip}:{p}", backend_id = "b{i}" }}' for i, (ip, p) in enumerate(c.servers))
    al = {"rr": "ROUND_ROBIN", "leastconn": "LEAST_LOADED", "random": "RANDOM"}[c.algo]
    tl = f'\n[[listeners]]\nprotocol = "https"\naddress = "127.0.0.1:{c.tls_port}"\n' if c.tls else ""
    tf = f',\n  {{ address = "127.0.0.1:{c.tls_port}", hostname = "bench.test", certificate = "{TLS}/crt.pem", key = "{TLS}/key.pem", certificate_chain = "{TLS}/crt.pem" }}' if c.tls else ""
    return {"s.toml": f"""command_socket = "{c.dir}/s.sock"
saved_state = "{c.dir}/state.json"
log_level = "error"
log_target = "file://{c.dir}/sozu.log"
command_buffer_size = 16384
max_command_buffer_size = 1638400
worker_count = {c.threads}
worker_automatic_restart = false
handle_process_affinity = false
max_connections = 9700
max_buffers = 30000
buffer_size = 16393
front_timeout = 600
back_timeout = 600
request_timeout = 600
activate_listeners = true
[[listeners]]
protocol = "http"
address = "127.0.0.1:{c.port}"
{tl}
[clusters]
[clusters.b]
protocol = "http"
load_balancing = "{al}"
frontends = [ {{ address = "127.0.0.1:{c.port}", hostname = "bench.test" }}{tf} ]
backends = [
{be}
]
"""}, [BIN["sozu"], "start", "-c", "{dir}/s.toml"]

@peer("fwd")
def fwd(c):   # the floor: raw TCP forwarder, one thread, no HTTP
    return {}, [TOOLS + "/fwd", "--listen", f"127.0.0.1:{c.port}", "--to", "%s:%d" % c.servers[0], "--n", str(len(c.servers))]

@peer("splice")
def splice(c):
    return {}, [TOOLS + "/fwd", "--listen", f"127.0.0.1:{c.port}", "--to", "%s:%d" % c.servers[0], "--n", str(len(c.servers)), "--splice"]

@peer("direct")
def direct(c): return {}, None   # the load generator straight on the first server

def load_peer_file(path):
    for j in (lambda x: x if isinstance(x, list) else [x])(json.load(open(path))):
        def f(c, j=j):
            d = dict(dir=c.dir, port=c.port, tls_port=c.tls_port, threads=c.threads, algo=c.algo, crt=TLS + "/crt.pem", key=TLS + "/key.pem", both=TLS + "/both.pem",
                     plugin=c.plugin or "", nservers=len(c.servers), wasm=WASM)
            d["servers"] = "".join(subst(j.get("server", "{ip}:{port}\n"), dict(ip=ip, port=p, i=i)) for i, (ip, p) in enumerate(c.servers))
            return {k: subst(v, d) for k, v in j.get("files", {}).items()}, [subst(a, d) for a in j["cmd"]], {k: subst(v, d) for k, v in j.get("env", {}).items()}
        PEERS[j["name"]] = f

def subst(t, d): return re.sub(r"\{(\w+)\}", lambda m: str(d[m[1]]) if m[1] in d else m[0], t)

# ---------------------------------------------------------------- processes

def preexec(cpus):
    def f():
        LIBC.prctl(1, signal.SIGKILL)          # die with the harness
        resource.setrlimit(resource.RLIMIT_NOFILE, (NOFILE, NOFILE))
        if cpus: os.sched_setaffinity(0, cpus)
        os.setpgrp()
    return f

def tree(pid):
    kids = {}
    for p in os.listdir("/proc"):
        if p.isdigit():
            try: kids.setdefault(int(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[1]), []).append(int(p))
            except OSError: pass
    out, todo = [], [pid]
    while todo: p = todo.pop(); out.append(p); todo += kids.get(p, [])
    return out

class Proc:
    def __init__(s, argv, dir, cpus=None, env=None, stdin=None, stdout=None, log="log"):
        s.log = open(os.path.join(dir, log), "ab")
        s.p = subprocess.Popen(argv, cwd=dir, stdin=stdin or subprocess.DEVNULL, stdout=stdout or s.log, stderr=s.log, preexec_fn=preexec(cpus), env={**os.environ, **(env or {})})
    def stop(s):
        pids = tree(s.p.pid)
        for sig, wait in ((signal.SIGTERM, 0.15), (signal.SIGKILL, 3.0)):
            for p in pids:
                try: os.kill(p, sig)
                except OSError: pass
            end = time.time() + wait
            while time.time() < end:
                s.p.poll()
                pids = [p for p in pids if alive(p)]
                if not pids: break
                time.sleep(0.01)
            if not pids: break
        s.p.wait(); s.log.close()

def alive(p):
    try: return open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError: return False

_next = [random.randrange(20500, 26000)]
def ports(n):
    """n consecutive free ports below the ephemeral range."""
    for _ in range(200):
        b = _next[0]; _next[0] += n
        if _next[0] > 32000: _next[0] = 20500; continue
        ok = True
        for p in range(b, b + n):
            s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try: s.bind(("127.0.0.1", p))
            except OSError: ok = False
            s.close()
            if not ok: break
        if ok: return b
    raise SystemExit("no free ports")

def get(port, path="/", timeout=2.0):
    s = socket.create_connection(("127.0.0.1", port), timeout)
    try:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: bench.test\r\nConnection: close\r\n\r\n".encode())
        d = b""
        while True:
            x = s.recv(65536)
            if not x: break
            d += x
        return d
    finally: s.close()

LEASE = float(os.environ.get("BENCH_LEASE", 270))
class Lock:
    """The machine-wide lock, kept over consecutive cells up to LEASE seconds so that rounds stay together."""
    f, since = None, 0.0
    def __enter__(s):
        if LEASE <= 0: return
        if Lock.f and time.time() - Lock.since > LEASE: Lock.f.close(); Lock.f = None; time.sleep(0.2)
        if not Lock.f:
            Lock.f = open(LOCK, "a"); fcntl.flock(Lock.f, fcntl.LOCK_EX); Lock.since = time.time(); os.set_inheritable(Lock.f.fileno(), False)
    def __exit__(s, *a): pass

CNT = ["accept", "req", "bytes", "cur", "peak", "close_us", "close_peer", "abort"]
def counters(path, n=0):
    d = open(path, "rb").read()
    v = struct.unpack_from("<%dQ" % (16 + n), d)
    return dict(zip(CNT, v)), list(v[16:16 + n])

def cpu_ns(pids):
    t = 0
    for p in pids:
        try:
            for k in os.listdir(f"/proc/{p}/task"): t += int(open(f"/proc/{p}/task/{k}/schedstat").read().split()[0])
        except OSError: pass
    return t

def pss(pids):
    t = 0
    for p in pids:
        try: t += int(re.search(r"^Pss:\s+(\d+)", open(f"/proc/{p}/smaps_rollup").read(), re.M)[1])
        except (OSError, TypeError): pass
    return t

class Bed:
    """One proxy in front of one backend, up and answering."""
    def __init__(s, name, sc, wd):
        s.name, s.sc, s.dir = name, sc, wd
        s.be = s.px = None
        shutil.rmtree(wd, ignore_errors=True); os.makedirs(wd)
        pin = sc.get("pin")
        pc, lc = ({0}, {NCPU - 1}) if pin else (None, None)
        s.load_cpus = lc
        n = sc.get("n", 4)
        try:
            bp = ports(n)
            s.cf = wd + "/counters"
            a = [TOOLS + "/backend", "--port", str(bp), "--n", str(n), "--counters", s.cf, "--size", str(sc.get("size", 1024))]
            for k, o in (("delay_us", "--delay-us"), ("close_after", "--close-after")):
                if sc.get(k): a += [o, str(sc[k])]
            s.be = Proc(a, wd, lc, log="be.log")
            pp = ports(2)
            th = sc.get("threads", 1 if pin else 2)
            c = Ctx(dir=wd, port=pp, tls_port=pp + 1, servers=[("127.0.0.1", bp + i) for i in range(n)], threads=th, algo=sc.get("algo", "rr"), tls=bool(sc.get("tls")),
                    plugin=sc.get("plugin"), opt=sc.get("opt", {}), srv_opt=sc.get("srv_opt", ""), maxconn=sc.get("maxconn", 0))
            r = PEERS[name](c)
            files, argv, env = (*r, {})[:3]
            for k, v in files.items(): open(f"{wd}/{k}", "w").write(v)
            s.tls_port = c.tls_port
            if argv is None: s.port, s.pids = bp, []
            else:
                s.px = Proc([x.replace("{dir}", wd) for x in argv], wd, pc, env)
                s.port = pp
            end = time.time() + 15
            while True:
                try:
                    d = get(s.port)
                    if d.startswith(b"HTTP/1.1 200"): break
                    raise OSError(d[:200])
                except OSError as e:
                    if s.px and s.px.p.poll() is not None or time.time() > end:
                        raise RuntimeError(f"{name}: not up: {e}; log: " + open(wd + "/log", errors="replace").read()[-1500:])
                    time.sleep(0.05)
            if s.px: s.pids = tree(s.px.p.pid)
        except BaseException:
            s.stop(); raise
    def lg(s, *args, **kw):
        a = [TOOLS + "/lg", "--target", f"127.0.0.1:{s.port}", "--counters", s.cf, "--pids", ",".join(map(str, s.pids + [s.be.p.pid]))] + [str(x) for x in args]
        a = kw.get("prefix", []) + a
        r = subprocess.run(a, capture_output=True, text=True, timeout=kw.get("timeout", 90), preexec_fn=preexec(s.load_cpus))
        if r.returncode != 0: raise RuntimeError(f"{s.name}: lg {r.returncode} {r.stderr[-500:]}")
        return json.loads(r.stdout)
    def stop(s):
        for p in (s.px, s.be):
            if p: p.stop()
        s.px = s.be = None

def digest(s, j):
    """From lg's line: what the report wants."""
    a, b = j["s0"], j["s1"]
    d = {p: [y - x for x, y in zip(a["pids"][p], b["pids"][p])] for p in a["pids"]}
    px = [d[str(p)] for p in s.pids]
    cpu = sum(x[0] for x in px) / 1e9
    ut, stt = sum(x[1] for x in px), sum(x[2] for x in px)
    tot = [y - x for x, y in zip(a["stat"], b["stat"])]
    wall = (b["t"] - a["t"]) / 1e9
    busy = (sum(tot) - tot[3] - tot[4]) / TICK
    mine = sum(v[0] for v in d.values()) / 1e9
    c = [y - x for x, y in zip(a["counters"], b["counters"])]
    n = max(1, j["ok"])
    breq = max(1, c[1])
    return dict(rps=j["rps"], p50=j["p50"], p99=j["p99"], p999=j["p999"], mean=j["mean"], err=j["non2xx"] + j["reset"] + j["connfail"], retry=j["retry"], ok=j["ok"],
        cpu_us=cpu * 1e6 / breq if s.pids else 0.0, user_pct=100 * ut / max(1, ut + stt), px_util=cpu / wall, cs=sum(x[3] + x[4] for x in px) / n,
        upconn_k=1000 * c[0] / breq, gbps=j["bytes"] / j["secs"] / 1e9, cpu_gib=cpu / max(1e-9, j["bytes"] / 2**30), bg=(busy - mine) / wall, steal=tot[7] / TICK / wall, peak=b["counters"][4])

def load_cell(s, sc):
    args = ["--conns", sc.get("conns", 64), "--warmup", sc.get("warmup", 1.0), "--duration", sc.get("dur", 4.0)]
    for k, o in (("rate", "--rate"), ("path", "--path"), ("src_ips", "--src-ips")):
        if sc.get(k): args += [o, sc[k]]
    if sc.get("close"): args += ["--close"]
    if sc.get("header"): args += ["--header", sc["header"]]
    r = digest(s, s.lg(*args, timeout=60 + sc.get("dur", 4)))
    if s.name in PEERS and s.name.startswith("fb_") and sc.get("header"): r.update(policy_figures(s))
    return r

def h2_cell(s, sc, prefix=()):
    n, conns = sc["h2n"], sc["conns"]
    url = ("https://bench.test:%d" % s.tls_port if sc.get("tls") else "http://bench.test:%d" % s.port) + sc.get("path", "/")
    port = s.tls_port if sc.get("tls") else s.port
    a = ["h2load", "-n", str(n), "-c", str(conns), "-t1", "-m", str(sc.get("m", 1)), "--connect-to=127.0.0.1:%d" % port, url]
    if sc.get("h1"): a.insert(1, "--h1")
    st0, c0, t0, k0 = stat(), cpu_ns(s.pids), time.time(), counters(s.cf)[0]
    be0 = cpu_ns([s.be.p.pid])
    ru0 = resource.getrusage(resource.RUSAGE_CHILDREN)
    r = subprocess.run([*prefix, *a], capture_output=True, text=True, timeout=90, preexec_fn=preexec(s.load_cpus))
    c1, t1, st1, k1 = cpu_ns(s.pids), time.time(), stat(), counters(s.cf)[0]
    ru1 = resource.getrusage(resource.RUSAGE_CHILDREN)
    m = re.search(r"finished in ([\d.]+)(m?s), ([\d.]+) req/s", r.stdout); q = re.search(r"requests: (\d+) total.* (\d+) succeeded, (\d+) failed", r.stdout)
    if not m or not q: raise RuntimeError(f"{s.name}: h2load: {r.stdout[-600:]} {r.stderr[-300:]}")
    tp = re.search(r"Application protocol: (\S+)", r.stdout); ci = re.search(r"Cipher: (\S+)", r.stdout); pr = re.search(r"TLS Protocol: (\S+)", r.stdout)
    cpu = (c1 - c0) / 1e9; ok = int(q[2]); tot = [y - x for x, y in zip(st0, st1)]
    ru = ru1.ru_utime + ru1.ru_stime - ru0.ru_utime - ru0.ru_stime
    mine = cpu + (cpu_ns([s.be.p.pid]) - be0) / 1e9 + ru
    body = 1024
    return dict(rps=float(m[3]), ok=ok, err=int(q[3]), cpu_us=cpu * 1e6 / max(1, ok), px_util=cpu / (t1 - t0), proto=tp and tp[1], cipher=f"{pr and pr[1]} {ci and ci[1]}",
        upconn_k=1000 * (k1["accept"] - k0["accept"]) / max(1, k1["req"] - k0["req"]), bg=((sum(tot) - tot[3] - tot[4]) / TICK - mine) / (t1 - t0), steal=tot[7] / TICK / (t1 - t0))

def stat(): return [int(x) for x in open("/proc/stat").readline().split()[1:]]

# ---------------------------------------------------------------- scenarios

ALL = ["forebay", "haproxy35", "haproxy26", "nginx", "envoy", "pingora", "sozu", "caddy", "fwd", "direct"]
P = lambda *a: list(a)
SCEN = {
    # the loop's measures (SCH-1, SCH-7): 512 clients over 1, 2 and 4 workers
    **{f"loop_ka{w}": dict(title=f"depth of the run queue: keep-alive, 512 connections, {w} workers", conns=512, threads=w, peers=["forebay", "fb_d32", "fb_d93", "fb_d280"]) for w in (1, 2, 4)},
    **{f"loop_close{w}": dict(title=f"accepts per turn: a client connection per request, 512 at a time, {w} workers", conns=512, close=1, threads=w, peers=["forebay", "fb_a4", "fb_a64"]) for w in (1, 2, 4)},
    # policies beside the native balancer: `ka4` with a header more, and the same with 16 servers
    **{f"policy{n}": dict(title=f"policies: keep-alive, {n} servers, 1 KiB, 64 connections, closed loop, 2 threads", n=n, conns=64, header="X-User: 0123456789abcdef", peers=["fb_native", "fb_same", "fb_plan", "fb_pick", "fb_route", "fb_remembered"]) for n in (4, 16, 200)},
    **{f"policypin{n}": dict(title=f"the same with one core each: proxy 1 thread on cpu 0, load and servers on cpu 1; {n} servers", n=n, pin=1, conns=64, header="X-User: 0123456789abcdef", peers=["fb_native", "fb_same", "fb_plan", "fb_pick", "fb_route", "fb_remembered"]) for n in (4, 16, 200)},
    # closed loop, keep-alive both sides
    "ka4":      dict(title="keep-alive, 4 servers, 1 KiB, 64 connections, closed loop, 2 threads", conns=64, peers=ALL),
    "ka1":      dict(title="keep-alive, 1 server, 1 KiB, 64 connections, closed loop, 2 threads", n=1, conns=64, peers=ALL),
    "pin4":     dict(title="one core each: proxy 1 thread on cpu 0, load and servers on cpu 1; 4 servers, 64 connections", pin=1, conns=64, peers=ALL),
    "ka210":    dict(title="keep-alive, 210 servers with 1 ms, 512 connections, closed loop, 2 threads", n=210, delay_us=1000, conns=512, peers=ALL[:-1]),
    "c10k":     dict(title="9000 active connections, 210 servers with 1 ms, closed loop, 2 threads", n=210, delay_us=1000, conns=9000, warmup=4.0, dur=5.0, peers=ALL[:-2]),
    # open loop: the same work for all
    "lat5k":    dict(title="fixed 5000 req/s (Poisson), 64 connections, 4 servers, 2 threads", conns=64, rate=5000, peers=ALL),
    "lat10k":   dict(title="fixed 10000 req/s (Poisson), 64 connections, 4 servers, 2 threads", conns=64, rate=10000, peers=ALL),
    "lat210":   dict(title="fixed 8000 req/s (Poisson), 256 connections, 210 servers with 1 ms, 2 threads", n=210, delay_us=1000, conns=256, rate=8000, peers=ALL[:-1]),
    # connections
    "close":    dict(title="one client connection per request, 4 servers, 64 at a time, 2 threads", conns=64, close=1, peers=ALL),
    "srvclose": dict(title="servers close every 5 requests, 4 servers, 64 connections, 2 threads", conns=64, close_after=5, peers=ALL[:-1]),
    # bodies
    "b64k":     dict(title="64 KiB bodies, 4 servers, 32 connections, 2 threads", conns=32, path="/b/65536", peers=ALL + ["splice"]),
    "b10m":     dict(title="10 MiB bodies, 4 servers, 8 connections, 2 threads", conns=8, path="/b/10485760", peers=ALL + ["splice"]),
    "b10m_splice": dict(title="10 MiB bodies, haproxy with option splice-auto", conns=8, path="/b/10485760", peers=["haproxy35"], opt=dict(backend="  option splice-auto\n")),
    "b10m_buf64":  dict(title="10 MiB bodies, haproxy with tune.bufsize 65536", conns=8, path="/b/10485760", peers=["haproxy35"], opt={"global": "  tune.bufsize 65536\n"}),
    # TLS (h2load)
    "tlsh1":    dict(title="TLS 1.3 HTTP/1.1 keep-alive, 4 servers, 64 connections (h2load)", tls=1, h1=1, conns=64, h2n=40000, peers=ALL[:-2]),
    "tlsh2":    dict(title="TLS 1.3 HTTP/2, 4 servers, 32 connections x 10 streams (h2load)", tls=1, conns=32, m=10, h2n=60000, peers=ALL[:-2]),
    "tlsnew":   dict(title="TLS 1.3 full handshake per request (ECDSA P-256), 3000 connections (h2load --h1)", tls=1, h1=1, conns=3000, h2n=3000, peers=ALL[:-2]),
}
# plugins: pairs with and without, all at a fixed rate and in closed loop
for nm, pe, pl in (("haproxy35", "haproxy35", (None, "native", "lua", "luapt", "luanoop")), ("haproxy26", "haproxy26", (None, "lua", "luapt")), ("nginx", "nginx", (None, "native", "njs")),
                   ("envoy", "envoy", (None, "native", "wasm0", "wasm1", "wasm2", "lua")), ("pingora", "pingora", (None, "native"))):
    for x in pl: SCEN[f"plug_{nm}_{x}"] = dict(title=f"plugin {x} on {nm}", conns=64, plugin=x, peers=[pe], dur=3.0)

def run_cell(name, scn, k):
    sc = SCEN[scn]
    wd = f"{RUN}/{os.getpid()}"
    best = None
    for tries in range(2):
        with Lock():
            s = Bed(name, sc, wd)
            try:
                if sc.get("h2n"): r = h2_cell(s, sc)
                else: r = load_cell(s, sc)
            finally: s.stop()
        if best is None or r["bg"] < best["bg"]: best = r
        if best["bg"] < 0.3: break
        time.sleep(2)
    shutil.rmtree(wd, ignore_errors=True)
    return best

def cmd_run(o):
    out = open(o.out, "a")
    scs = o.scen.split(",")
    scs = [x for p in scs for x in (sorted(SCEN) if p == "all" else [k for k in SCEN if re.fullmatch(p.replace("*", ".*"), k)])]
    extra = list(EXTERNAL)
    for r in range(o.round0, o.round0 + o.rounds):
        for scn in scs:
            ps = o.peers.split(",") if o.peers else SCEN[scn]["peers"] + extra
            ps = [p for p in ps if p in PEERS and (p not in BIN or os.path.exists(BIN[p])) and (o.force or p in SCEN[scn]["peers"] + extra)]
            k = r % max(1, len(ps))
            for p in ps[k:] + ps[:k]:
                try: m = run_cell(p, scn, r)
                except (RuntimeError, subprocess.TimeoutExpired, OSError) as e: m = dict(fail=str(e)[:600])
                m.update(peer=p, scen=scn, round=r, at=time.time())
                out.write(json.dumps(m) + "\n"); out.flush()
                print(f"r{r} {scn:10} {p:10} " + (f"FAIL {m['fail'][:200]}" if "fail" in m else f"rps {m['rps']:9.0f}  cpu {m['cpu_us']:6.1f} us  p99 {m.get('p99', 0):8.0f}  up/k {m.get('upconn_k', 0):7.2f}  util {m['px_util']:.2f} err {m['err']} bg {m['bg']:.2f}"), flush=True)

def med(v): return st.median(v) if v else float("nan")

def cmd_report(o):
    rows = [json.loads(l) for f in o.files for l in open(f)]
    for scn in dict.fromkeys(r["scen"] for r in rows):
        R = [r for r in rows if r["scen"] == scn]
        ps = list(dict.fromkeys(r["peer"] for r in R))
        ps = [p for p in ALL + ["splice"] if p in ps] + [p for p in ps if p not in ALL + ["splice"]]
        good = {p: [r for r in R if r["peer"] == p and "fail" not in r] for p in ps}
        good = {p: [r for r in g if r["bg"] <= 0.35] or g for p, g in good.items()}      # cells with other work in the window only where nothing better
        base = {(r["round"]): r for r in good.get(o.base, [])}
        print(f"\n### {scn}: {SCEN.get(scn, {}).get('title', '')} ({max(len(v) for v in good.values())} rounds)\n")
        big = scn.startswith(("b64k", "b10m"))
        h2 = bool(SCEN.get(scn, {}).get("h2n"))
        cols = ["req/s", "CPU us/req", "CPU ratio", "user %", "p50 us", "p99 us", "p99.9 us", "up conns/1000", "cs/req", "errors"]
        if h2: cols = ["req/s", "CPU us/req", "CPU ratio", "up conns/1000", "errors", "protocol"]
        if big: cols[4:7] = ["GB/s", "CPU s/GiB", "p50 us"]
        print("| peer | " + " | ".join(cols) + " |\n|---|" + "---|" * len(cols))
        for p in ps:
            g = good[p]
            if not g:
                print(f"| {p} | failed: {next((r.get('fail', '') for r in R if r['peer'] == p), '')[:80]!r} |"); continue
            f = lambda k: med([r.get(k, 0) for r in g])
            ra = med([r["cpu_us"] / base[r["round"]]["cpu_us"] for r in g if r["round"] in base]) if base else float("nan")
            v = [f"{f('rps'):.0f}", f"{f('cpu_us'):.1f}", f"{ra:.2f}"]
            if h2: v += [f"{f('upconn_k'):.1f}", f"{sum(r['err'] for r in g)}", f"{g[0].get('proto')} {g[0].get('cipher')}"]
            else:
                v += [f"{f('user_pct'):.0f}"]
                v += [f"{f('gbps'):.2f}", f"{f('cpu_gib'):.2f}", f"{f('p50'):.0f}"] if big else [f"{f('p50'):.0f}", f"{f('p99'):.0f}", f"{f('p999'):.0f}"]
                v += [f"{f('upconn_k'):.2f}", f"{f('cs'):.2f}", f"{sum(r['err'] for r in g)}"]
            print(f"| {p} | " + " | ".join(v) + " |")

def cmd_pairs(o):
    """Each policy against the native balancer in the same round: median ratio of CPU per request, minus the ratio of `same` to `native`."""
    rows = [json.loads(l) for f in o.files for l in open(f)]
    print("| case | policy | pairs | CPU us/req | native | over native | A/A | difference | interquartile | guest calls/req | faults |\n" + "|---" * 11 + "|")
    for scn in dict.fromkeys(r["scen"] for r in rows):
        at = {(r["round"], r["peer"]): r for r in rows if r["scen"] == scn and "fail" not in r}
        ratios = {p: [at[k, p]["cpu_us"] / at[k, "fb_native"]["cpu_us"] for k, q in at if q == p and (k, "fb_native") in at] for p in dict.fromkeys(q for _, q in at)}
        aa = med(ratios.get("fb_same", [])) - 1
        for p, v in ratios.items():
            if p == "fb_native" or len(v) < 2: continue
            own = [r for (_, q), r in at.items() if q == p]; quarters = st.quantiles(v, n=4)
            calls = sum(r["calls"] for r in own) / sum(r["by_plan"] + r["by_pick"] + r["by_native"] for r in own)
            print(f"| {scn} | {p[3:]} | {len(v)} | {med([r['cpu_us'] for r in own]):.2f} | {med([r['cpu_us'] for (_, q), r in at.items() if q == 'fb_native']):.2f} | {med(v) - 1:+.3f} | {aa:+.3f} | "
                  f"{med(v) - 1 - aa:+.3f} | {quarters[0] - 1:+.3f} to {quarters[2] - 1:+.3f} | {calls:.4f} | {sum(r['faults'] for r in own):.0f} |")

def cmd_matrix(o):
    """One line for each peer: CPU us per request in each scenario, with the median paired ratio against the base."""
    rows = [json.loads(l) for f in o.files for l in open(f)]
    rows = [r for r in rows if "fail" not in r and not r["scen"].startswith("plug_")]
    scs = list(dict.fromkeys(r["scen"] for r in rows)); ps = [p for p in ALL + ["splice"] + list(dict.fromkeys(r["peer"] for r in rows)) if p != "direct"]; ps = list(dict.fromkeys(ps))
    cell = {}
    for r in rows: cell.setdefault((r["scen"], r["peer"]), []).append(r)
    for k, v in cell.items(): cell[k] = [r for r in v if r["bg"] <= 0.35] or v
    print("| CPU us/req (x " + o.base + ") | " + " | ".join(scs) + " |\n|---|" + "---|" * len(scs))
    for p in ps:
        out = []
        for s in scs:
            g = cell.get((s, p)); b = {(r["round"]): r for r in cell.get((s, o.base), [])}
            if not g: out.append(""); continue
            ra = [r["cpu_us"] / b[r["round"]]["cpu_us"] for r in g if r["round"] in b]
            m = med([r["cpu_us"] for r in g])
            out.append(f"{m:.0f}" + (f" ({med(ra):.2f})" if ra else "") if m >= 100 else f"{m:.1f}" + (f" ({med(ra):.2f})" if ra else ""))
        print(f"| {p} | " + " | ".join(out) + " |")

# ---------------------------------------------------------------- special runs

SYSC = "epoll_wait epoll_pwait epoll_pwait2 epoll_ctl read readv recvfrom recvmsg write writev sendto sendmsg accept4 accept socket connect close shutdown setsockopt getsockopt getsockname fcntl futex splice sched_yield nanosleep clock_nanosleep timerfd_settime ioctl munmap mmap madvise".split()
def cmd_syscalls(o):
    """perf stat on the syscall tracepoints around one whole load generator run (needs tracefs mounted and root)."""
    if not os.path.exists("/sys/kernel/tracing/events"): subprocess.run(["mount", "-t", "tracefs", "nodev", "/sys/kernel/tracing"])
    res = {}
    for scn in o.scen.split(","):
        sc = SCEN[scn]
        for p in (o.peers.split(",") if o.peers else [x for x in sc["peers"] if x != "direct"] + list(EXTERNAL)):
            if p in BIN and not os.path.exists(BIN[p]): continue
            wd = f"{RUN}/{os.getpid()}"
            try:
                with Lock():
                    s = Bed(p, sc, wd)
                    try:
                        k0 = counters(s.cf)[0]["req"]
                        ev = ["-e", "raw_syscalls:sys_enter"] + sum((["-e", "syscalls:sys_enter_" + x.replace("recvfrom", "recvfrom")] for x in SYSC if os.path.exists("/sys/kernel/tracing/events/syscalls/sys_enter_" + x)), [])
                        args = ["--conns", sc.get("conns", 64), "--warmup", 0.2, "--duration", 2.0] + (["--rate", sc["rate"]] if sc.get("rate") else []) + (["--close"] if sc.get("close") else []) + (["--path", sc["path"]] if sc.get("path") else [])
                        pf = ["perf", "stat", "-x", ",", "-o", wd + "/perf", *ev, "-p", ",".join(map(str, s.pids)), "--"]
                        if sc.get("h2n"): h2_cell(s, sc, pf)
                        else: s.lg(*args, prefix=pf)
                        n = counters(s.cf)[0]["req"] - k0
                        d = {}
                        for l in open(wd + "/perf"):
                            f = l.split(",")
                            if len(f) > 3 and f[0].isdigit(): d[f[2].split("sys_enter_")[-1].replace("raw_syscalls:sys_enter", "ALL")] = int(f[0]) / n
                    finally: s.stop()
            except (RuntimeError, subprocess.TimeoutExpired) as e: print(scn, p, "FAIL", str(e)[:300]); continue
            res[f"{scn}/{p}"] = d
            top = sorted(((v, k) for k, v in d.items() if k != "ALL"), reverse=True)
            print(f"{scn:8} {p:10} n={n} all {d.get('ALL', 0):6.2f}  " + "  ".join(f"{k} {v:.2f}" for v, k in top if v >= 0.01), flush=True)
    if o.out: json.dump(res, open(o.out, "w"))

def cmd_memory(o):
    for p in (o.peers.split(",") if o.peers else [x for x in ALL if x not in ("direct",)] + list(EXTERNAL)):
        if p in BIN and not os.path.exists(BIN[p]): continue
        wd = f"{RUN}/{os.getpid()}"
        sc = dict(n=4)
        try:
            with Lock():
                s = Bed(p, sc, wd)
                try:
                    time.sleep(0.5)
                    v = [pss(s.pids)]
                    fds = []
                    for n in (1000, 8500):
                        q = Proc([TOOLS + "/lg", "--target", f"127.0.0.1:{s.port}", "--conns", str(n), "--hold", "--hold-requests", "1", "--max-seconds", "60"], wd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, log="h.log")
                        fds.append(q)
                        held = q.p.stdout.readline().decode().strip()
                        time.sleep(0.7)
                        v.append(pss(s.pids))
                    cur = counters(s.cf)[0]
                    c0 = cpu_ns(s.pids); time.sleep(2); idle = (cpu_ns(s.pids) - c0) / 2e9
                    for q in fds: q.stop()
                    time.sleep(2.0); v.append(pss(s.pids))
                finally: s.stop()
            print(f"{p:10} idle {v[0]/1024:8.1f} MiB   1k {v[1]/1024:8.1f}   9.5k {v[2]/1024:8.1f}  ({(v[2]-v[0])/9500:6.1f} KiB/conn)   after {v[3]/1024:8.1f}   upstream conns {cur['cur']} peak {cur['peak']}  idle cpu {100*idle:.2f}%  {held}", flush=True)
        except (RuntimeError, OSError) as e: print(p, "FAIL", str(e)[:300])

def cmd_profile(o):
    """perf record (cpu-clock) on the proxy under a scenario: kernel and user microseconds per request, and the top symbols of each."""
    for scn in o.scen.split(","):
        sc = SCEN[scn]
        for p in (o.peers.split(",") if o.peers else ["haproxy35", "nginx", "fwd"]):
            wd = f"{RUN}/{os.getpid()}"
            with Lock():
                s = Bed(p, sc, wd)
                try:
                    if sc.get("h2n"):
                        q = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "1999", "-o", wd + "/perf.data", "-p", ",".join(map(str, s.pids))], stderr=subprocess.DEVNULL)
                        time.sleep(0.3); d = h2_cell(s, {**sc, "h2n": sc["h2n"] * 2}); q.send_signal(signal.SIGINT); q.wait()
                    a = ["--conns", sc.get("conns", 64), "--warmup", 0.5, "--duration", 3.0] + (["--rate", sc["rate"]] if sc.get("rate") else []) + (["--close"] if sc.get("close") else [])
                    if not sc.get("h2n"): d = digest(s, s.lg(*a, prefix=["perf", "record", "-q", "-e", "cpu-clock", "-F", "1999", "-o", wd + "/perf.data", "-p", ",".join(map(str, s.pids)), "--"]))
                    r = subprocess.run(["perf", "report", "-i", wd + "/perf.data", "--stdio", "-q", "-F", "overhead,dso,symbol", "--percent-limit", "0.1"], capture_output=True, text=True).stdout
                finally: s.stop()
            L = [(float(m[1]), m[2], m[4], m[3]) for m in re.finditer(r"^\s*([\d.]+)%\s+(\S+)\s+\[(.)\]\s+(.*?)\s*$", r, re.M)]
            k = sum(x[0] for x in L if x[3] == "k"); u = sum(x[0] for x in L if x[3] != "k")
            print(f"{scn} {p}: cpu {d['cpu_us']:.1f} us/req, rps {d['rps']:.0f}; kernel {k:.0f}% user {u:.0f}% -> kernel {d['cpu_us']*k/100:.1f} us, user {d['cpu_us']*u/100:.1f} us")
            for w in ("u", "k"):
                print("   " + ("user:   " if w == "u" else "kernel: ") + ", ".join(f"{x[2]} {x[0]*d['cpu_us']/100:.2f}" for x in sorted((y for y in L if (y[3] == "k") == (w == "k")), reverse=True)[:16]), flush=True)

def hasock(s, cmd):
    k = socket.socket(socket.AF_UNIX); k.settimeout(5); k.connect(s.dir + "/ha.sock"); k.sendall((cmd + "\n").encode()); d = b""
    while True:
        x = k.recv(65536)
        if not x: break
        d += x
    k.close(); return d.decode(errors="replace")

def ha_counts(s):
    """takeovers (show activity), and connect/reuse over all servers (show stat)."""
    act = hasock(s, "show activity")
    m = re.search(r"^fd_takeover: (\d+)", act, re.M)
    rows = hasock(s, "show stat -1 4 -1").splitlines(); hd = rows[0].lstrip("# ").split(","); co = re_ = 0
    for l in rows[1:]:
        f = l.split(",")
        if len(f) > 10: co += int(f[hd.index("connect")] or 0); re_ += int(f[hd.index("reuse")] or 0)
    return int(m[1]) if m else -1, co, re_

def pool_counts(s):
    """Take-overs, connections opened, requests over a connection opened before: as the proxy counts them."""
    if s.name.startswith("haproxy"): return ha_counts(s)
    v = metrics(s)
    return int(v("worker_takeovers_total")), int(v("server_connection_attempts_total")), int(v("server_connection_reuses_total"))

def pool_bed(peer, close_after, low, reuse, wd, threads=16, n=210):
    return Bed(peer, dict(n=n, delay_us=1000, close_after=close_after, threads=threads, srv_opt=f" pool-low-conn {low}" if low else "", opt={"reuse": reuse, "metrics": True}), wd)

def cmd_history(o):
    """The experiment that HAProxy's pools were tuned by: 16 workers, 210 servers of 1 ms, 9,000 clients; 5 s of warm-up, 10 s measured. `--scen series` prints
    close-after-5 second by second instead, for 60 s; `--scen reserve` leaves out the cells without pool-low-conn."""
    import threading
    wd = f"{RUN}/{os.getpid()}"
    peers = o.peers.split(",") if o.peers else ["forebay", "haproxy26"]
    series = o.scen == "series"
    rows = []
    for r in range(1 if series else o.rounds):
        for ca, low in ((5, 0), (5, 32)) if series else ((0, 32), (5, 32)) if o.scen == "reserve" else ((0, 0), (0, 32), (5, 0), (5, 32)):
            for peer in peers[r % len(peers):] + peers[:r % len(peers)]:
                warm, dur = (2.0, 60.0) if series else (5.0, o.dur or 10.0)
                with Lock():
                    s = pool_bed(peer, ca, low, "safe", wd)
                    try:
                        res = {}
                        th = threading.Thread(target=lambda: res.update(s.lg("--conns", 9000, "--warmup", warm, "--duration", dur, timeout=150)))
                        th.start(); time.sleep(warm + 0.3)
                        a, t0 = pool_counts(s), time.time()
                        if series:
                            print(f"\n{peer}, close after {ca}, pool-low-conn {low}: requests, opened, reuse %, take-overs per 1,000 requests, each second")
                            last, line = a, []
                            for k in range(58):
                                time.sleep(max(0, t0 + k + 1 - time.time())); now = pool_counts(s)
                                tk, op, re_ = (y - x for x, y in zip(last, now)); last = now
                                line.append((op + re_, op, 100 * re_ / max(1, op + re_), 1000 * tk / max(1, op + re_)))
                                print(f"{k + 1:3}  {op + re_:7} {op:6} {line[-1][2]:6.2f} {line[-1][3]:7.1f}", flush=True)
                            th.join()
                            for w, part in (("first 10 s", line[:10]), ("last 10 s", line[-10:])): print(f"{w}: reuse {100 * (1 - sum(x[1] for x in part) / max(1, sum(x[0] for x in part))):.2f} %, {sum(x[0] for x in part) / 10:.0f} requests/s")
                            continue
                        time.sleep(dur - 0.8); b, t1 = pool_counts(s), time.time(); th.join()
                        d = digest(s, res)
                    except (RuntimeError, subprocess.TimeoutExpired, OSError) as e: print(f"r{r} {peer} close-after {ca} low {low} FAIL {str(e)[:300]}"); continue
                    finally: s.stop()
                tk, op, re_ = (y - x for x, y in zip(a, b)); n = max(1, op + re_)
                row = dict(peer=peer, round=r, ca=ca, low=low, reuse=100 * re_ / n, opened_k=1000 * op / n, takeover_k=1000 * tk / n, takeover_s=tk / (t1 - t0), rps=d["rps"], cpu_us=d["cpu_us"], p99=d["p99"], err=d["err"], bg=d["bg"])
                rows.append(row)
                print(f"r{r} {peer:10} close-after {ca} low {low:2}  reuse {row['reuse']:6.2f} %  opened {row['opened_k']:6.1f}/1000  take-overs {row['takeover_k']:7.1f}/1000 {row['takeover_s']:8.0f}/s  rps {row['rps']:7.0f}  cpu {row['cpu_us']:5.1f} us  p99 {row['p99']:.0f}  err {row['err']} bg {row['bg']:.2f}", flush=True)
    if rows:
        print("\n| servers close after | pool-low-conn | peer | reuse % | opened/1,000 | take-overs/1,000 | take-overs/s | CPU us/req | CPU x " + peers[-1] + " | req/s | errors |\n" + "|---" * 11 + "|")
        for ca, low in dict.fromkeys((r["ca"], r["low"]) for r in rows):
            for peer in peers:
                own = [r for r in rows if (r["ca"], r["low"], r["peer"]) == (ca, low, peer)]
                if not own: continue
                base = {r["round"]: r["cpu_us"] for r in rows if (r["ca"], r["low"], r["peer"]) == (ca, low, peers[-1])}
                m = lambda k: med([r[k] for r in own])
                print(f"| {ca or 'never'} | {low} | {peer} | {m('reuse'):.2f} | {m('opened_k'):.1f} | {m('takeover_k'):.1f} | {m('takeover_s'):.0f} | {m('cpu_us'):.1f} | {med([r['cpu_us'] / base[r['round']] for r in own if r['round'] in base]):.2f} | {m('rps'):.0f} | {sum(r['err'] for r in own)} |")

def cmd_queues(o):
    """Slots and queues: 16 workers, 20 and 100 servers, 1,000 clients, leastconn and roundrobin, maxconn 1, 4 and unlimited; 2 s of warm-up, 4 s measured. The spread is that
    of requests per server over all of it, largest over smallest; errors are answers other than 2xx and lost connections."""
    wd = f"{RUN}/{os.getpid()}"
    peers = o.peers.split(",") if o.peers else ["forebay", "haproxy26"]
    rows = []
    for r in range(o.round0, o.round0 + o.rounds):
        for n in (20, 100):
            for algo in ("leastconn", "rr"):
                for mc in (1, 4, 0):
                    for peer in peers[r % len(peers):] + peers[:r % len(peers)]:
                        with Lock():
                            s = Bed(peer, dict(n=n, threads=16, algo=algo, maxconn=mc, opt={"backend": "  timeout queue 60s\n"} if peer.startswith("haproxy") else {}), wd)
                            try: d = digest(s, s.lg("--conns", 1000, "--warmup", 2.0, "--duration", o.dur or 4.0)); _, per = counters(s.cf, n)
                            except (RuntimeError, subprocess.TimeoutExpired, OSError) as e: print(f"r{r} {peer} {n} {algo} {mc} FAIL {str(e)[:300]}"); continue
                            finally: s.stop()
                        row = dict(cell=(n, algo, mc), peer=peer, round=r, rps=d["rps"], cpu_us=d["cpu_us"], p99=d["p99"], spread=max(per) / max(1, min(per)), err=d["err"], bg=d["bg"])
                        rows.append(row)
                        print(f"r{r} {peer:10} {n:3} servers {algo:9} maxconn {mc or '-'}  rps {row['rps']:7.0f}  cpu {row['cpu_us']:5.1f} us  p99 {row['p99']:.0f}  spread {row['spread']:.3f}  err {row['err']} bg {row['bg']:.2f}", flush=True)
    print("\n| servers | balance | maxconn | peer | CPU us/req | CPU x " + peers[-1] + " | spread | req/s | p99 us | errors |\n" + "|---" * 10 + "|")
    for cell in dict.fromkeys(x["cell"] for x in rows):
        for peer in peers:
            own = [x for x in rows if (x["cell"], x["peer"]) == (cell, peer)]
            if not own: continue
            base = {x["round"]: x["cpu_us"] for x in rows if (x["cell"], x["peer"]) == (cell, peers[-1])}
            m = lambda k: med([x[k] for x in own])
            n, algo, mc = cell
            print(f"| {n} | {algo} | {mc or 'none'} | {peer} | {m('cpu_us'):.1f} | {med([x['cpu_us'] / base[x['round']] for x in own if x['round'] in base]):.2f} | {m('spread'):.3f} | {m('rps'):.0f} | {m('p99'):.0f} | {sum(x['err'] for x in own)} |")
    shutil.rmtree(wd, ignore_errors=True)

def cmd_seeds(o):
    """What the seeds quote, as far as this machine goes: takeover/reuse with 16 threads, health checks, leastconn queueing."""
    hv = o.peers.split(",") if o.peers else ["haproxy26"]
    wd = f"{RUN}/{os.getpid()}"
    what = o.scen.split(",")
    for r in range(o.round0, o.round0 + o.rounds):
        for v in hv:
            if "a" in what:
                for conns in (2000, 9000):
                    for ca in (0, 5):
                        for low in (0, 32):
                            for reuse in ("safe", "always"):
                                if reuse == "always" and conns != 9000: continue
                                sc = dict(n=210, delay_us=1000, close_after=ca, threads=16, conns=conns, srv_opt=f" pool-low-conn {low}" if low else "", opt={"reuse": reuse})
                                with Lock():
                                    s = Bed(v, sc, wd)
                                    try:
                                        w = 4.0 if conns > 5000 else 2.0
                                        import threading
                                        res = {}
                                        th = threading.Thread(target=lambda: res.update(s.lg("--conns", conns, "--warmup", w, "--duration", 5.0)))
                                        th.start(); time.sleep(w + 0.2)
                                        a = ha_counts(s); t0 = time.time(); time.sleep(4.0); b = ha_counts(s); t1 = time.time(); th.join()
                                        d = digest(s, res)
                                    finally: s.stop()
                                co, re_ = b[1] - a[1], b[2] - a[2]
                                print(json.dumps(dict(seed="a", peer=v, round=r, conns=conns, close_after=ca, low=low, reuse=reuse, rps=round(d["rps"]), cpu_us=round(d["cpu_us"], 1), takeover_s=round((b[0] - a[0]) / (t1 - t0)), takeover_per_req=round((b[0] - a[0]) / max(1, co + re_), 4),
                                      reuse_pct=round(100 * re_ / max(1, re_ + co), 2), upconn_k=round(d["upconn_k"], 1), p50=d["p50"], p99=d["p99"], peak=d["peak"], cs=round(d["cs"], 2), bg=round(d["bg"], 2), err=d["err"])), flush=True)
            if "b" in what:
                for n, inter in ((100, 50), (100, 1000)):
                    for th in (4, 16):
                        sc = dict(n=n, threads=th, opt={"backend": "  option httpchk GET /\n  default-server check inter %d\n" % inter})
                        with Lock():
                            s = Bed(v, sc, wd)
                            try:
                                time.sleep(2.0); k0, c0, t0 = counters(s.cf)[0], cpu_ns(s.pids), time.time(); time.sleep(5.0)
                                k1, c1, t1 = counters(s.cf)[0], cpu_ns(s.pids), time.time()
                            finally: s.stop()
                        print(json.dumps(dict(seed="b", peer=v, round=r, servers=n, inter=inter, threads=th, checks_s=round((k1["req"] - k0["req"]) / (t1 - t0)), conns_s=round((k1["accept"] - k0["accept"]) / (t1 - t0)), ideal=round(n * 1000 / inter), cpu_pct=round((c1 - c0) / 1e7 / (t1 - t0), 2), cpu_us_check=round((c1 - c0) / 1e3 / max(1, k1["req"] - k0["req"]), 1))), flush=True)
            if "c" in what:
                for mc in (0, 1, 4):
                    for algo in ("leastconn", "rr", "random"):
                        if algo == "random" and mc != 1: continue
                        sc = dict(n=100, threads=16, algo=algo, maxconn=mc, conns=1000, delay_us=0)
                        with Lock():
                            s = Bed(v, sc, wd)
                            try: d = digest(s, s.lg("--conns", 1000, "--warmup", 2.0, "--duration", 4.0)); _, per = counters(s.cf, 100)
                            finally: s.stop()
                        print(json.dumps(dict(seed="c", peer=v, round=r, algo=algo, maxconn=mc, rps=round(d["rps"]), cpu_us=round(d["cpu_us"], 1), p50=d["p50"], p99=d["p99"], peak=d["peak"], spread=[min(per), max(per)], cs=round(d["cs"], 2), upconn_k=round(d["upconn_k"], 2), bg=round(d["bg"], 2), err=d["err"])), flush=True)
    shutil.rmtree(wd, ignore_errors=True)

def quiet():
    """Own session with a raised autogroup weight: what else runs on the machine then costs the measured window little (BENCH_NICE=0: off)."""
    n = int(os.environ.get("BENCH_NICE", -11))
    if n == 0: return
    try:
        try: os.setsid()
        except OSError: pass          # a session leader already
        if os.path.exists("/proc/self/autogroup"): open("/proc/self/autogroup", "w").write(str(n))
        else: os.setpriority(os.PRIO_PROCESS, 0, n)
    except OSError as e: print("no raised priority:", e, file=sys.stderr)

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("cmd", choices=["run", "report", "syscalls", "memory", "seeds", "profile", "matrix", "pairs", "history", "queues", "list"])
    p.add_argument("files", nargs="*"); p.add_argument("--scen", default="ka4"); p.add_argument("--peers"); p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--dur", type=float, help="overrides each scenario's measured seconds"); p.add_argument("--round0", type=int, default=0); p.add_argument("--out"); p.add_argument("--base", default="haproxy26"); p.add_argument("--peer-file", action="append", default=[]); p.add_argument("--force", action="store_true")
    o = p.parse_args()
    for f in o.peer_file:
        before = set(PEERS); load_peer_file(f)
        for n in set(PEERS) - before: EXTERNAL[n] = f
    resource.setrlimit(resource.RLIMIT_NOFILE, (NOFILE, NOFILE))
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(1))
    quiet(); tls_files()
    if o.dur:
        for v in SCEN.values(): v["dur"] = o.dur
    if o.cmd == "run":
        o.out = o.out or f"{RUN}/results/{time.strftime('%H%M%S')}.jsonl"; os.makedirs(os.path.dirname(o.out), exist_ok=True); cmd_run(o)
    elif o.cmd == "list":
        for k, v in SCEN.items(): print(f"{k:24} {v['title']}")
        print("peers:", ", ".join(p + ("" if p not in BIN or os.path.exists(BIN[p]) else " (missing)") for p in PEERS))
    else: globals()["cmd_" + o.cmd](o)
if __name__ == "__main__": main()
