"""A policy is replaced again and again under load (`run.py swaps`).

Each time the component's file is replaced by a copy with another digest, the proxy is sent SIGHUP, and the next swap waits
until it has said that it loaded exactly that digest. Wanted: every swap took place, no request failed, every choice was
the policy's, and from a tenth of the swaps to the last one memory grew by at most 2 MiB, threads and descriptors not at
all; in the end no replaced policy is left, and meanwhile there were never more than a few.
"""
import hashlib, os, signal, statistics, time, urllib.request

import launch

COMPONENT = os.path.join(launch.ROOT, "plugins", "header-shard", "header-shard.wasm")
GROWN_MAX = 2 << 20
# Replaced policies that may be in use at once: one that each worker still holds, and a few that are being freed.
REPLACED_MAX = 8

CONFIG = """
[process]
workers = 2
metrics = "127.0.0.1:0"
log = { to = "none" }

[[listen]]
name = "web"
bind = "127.0.0.1:0"
backend = "app"

[backend.app]
balance = { policy = "shard" }
servers = [%s]

[policy.shard]
component = "shard.wasm"
config = { header = "host" }
"""


def run(ports, load, swaps, pace):
    """`load(proxy, *options)` starts a lossmeter whose origins are at these ports; a swap follows the one before after
    `pace` seconds, so that the load sees each of them."""
    with open(COMPONENT, "rb") as f:
        plain = f.read()
    text = CONFIG % ", ".join('"127.0.0.1:%d"' % port for port in ports)
    early, times, left = None, [], []
    with launch.Forebay(text, files={"shard.wasm": plain}, heard=True) as proxy:
        meter = load(proxy, "--requests", "10000000", "--times", "0", "--pause", "0.02",
                     "--max-s", str(600 + swaps))
        time.sleep(1)
        for number in range(1, swaps + 1):
            begun, heard = time.time(), len(proxy.messages)
            content = variant(plain, number)
            proxy.replace("shard.wasm", content)
            proxy.reload()
            if not proxy.says(["a policy has been loaded", digest(content)], heard):
                print("swap %d did not take place: %s" % (number, proxy.messages[-5:]))
                break
            times.append(time.time() - begun)
            time.sleep(max(0, pace - times[-1]))
            if number == swaps // 10:
                early = used(proxy.pid)
            if number % max(swaps // 100, 1) == 0:
                left.append(metrics(proxy)["replaced"])
        time.sleep(1)
        late, counted = used(proxy.pid), metrics(proxy)
        meter.send_signal(signal.SIGTERM)
        lost = meter.wait() != 0
        complaints = [line for line in proxy.messages if line and (" error " in line or " warn " in line)]
        alive = proxy.alive()
    print("replaced policies still in use: at most %d, in the end %d" % (max(left, default=0), counted["replaced"]))
    freed = max(left, default=0) <= REPLACED_MAX and counted["replaced"] == 0
    return alive and judge(times, swaps, early, late, counted, complaints) and freed and not lost


def judge(times, swaps, early, late, counted, complaints):
    """Prints what was seen; whether all is as it should be."""
    ms = sorted(it * 1e3 for it in times) or [0]
    print("swaps %d of %d, ms each: median %.0f, p99 %.0f, max %.0f"
          % (len(times), swaps, statistics.median(ms), ms[int(len(ms) * 0.99)], ms[-1]))
    print("questions %d, of them faults %d; choices by the policy %d, without it %d"
          % tuple(counted[it] for it in ("calls", "faults", "pick", "others")))
    if early is None:
        return False
    for name in early:
        print("%s: %s after a tenth of the swaps, %s after the last" % (name, early[name], late[name]))
    for line in complaints[:5]:
        print("it complains: " + line)
    grown = late["memory KiB"] - early["memory KiB"]
    same = all(late[name] <= early[name] for name in ("threads", "descriptors beside sockets"))
    fine = counted["calls"] > 0 and counted["faults"] == 0 and counted["others"] == 0 and not complaints
    return len(times) == swaps and grown <= GROWN_MAX // 1024 and same and fine


def variant(component, number):
    """The same component with a custom section that says which one it is."""
    name, content = b"swap", b"%d" % number
    section = leb(len(name)) + name + content
    return component + b"\0" + leb(len(section)) + section


def leb(number):
    """As an unsigned LEB128."""
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def digest(content):
    """As the program's messages show it."""
    return "sha256=" + hashlib.sha256(content).hexdigest()[:12]


def used(pid):
    """What the process holds. Connections come and go with the load, so sockets are not counted."""
    folder, others = "/proc/%d/fd" % pid, 0
    for entry in os.listdir(folder):
        try:
            others += not os.readlink(os.path.join(folder, entry)).startswith("socket:")
        except OSError:
            pass  # closed meanwhile
    memory = statistics.median(launch.resident(pid) // 1024 for _ in range(9) if not time.sleep(0.05))
    return {"memory KiB": memory, "threads": len(os.listdir("/proc/%d/task" % pid)), "descriptors beside sockets": others}


def metrics(proxy):
    """Sums over all series of a few families."""
    text = urllib.request.urlopen(proxy.printed("metrics ").strip(), timeout=5).read().decode()
    sums = {"calls": 0, "faults": 0, "pick": 0, "others": 0, "replaced": 0}
    for line in text.splitlines():
        series, _, value = line.rpartition(" ")
        if series.startswith("forebay_policy_calls_total"):
            sums["calls"] += int(float(value))
        elif series.startswith("forebay_policy_faults_total"):
            sums["faults"] += int(float(value))
        elif series == "forebay_process_replaced_policies":
            sums["replaced"] += int(float(value))
        elif series.startswith("forebay_backend_choices_total"):
            sums["pick" if 'source="pick"' in series else "others"] += int(float(value))
    return sums
