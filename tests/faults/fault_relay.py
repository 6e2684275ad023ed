#!/usr/bin/env python3
"""A TCP relay that misbehaves on command: in user space, so that no privilege is needed.

    fault_relay.py LISTEN_PORT TARGET_PORT [mode ...] [--control PORT]

Modes (also one a line on the control port; 'ok' clears, 'stat' prints counters):
    latency:MS[:JITTER_MS]   delay each piece in both directions
    rate:BYTES_PER_S         trickle towards the client side (the proxy)
    reset:N                  reset after N bytes from the target
    close:N                  close (FIN) after N bytes from the target
    cut:N                    stop forwarding after N bytes, keep the connection open
    blackhole                accept, read, forward nothing
    refuse                   stop listening (connections refused)
    resetaccept              reset every new connection at once
    chance:P                 apply the above to a connection with probability P (0..1)
Loopback only; standard library only.
"""
import random, socket, struct, sys, threading, time


class Relay:
    def __init__(self, port, target):
        self.port, self.target, self.mode, self.sock = port, target, {}, None
        self.n = {"accepted": 0, "faulted": 0, "to_target": 0, "to_client": 0}
        self.listen()

    def listen(self):
        if self.sock is None:
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", self.port))
            s.listen(256)
            self.sock = s
            threading.Thread(target=self.accept, args=(s,), daemon=True).start()

    def set(self, text):
        if text == "ok":
            self.mode = {}
            self.listen()
        elif text == "stat":
            return repr(self.n)
        else:
            k, *v = text.split(":")
            self.mode = dict(self.mode, **{k: [float(x) for x in v]})
            if k == "refuse" and self.sock:
                s, self.sock = self.sock, None
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()
        return "done"

    def accept(self, s):
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            self.n["accepted"] += 1
            mode = self.mode
            if "chance" in mode and random.random() >= mode["chance"][0]:
                mode = {}
            elif mode:
                self.n["faulted"] += 1
            if "resetaccept" in mode:
                reset(c)
                continue
            threading.Thread(target=self.one, args=(c, mode), daemon=True).start()

    def one(self, c, mode):
        try:
            t = None if "blackhole" in mode else socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            c.close()
            return
        if t is None:
            try:
                while c.recv(65536):
                    pass
            except OSError:
                pass
            c.close()
            return
        t.settimeout(None)
        for x in (c, t):
            x.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        a = threading.Thread(target=self.pump, args=(c, t, mode, "to_target"), daemon=True)
        a.start()
        self.pump(t, c, mode, "to_client")
        a.join()
        c.close()
        t.close()

    def pump(self, src, dst, mode, way):
        seen, back = 0, way == "to_client"
        try:
            while True:
                d = src.recv(65536)
                if not d:
                    break
                if "latency" in mode:
                    ms, jit = (mode["latency"] + [0])[:2]
                    time.sleep(max(0, ms + random.uniform(-jit, jit)) / 1e3)
                for name in ("reset", "close", "cut"):
                    if back and name in mode and seen + len(d) >= mode[name][0]:
                        dst.sendall(d[:max(0, int(mode[name][0]) - seen)])
                        if name == "reset":
                            time.sleep(0.02)
                            reset(dst)
                            src.close()
                            return
                        if name == "close":
                            dst.shutdown(socket.SHUT_RDWR)
                            src.close()
                            return
                        while src.recv(65536):
                            pass
                        return
                if back and "rate" in mode:
                    step = max(1, int(mode["rate"][0] / 20))
                    for i in range(0, len(d), step):
                        dst.sendall(d[i:i + step])
                        time.sleep(0.05)
                else:
                    dst.sendall(d)
                seen += len(d)
                self.n[way] += len(d)
            dst.shutdown(socket.SHUT_WR)
        except OSError:
            for x in (src, dst):
                try:
                    x.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def reset(c):
    try:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    c.close()


def main(argv):
    control = None
    if "--control" in argv:
        i = argv.index("--control")
        control = int(argv[i + 1])
        del argv[i:i + 2]
    r = Relay(int(argv[0]), int(argv[1]))
    for m in argv[2:]:
        r.set(m)
    if control is None:
        threading.Event().wait()
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", control))
    s.listen(8)
    while True:
        c, _ = s.accept()
        for ln in c.makefile("r"):
            c.sendall((r.set(ln.strip()) + "\n").encode())
        c.close()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        pass
