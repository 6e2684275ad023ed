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
    """One running proxy; `$DIR` in the text becomes its folder, which gets `files` before the start. Use it with `with`.

    With `heard`, its messages on standard error are kept for `says`, else they go where ours go."""

    def __init__(self, text, prefix=(), files=None, heard=False):
        self.folder = tempfile.TemporaryDirectory(prefix="forebay-")
        self.config = os.path.join(self.folder.name, "forebay.toml")
        self.lines, self.messages, self.more = [], [], threading.Condition()
        self.rewrite(text)
        for name, content in (files or {}).items():
            self.replace(name, content)
        self.process = subprocess.Popen([*prefix, binary(), "run", self.config], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE if heard else None)
        self.pid = self.process.pid
        threading.Thread(target=self.read, args=(self.process.stdout, self.lines), daemon=True).start()
        if heard:
            threading.Thread(target=self.read, args=(self.process.stderr, self.messages), daemon=True).start()

    def read(self, stream, lines):
        for line in stream:
            with self.more:
                lines.append(line.rstrip("\n"))
                self.more.notify_all()
        with self.more:
            lines.append(None)
            self.more.notify_all()

    def says(self, parts, since=0, patience=10):
        """Waits for a message, at or after that place in `messages`, that has all these parts; False if there is none."""
        end = time.time() + patience
        with self.more:
            while True:
                new = self.messages[since:]
                if any(line is not None and all(part in line for part in parts) for line in new):
                    return True
                left = end - time.time()
                if left <= 0 or None in new:
                    return False
                self.more.wait(left)

    def address(self, name="web", patience=10):
        """HOST:PORT of a listener, once the program has printed it."""
        return self.printed("listening %s " % name, patience)

    def printed(self, prefix, patience=10):
        """What follows this on a line of standard output."""
        end = time.time() + patience
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

    def replace(self, name, content):
        """Puts a file into the folder, from one moment to the next."""
        path = os.path.join(self.folder.name, name)
        with open(path + ".new", "wb") as f:
            f.write(content)
        os.replace(path + ".new", path)

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


def resident(pid):
    """Bytes of memory; 0 for a process that is gone."""
    try:
        for line in open("/proc/%d/status" % pid):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


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
