#!/usr/bin/env python3
"""The conformance gate: every case of the corpus against the real binary, with 1 and with 4 workers.

    tests/conformance/run.py [--workers 1,4] [--segment N] [any option of h1_runner.py that chooses cases]

Fails when a case fails that `known-failures.txt` does not list, and when a listed case passes: the list may only
shrink. FOREBAY names the binary, else the newest build is taken.
"""
import argparse, json, os, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import launch  # noqa: E402

KNOWN = os.path.join(HERE, "known-failures.txt")

# What the head of h1_runner.py asks of a proxy.
CONFIG = """
[process]
workers = %d
log = { to = "none" }

[[listen]]
name = "web"
bind = "127.0.0.1:0"
backend = "origin"
head-max = "16KiB"
timeout-http-request = "1500ms"
timeout-client = "1500ms"
timeout-http-keep-alive = "4s"
timeout-tunnel = "5s"

[backend.origin]
reuse = "always"
timeout-connect = "1s"
timeout-server = "1500ms"
servers = ["127.0.0.1:%d"]
"""


def known():
    with open(KNOWN) as f:
        return {line.split("#")[0].strip() for line in f} - {""}


def run(workers, options):
    """Results by case id."""
    port = launch.free_port()
    with launch.Forebay(CONFIG % (workers, port)) as proxy, tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [sys.executable, os.path.join(HERE, "h1_runner.py"), "--proxy", proxy.address(), "--origin-port",
                   str(port), "--cases", os.path.join(HERE, "h1_cases.jsonl"), "--expect-fail", KNOWN, "--quiet",
                   "--json", out.name, *options]
        code = subprocess.run(command).returncode
        if code == 2 or not proxy.alive():
            sys.exit("the proxy did not serve, or did not survive, with %d workers" % workers)
        return {case["id"]: case for case in json.load(open(out.name))}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--workers", default="1,4", help="comma list of worker counts")
    a, options = ap.parse_known_args()
    listed, bad = known(), []
    for workers in [int(n) for n in a.workers.split(",")]:
        begun = time.time()
        results = run(workers, options)
        passed = [c for c in results.values() if c["pass"]]
        bad += ["%s fails with %d workers" % (i, workers) for i, c in results.items() if not c["pass"] and i not in listed]
        bad += ["%s passes with %d workers: take it off known-failures.txt" % (c["id"], workers) for c in passed if c["id"] in listed]
        levels = {}
        for c in results.values():
            levels.setdefault(c["level"], []).append(c["pass"])
        counts = ", ".join("%s %d/%d" % (level, sum(levels[level]), len(levels[level])) for level in levels)
        print("workers %d: %d of %d cases (%s) in %.0f s" % (workers, len(passed), len(results), counts, time.time() - begun))
    every = {json.loads(line)["id"] for line in open(os.path.join(HERE, "h1_cases.jsonl")) if line.strip()}
    bad += ["%s is listed and no case" % i for i in sorted(listed - every)]
    for line in bad:
        print("GATE  " + line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
