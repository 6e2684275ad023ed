#!/usr/bin/env python3
"""The simulator against reality: one scenario, run by `forebay test` and by the real program over loopback.

    tests/bench/reality.py                        leastconn, roundrobin and random; 3 to 4 minutes
    tests/bench/reality.py --only random --rounds 1 --seconds 10
    tests/bench/reality.py --simulator PATH       another build for `forebay test`; FOREBAY names the proxy

Four workers, eight servers of four speeds with exponential times, one of them slow, at most `maxconn` requests at each, and
requests at a rate (Poisson) that keeps `--load` of all slots busy. A server closes a connection after 20 responses. What is
compared, as medians of the rounds: the share of each server, the share of requests on a connection that was there, and how
long those waited who waited for a slot. Wanted: shares and reuse within 3 points, the median wait within 20 %.

It is simulated twice: with the times as they are configured, and with the mean times that the access log shows. Only the
second run is judged: what the machine adds to a response (loopback, timers, whoever else has the cores) is a millisecond, a
tenth of all capacity here, and waits are steep in that. It cannot agree altogether. What is added is nearly constant and not
drawn. From the end of a response to the next request of the same slot passes the time that it takes to wake a worker, which
no response time shows: some more requests wait in reality, by 2 to 5 points. That share is shown and not judged. Exit status
1 if the second run differs by more than is wanted.
"""
import argparse, asyncio, json, os, random, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import launch  # noqa: E402

BALANCES = ("leastconn", "roundrobin", "random")
NAMES = "abcdefgh"
MS = (5, 5, 10, 10, 20, 20, 50, 100)
CLIENTS, CLOSES_AFTER, SEEDS = 96, 20, 5
POINTS_MAX, WAIT_MAX = 3.0, 20.0

PROXY = """
[process]
workers = 4
log = { format = "json", to = "$DIR/access.log" }

[[listen]]
name = "web"
bind = "127.0.0.1:0"
backend = "app"

[backend.app]
balance = "%s"
maxconn = %d
servers = [%s]
"""

SCENARIO = """
[scenario]
about = "the same cluster as in reality"
workers = 4
seed = %d
duration = "%ds"

[[traffic]]
rate = %d
clients = %d

[backend.app]
balance = "%s"
maxconn = %d
servers = [%s]

[show]
decisions = 0
%s"""

MACHINE = """
[[server]]
name = "app/%s"
service = { mean = "%dus" }
capacity = %d
closes-after = %d
"""


class Origin(asyncio.Protocol):
    """One connection to a server. Requests come one after the other: nobody pipelines here."""

    def __init__(self, mean, chance):
        self.mean, self.chance, self.answered, self.head = mean, chance, 0, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.head += data
        if self.head.endswith(b"\r\n\r\n"):
            self.head = b""
            delay = self.chance.expovariate(1 / self.mean)
            asyncio.get_running_loop().call_later(delay, self.answer)

    def answer(self):
        self.answered += 1
        last = self.answered == CLOSES_AFTER
        more = b"Connection: close\r\n" if last else b""
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + more + b"\r\nok")
        if last:
            self.transport.close()


async def serve(seed):
    """All servers, in a process of their own. Prints their ports, and ends when nobody reads standard input any more."""
    # Another chance than the load's: with the same one long services would follow long pauses, and hardly anybody wait.
    loop, chance, ports = asyncio.get_running_loop(), random.Random("servers %d" % seed), []
    for ms in MS:
        server = await loop.create_server(lambda ms=ms: Origin(ms / 1e3, chance), "127.0.0.1", 0, backlog=256)
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


class Client(asyncio.Protocol):
    def __init__(self, load):
        self.load, self.left, self.body = load, b"", 0

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.left += data
        head, end, body = self.left.partition(b"\r\n\r\n")
        if end and len(body) >= 2:
            self.left = b""
            self.load.done(self, head.startswith(b"HTTP/1.1 200 "))

    def connection_lost(self, _):
        self.load.lost += 1


class Load:
    """Requests at drawn instants, whatever becomes of those before, over connections that take turns."""

    def __init__(self, rate, seconds, seed):
        self.rate, self.seconds, self.chance = rate, seconds, random.Random(seed)
        self.idle, self.waiting = [], 0
        self.sent = self.good = self.bad = self.late = self.lost = 0

    def done(self, client, good):
        self.good, self.bad = self.good + good, self.bad + (not good)
        if self.waiting:
            self.waiting -= 1
            self.send(client)
        else:
            self.idle.append(client)

    def send(self, client):
        client.transport.write(b"GET / HTTP/1.1\r\nHost: reality.test\r\n\r\n")

    async def run(self, host, port):
        loop = asyncio.get_running_loop()
        for _ in range(CLIENTS):
            _, client = await loop.create_connection(lambda: Client(self), host, port)
            self.idle.append(client)
        due = begun = loop.time()
        while due < begun + self.seconds:
            await asyncio.sleep(max(0, due - loop.time()))
            self.sent += 1
            if self.idle:
                self.send(self.idle.pop(0))
            else:
                self.waiting, self.late = self.waiting + 1, self.late + 1
            due += self.chance.expovariate(self.rate)
        end = loop.time() + 10
        while self.good + self.bad < self.sent and loop.time() < end and not self.lost:
            await asyncio.sleep(0.05)
        lost = self.lost + self.sent - self.good - self.bad
        if lost or self.bad:
            raise SystemExit("%d requests were lost, %d answered wrongly" % (lost, self.bad))


def in_reality(a, balance, seed):
    """Figures of one round, and the mean time of each server's responses in µs."""
    origins = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", str(seed)], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        ports = origins.stdout.readline().split()
        servers = ", ".join('{ name = "%s", address = "127.0.0.1:%s" }' % it for it in zip(NAMES, ports))
        with launch.Forebay(PROXY % (balance, a.maxconn, servers), heard=True) as proxy:
            host, port = proxy.address().rsplit(":", 1)
            load = Load(a.rate, a.seconds, seed)
            asyncio.run(load.run(host, int(port)))
            log = os.path.join(proxy.folder.name, "access.log")
            records = read_log(log, load.sent)
    finally:
        origins.stdin.close()
        origins.wait()
    if load.late:
        print("  %d of %d requests found all %d client connections busy" % (load.late, load.sent, CLIENTS))
    return figures_of(records)


def read_log(path, count):
    """All lines, once they are there."""
    for _ in range(100):
        with open(path) as f:
            lines = f.readlines()
        if len(lines) >= count:
            return [json.loads(line) for line in lines]
        time.sleep(0.05)
    raise SystemExit("the access log has %d lines for %d requests" % (len(lines), count))


def figures_of(records):
    by_server = {name: [it["response_us"] for it in records if it["server"] == name] for name in NAMES}
    waits = [it["queue_us"] / 1e3 for it in records if it["ahead_server"] is not None or it["ahead_backend"] is not None]
    figures = {"share of " + name: 100 * len(times) / len(records) for name, times in by_server.items()}
    figures["reuse"] = 100 * sum(it["opened"] is None for it in records) / len(records)
    figures["waited"] = 100 * len(waits) / len(records)
    figures["wait p50"] = statistics.median(waits or [0])
    return figures, [statistics.fmean(by_server[name] or [0]) for name in NAMES]


def simulated(a, balance, means):
    """The same figures, medians over a few seeds: a run takes no time."""
    runs = [one_simulated(a, balance, seed, means) for seed in range(1, SEEDS + 1)]
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def one_simulated(a, balance, seed, means):
    """The same figures, out of a transcript."""
    machines = "".join(MACHINE % (name, mean, a.maxconn, CLOSES_AFTER) for name, mean in zip(NAMES, means))
    names = ", ".join('"%s"' % name for name in NAMES)
    text = SCENARIO % (seed, a.seconds, a.rate, CLIENTS, balance, a.maxconn, names, machines)
    with tempfile.TemporaryDirectory(prefix="forebay-") as folder:
        path = os.path.join(folder, "reality.toml")
        with open(path, "w") as f:
            f.write(text)
        done = subprocess.run([a.simulator, "test", "--accept", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if done.returncode != 0:
            raise SystemExit(done.stdout)
        with open(os.path.join(folder, "reality.snap")) as f:
            return read_transcript(f.read().splitlines())


def read_transcript(lines):
    figures, requests = {}, 0
    for words in map(str.split, lines):
        if words[:1] == ["requests"]:
            requests = int(words[1])
        elif words and words[0].startswith("app/"):
            figures["share of " + words[0][4:]] = float(words[2])
        elif words[:1] == ["queueing"]:
            figures["waited"], figures["wait p50"] = 100 * int(words[1]) / requests, float(words[2])
        elif words[:1] == ["connections"]:
            figures["reuse"] = float(words[1])
    return {"waited": 0.0, "wait p50": 0.0, **figures}


def compare(a, balance):
    """Prints the table of one balancer; what differs too much."""
    real, measured = [], []
    for seed in range(1, a.rounds + 1):
        figures, means = in_reality(a, balance, seed)
        real.append(figures)
        measured.append(simulated(a, balance, means))
    plain = [simulated(a, balance, [ms * 1000 for ms in MS])]
    print("  mean response ms  " + "  ".join("%s %.1f (%d)" % (n, us / 1e3, ms) for n, us, ms in zip(NAMES, means, MS)))
    print("  %-12s %9s %11s %12s %11s %12s" % ("", "real", "configured", "difference", "measured", "difference"))
    wrong = []
    for key in real[0]:
        values = [statistics.median(round[key] for round in rounds) for rounds in (real, plain, measured)]
        differences = [difference(key, values[0], other) for other in values[1:]]
        unit = "%" if key == "wait p50" else "points"
        print("  %-12s %9.2f %11.2f %+5.1f %-6s %11.2f %+5.1f %-6s"
              % (key, values[0], values[1], differences[0], unit, values[2], differences[1], unit))
        if abs(differences[1]) > (WAIT_MAX if key == "wait p50" else POINTS_MAX) and key != "waited":
            wrong.append("%s: %s" % (balance, key))
    return wrong


def difference(key, real, other):
    """Points, or percent of what is real for a time."""
    return 100 * (other - real) / max(real, 0.001) if key == "wait p50" else other - real


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", choices=BALANCES, action="append")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=int, default=20)
    ap.add_argument("--maxconn", type=int, default=1)
    ap.add_argument("--load", type=float, default=0.65, help="share of all slots that is busy if all are used alike")
    ap.add_argument("--simulator", default=None, help="the program that runs `forebay test`")
    ap.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.serve is not None:
        return asyncio.run(serve(a.serve))
    a.simulator = a.simulator or launch.binary()
    a.rate = round(a.load * a.maxconn * sum(1000 / ms for ms in MS))
    print("%d requests/s for %d s, at most %d at a server, %d rounds" % (a.rate, a.seconds, a.maxconn, a.rounds))
    wrong = []
    for balance in a.only or BALANCES:
        print("== " + balance, flush=True)
        wrong += compare(a, balance)
    print("too different: " + ", ".join(wrong) if wrong else "all within what is wanted")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
