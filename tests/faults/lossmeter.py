#!/usr/bin/env python3
"""Counts lost, wrong and doubled requests while something bad happens to a proxy.

    lossmeter.py --proxy 127.0.0.1:8080 --origin-port 9080 --requests 20000 \
                 --event 'kill -USR2 $(cat proxy.pid)' --times 10

Client and origin(s) in one program: every request carries a serial number, the origin
notes each execution, the client checks each answer.  Standard library only, loopback
only, bounded by --requests and --max-s; SIGTERM ends it early.  Classes of outcome:
  ok        200 with the right body
  raced     kept connection closed before one byte of the answer (client may repeat a
            GET; counted apart because only 'Connection: close' in time avoids it)
  refused   the proxy's port did not accept the connection
  reset     connection died after part of the answer, or on a fresh connection
  5xx       the proxy answered with an error of its own
  wrong     another request's answer, or a damaged one
  slow      no answer within --timeout
  doubled   a POST that the origin executed more than once (from any cause)
The last line is 'N passed, N failed': failed = everything but ok (and raced, with
--allow-raced; and up to --post-5xx-max POSTs answered 5xx, which were in flight on a
server that died), plus doubled.
"""
import argparse, collections, os, random, re, signal, socket, struct, subprocess, sys, threading, time

HEAD = re.compile(rb"^(?P<m>[A-Z]+) /n/(?P<n>[0-9]+) HTTP/1\.1\r\n")


class Origin:
    def __init__(self, port, delay):
        self.port, self.delay, self.up = port, delay, False
        self.seen, self.lock, self.conns = collections.Counter(), threading.Lock(), set()
        self.listen()

    def listen(self):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", self.port))
        s.listen(512)
        self.sock, self.up = s, True
        threading.Thread(target=self.accept, args=(s,), daemon=True).start()

    def crash(self):
        """as after kill -9: port refuses, every connection is reset"""
        self.up = False
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        with self.lock:
            conns, self.conns = list(self.conns), set()
        for c in conns:
            try:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                c.shutdown(socket.SHUT_RD)
                c.close()
            except OSError:
                pass

    def accept(self, s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.conns.add(c)
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        buf = b""
        try:
            while True:
                while b"\r\n\r\n" not in buf:
                    d = c.recv(65536)
                    if not d:
                        return
                    buf += d
                head, buf = buf.split(b"\r\n\r\n", 1)
                m = HEAD.match(head + b"\r\n")
                if not m:
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                    continue
                cl = re.search(rb"(?im)^content-length: *([0-9]+)", head)
                need = int(cl.group(1)) if cl else 0
                chunked = re.search(rb"(?im)^transfer-encoding:.*chunked", head)
                while (chunked and not buf.endswith(b"0\r\n\r\n")) or (not chunked and len(buf) < need):
                    d = c.recv(65536)
                    if not d:
                        return
                    buf += d
                buf = b"" if chunked else buf[need:]
                with self.lock:
                    self.seen[(m.group("m"), int(m.group("n")))] += 1
                if self.delay:
                    time.sleep(self.delay)
                body = b"done " + m.group("m") + b" " + m.group("n") + b"\n"
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.conns.discard(c)
            c.close()


class Meter:
    def __init__(self, a):
        self.a, self.lock, self.next, self.stop = a, threading.Lock(), 0, False
        self.count, self.by_verb, self.lat, self.examples = collections.Counter(), collections.Counter(), [], {}
        host, port = a.proxy.rsplit(":", 1)
        self.addr = (host, int(port))

    def take(self):
        with self.lock:
            if self.next >= self.a.requests or self.stop:
                return None
            self.next += 1
            return self.next

    def note(self, what, n, verb, detail=""):
        with self.lock:
            self.count[what] += 1
            self.by_verb[(verb, what)] += 1
            if what != "ok":
                self.examples.setdefault(what, "request %d at %.2f s: %s" % (n, time.time() - self.t0, detail))

    def worker(self, seed):
        rnd, s, used = random.Random(seed), None, 0
        while True:
            n = self.take()
            if n is None:
                break
            post = rnd.random() < self.a.post
            verb = b"POST" if post else b"GET"
            fresh_only = rnd.random() < self.a.fresh
            if fresh_only and s:
                s.close()
                s = None
            if s is None:
                try:
                    s = socket.create_connection(self.addr, timeout=self.a.timeout)
                    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    used = 0
                except OSError as e:
                    self.note("refused", n, verb, str(e))
                    time.sleep(0.01)
                    continue
            body = b"x" * 200 if post else b""
            req = b"%s /n/%d HTTP/1.1\r\nHost: app.test\r\n%s\r\n%s" % (verb, n, b"Content-Length: 200\r\n" if post else b"", body)
            want, buf, t = b"done " + verb + b" %d\n" % n, b"", time.time()
            try:
                s.sendall(req)
                while True:
                    if b"\r\n\r\n" in buf:
                        head, rest = buf.split(b"\r\n\r\n", 1)
                        m = re.search(rb"(?im)^content-length: *([0-9]+)", head)
                        if m and len(rest) >= int(m.group(1)):
                            break
                    d = s.recv(65536)
                    if not d:
                        raise ConnectionResetError("closed after %d bytes" % len(buf))
                    buf += d
            except socket.timeout:
                self.note("slow", n, verb, "no answer in %.1f s" % self.a.timeout)
                s.close()
                s = None
                continue
            except OSError as e:
                self.note("raced" if used and not buf else "reset", n, verb, str(e))
                s.close()
                s = None
                continue
            with self.lock:
                self.lat.append(time.time() - t)
            status = int(head[9:12])
            if status >= 500:
                self.note("5xx", n, verb, repr(head[:40]))
            elif status != 200 or rest != want:
                self.note("wrong", n, verb, "%r %r" % (head[:30], rest[:40]))
            else:
                self.note("ok", n, verb)
            used += 1
            if re.search(rb"(?im)^connection:.*close", head) or status >= 400:
                s.close()
                s = None
            if self.a.pause:
                time.sleep(rnd.random() * 2 * self.a.pause)
        if s:
            s.close()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--proxy", required=True)
    ap.add_argument("--origin-port", type=int, action="append", required=True, help="may be given several times")
    ap.add_argument("--requests", type=int, default=10000)
    ap.add_argument("--threads", type=int, default=8)
    ap.add_argument("--post", type=float, default=0.2, help="share of POSTs")
    ap.add_argument("--fresh", type=float, default=0.3, help="share of requests on a new connection")
    ap.add_argument("--delay", type=float, default=0.002, help="seconds the origin takes")
    ap.add_argument("--pause", type=float, default=0.0, help="mean seconds between two requests of a client")
    ap.add_argument("--timeout", type=float, default=5.0)
    ap.add_argument("--max-s", type=float, default=120)
    ap.add_argument("--event", help="shell command to run while the load runs")
    ap.add_argument("--every", type=float, default=0.5)
    ap.add_argument("--times", type=int, default=5)
    ap.add_argument("--crash-origin", type=float, help="crash the last origin for that many seconds at each event")
    ap.add_argument("--allow-raced", action="store_true")
    ap.add_argument("--post-5xx-max", type=int, default=0, help="POSTs that may be answered 5xx")
    a = ap.parse_args()
    origins = [Origin(p, a.delay) for p in a.origin_port]
    time.sleep(0.3)
    m = Meter(a)
    m.t0 = time.time()
    signal.signal(signal.SIGTERM, lambda *_: setattr(m, "stop", True))
    ts = [threading.Thread(target=m.worker, args=(i,), daemon=True) for i in range(a.threads)]
    for t in ts:
        t.start()
    fired = 0
    while any(t.is_alive() for t in ts) and time.time() - m.t0 < a.max_s:
        time.sleep(0.01)
        if fired < a.times and time.time() - m.t0 > a.every * (fired + 1) and (a.event or a.crash_origin):
            fired += 1
            if a.event:
                subprocess.run(a.event, shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if a.crash_origin:
                origins[-1].crash()
                time.sleep(a.crash_origin)
                origins[-1].listen()
    m.stop = True
    for t in ts:
        t.join(a.timeout + 1)
    took = time.time() - m.t0
    seen = collections.Counter()
    for o in origins:
        seen.update(o.seen)
    doubled = sum(1 for (verb, _), k in seen.items() if verb == b"POST" and k > 1)
    regets = sum(1 for (verb, _), k in seen.items() if verb == b"GET" and k > 1)
    lat = sorted(m.lat) or [0]
    print("requests %d in %.1f s, events %d" % (sum(m.count.values()), took, fired))
    print("outcome: " + ", ".join("%s %d" % (k, m.count[k]) for k in ("ok", "raced", "refused", "reset", "5xx", "wrong", "slow")) + ", doubled %d (GETs run twice: %d)" % (doubled, regets))
    for verb in (b"GET", b"POST"):
        lost = {k: v for (w, k), v in m.by_verb.items() if w == verb and k != "ok"}
        print("lost %s: %d %s" % (verb.decode(), sum(lost.values()), lost or ""))
    print("latency ms: p50 %.1f p99 %.1f max %.1f" % (lat[len(lat) // 2] * 1e3, lat[int(len(lat) * .99)] * 1e3, lat[-1] * 1e3))
    for k, v in m.examples.items():
        print("first %s: %s" % (k, v))
    bad = sum(v for k, v in m.count.items() if k != "ok" and not (k == "raced" and a.allow_raced)) + doubled
    bad -= min(m.by_verb[(b"POST", "5xx")], a.post_5xx_max)
    print("%d passed, %d failed" % (m.count["ok"], bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
