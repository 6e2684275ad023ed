"""One server with one slot, sixteen workers, more clients than slots: is there ever a second request at the server, and
how long does it wait for the next one while others wait for it?

The server looks, between reading a request and answering it, whether any other connection has brought one. A gap is the
time from the end of an answer to the next request's arrival; somebody waits all the while, for each client asks again
as soon as it is answered. The first and the last requests do not count: clients come and go there.
"""
import multiprocessing, select, socket, time

import launch

CLIENTS, WORKERS = 64, 16
REQUEST = b"GET / HTTP/1.1\r\nHost: app.test\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"

CONFIG = """
[process]
workers = %d
log = { to = "none" }

[[listen]]
name = "web"
bind = "127.0.0.1:0"
backend = "app"

[backend.app]
balance = "%s"
maxconn = 1
timeout-queue = "60s"
servers = ["127.0.0.1:%d"]
"""

P999_MAX, WORST_MAX = 0.002, 0.050


def serve(port, requests, report):
    """Answers so many requests; reports how many met another one here, and the gaps in seconds."""
    listener = socket.create_server(("127.0.0.1", port), backlog=256)
    poll, streams = select.epoll(), {}
    poll.register(listener, select.EPOLLIN)
    report.put("listening")
    double, gaps, answered, ended = 0, [], 0, None
    while answered < requests:
        for fd, _ in poll.poll():
            if fd == listener.fileno():
                stream, _ = listener.accept()
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                streams[stream.fileno()] = stream
                poll.register(stream, select.EPOLLIN)
                continue
            data = streams[fd].recv(4096)
            arrived = time.monotonic()
            if not data:
                poll.unregister(fd)
                streams.pop(fd).close()
                continue
            if ended is not None and CLIENTS < answered < requests - CLIENTS:
                gaps.append(arrived - ended)
            double += sum(1 for other, _ in poll.poll(0) if other not in (fd, listener.fileno()) and peek(streams[other]))
            streams[fd].sendall(ANSWER)
            ended = time.monotonic()
            answered += 1
    report.put((double, gaps))


def peek(stream):
    """Whether a request is there, and not only the end of the connection."""
    return bool(stream.recv(1, socket.MSG_PEEK))


def ask(address, requests, report):
    """Each client asks again as soon as it is answered; reports how many answers were not 200."""
    host, _, port = address.rpartition(":")
    poll, streams, asked, open_, wrong = select.epoll(), {}, 0, 0, 0
    for _ in range(min(CLIENTS, requests)):
        stream = socket.create_connection((host, int(port)))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        streams[stream.fileno()] = stream
        poll.register(stream, select.EPOLLIN)
        stream.sendall(REQUEST)
        asked, open_ = asked + 1, open_ + 1
    while open_:
        ready = poll.poll(60)
        if not ready:
            report.put("%d requests have no answer within a minute" % open_)
            return
        for fd, _ in ready:
            data = streams[fd].recv(4096)
            wrong += not data.startswith(b"HTTP/1.1 200")
            if data and asked < requests:
                streams[fd].sendall(REQUEST)
                asked += 1
            else:
                poll.unregister(fd)
                open_ -= 1
    report.put(wrong)


def run(requests, balance="random"):
    port, reports = launch.free_port(), [multiprocessing.Queue() for _ in range(2)]
    server = multiprocessing.Process(target=serve, args=(port, requests, reports[0]), daemon=True)
    server.start()
    reports[0].get()
    with launch.Forebay(CONFIG % (WORKERS, balance, port)) as proxy:
        clients = multiprocessing.Process(target=ask, args=(proxy.address(), requests, reports[1]), daemon=True)
        begun = time.monotonic()
        clients.start()
        wrong = reports[1].get()
        took = time.monotonic() - begun
        if wrong != 0:
            print("clients: %s" % (wrong if isinstance(wrong, str) else "%d answers were not 200" % wrong))
            server.kill()
            return False
        double, gaps = reports[0].get()
        gaps.sort()
        at = lambda part: gaps[min(int(len(gaps) * part), len(gaps) - 1)]  # noqa: E731
        print("%d requests in %.1f s, %d clients, %d workers; two at once: %d" % (requests, took, CLIENTS, WORKERS, double))
        print("gap in µs: p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f"
              % tuple(1e6 * gap for gap in (at(0.5), at(0.99), at(0.999), gaps[-1])), flush=True)
        return double == 0 and at(0.999) <= P999_MAX and gaps[-1] < WORST_MAX and proxy.alive()
