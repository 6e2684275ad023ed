"""Starts the real program for the Python tests: a configuration text in a temporary folder, port 0, ended by its pid."""
import os, signal, subprocess, tempfile, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def binary():
    """FOREBAY names another binary; else the newest of the two builds."""
    named = os.environ.get("FOREBAY")
    if named:
        return named
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    built = [p for p in (os.path.join(target, d, "forebay") for d in ("release", "debug")) if os.path.exists(p)]
    if not built:
        raise SystemExit("there is no forebay binary: cargo build --release first, or FOREBAY=path")
    return max(built, key=os.path.getmtime)


class Forebay:
    """One running proxy; `$DIR` in the text becomes its folder. Use it with `with`."""

    def __init__(self, text, prefix=()):
        self.folder = tempfile.TemporaryDirectory(prefix="forebay-")
        self.config = os.path.join(self.folder.name, "forebay.toml")
        self.lines, self.more = [], threading.Condition()
        self.rewrite(text)
        self.process = subprocess.Popen([*prefix, binary(), "run", self.config], stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line.rstrip("\n"))
                self.more.notify_all()
        with self.more:
            self.lines.append(None)
            self.more.notify_all()

    def address(self, name="web", patience=10):
        """HOST:PORT of a listener, once the program has printed it."""
        prefix, end = "listening %s " % name, time.time() + patience
        with self.more:
            while True:
                for line in self.lines:
                    if line is not None and line.startswith(prefix):
                        return line[len(prefix):]
                left = end - time.time()
                if left <= 0 or None in self.lines:
                    raise SystemExit("the program did not print %r" % prefix)
                self.more.wait(left)

    def rewrite(self, text):
        with open(self.config, "w") as f:
            f.write(text.replace("$DIR", self.folder.name))

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def alive(self):
        return self.process.poll() is None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.folder.cleanup()


def free_port():
    """A port nobody listens on now, below the range that the kernel hands out."""
    import random, socket
    for _ in range(200):
        port = random.randrange(20500, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise SystemExit("no free port")
