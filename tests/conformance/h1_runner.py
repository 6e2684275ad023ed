#!/usr/bin/env python3
"""Runs a corpus of HTTP/1.1 reverse-proxy cases (JSON lines) against a live proxy.

    h1_runner.py --proxy 127.0.0.1:8080 --origin-port 9080 --cases h1_cases.jsonl

The runner is both ends: it plays the client and it starts the scripted origin
server (on 127.0.0.1:ORIGIN_PORT) that the proxy under test must forward every
request to, whatever its Host or path.  Python 3 standard library only; loopback
only.  The last line printed is 'N passed, N failed' (', N skipped' may follow);
the exit status is 0 when nothing failed.

What the proxy under test must be set to (the "contract"):
  * one listener in clear HTTP/1.1, one upstream: 127.0.0.1:ORIGIN_PORT, no health
    checks, no passive ejection, idle upstream connections kept and reused;
  * WebSocket/Upgrade forwarding on; no caching, no compression, no rewriting;
  * client header time-out 1.5 s, client body inactivity 1.5 s, upstream response
    inactivity 1.5 s, connect time-out 1 s, keep-alive idle time of 3 s or more;
  * request head limit between 12 KiB and 48 KiB, response head of 12 KiB accepted.

Case format: see CASE FORMAT below and README.md.

CASE FORMAT (one JSON object a line)
  id, category, title, source, level ('must' | 'should' | 'strict')
  request_bytes     what the client sends; one character = one byte (latin-1);
                    <<N*text>> stands for text repeated N times
  client_steps      instead of request_bytes: list of steps
                      {"send": str} {"sleep": s} {"await": regex} {"half_close": true}
                      {"reset": true} {"send_if": [regex, str]} {"drip": [str, s]}
                      {"reconnect": true}  (a second client connection; the first is closed)
  methods           methods of the requests, when a HEAD or CONNECT is among them
  upstream_response bytes the origin answers after reading the whole request
  upstream_steps    instead: list of steps run when a request head has arrived
                      {"read_body": true} {"send": str} {"sleep": s} {"close": true}
                      {"half_close": true} {"reset": true} {"stall": s} {"default": true}
                      {"echo": true} {"await": regex} {"continue": true} (a 100, when the
                      request that arrived still asks for one)
  upstream_scripts  instead: list of such lists, one a request, the last one repeats
  origin_mode       normal | refuse | reset_on_accept | close_on_accept
  expect
    client_status     200 | [200, 400] (any of) | [[200, 400], [400]] (any of these
                      sequences of final responses); 'none' = closed, no response
    client_interim    list of 1xx codes that must be seen, or "any" (default: none may)
    client_must/never regexes on all bytes the client got (I and M flags)
    client_bodies     exact decoded bodies, in order
    client_truncated  true: the last response must not look complete (an error status
                      of 5xx, complete, is fine too)
    upstream_requests int or list: complete well-formed requests the origin may see
    upstream_sees     {"must": [...], "never": [...]} on request heads and trailers;
                      'must' counts only where a complete request arrived;
                      or the string "nothing": not one byte may arrive
    upstream_bodies   exact decoded bodies of the complete requests, in order
    upstream_conns_max  most connections the origin may be opened for this case
    tunnel_must       regexes on what the origin got through a 101 tunnel
    connection_after  keep | close | any
    max_s             response (or close) must come within this many seconds
  victim_delay      seconds to wait before the victim request (default 0)
  settle_s, patience, wait_s, no_wait   timing knobs for the few cases that need them
  allow_dirty       true: do not apply the well-formedness oracle to what the origin got
  client_dirty_ok   true: do not apply it to what the client got

Checked in every case without being said: what the origin receives is a well-formed,
unambiguous HTTP/1.1 message (one Host, one framing, no bare CR/LF/NUL, valid chunks);
what the client receives is too; and a 'victim' request sent on a fresh connection
right after the case gets its own answer and nobody else's.
"""
import argparse, json, re, socket, ssl, struct, sys, threading, time

PATIENCE = 4.0
TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQLINE = re.compile(rb"^(" + TOKEN + rb") ([\x21-\x7e\x80-\xff]+) (HTTP/1\.[01])$")
STATUSLINE = re.compile(rb"^HTTP/1\.[01] ([1-9][0-9][0-9])( [\t \x21-\x7e\x80-\xff]*)?$")
FIELD = re.compile(rb"^(" + TOKEN + rb"):[ \t]*([\x21-\x7e\x80-\xff]([\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?[ \t]*$")
REP = re.compile(r"<<(\d+)\*(.*?)>>", re.S)


def expand(s):
    """text with <<N*x>> to bytes, one character a byte"""
    return REP.sub(lambda m: m.group(2) * int(m.group(1)), s).encode("latin-1")


# ---------------------------------------------------------------- messages

def split_head(raw):
    """(start line, [(name, value)], problems) of a head that ends with CRLF CRLF"""
    bad = []
    text = raw[:-4] if raw.endswith(b"\r\n\r\n") else raw
    if b"\0" in text:
        bad.append("NUL in head")
    if re.search(rb"\r(?!\n)", text):
        bad.append("bare CR in head")
    if re.search(rb"(?<!\r)\n", text):
        bad.append("bare LF in head")
    lines = text.split(b"\r\n")
    fields = []
    for ln in lines[1:]:
        m = FIELD.match(ln)
        if m:
            fields.append((m.group(1).lower(), m.group(2) or b""))
        else:
            bad.append("bad field line %r" % ln[:60])
    return lines[0], fields, bad


def values(fields, name):
    return [v for n, v in fields if n == name]


def tokens(fields, name):
    return [t.strip().lower() for v in values(fields, name) for t in v.split(b",") if t.strip()]


def framing(fields, bad):
    """('chunked'|'length'|'none'|'other', n); notes what makes it ambiguous in bad"""
    te, cl = values(fields, b"transfer-encoding"), values(fields, b"content-length")
    if te and cl:
        bad.append("both Content-Length and Transfer-Encoding")
    if len(cl) > 1:
        bad.append("more than one Content-Length")
    if cl and not re.fullmatch(rb"[0-9]+", cl[0]):
        bad.append("bad Content-Length %r" % cl[0][:30])
    if te:
        codings = tokens(fields, b"transfer-encoding")
        if codings.count(b"chunked") > 1 or not codings:
            bad.append("bad Transfer-Encoding")
        if codings and codings[-1] == b"chunked":
            return "chunked", 0
        return "other", 0
    if cl and re.fullmatch(rb"[0-9]+", cl[0]):
        return "length", int(cl[0])
    return "none", 0


class Chunks:
    """strict incremental chunked decoder"""

    def __init__(self):
        self.body, self.done, self.error, self.trailers, self.pos = bytearray(), False, None, b"", 0
        self.state = "size"

    def feed(self, buf):
        """decode from buf[self.pos:]; sets done or error"""
        while not self.done and not self.error:
            if self.state == "size":
                end = buf.find(b"\r\n", self.pos)
                if end < 0:
                    part = bytes(buf[self.pos:])
                    if b"\n" in part or (part and not re.match(rb"[0-9A-Fa-f]+\r?$|[0-9A-Fa-f]+[ \t]*;", part)):
                        self.error = "bad chunk size line %r" % part[:40]
                    return
                line = bytes(buf[self.pos:end])
                m = re.fullmatch(rb"([0-9A-Fa-f]{1,16})([ \t]*;[^\r\n\0]*)?", line)
                if not m:
                    self.error = "bad chunk size line %r" % line[:40]
                    return
                self.pos, self.left = end + 2, int(m.group(1), 16)
                self.state = "data" if self.left else "trailer"
            elif self.state == "data":
                if len(buf) < self.pos + self.left + 2:
                    return
                self.body += buf[self.pos:self.pos + self.left]
                if bytes(buf[self.pos + self.left:self.pos + self.left + 2]) != b"\r\n":
                    self.error = "chunk data not followed by CRLF"
                    return
                self.pos += self.left + 2
                self.state = "size"
            else:
                end = buf.find(b"\r\n", self.pos)
                if end < 0:
                    return
                line = bytes(buf[self.pos:end])
                self.pos = end + 2
                if not line:
                    self.done = True
                else:
                    self.trailers += line + b"\r\n"
                    if not FIELD.match(line):
                        self.error = "bad trailer line %r" % line[:60]


# ---------------------------------------------------------------- origin server

class Request:
    __slots__ = ("method", "target", "version", "fields", "body", "complete", "bad", "raw", "conn", "special", "trailers")


class Log:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests, self.partial, self.conns, self.next, self.raw_len = [], [], 0, 0, 0

    def ordinary(self):
        return [r for r in self.requests if not r.special]


class Origin:
    def __init__(self, port, host="127.0.0.1"):
        self.addr, self.log, self.scripts, self.mode = (host, port), Log(), [], "normal"
        self.open, self.lock, self.listener = set(), threading.Lock(), None
        self.listen()

    def listen(self):
        if self.listener:
            return
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(self.addr)
        s.listen(128)
        self.listener = s
        threading.Thread(target=self.accept_loop, args=(s,), daemon=True).start()

    def unlisten(self):
        s, self.listener = self.listener, None
        if s:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def accept_loop(self, s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.mode == "reset_on_accept":
                reset(c)
                continue
            if self.mode == "close_on_accept":
                c.close()
                continue
            with self.lock:
                self.open.add(c)
            threading.Thread(target=self.serve, args=(c, self.log), daemon=True).start()

    def begin(self, case):
        self.log = Log()
        if "upstream_scripts" in case:
            self.scripts = case["upstream_scripts"]
        elif "upstream_steps" in case:
            self.scripts = [case["upstream_steps"]]
        elif "upstream_response" in case:
            self.scripts = [[{"read_body": True}, {"send": case["upstream_response"]}]]
        else:
            self.scripts = []
        self.mode = case.get("origin_mode", "normal")
        if self.mode == "refuse":
            self.unlisten()
        return self.log

    def normal(self):
        self.mode = "normal"
        self.listen()

    def end(self):
        """close every connection and wait for the proxy to notice: the next case starts from none"""
        with self.lock:
            socks = list(self.open)
        for c in socks:
            try:
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        limit = time.time() + 0.25
        while time.time() < limit:
            with self.lock:
                if not self.open & set(socks):
                    break
            time.sleep(0.002)
        with self.lock:
            left, self.open = list(self.open), set()
        for c in left:
            try:
                c.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve(self, c, log):
        conn = Conn(self, c, log)
        with log.lock:
            log.conns += 1
        try:
            while conn.one_request():
                pass
        except (OSError, ValueError):
            pass
        finally:
            conn.flush_partial()
            with self.lock:
                self.open.discard(c)
            try:
                c.close()
            except OSError:
                pass


def reset(c):
    try:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    c.close()


class Conn:
    """one connection at the origin"""

    def __init__(self, origin, sock, log):
        self.o, self.s, self.log, self.buf, self.eof, self.current = origin, sock, log, bytearray(), False, None

    def more(self, timeout=60):
        self.s.settimeout(timeout)
        try:
            d = self.s.recv(65536)
        except socket.timeout:
            return False
        if not d:
            self.eof = True
            return False
        with self.log.lock:
            self.log.raw_len += len(d)
        self.buf += d
        return True

    def flush_partial(self):
        if self.current is None and self.buf:
            with self.log.lock:
                self.log.partial.append(bytes(self.buf))

    def one_request(self):
        self.current = None
        while True:
            i = self.buf.find(b"\r\n\r\n")
            if i >= 0:
                break
            if not self.more():
                return False
        raw = bytes(self.buf[:i + 4])
        del self.buf[:i + 4]
        line, fields, bad = split_head(raw)
        r = Request()
        m = REQLINE.match(line)
        if m:
            r.method, r.target, r.version = m.groups()
        else:
            bad.append("bad request line %r" % line[:60])
            parts = line.split(b" ")
            r.method, r.target, r.version = parts[0], parts[1] if len(parts) > 1 else b"", parts[-1]
        r.fields, r.bad, r.raw, r.complete, r.body, r.trailers = fields, bad, raw, False, None, b""
        r.special = bool(re.match(rb"/(victim|probe)-", r.target))
        if r.version == b"HTTP/1.1" and len(values(fields, b"host")) != 1:
            bad.append("%d Host fields" % len(values(fields, b"host")))
        if r.version == b"HTTP/1.0" and values(fields, b"transfer-encoding"):
            bad.append("Transfer-Encoding in HTTP/1.0")
        self.kind, self.left = framing(fields, bad)
        if self.kind == "other":
            bad.append("request framing not chunked")
        self.chunks = Chunks() if self.kind == "chunked" else None
        r.conn = id(self)
        self.current = r
        with self.log.lock:
            self.log.requests.append(r)
            idx = self.log.next
            if not r.special:
                self.log.next += 1
        steps = self.o.scripts[min(idx, len(self.o.scripts) - 1)] if self.o.scripts and not r.special else [{"default": True}]
        self.consumed = False
        try:
            for st in steps:
                if not self.step(st, r):
                    return False
            if not self.consumed:
                self.read_body(r)
        finally:
            if not self.consumed:      # what has arrived of the body, complete or not
                self.try_body(r)
        return not self.eof

    def try_body(self, r):
        """True when the body is complete in the buffer (then it is consumed)"""
        if self.consumed:
            return True
        if self.kind == "chunked":
            self.chunks.feed(self.buf)
            if self.chunks.error:      # nothing behind it can be trusted
                r.bad.append(self.chunks.error)
                self.consumed = self.eof = True
                self.buf.clear()
                return True
            if not self.chunks.done:
                return False
            r.body, r.trailers = bytes(self.chunks.body), self.chunks.trailers
            del self.buf[:self.chunks.pos]
        elif self.kind == "length":
            if len(self.buf) < self.left:
                return False
            r.body = bytes(self.buf[:self.left])
            del self.buf[:self.left]
        else:
            r.body = b""
        self.consumed = r.complete = True
        return True

    def read_body(self, r):
        while not self.try_body(r):
            if not self.more():
                return False
        return True

    def step(self, st, r):
        if "read_body" in st:
            return self.read_body(r)
        if "default" in st:
            if not self.read_body(r):
                return False
            body = b"ok %s %s %d\n" % (r.method, r.target, len(r.body or b""))
            head = b"HTTP/1.1 200 OK\r\nX-Origin: runner\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.s.sendall(head + (b"" if r.method == b"HEAD" else body))
        elif "send" in st:
            self.s.sendall(expand(st["send"]))
        elif "sleep" in st:
            time.sleep(st["sleep"])
        elif "continue" in st:
            if b"100-continue" in tokens(r.fields, b"expect"):
                self.s.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        elif "await" in st:
            rx, end = re.compile(st["await"].encode("latin-1"), re.S), time.time() + PATIENCE
            while not rx.search(bytes(self.buf)) and time.time() < end:
                if not self.more(max(0.01, end - time.time())):
                    break
            with self.log.lock:
                self.log.partial.append(b"[tunnel]" + bytes(self.buf))
            self.buf.clear()
            self.consumed = True
            if self.kind in ("none", "length"):
                r.complete, r.body = True, r.body or b""
        elif "echo" in st:
            self.consumed = r.complete = True
            r.body = b""
            got = bytearray(self.buf)
            if self.buf:
                self.s.sendall(bytes(self.buf))
            self.buf.clear()
            while self.more():
                got += self.buf
                self.s.sendall(bytes(self.buf))
                self.buf.clear()
            with self.log.lock:
                self.log.partial.append(b"[tunnel]" + bytes(got))
            return False
        elif "stall" in st:
            end = time.time() + st["stall"]
            while time.time() < end and not self.eof:
                self.more(max(0.01, end - time.time()))
        elif "half_close" in st:
            self.s.shutdown(socket.SHUT_WR)
        elif "reset" in st:
            self.try_body(r)
            reset(self.s)
            return False
        elif "close" in st:
            self.try_body(r)
            try:
                self.s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            return False
        return True


# ---------------------------------------------------------------- client

class Tls:
    """TLS over a socket, safe with one reading and one writing thread"""

    def __init__(self, sock):
        ctx = ssl.create_default_context()
        ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
        ctx.set_alpn_protocols(["http/1.1"])
        self.s, self.lock, self.i, self.o = sock, threading.Lock(), ssl.MemoryBIO(), ssl.MemoryBIO()
        self.obj = ctx.wrap_bio(self.i, self.o, server_hostname="app.test")
        self.setsockopt, self.settimeout = sock.setsockopt, sock.settimeout
        while True:
            try:
                self.obj.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.flush()
                d = sock.recv(65536)
                if not d:
                    raise ConnectionResetError("closed during the TLS handshake")
                self.i.write(d)
        self.flush()

    def flush(self):
        d = self.o.read()
        if d:
            self.s.sendall(d)

    def recv(self, n):
        while True:
            with self.lock:
                try:
                    return self.obj.read(n)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError:      # close_notify or a cut connection
                    return b""
            d = self.s.recv(65536)
            with self.lock:
                if d:
                    self.i.write(d)
                else:
                    self.i.write_eof()

    def sendall(self, data):
        with self.lock:
            try:
                for i in range(0, len(data), 16384):
                    self.obj.write(data[i:i + 16384])
            except ssl.SSLError as e:
                raise OSError(str(e))
            out = self.o.read()
        self.s.sendall(out)

    def shutdown(self, how):
        self.s.shutdown(how)

    def close(self):
        self.s.close()


class Client:
    def __init__(self, addr, tls=False, segment=0):
        self.segment = segment
        s = socket.create_connection(addr, timeout=5)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            s = Tls(s)
        s.settimeout(None)
        self.s, self.buf, self.eof, self.tls = s, bytearray(), None, tls
        self.cond, self.t0, self.t_first = threading.Condition(), time.time(), None
        threading.Thread(target=self.reader, daemon=True).start()

    def reader(self):
        while True:
            try:
                d = self.s.recv(65536)
                why = "eof"
            except (OSError, ValueError) as e:
                d, why = b"", "reset" if isinstance(e, ConnectionResetError) else "error"
            with self.cond:
                if d:
                    self.t_first = self.t_first or time.time()
                    self.buf += d
                else:
                    self.eof = why
                    self.t_end = time.time()
                self.cond.notify_all()
                if not d:
                    return

    def send(self, data):
        try:
            if self.segment:
                head, rest = data[:1500], data[1500:]
                for i in range(0, len(head), self.segment):
                    self.s.sendall(head[i:i + self.segment])
                    if i % 64 == 0:
                        time.sleep(0.0005)
                data = rest
            if data:
                self.s.sendall(data)
            return True
        except OSError:
            return False

    def wait(self, test, timeout):
        """until test(bytes, eof) is true, the peer closed, or the time is over"""
        end = time.time() + timeout
        with self.cond:
            while True:
                if test(bytes(self.buf), self.eof):
                    return True
                left = end - time.time()
                if self.eof or left <= 0:
                    return False
                self.cond.wait(left)

    def half_close(self):
        try:
            self.s.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        try:
            self.s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.s.close()


class Response:
    __slots__ = ("status", "raw", "fields", "body", "complete", "bad", "tunnel")


def parse_responses(buf, eof, methods):
    """(finals, interims, leftover) — strictly; a 101 or a 2xx to CONNECT ends it"""
    finals, interims, pos = [], [], 0
    while pos < len(buf):
        i = buf.find(b"\r\n\r\n", pos)
        if i < 0:
            break
        raw = buf[pos:i + 4]
        line, fields, bad = split_head(raw)
        r = Response()
        r.raw, r.fields, r.bad, r.body, r.complete, r.tunnel = raw, fields, bad, b"", True, False
        m = STATUSLINE.match(line)
        if not m:
            break
        r.status = int(m.group(1))
        pos = i + 4
        if 100 <= r.status < 200 and r.status != 101:
            interims.append(r)
            continue
        method = methods[min(len(finals), len(methods) - 1)] if methods else "GET"
        finals.append(r)
        if r.status == 101 or (method == "CONNECT" and 200 <= r.status < 300):
            r.tunnel, r.body = True, buf[pos:]
            pos = len(buf)
            break
        fbad = []
        kind, n = framing(fields, fbad)
        r.bad += fbad
        if method == "HEAD" or r.status in (204, 304):
            continue
        if kind == "chunked":
            c = Chunks()
            c.pos = pos
            c.feed(buf)
            r.body = bytes(c.body)
            if c.error:
                r.bad.append(c.error)
            r.complete = c.done
            if not c.done:
                pos = len(buf)
                break
            pos = c.pos
        elif kind == "length":
            r.body = buf[pos:pos + n]
            r.complete = len(r.body) == n
            pos += len(r.body)
            if not r.complete:
                break
        else:
            r.body, r.complete = buf[pos:], eof == "eof"
            pos = len(buf)
            if not r.complete:
                break
    return finals, interims, buf[pos:]


def sequences(spec):
    """client_status in its full form: a list of acceptable status sequences"""
    if isinstance(spec, int):
        return [[spec]]
    out = []
    for x in spec:
        out.append(x if isinstance(x, list) else [] if x == "none" else [x])
    return out


def rx(p, flags=re.I | re.M):
    return re.compile(p.encode("latin-1"), flags)


# ---------------------------------------------------------------- one case

class Runner:
    def __init__(self, args):
        self.a = args
        host, port = args.proxy.rsplit(":", 1)
        self.addr = (host, int(port))
        self.origin = Origin(args.origin_port)
        self.n = 0

    def connect(self):
        return Client(self.addr, self.a.tls, self.a.segment)

    def exchange(self, path):
        """a plain GET on a fresh connection: None when fine, else what went wrong"""
        try:
            c = self.connect()
        except OSError as e:
            return "cannot connect to the proxy: %s" % e
        try:
            return self.plain_get(c, path)
        finally:
            c.close()

    def plain_get(self, c, path):
        start = len(c.buf)
        if not c.send(b"GET %s HTTP/1.1\r\nHost: app.test\r\n\r\n" % path):
            return "connection was closed"
        def done(b, eof):
            f, _, _ = parse_responses(b[start:], eof, ["GET"])
            return bool(f and f[0].complete)
        c.wait(done, PATIENCE)
        f, _, left = parse_responses(bytes(c.buf[start:]), c.eof, ["GET"])
        if not f or not f[0].complete:
            return "no complete answer (%s), got %r" % (c.eof or "open", bytes(c.buf[start:start + 80]))
        if f[0].status != 200 or f[0].body != b"ok GET %s 0\n" % path:
            return "wrong answer %d %r" % (f[0].status, f[0].body[:60])
        if left:
            return "extra bytes after the answer: %r" % left[:60]
        return None

    def run(self, case):
        self.n += 1
        e, why = case["expect"], []
        self.origin.normal()
        log = self.origin.begin(case)
        patience = case.get("patience", PATIENCE)
        seqs = sequences(e.get("client_status", [200]))
        want = max([len(s) for s in seqs] + [0])
        methods = case.get("methods") or ["GET"]
        raw_client = e.get("client_raw", False)
        try:
            c = self.connect()
        except OSError as err:
            self.origin.normal()
            return ["cannot connect to the proxy: %s" % err]
        others = []
        t0 = time.time()
        steps = case.get("client_steps") or [{"send": case["request_bytes"]}]
        for st in steps:
            if "send" in st:
                c.send(expand(st["send"]))
            elif "sleep" in st:
                time.sleep(st["sleep"])
            elif "await" in st:
                p = rx(st["await"])
                c.wait(lambda b, eof: p.search(b), st.get("for", patience))
            elif "send_if" in st:
                if rx(st["send_if"][0]).search(bytes(c.buf)):
                    c.send(expand(st["send_if"][1]))
            elif "drip" in st:
                text, gap = st["drip"]
                for b in expand(text):
                    if c.eof or not c.send(bytes([b])):
                        break
                    time.sleep(gap)
            elif "half_close" in st:
                c.half_close()
            elif "reset" in st:
                c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.close()
            elif "reconnect" in st:
                others.append(c)
                c.close()
                c = self.connect()

        def done(b, eof):
            f, _, _ = parse_responses(b, eof, methods)
            return len(f) >= want and (not f or f[-1].complete) and want > 0 and not raw_client
        if not e.get("no_wait"):
            c.wait(done, case.get("wait_s", patience))
        t_done = time.time() - t0
        after = e.get("connection_after", "any")
        buf = bytes(c.buf)
        finals, interims, left = parse_responses(buf, c.eof, methods)
        got = [f.status for f in finals]
        tunnel = bool(finals and finals[-1].tunnel)

        # ---- what follows on the same connection
        if after == "keep" and not why:
            if c.eof:
                why.append("connection closed (%s), should stay open" % c.eof)
            elif finals and finals[-1].complete and not left and got in seqs:
                bad = self.plain_get(c, b"/probe-%d" % self.n)
                if bad:
                    why.append("next request on the same connection: " + bad)
        elif after == "close":
            c.wait(lambda b, eof: eof, 2.5)
            if not c.eof:
                why.append("connection stays open, should be closed")
            buf = bytes(c.buf)
            finals, interims, left = parse_responses(buf, c.eof, methods)
            got = [f.status for f in finals]
        elif not tunnel and not e.get("no_wait"):
            c.wait(lambda b, eof: eof, 0.05)
            buf = bytes(c.buf)
            finals, interims, left = parse_responses(buf, c.eof, methods)
            got = [f.status for f in finals]

        # ---- somebody else's request
        self.origin.normal()
        if self.a.victim:
            time.sleep(case.get("victim_delay", 0))
            bad = self.exchange(b"/victim-%d" % self.n)
            if bad:
                why.append("victim request: " + bad)
        closed_now = c.eof
        c.close()
        time.sleep(case.get("settle_s", 0.01))
        self.origin.end()
        time.sleep(0.01)

        # ---- client side
        if not raw_client:
            def fits(seq):
                return len(seq) == len(got) and all(s == g or (isinstance(s, str) and s[1:] == "xx" and str(g)[0] == s[0]) for s, g in zip(seq, got))
            if not any(fits(s) for s in seqs):
                state = closed_now or "still open"
                why.append("client got %s (%s), expected one of %s" % (got or "no response", state, seqs))
            elif [] in seqs and not got and not closed_now and not e.get("no_wait"):
                why.append("no response and connection still open")
            for f in finals:
                if f.bad and not case.get("client_dirty_ok"):
                    why.append("malformed response %d: %s" % (f.status, "; ".join(f.bad)))
            if left and not tunnel and not (after == "keep" and b"/probe-" in left):
                why.append("extra bytes to the client: %r" % left[:80])
            inter = e.get("client_interim", [])
            seen = [i.status for i in interims]
            if inter == "any":
                pass
            elif isinstance(inter, list):
                for s in inter:
                    if s not in seen:
                        why.append("interim %d missing (saw %s)" % (s, seen))
                for s in seen:
                    if s not in inter:
                        why.append("unexpected interim %d" % s)
            if e.get("client_truncated"):
                f = finals[-1] if finals else None
                if f and f.status < 500 and f.complete:
                    why.append("truncated answer looks complete to the client")
                if f and not f.complete and not closed_now:
                    why.append("truncated answer, but the connection was left open")
            elif finals and not finals[-1].complete and not tunnel and not e.get("client_incomplete_ok"):
                why.append("last answer incomplete (%d of its body bytes)" % len(finals[-1].body))
            if "client_bodies" in e and finals and got[0] < 300:
                for i, b in enumerate(e["client_bodies"]):
                    if i < len(finals) and finals[i].body != expand(b):
                        why.append("body %d differs: %d bytes %r" % (i, len(finals[i].body), finals[i].body[:60]))
        for p in e.get("client_must", []):
            if not rx(p).search(buf):
                why.append("client must see /%s/" % p)
        for p in e.get("client_never", []):
            if rx(p).search(buf):
                why.append("client must not see /%s/" % p)
        if "max_s" in e and t_done > e["max_s"]:
            why.append("took %.1f s, allowed %.1f s" % (t_done, e["max_s"]))

        # ---- upstream side
        reqs = log.ordinary()
        complete = [r for r in reqs if r.complete]
        partial = [p for p in log.partial if not re.match(rb"GET /(victim|probe)-", p)]
        tunnels = b"".join(p[8:] for p in partial if p.startswith(b"[tunnel]"))
        partial = [p for p in partial if not p.startswith(b"[tunnel]")]
        heads = b"".join(r.raw + r.trailers for r in reqs) + b"".join(partial)
        if not case.get("allow_dirty"):
            for r in reqs:
                if r.bad:
                    why.append("malformed request forwarded: " + "; ".join(r.bad))
            for p in partial:
                why.append("stray bytes on an upstream connection: %r" % p[:80])
        sees = e.get("upstream_sees", {})
        if sees == "nothing":
            if heads:
                why.append("nothing should reach the origin, it got %r" % heads[:100])
            sees = {}
        if "upstream_requests" in e:
            ok = e["upstream_requests"]
            ok = ok if isinstance(ok, list) else [ok]
            if len(complete) not in ok:
                why.append("origin saw %d complete requests %s, allowed %s" % (len(complete), [(r.method + b" " + r.target[:40]).decode("latin-1") for r in complete], ok))
        if complete:
            for p in sees.get("must", []):
                if not rx(p).search(heads):
                    why.append("origin must see /%s/ in %r" % (p, heads[:400]))
        for p in sees.get("never", []):
            m = rx(p).search(heads)
            if m:
                why.append("origin must not see /%s/: %r" % (p, heads[max(0, m.start() - 60):m.end() + 60]))
        if log.conns > e.get("upstream_conns_max", 1e9):
            why.append("%d upstream connections were opened, allowed %d" % (log.conns, e["upstream_conns_max"]))
        if "upstream_bodies" in e:
            for i, b in enumerate(e["upstream_bodies"]):
                if i < len(complete) and complete[i].body != expand(b):
                    why.append("request body %d differs: %d bytes %r" % (i, len(complete[i].body), complete[i].body[:60]))
        for p in e.get("tunnel_must", []):
            if got and got[0] == 101 and not rx(p).search(tunnels):
                why.append("tunnel data at the origin must have /%s/, has %r" % (p, tunnels[:80]))
        return why


def load(paths):
    cases = []
    for p in paths:
        with open(p, encoding="utf-8") as f:
            for n, ln in enumerate(f, 1):
                if ln.strip() and not ln.startswith("#"):
                    try:
                        cases.append(json.loads(ln))
                    except ValueError as err:
                        sys.exit("%s:%d: %s" % (p, n, err))
    ids = [c["id"] for c in cases]
    dup = {i for i in ids if ids.count(i) > 1}
    if dup:
        sys.exit("duplicate case ids: %s" % sorted(dup))
    return cases


def main():
    ap = argparse.ArgumentParser(description="HTTP/1.1 reverse-proxy conformance and smuggling cases")
    ap.add_argument("--proxy", default="127.0.0.1:8080", help="host:port of the proxy under test")
    ap.add_argument("--origin-port", type=int, default=9080, help="port on 127.0.0.1 for the scripted origin")
    ap.add_argument("--cases", action="append", help="JSON-lines file(s) of cases")
    ap.add_argument("--only", help="regex on the case id")
    ap.add_argument("--category", help="regex on the category")
    ap.add_argument("--level", help="comma list of levels to run: must,should,strict")
    ap.add_argument("--segment", type=int, default=0, help="send request heads in pieces of N bytes")
    ap.add_argument("--tls", action="store_true", help="speak TLS to the proxy (no verification)")
    ap.add_argument("--no-victim", dest="victim", action="store_false", help="skip the victim request after each case")
    ap.add_argument("--expect-fail", help="file of case ids known to fail; only news count")
    ap.add_argument("--json", help="write the results there")
    ap.add_argument("--quiet", action="store_true", help="print only failures and the totals")
    ap.add_argument("--repeat", type=int, default=1)
    a = ap.parse_args()
    cases = load(a.cases or ["h1_cases.jsonl"])
    if a.only:
        cases = [c for c in cases if re.search(a.only, c["id"])]
    if a.category:
        cases = [c for c in cases if re.search(a.category, c["category"])]
    if a.level:
        cases = [c for c in cases if c.get("level", "must") in a.level.split(",")]
    known = set()
    if a.expect_fail:
        with open(a.expect_fail) as f:
            known = {ln.split("#")[0].strip() for ln in f} - {""}
    r = Runner(a)
    first = r.exchange(b"/victim-0")
    r.origin.end()
    if first:
        print("the proxy does not answer a plain GET: %s" % first)
        print("0 passed, 1 failed")
        return 2
    passed = failed = skipped = 0
    results, by_cat, by_level = [], {}, {}
    for _ in range(a.repeat):
        for c in cases:
            if a.tls and any("half_close" in s for s in c.get("client_steps", [])):
                skipped += 1
                continue
            t = time.time()
            why = r.run(c)
            t = time.time() - t
            ok = not why
            lv = c.get("level", "must")
            for d, k in ((by_cat, c["category"]), (by_level, lv)):
                d.setdefault(k, [0, 0])[0 if ok else 1] += 1
            results.append({"id": c["id"], "category": c["category"], "level": lv, "pass": ok, "why": why, "s": round(t, 3)})
            if ok:
                passed += 1
                if c["id"] in known:
                    print("FIXED %s (listed in --expect-fail)" % c["id"])
                elif not a.quiet:
                    print("pass  %-28s %s" % (c["id"], c.get("title", "")))
            elif c["id"] in known:
                skipped += 1
                if not a.quiet:
                    print("known %-28s %s" % (c["id"], why[0]))
            else:
                failed += 1
                print("FAIL  %-28s [%s] %s" % (c["id"], lv, c.get("title", "")))
                for w in why:
                    print("        - " + w)
            sys.stdout.flush()
    if a.json:
        with open(a.json, "w") as f:
            json.dump(results, f, indent=0)
    for name, d in (("category", by_cat), ("level", by_level)):
        print("by %s: %s" % (name, ", ".join("%s %d/%d" % (k, v[0], v[0] + v[1]) for k, v in sorted(d.items()))))
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
