#!/usr/bin/env python3
"""Runs tests/data/stf/*.stf on a real simple_switch_grpc: the same files that the embedded switch must pass.

    sudo tests/interop/bmv2_stf.py [FILE.stf ...]

Needs root (veth pairs, raw sockets), iproute2 and simple_switch_grpc on the PATH or in SIMPLE_SWITCH; says SKIPPED by name where
one is missing. Entries go into a copy of the compiled JSON as entries of the program, so no controller takes part; port 510 is an
ordinary port. Packets are sent one after the other, because simple_switch works on them in several threads: a readout of
source slot 4095 follows each, and its reply says that ingress is done with it.
"""
import glob
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(REPO, "p4/build/ringpath.json")
SWITCH = os.environ.get("SIMPLE_SWITCH", "simple_switch_grpc")
PORTS = [1, 2, 3, 10, 11, 12, 510]  # every port that a file names, so that nothing leaves unseen
EGRESS_S = 0.03  # wait for the egress threads after a packet
PATIENCE_S = 20  # for the switch to start, and for one reply
# packet_out, Ethernet with our EtherType, op 3 (source), request id, slot 4095
MARKER = bytes.fromhex("01FE" + "00" * 12 + "88B6" + "52500103" + "FEDCBA98" + "0FFF" + "0000" + "00000000")
SHORTEST = 14  # bytes of an Ethernet header: Linux sends nothing shorter


def number(text):
    return int(text, 0)


def pairs(text, separator):
    return dict(pair.split(":") for pair in re.split(separator, text.strip()) if pair)


class Program:
    """The compiled JSON with entries added to its tables."""

    def __init__(self):
        with open(PROGRAM) as file:
            self.json = json.load(file)
        self.tables = [t for p in self.json["pipelines"] for t in p["tables"]]
        self.actions = {a["id"]: a for a in self.json["actions"]}
        types = {t["name"]: dict((f[0], f[1]) for f in t["fields"]) for t in self.json["header_types"]}
        self.fields = {h["name"]: types[h["header_type"]] for h in self.json["headers"]}

    def add(self, rest, default):
        head, action, arguments = re.fullmatch(r"(.*?)([\w.]+)\((.*)\)", rest).groups()
        name, *words = head.split()
        (table,) = [t for t in self.tables if t["name"].endswith("." + name)]
        (action,) = [self.actions[i] for i in table["action_ids"] if self.actions[i]["name"].endswith(action)]
        given = pairs(arguments, r"\s*,\s*")
        data = [hex(number(given.pop(p["name"]))) for p in action["runtime_data"]]
        assert not given, f"unknown arguments {given}"
        if default:
            table["default_entry"].update(action_id=action["id"], action_data=data)
            return
        priority = 1
        if words and ":" not in words[0]:
            priority = 10_000 - int(words.pop(0))  # in STF the larger wins, in BMv2's JSON the smaller
        keys = pairs(" ".join(words), r"\s+")
        match = [self.match(field, keys.pop(field["name"], None)) for field in table["key"]]
        assert not keys, f"unknown keys {keys}"
        entry = {"action_id": action["id"], "action_data": data}
        table.setdefault("entries", []).append({"match_key": match, "action_entry": entry, "priority": priority})

    def match(self, field, value):
        header, name = field["target"]
        width = self.fields[header][name]
        text = lambda n: f"0x{n:0{(width + 7) // 8 * 2}x}"
        if field["match_type"] == "ternary":
            mask = (1 << width) - 1 if value else 0
            return {"match_type": "ternary", "key": text(number(value or "0")), "mask": text(mask)}
        return {"match_type": "exact", "key": text(number(value))}


def read(path):
    program, packets, expected = Program(), [], {port: [] for port in PORTS}
    with open(path) as file:
        for line in file:
            line = line.split("#")[0].strip()
            if not line:
                continue
            verb, rest = line.split(None, 1)
            if verb in ("add", "setdefault"):
                program.add(rest, verb == "setdefault")
            elif verb == "packet":
                port, data = rest.split(None, 1)
                packets.append((int(port), bytes.fromhex(data.replace(" ", ""))))
            elif verb == "expect":
                port, data = rest.split(None, 1)
                expected[int(port)].append(data.replace(" ", ""))
            else:
                sys.exit(f"{path}: `{verb}` is not known")
    return program, packets, expected


class Links:
    """One veth pair per port: rp<port>s for the switch, rp<port>t for the test."""

    def __enter__(self):
        self.sockets = {}
        for port in PORTS:
            ends = [f"rp{port}s", f"rp{port}t"]
            subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
            for end in ends:
                with open(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6", "w") as file:
                    file.write("1")  # the kernel's own router solicitations are not ours to expect
                subprocess.run(["ip", "link", "set", end, "mtu", "9000", "up"], check=True)
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            raw.bind((ends[1], 0))
            raw.setblocking(False)
            self.sockets[port] = raw
        return self

    def __exit__(self, *_):
        for port in PORTS:
            subprocess.run(["ip", "link", "del", f"rp{port}s"])

    def receive(self, into):
        for port, raw in self.sockets.items():
            while True:
                try:
                    data, address = raw.recvfrom(65536)
                except BlockingIOError:
                    break
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                if MARKER[2:] in data:
                    self.markers += 1
                else:
                    into[port].append(data.hex().upper())

    def settle(self, into, switch):
        """Waits until the switch has answered a marker."""
        self.markers, end = 0, time.monotonic() + PATIENCE_S
        while not self.markers and switch.poll() is None and time.monotonic() < end:
            self.sockets[510].send(MARKER)
            again = time.monotonic() + 1
            while not self.markers and time.monotonic() < again:
                time.sleep(0.002)
                self.receive(into)
        time.sleep(EGRESS_S)
        self.receive(into)


def fits(want, got):
    exact = want.endswith("$")
    want = want.rstrip("$")
    length = len(got) == len(want) if exact else len(got) >= len(want)
    return length and all(w in ("*", g) for w, g in zip(want, got))


def run(path, folder):
    program, packets, expected = read(path)
    received = {port: [] for port in PORTS}
    with open(os.path.join(folder, "program.json"), "w") as file:
        json.dump(program.json, file)
    with Links() as links:
        command = [SWITCH, "-L", "off"]
        for port in PORTS:
            command += ["-i", f"{port}@rp{port}s"]
        command += [file.name, "--", "--priority-queues", "8", "--grpc-server-addr", "127.0.0.1:0"]
        switch = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            links.settle(received, switch)
            for port, data in packets:
                if len(data) >= SHORTEST:
                    links.sockets[port].send(data)
                    links.settle(received, switch)
            problems = [] if switch.poll() is None else [f"{SWITCH} ended with {switch.returncode}"]
        finally:
            switch.kill()
            switch.wait()
    for port in PORTS:
        want = [w for w in expected[port] if len(w.rstrip("$")) >= 2 * SHORTEST]
        if len(received[port]) != len(want):
            problems.append(f"port {port} sent {len(received[port])} packets, expected {len(want)}")
        for w, g in zip(want, received[port]):
            if not fits(w, g):
                problems.append(f"port {port}\n    wanted {w}\n    got    {g}")
    return problems


def main():
    reason = None
    if shutil.which(SWITCH) is None:
        reason = f"no {SWITCH} on the PATH"
    elif os.geteuid() != 0:
        reason = "not root"
    elif shutil.which("ip") is None:
        reason = "no iproute2"
    if reason:
        print(f"bmv2_stf: SKIPPED: {reason}")
        return 0
    files = sys.argv[1:] or sorted(glob.glob(os.path.join(REPO, "tests/data/stf/*.stf")))
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            problems = run(path, folder)
            failed += bool(problems)
            print(f"{os.path.basename(path)}: {'FAILED' if problems else 'ok'}")
            for problem in problems:
                print("  " + problem)
    print(f"{len(files) - failed} of {len(files)} passed on {SWITCH}")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
