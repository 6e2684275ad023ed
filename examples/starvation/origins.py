#!/usr/bin/env python3
"""Five servers that take 15 to 25 ms for a request; the last one takes 800 ms for the first two seconds.

    origins.py          prints `NAME ADDRESS` of each and serves until it is ended

The seconds count from the first request to any of them. `GET /served` asks nobody to wait: it tells how many requests each
has had.
"""
import asyncio, random, sys, time

NAMES = "abcde"
SLOW, SLOW_FOR = 0.8, 2.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"


class Servers:
    def __init__(self):
        self.chance, self.begun = random.Random(1), None
        self.served = dict.fromkeys(NAMES, 0)

    def delay(self, name):
        self.begun = self.begun or time.monotonic()
        if name == NAMES[-1] and time.monotonic() - self.begun < SLOW_FOR:
            return SLOW
        return self.chance.uniform(0.015, 0.025)

    async def serve(self, name, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET /served "):
                    body = " ".join("%s=%d" % it for it in self.served.items()).encode()
                else:
                    await asyncio.sleep(self.delay(name))
                    self.served[name] += 1
                    body = name.encode()
                writer.write(ANSWER % (len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side has closed
        finally:
            writer.close()


async def main():
    servers = Servers()
    for name in NAMES:
        def serve(reader, writer, name=name):
            return servers.serve(name, reader, writer)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
        print(name, "%s:%d" % server.sockets[0].getsockname(), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
