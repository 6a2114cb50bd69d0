#!/usr/bin/env python3
"""Packets per second through two veth pairs: `ringpath switch`, simple_switch_grpc if there is one, and a forwarder that only copies.

    sudo tests/interop/veth_pps.py RINGPATH FORWARDER

RINGPATH is a release build, FORWARDER the example `veth` (cargo build --release --example veth). Each forwards one flow with p4/samples/router.p4
between two pairs in a network namespace of its own. A sender on core 0 offers more than any of them takes; what arrives behind them is
counted by the far interface. "one core": the switch may use core 1 only; "free": both, beside the sender. Rounds alternate, and the median
counts. Needs root and iproute2; says SKIPPED by name where one is missing.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SWITCH = os.environ.get("SIMPLE_SWITCH", "simple_switch_grpc")
SPACE = "rppps"
SECONDS = float(os.environ.get("VETH_SECONDS", "3"))
ROUNDS = int(os.environ.get("VETH_ROUNDS", "3"))
LENGTHS = (64, 1400)
PATIENCE_S = 20


def within(*words):
    return ["ip", "netns", "exec", SPACE, *words]


def run(*words):
    subprocess.run(words, check=True)


def program():
    """The router with a route to 10.0.2.0/24 by port 2 as an entry of the program, so that no controller takes part."""
    with open(os.path.join(REPO, "p4/build/router.json")) as file:
        router = json.load(file)
    (forward,) = [a["id"] for a in router["actions"] if a["name"].endswith(".forward")]
    (table,) = [t for p in router["pipelines"] for t in p["tables"] if t["name"].endswith(".route")]
    key = [{"match_type": "lpm", "key": "0x0a000200", "prefix_length": 24}]
    action = {"action_id": forward, "action_data": ["0x020000000002", "0x0200000000aa", "0x2"]}
    table["entries"] = [{"match_key": key, "action_entry": action, "priority": 1}]
    return json.dumps(router)


def frame(length):
    head = bytes.fromhex("0200000000aa0200000000010800" "4500")
    ip = length - 14
    body = bytearray(head + ip.to_bytes(2, "big") + bytes.fromhex("000100004011" "0000" "0a000101" "0a000207"))
    total = sum(int.from_bytes(body[at : at + 2], "big") for at in range(14, 34, 2))
    total = (total >> 16) + (total & 0xFFFF)
    body[24:26] = (~total & 0xFFFF).to_bytes(2, "big")
    return bytes(body).ljust(length, b"\x5a").hex()


class Pairs:
    """a0 (sender) - a1 (switch) and b1 (switch) - b0 (far end)."""

    def __enter__(self):
        run("ip", "netns", "add", SPACE)
        run(*within("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"))
        for pair in "ab":
            run(*within("ip", "link", "add", f"{pair}0", "type", "veth", "peer", "name", f"{pair}1"))
            for end in "01":
                run(*within("ip", "link", "set", f"{pair}{end}", "up"))
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", SPACE])

    def arrived(self):
        out = subprocess.run(within("cat", "/sys/class/net/b0/statistics/rx_packets"), capture_output=True, text=True, check=True)
        return int(out.stdout)


def measure(pairs, command, tool, packet, cores):
    """Packets per second behind `command` while it is offered more than it takes, and what was offered."""
    process = subprocess.Popen(within("taskset", "-c", cores, *command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        probe(pairs, process, tool, packet)
        sender = subprocess.Popen(within("taskset", "-c", "0", tool, "send", "a0", str(SECONDS + 1), packet), stdout=subprocess.PIPE)
        time.sleep(0.5)  # into the steady state
        begin, before = time.monotonic(), pairs.arrived()
        time.sleep(SECONDS)
        after, end = pairs.arrived(), time.monotonic()
        offered = int(sender.communicate()[0]) / (SECONDS + 1)
        return (after - before) / (end - begin), offered
    finally:
        process.kill()
        process.wait()


def probe(pairs, process, tool, packet):
    """Waits until packets come through."""
    end = time.monotonic() + PATIENCE_S
    before = pairs.arrived()
    while pairs.arrived() - before < 8:
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"veth_pps: {process.args[-1]} forwards nothing (exit code {process.poll()})")
        run(*within("sh", "-c", f"{tool} send a0 0.01 {packet} >/dev/null"))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reason = "not root" if os.geteuid() else "no iproute2" if shutil.which("ip") is None else None
    if reason:
        print(f"veth_pps: SKIPPED: {reason}")
        return 0
    ringpath, tool = (os.path.abspath(path) for path in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder, Pairs() as pairs:
        path = os.path.join(folder, "router.json")
        with open(path, "w") as file:
            file.write(program())
        ports = ["-i", "1@a1", "-i", "2@b1"]
        address = ["--grpc-server-addr", "127.0.0.1:0"]
        run(*within("ip", "link", "set", "lo", "up"))
        commands = {
            "copy only": [tool, "forward", "a1", "b1"],
            "ringpath switch": [ringpath, "switch", path, *ports, *address],
        }
        if shutil.which(SWITCH):
            commands["simple_switch_grpc"] = [SWITCH, "-L", "off", *ports, path, "--", *address]
        else:
            print(f"veth_pps: SKIPPED simple_switch_grpc: no {SWITCH} on the PATH")
        for length in LENGTHS:
            for cores, name in (("1", "one core"), ("0,1", "free")):
                rates = {who: [] for who in commands}
                for _ in range(ROUNDS):
                    for who, command in commands.items():
                        rates[who].append(measure(pairs, command, tool, frame(length), cores))
                middle = {who: statistics.median(rate for rate, _ in all_of) for who, all_of in rates.items()}
                ours = middle["ringpath switch"]
                for who, rate in middle.items():
                    offered = statistics.median(offer for _, offer in rates[who])
                    note = "" if who == "ringpath switch" else f", ringpath switch is {ours / rate:.2f} times that"
                    print(f"{length:5} bytes, {name:8}: {who:18} {rate:9,.0f} packets/s of {offered:9,.0f}{note}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
