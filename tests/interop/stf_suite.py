#!/usr/bin/env python3
"""Runs STF cases on a real simple_switch_grpc, as p4c's driver does, and writes what passes.

    tests/interop/stf_suite.py DIR [NAME ...] > bmv2.csv

DIR holds NAME.json and NAME.stf, and NAME.p4info.txtpb where p4c makes one. Needs the PyPI package p4runtime (requirements.txt) and
simple_switch_grpc on the PATH or in SIMPLE_SWITCH; no root: packets go through pcap files that are pipes. Entries, clone sessions
and multicast groups are written over P4Runtime; without P4Info, entries become part of the program. `check_counter`, which p4c's driver
ignores, is checked over P4Runtime. One line per case: name, result, why not.
"""
import concurrent.futures
import csv
import glob
import json
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time

# p4runtime's generated code is older than most protobuf runtimes.
os.environ.setdefault("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")

import grpc
from google.protobuf import text_format
from p4.config.v1 import p4info_pb2
from p4.v1 import p4runtime_pb2 as p4rt
from p4.v1 import p4runtime_pb2_grpc

SWITCH = os.environ.get("SIMPLE_SWITCH", "simple_switch_grpc")
SETTLE_S = float(os.environ.get("SETTLE_S", "1"))  # after a change, before the next packet; p4c's driver has 1
PACE_S = 0.002  # between packets: a queue of BMv2 holds 64
DRAIN_S = 2  # at the end; p4c's driver has 2
PATIENCE_S = 60


def words(path):
    with open(path) as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line:
                verb, _, rest = line.partition(" ")
                yield verb.lower(), rest.strip()


def by_suffix(names, wanted):
    found = [n for n in names if n == wanted] or [n for n in names if n.endswith(wanted)]
    if len(found) != 1:
        raise ValueError(f"{wanted}: {len(found)} of that name")
    return found[0]


def number(text):
    return int(text.replace("*", "0"), 0) if not text.startswith("0o") else int(text[2:].replace("*", "0"), 8)


def mask_of(text):
    base, ones = {"0x": (16, "f"), "0b": (2, "1"), "0o": (8, "7")}[text[:2]]
    return int("".join("0" if c == "*" else ones for c in text[2:]), base)


def octets(value):
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Program:
    def __init__(self, base):
        with open(base + ".json") as file:
            self.json = json.load(file)
        self.tables = {t["name"]: t for p in self.json["pipelines"] for t in p["tables"]}
        self.actions = {a["id"]: a for a in self.json["actions"]}
        self.widths = {}
        types = {t["name"]: dict((f[0], f[1]) for f in t["fields"]) for t in self.json["header_types"]}
        for header in self.json["headers"]:
            self.widths[header["name"]] = types[header["header_type"]]
        self.info = p4info_pb2.P4Info()
        self.has_info = os.path.exists(base + ".p4info.txtpb")
        if self.has_info:
            with open(base + ".p4info.txtpb") as file:
                # Maps, which only type_info has, are not read by every version of the package; the switch can do without.
                text = re.sub(r"^type_info \{.*?^\}\n", "", file.read(), flags=re.S | re.M)
            text_format.Parse(text, self.info)

    def call(self, table, text):
        name, arguments = re.fullmatch(r"([\w.$]+)\s*\((.*)\)", text).groups()
        by_name = {self.actions[i]["name"]: self.actions[i] for i in table["action_ids"]}
        action = by_name[by_suffix(by_name, name)]
        given = dict(a.strip().split(":") for a in arguments.split(",") if a.strip())
        return action, [number(given[p["name"]]) for p in action["runtime_data"]]

    def split(self, rest):
        rest = rest.rsplit("=", 1)[0].strip() if re.search(r"\)\s*=", rest) else rest
        head, call = re.fullmatch(r"(.*?)([\w.$]+\s*\(.*\))", rest).groups()
        name, *keys = head.split()
        table = self.tables[by_suffix(self.tables, name)]
        priority = int(keys.pop(0)) if keys and ":" not in keys[0] else 0
        return table, priority, dict(k.split(":") for k in keys), self.call(table, call)

    def key_values(self, table, keys):
        keys = {re.sub(r"\$(\d+)", r"[\1]", k): v for k, v in keys.items()}
        for field in table["key"]:
            name = field.get("name") or ".".join(field["target"])
            target = ".".join(field["target"]) if field["match_type"] != "valid" else field["target"]
            known = [k for k in keys if name in (k, k + "$", k + ".$valid$") or name.endswith((f".{k}", f".{k}$"))
                     or target == k or target.endswith("." + k)
                     or (k.endswith(".valid") and name == k[:-5] + "$valid$") or (k == "valid" and name.endswith("$valid$"))]
            yield field, name, keys.pop(known[0]) if known else None
        if keys:
            raise ValueError(f"no match field {', '.join(keys)}")

    def width(self, field):
        header, name = field["target"]
        return 1 if name == "$valid$" else self.widths[header][name]

    def add_to_json(self, rest):
        table, priority, keys, (action, data) = self.split(rest)
        match = []
        for field, _, value in self.key_values(table, keys):
            digits = (self.width(field) + 7) // 8 * 2
            text = lambda n: f"0x{n:0{digits}x}"
            one = {"match_type": field["match_type"], "key": text(number(value or "0"))}
            if field["match_type"] == "ternary":
                one["mask"] = text(mask_of(value) & (1 << self.width(field)) - 1 if value else 0)
            elif field["match_type"] == "lpm":
                value, _, length = (value or "0x0/0").partition("/")
                one["prefix_length"] = int(length or 4 * (len(value) - 2 - value.count("*")))
                one["key"] = text(number(value))
            match.append(one)
        entry = {"action_id": action["id"], "action_data": [hex(d) for d in data]}
        table.setdefault("entries", []).append({"match_key": match, "action_entry": entry, "priority": 10_000 - priority})

    def default_to_json(self, rest):
        table, _, _, (action, data) = self.split(rest)
        table["default_entry"].update(action_id=action["id"], action_data=[hex(d) for d in data])

    def entry(self, rest):
        table, priority, keys, (action, data) = self.split(rest)
        known = next(t for t in self.info.tables if t.preamble.name == table["name"])
        entry = p4rt.TableEntry(table_id=known.preamble.id)
        fields = list(self.key_values(table, keys))
        for declared, (field, _, value) in zip(known.match_fields, fields):
            kind, width = declared.match_type, declared.bitwidth
            match = p4rt.FieldMatch(field_id=declared.id)
            if kind == declared.EXACT:
                match.exact.value = octets(number(value or "0"))
            elif kind == declared.LPM:
                value, _, length = (value or "0/0").partition("/")
                length = int(length or 4 * (len(value) - 2 - value.count("*")))
                if not length:
                    continue
                match.lpm.value, match.lpm.prefix_len = octets(number(value)), length
            elif value is None:
                continue
            elif kind == declared.RANGE:
                low, _, high = value.partition("->")
                match.range.low, match.range.high = octets(number(low)), octets(number(high or low))
            else:
                mask = mask_of(value) & (1 << width) - 1
                if not mask:
                    continue
                if kind == declared.OPTIONAL:
                    match.optional.value = octets(number(value))
                else:
                    match.ternary.value, match.ternary.mask = octets(number(value) & mask), octets(mask)
            entry.match.append(match)
        if any(m.match_type in (m.TERNARY, m.RANGE, m.OPTIONAL) for m in known.match_fields):
            entry.priority = priority + 1
        entry.action.action.CopyFrom(self.action(action, data))
        return entry

    def action(self, action, data):
        known = next(a for a in self.info.actions if a.preamble.name == action["name"])
        params = [p4rt.Action.Param(param_id=p.id, value=octets(d)) for p, d in zip(known.params, data)]
        return p4rt.Action(action_id=known.preamble.id, params=params)

    def default(self, rest):
        table, _, _, (action, data) = self.split(rest)
        known = next(t for t in self.info.tables if t.preamble.name == table["name"])
        entry = p4rt.TableEntry(table_id=known.preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(self.action(action, data))
        return entry


class Client:
    def __init__(self, address, program):
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(grpc.insecure_channel(address))
        self.election = p4rt.Uint128(low=1)
        self.nodes, self.groups, self.labels, self.program = [], {}, {}, program
        arbitration = p4rt.StreamMessageRequest()
        arbitration.arbitration.election_id.low = 1
        self.queue = queue.Queue()
        self.queue.put(arbitration)
        self.stream = self.stub.StreamChannel(iter(self.queue.get, None), wait_for_ready=True)
        next(self.stream)
        request = p4rt.SetForwardingPipelineConfigRequest(election_id=self.election, action="VERIFY_AND_COMMIT")
        request.config.p4info.CopyFrom(program.info)
        request.config.p4_device_config = json.dumps(program.json).encode()
        self.stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S)

    def write(self, kind, **entity):
        request = p4rt.WriteRequest(election_id=self.election)
        request.updates.add(type=kind, entity=p4rt.Entity(**entity))
        self.stub.Write(request, timeout=PATIENCE_S)

    def pre(self, kind, **entry):
        self.write(kind, packet_replication_engine_entry=p4rt.PacketReplicationEngineEntry(**entry))

    def group(self, kind, group):
        nodes = [self.nodes[n] for n in self.groups[group]]
        replicas = [p4rt.Replica(egress_port=p, instance=rid) for rid, ports in nodes for p in ports]
        self.pre(kind, multicast_group_entry=p4rt.MulticastGroupEntry(multicast_group_id=group, replicas=replicas))

    def command(self, verb, rest):
        arguments = rest.split()
        if verb == "add":
            if self.program.has_info:
                entry = self.program.entry(rest)
                self.write("INSERT", table_entry=entry)
                label = re.search(r"\)\s*=\s*\$?(\w+)", rest)
                if label:
                    self.labels[label[1]] = entry
        elif verb == "setdefault" and not self.program.has_info:
            pass
        elif verb == "setdefault":
            self.write("MODIFY", table_entry=self.program.default(rest))
        elif verb == "mirroring_add":
            replicas = [p4rt.Replica(egress_port=int(arguments[1], 0), instance=0)]
            self.pre("INSERT", clone_session_entry=p4rt.CloneSessionEntry(session_id=int(arguments[0], 0), replicas=replicas))
        elif verb == "mc_mgrp_create":
            self.groups[int(rest)] = []
            self.group("INSERT", int(rest))
        elif verb == "mc_node_create":
            self.nodes.append((int(arguments[0]), [int(p) for p in arguments[1:]]))
        elif verb == "mc_node_associate":
            self.groups[int(arguments[0])].append(int(arguments[1]))
            self.group("MODIFY", int(arguments[0]))
        else:
            raise ValueError(f"`{verb}` cannot be said to BMv2 without Thrift")

    def counter(self, rest):
        """Why a counter is not as expected."""
        name, cell, unit, operator, wanted = re.fullmatch(r"([\w.]+)\((\S+)\)(?: (\w+) (\S+) (\d+))?", rest).groups()
        info, request = self.program.info, p4rt.ReadRequest()
        if unit is None or not self.program.has_info:
            return None
        if cell.startswith("$"):
            entry = p4rt.TableEntry()
            entry.CopyFrom(self.labels[cell[1:]])
            entry.ClearField("action")
            request.entities.add(direct_counter_entry=p4rt.DirectCounterEntry(table_entry=entry))
        else:
            array = next(c for c in info.counters if c.preamble.name.endswith(name))
            entry = p4rt.CounterEntry(counter_id=array.preamble.id, index=p4rt.Index(index=int(cell)))
            request.entities.add(counter_entry=entry)
        (answer,) = self.stub.Read(request, timeout=PATIENCE_S)
        (entity,) = answer.entities
        data = entity.direct_counter_entry.data if cell.startswith("$") else entity.counter_entry.data
        value = data.byte_count if unit == "bytes" else data.packet_count
        holds = {"==": value == int(wanted), "!=": value != int(wanted), "<": value < int(wanted), "<=": value <= int(wanted),
                 ">": value > int(wanted), ">=": value >= int(wanted)}[operator]
        return None if holds else f"{rest}: {value}"

    def close(self):
        self.queue.put(None)


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def record(data):
    now = time.time()
    return struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(data), len(data)) + data


def packets_of(path):
    with open(path, "rb") as file:
        data, packets = file.read()[24:], []
    while len(data) >= 16:
        length = struct.unpack("<I", data[8:12])[0]
        packets.append(data[16:16 + length].hex())
        data = data[16 + length:]
    return packets


def fits(want, got):
    exact = want.endswith("$")
    want = want.rstrip("$")
    length = len(got) == len(want) if exact else len(got) >= len(want)
    return length and all(w in ("*", g) for w, g in zip(want, got))


def compare(folder, ports, expected):
    for port in ports:
        got, want = packets_of(os.path.join(folder, f"p{port}_out.pcap")), expected.get(port, [])
        if want == [None]:
            continue
        if len(want) != len(got):
            return f"port {port}: {len(got)} packets, expected {len(want)}"
        for w, g in zip(want, got):
            if not fits(w, g):
                return f"port {port}: got {g}, expected {w}"
    return None


def open_pipe(path, switch):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(pipe, True)
            return pipe
        except OSError:
            if switch.poll() is not None:
                raise RuntimeError(f"{SWITCH} ended with {switch.returncode}") from None
            time.sleep(0.02)
    raise RuntimeError(f"{SWITCH} does not open {path}")


def finish(pipes):
    while pipes:
        os.close(pipes.popitem()[1])
        if not pipes:
            time.sleep(DRAIN_S)


def run(base):
    commands = list(words(base + ".stf"))
    program = Program(base)
    if not program.has_info:
        for verb, rest in commands:
            if verb == "add":
                program.add_to_json(rest)
            elif verb == "setdefault":
                program.default_to_json(rest)
    ports = sorted({int(rest.split()[0]) for verb, rest in commands if verb in ("packet", "expect")})
    expected, changed, wrong = {}, False, []
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        line = [SWITCH, "--no-p4", "-L", "off", "--use-files", "0"]
        for port in ports:
            os.mkfifo(os.path.join(folder, f"p{port}_in.pcap"))
            line += ["-i", f"{port}@p{port}"]
        line += ["--", "--grpc-server-addr", address]
        with open(os.path.join(folder, "log"), "w") as log:
            switch = subprocess.Popen(line, cwd=folder, stdout=log, stderr=log)
        try:
            pipes = {}
            for port in ports:
                pipes[port] = open_pipe(os.path.join(folder, f"p{port}_in.pcap"), switch)
                os.write(pipes[port], PCAP)
            client = Client(address, program)
            last = max((i for i, (verb, _) in enumerate(commands) if verb == "packet"), default=0)
            for i, (verb, rest) in enumerate(commands):
                if i == last + 1:
                    # BMv2 reads the pipes in the order of packets' times: it waits for a packet or the end of each.
                    finish(pipes)
                if verb == "packet":
                    port, *data = rest.split()
                    time.sleep(SETTLE_S if changed else 0)
                    changed = False
                    os.write(pipes[int(port)], record(bytes.fromhex("".join(data))))
                    time.sleep(PACE_S)
                elif verb == "expect":
                    port, *data = rest.split()
                    expected.setdefault(int(port), []).append("".join(data).lower() or None)
                elif verb == "check_counter":
                    time.sleep(SETTLE_S)
                    wrong.append(client.counter(rest))
                elif verb not in ("wait", "no_packet", "remove"):
                    client.command(verb, rest)
                    changed = True
            finish(pipes)
            if switch.poll() is not None:
                return f"{SWITCH} ended with {switch.returncode}"
            client.close()
        finally:
            switch.terminate()
            switch.wait()
        return next(filter(None, [*wrong, compare(folder, ports, expected)]), None)


def guarded(base):
    try:
        return run(base)
    except grpc.RpcError as error:
        return f"{error.code().name}: {error.details()}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main():
    folder, *names = sys.argv[1:]
    names = names or sorted(os.path.basename(p)[:-4] for p in glob.glob(os.path.join(folder, "*.stf")))
    out = csv.writer(sys.stdout, lineterminator="\n")
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "4"))) as pool:
        for name, why in zip(names, pool.map(guarded, [os.path.join(folder, n) for n in names])):
            out.writerow([name, "fail" if why else "pass", why or ""])
            sys.stdout.flush()


if __name__ == "__main__":
    main()
