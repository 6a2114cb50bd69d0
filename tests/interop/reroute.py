#!/usr/bin/env python3
"""Paths and queues of flows change, hundreds of times, under real TCP on real switches: nothing is lost and nothing is overtaken by an orderly change.

    sudo /usr/bin/python3 tests/interop/reroute.py RINGPATH [--switch embedded|bmv2] [--changes 200] [--keep DIR]

Mininet, the controller and the switches of bmv2-testbed; two leaves, two spines, jobs whose rings cross them, and one iperf3 over TCP between two hosts
of a job of its own. While they run the controller is told again and again to plan by another policy (`ringpath job replan --policy`), until so many flows
have been moved. What is checked is read from the wire, in captures of every port of every switch: a change is the first packet of a flow that leaves its
source leaf with another label or queue. It is *orderly* if the source's own time stamps show that the flow had paused for `flip_gap` before it, else
forced, which the switches must have counted (`forced_flips`). Then:

- all iterations are done, and at least --changes changes were seen;
- flows without a forced change: no sequence number is missing and none comes late at the sink leaf, in the captures and in the sink's own cells
  (`lost`, `reordered`: registers of the embedded switch; on BMv2 the readout replies that the controller recorded);
- no host sends a byte range twice within 50 ms of an orderly change of its flow or of the flow of its acknowledgements; others are counted;
- no switch had to drop a packet or found no label.

SKIPPED by name without root, Mininet, or (--switch bmv2) simple_switch_grpc. Exit code 1: something of this does not hold.
"""
import argparse
import collections
import itertools
import json
import os
import shutil
import struct
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bmv2-testbed"))
import run
from testbed.experiment import Experiment, end_by_signals
from testbed.processes import PATIENCE_S, Failure, checked

# Policies that differ in paths and queues.
POLICIES = ["least-loaded", "crux", "ecmp", "joint"]
RATE = "20Mbps"
# A change is orderly only if the pause is longer than any packet may wait. A flow sends 7 packets (10 kB: half of a ring's bytes, a block of a stream)
# and then waits for others, so that 8 flows in one direction have less than the 64 packets of a queue on their way: none overflows if all of them
# share one, and no packet waits for 40 ms. The controller's own gap, 32 packet times (19 ms), is for networks whose queues are shorter: a flow that
# strict priority holds back pauses, too, because its window is in a queue.
BYTES = "20kB"
# A tail loss probe sends the last segment again because an answer is late, without anything lost or overtaken (RFC 8985, 7); flows that wait for
# others by strict priority would do so all the time. What tells loss from duplicate acknowledgements, and the time-out, stay as they are.
NO_PROBES = "tcp_early_retrans=0"
FLIP_GAP = "120ms"
# Rings pause longer than that; a plan stays until all its changes are in force, and forced ones (500 ms) too.
COMPUTE_MS, ITERATION_S, PLAN_S = 200, 0.22, 0.7
# Flows that change per plan, a low guess: how many plans there are.
CHANGES_PER_PLAN = 8
PRIORITY = -10
TCP = 6
NEAR_S = 0.05
FABRIC = """
name = "reroute"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 6
host_link = "{rate}"
fabric_link = "{rate}"
"""
JOB = """
[[job]]
name = "{name}"
bytes = "{bytes}"
compute = "{compute}ms"
workers = {workers}
iterations = {iterations}
"""
# Rings, and two flows of iperf3: blocks with pauses between them, and one that never pauses, whose changes can only be forced.
RINGS = [["h1", "h7"], ["h2", "h8"], ["h3", "h9"], ["h4", "h10"], ["h1", "h8", "h3", "h10"]]
STREAMS = {"blocks": (["h5", "h11"], ["-b", "400K", "-l", "10K"]), "steady": (["h6", "h12"], ["-b", "2M", "-l", "1400"])}


def arguments():
    parser = argparse.ArgumentParser(description="Changes of paths and queues under real TCP.")
    parser.add_argument("ringpath", metavar="RINGPATH")
    parser.add_argument("--switch", default="embedded", choices=["embedded", "bmv2"])
    parser.add_argument("--changes", type=int, default=200, help="flows that must have changed (default: 200)")
    parser.add_argument("--flip-gap", default=FLIP_GAP, metavar="TIME", help=f"the controller's (default here: {FLIP_GAP})")
    parser.add_argument("--bytes", default=BYTES, help=f"a ring's, per iteration (default: {BYTES}); 60kB with --flip-gap 1ms must fail")
    parser.add_argument("--keep", metavar="DIR", help="leave captures and logs there")
    return parser.parse_args()


def scenario(changes, size):
    """The scenario, and the events that are played on it."""
    plans = -(-changes // CHANGES_PER_PLAN)
    iterations = int((plans + 2) * PLAN_S / ITERATION_S)
    jobs = [(f"ring{number}", hosts, iterations) for number, hosts in enumerate(RINGS, 1)]
    jobs += [(name, hosts, 1) for name, (hosts, _) in STREAMS.items()]
    text = FABRIC.format(rate=RATE) + "".join(
        JOB.format(name=name, bytes=size, compute=COMPUTE_MS, workers=json.dumps(hosts), iterations=count) for name, hosts, count in jobs)  # fmt: skip
    for number in range(plans):
        policy = POLICIES[(number + 1) % len(POLICIES)]
        text += f'[[event]]\nkind = "set-policy"\nat = "{int((number + 1) * PLAN_S * 1000)}ms"\npolicy = "{policy}"\n'
    return text


class Reroute(Experiment):
    """A run that looks at the switches before they end."""

    state = None
    streams = ()

    def follow_once(self):
        """Links to hosts stay one queue: their kernel classes would follow a flow up to 50 ms late and in no gap, and packets would overtake there,
        behind the last switch or before the first."""

    def start_workers(self, job):
        if job["name"] not in STREAMS:
            super().start_workers(job)
            return
        server, client = (self.network.host(job["hosts"][at]) for at in (1, 0))
        port, name = str(job["first_port"]), job["name"]
        self.processes.start(f"iperf3-server-{name}", ["iperf3", "-s", "-p", port], server.popen)
        end = time.monotonic() + PATIENCE_S
        while f":{port} " not in server.cmd("ss -tln"):
            if time.monotonic() > end:
                raise Failure(f"iperf3 does not listen on {port}")
            time.sleep(0.02)
        words = ["iperf3", "-c", server.IP(), "-p", port, *STREAMS[name][1], "-t", "3600", "-i", "0"]
        self.streams = (*self.streams, (name, self.processes.start(f"iperf3-{name}", words, client.popen)))

    def submit(self, jobs):
        for host in self.fabric["hosts"]:
            self.network.host(host["name"]).cmd(f"sysctl -qw net.ipv4.{NO_PROBES}")
        super().submit(jobs)

    def finish(self, player):
        super().finish(player)
        for name, process in self.streams:
            if process.poll() is not None:
                raise Failure(f"iperf3 ended: {self.processes.told(f'iperf3-{name}')}")
            process.terminate()
        # Let the last telemetry interval pass.
        time.sleep(0.5)
        self.state = {name: self.look(name) for name in self.fabric["switches"]}

    def look(self, name):
        where = ["--address", self.switches.address[name], "--device-id", str(self.switches.ids[name]), "-o", "json"]

        def told(*words):
            return json.loads(checked([self.args.ringpath, *words, *where]))

        state = {"classify": told("table", "show", "classify"), "drops": told("counter", "read", "drops", "--nonzero"),
                 "forced": told("counter", "read", "forced_flips", "--nonzero")}  # fmt: skip
        if self.args.switch == "embedded":
            state["cells"] = {cell: told("register", "read", cell, "--nonzero") for cell in ("packets", "lost", "reordered")}
        return state


# -- the wire ----------------------------------------------------------------------------------------------------------------------


def captured(path):
    """(seconds, bytes) of every packet of a capture."""
    with open(path, "rb") as file:
        data = file.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    fraction = 1e-9 if struct.unpack(order + "I", data[:4])[0] == 0xA1B23C4D else 1e-6
    head, at = struct.Struct(order + "IIII"), 24
    while at + 16 <= len(data):
        seconds, rest, length, _ = head.unpack_from(data, at)
        yield seconds + rest * fraction, data[at + 16 : at + 16 + length]
        at += 16 + length


Tagged = collections.namedtuple("Tagged", "at queue hops label slot seq time five")


def five_tuple(ip):
    size = (ip[0] & 15) * 4
    ports = struct.unpack_from("!HH", ip, size) if ip[9] in (6, 17) and len(ip) >= size + 4 else (0, 0)
    return ip[12:16], ip[16:20], ip[9], *ports


def tagged(path):
    """Every tagged IPv4 packet of a capture; the tag's bytes are in p4/README.md."""
    for at, data in captured(path):
        if len(data) < 58 or data[12:14] != b"\x88\xb5" or data[36:38] != b"\x08\x00":
            continue
        first, hops, label, slot, _, _, seq, time_, _, _, _ = struct.unpack_from("!BBHHBBIIIHH", data, 14)
        yield Tagged(at, first >> 1 & 7, hops, label, slot, seq, time_, five_tuple(data[38:]))


def signed(difference):
    return (difference + (1 << 31)) % (1 << 32) - (1 << 31)


Change = collections.namedtuple("Change", "at flow gap_us orderly")


class Wire:
    """What the captures of a run tell. A flow is an entry of its source leaf: (leaf, source slot)."""

    def __init__(self, experiment):
        self.folder, self.fabric = experiment.args.results, experiment.fabric
        self.leaves = [name for name in self.fabric["switches"] if name.startswith("leaf")]
        self.links = experiment.network.links
        self.entries = {}
        for leaf in self.leaves:
            for entry in experiment.state[leaf]["classify"]["entries"]:
                given = {name: int(value) for name, value in entry["action"]["params"].items()}
                if given.get("src_slot"):
                    self.entries[leaf, given["src_slot"]] = (entry["match"], given)
        self.known, self.changes, self.sent = {}, [], collections.Counter()
        for leaf in self.leaves:
            self.source(leaf)
        self.faults = {flow: fault for leaf in self.leaves for flow, fault in self.sink(leaf).items()}

    def flow_of(self, five):
        """The flow whose entry a packet hits, whatever leaf it is seen at; nothing if it is not tracked."""
        if five not in self.known:
            source, destination, protocol, source_port, destination_port = five
            told = {"src_addr": dotted(source), "dst_addr": dotted(destination), "protocol": str(protocol),
                    "src_port": str(source_port), "dst_port": str(destination_port)}  # fmt: skip
            self.known[five] = next((flow for flow, (match, _) in self.entries.items()
                                     if all(told.get(name) == value for name, value in match.items())), None)  # fmt: skip
        return self.known[five]

    def captures(self, leaf, inner, way):
        """Of the ports to switches or to hosts."""
        for cable in self.fabric["cables"]:
            for (node, port), other in (((cable["a"], cable["a_port"]), cable["b"]), ((cable["b"], cable["b_port"]), cable["a"])):
                if node == leaf and (other in self.fabric["switches"]) == inner:
                    yield os.path.join(self.folder, f"{self.links[node, port].interface}_{way}.pcap")

    def other(self, leaf):
        """Where a flow between leaves goes: there are two."""
        (other,) = [name for name in self.leaves if name != leaf]
        return other

    def by_flow(self, leaf, way):
        """Tagged packets of flows at the leaf's ports to switches, in the order of the captures' clock."""
        flows = collections.defaultdict(list)
        for packet in sorted(packet for path in self.captures(leaf, True, way) for packet in tagged(path)):
            if flow := self.flow_of(packet.five):
                flows[flow].append(packet)
        return flows

    def source(self, leaf):
        """Changes of label or queue, in the order in which the source numbered the packets."""
        for flow, packets in self.by_flow(leaf, "out").items():
            base = packets[0].seq
            packets.sort(key=lambda packet: signed(packet.seq - base))
            self.sent[flow] = len(packets)
            need = self.entries[flow][1]["flip_gap"]
            for before, after in zip(packets, packets[1:]):
                if (before.label, before.queue) != (after.label, after.queue):
                    gap = (after.time - before.time) % (1 << 32)
                    self.changes.append(Change(after.at, flow, gap, gap >= need))

    def sink(self, leaf):
        """(missing, late) by flow, in the order in which packets came in by any port."""
        told = {}
        for flow, packets in self.by_flow(leaf, "in").items():
            steps = [signed(packet.seq - packets[0].seq) for packet in packets]
            late = sum(step < most for step, most in zip(steps[1:], running_most(steps)))
            told[flow] = (max(steps) - min(steps) + 1 - len(set(steps)), late)
        return told

    def resent(self):
        """(seconds, five-tuple) of every segment that repeats bytes that its host had sent already."""
        for leaf in self.leaves:
            for path in self.captures(leaf, False, "in"):
                most = {}
                for at, data in captured(path):
                    if data[12:14] != b"\x08\x00" or data[23] != TCP:
                        continue
                    ip = data[14:]
                    size, length = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
                    seq, flags = int.from_bytes(ip[size + 4 : size + 8], "big"), ip[size + 13]
                    # A segment of which the kernel left the cutting to hardware may have no length of its own.
                    body = (length or len(ip)) - size - (ip[size + 12] >> 4) * 4
                    five = five_tuple(ip)
                    if flags & 2:
                        most[five] = (seq + 1) % (1 << 32)
                    if body <= 0:
                        continue
                    end = (seq + body) % (1 << 32)
                    if five in most and signed(seq - most[five]) < 0:
                        # A probe of a byte that was acknowledged long ago (keep-alive) is none.
                        if body > 1:
                            yield at, five
                    if five not in most or signed(end - most[five]) > 0:
                        most[five] = end


def running_most(steps):
    most = steps[0]
    for step in steps:
        most = max(most, step)
        yield most


def dotted(address):
    return ".".join(str(part) for part in address)


# -- the checks --------------------------------------------------------------------------------------------------------------------


def recorded_cells(path, leaves):
    """(leaf, slot) -> (lost, reordered), from the last readout reply about each slot that the controller recorded; p4/README.md has the bytes."""
    found, mark = {}, b"\x88\xb6RP\x01"
    with open(path) as file:
        for line in file:
            message = json.loads(line)["input"].get("stream") if "stream" in line else None
            if not message:
                continue
            data = bytes.fromhex(message["message"])
            at = data.find(mark)
            if at < 12 or data[at + 5] not in (1, 2):
                continue
            frame = data[at - 12 :]
            if len(frame) >= 62 and message["switch"] < len(leaves):
                slot = int.from_bytes(frame[22:24], "big")
                found[leaves[message["switch"]], slot] = struct.unpack("!II", frame[54:62])
    return found


class Checks:
    """Says what holds, and remembers what does not."""

    def __init__(self):
        self.failed = []

    def __call__(self, what, good, seen=""):
        print(f"  {what}: {'ok' if good else 'FAILED'}", flush=True)
        if not good:
            self.failed.append(what)
            print(f"    {seen}")


def check(experiment, document, changes):
    need, wire = Checks(), Wire(experiment)
    state, leaves = experiment.state, wire.leaves
    rings = {name: job["iterations"] for name, job in document["jobs"].items() if name not in STREAMS}
    wanted = {job["name"]: job["iterations"] for job in experiment.fabric["jobs"] if job["name"] in rings}
    need(f"all {sum(wanted.values())} iterations of {len(rings)} rings are done", rings == wanted, rings)
    planned = [event["event"] for event in experiment.events if event["event"]["event"] == "planned"]
    moved = sum(event["changed"] for event in planned[1:])
    data = [change for change in wire.changes if wire.entries[change.flow][1]["slot"]]
    orderly = [change for change in wire.changes if change.orderly]
    forced = collections.Counter(change.flow for change in wire.changes if not change.orderly)
    need(f"{moved} flows changed in {len(planned) - 1} plans; on the wire {len(data)} changes of data and {len(wire.changes) - len(data)} of "
         f"acknowledgements, {len(orderly)} orderly and {sum(forced.values())} forced", min(moved, len(data)) >= changes)  # fmt: skip
    counted = {(leaf, cell["index"]): counter(cell) for leaf in leaves for cell in state[leaf]["forced"]["cells"]}
    # The controller takes a forced change for done once it is written. If the next one is written before any packet has come, packets take the forced
    # route as the old one: without a pause, and uncounted.
    need(f"the switches count forced changes of the same flows, {sum(counted.values())} (forced_flips)",
         set(counted) == set(forced) and all(forced[flow] >= count for flow, count in counted.items()), (counted, dict(forced)))  # fmt: skip
    calm = {flow: fault for flow, fault in wire.faults.items() if flow not in forced}
    need(f"nothing is lost and nothing late on the wire: {sum(wire.sent[flow] for flow in calm)} packets of {len(calm)} flows without a forced change",
         calm and not any(map(any, calm.values())), {flow: fault for flow, fault in calm.items() if any(fault)})  # fmt: skip
    if experiment.args.switch == "embedded":
        cells = {(leaf, slot): values for leaf in leaves for slot, values in registers(state[leaf]["cells"]).items()}
    else:
        cells = recorded_cells(experiment.path("inputs.jsonl"), experiment.fabric["switches"])
    of_calm = {flow: cells.get((wire.other(flow[0]), wire.entries[flow][1]["slot"])) for flow in calm if wire.entries[flow][1]["slot"]}
    bad = {flow: found for flow, found in of_calm.items() if found != (0, 0)}
    need(f"the sinks' own cells `lost` and `reordered` of {len(of_calm)} flows are 0", of_calm and not bad, bad)
    near, others, theirs = judge(wire, forced)
    need(f"no byte is sent twice within {NEAR_S * 1e3:.0f} ms of an orderly change (elsewhere: {len(others)} segments; of flows with forced "
         f"changes: {len(theirs)})", not near, near[:5])  # fmt: skip
    drops = {name: told["drops"]["cells"] for name, told in state.items() if told["drops"]["cells"]}
    need("no label was missed and no program dropped a packet", not drops, drops)
    return need.failed


def counter(cell):
    return cell["packets"] if "packets" in cell else cell["value"]


def registers(cells):
    """(lost, reordered) of every slot that packets came to."""
    lost, late = ({cell["index"]: cell["value"] for cell in cells[name]["cells"]} for name in ("lost", "reordered"))
    return {cell["index"]: (lost.get(cell["index"], 0), late.get(cell["index"], 0)) for cell in cells["packets"]["cells"]}


def judge(wire, forced):
    """Segments that were sent twice: near an orderly change, elsewhere, of flows with forced changes."""
    times = collections.defaultdict(list)
    for change in wire.changes:
        times[change.flow].append(change.at)
    near, others, theirs = [], [], []
    for at, five in wire.resent():
        source, destination, protocol, source_port, destination_port = five
        flows = {wire.flow_of(five), wire.flow_of((destination, source, protocol, destination_port, source_port))}
        if flows & set(forced):
            theirs.append((at, five))
        elif any(abs(at - change) <= NEAR_S for change in itertools.chain(*(times[flow] for flow in flows))):
            near.append((at, dotted(source), dotted(destination), destination_port))
        else:
            others.append((at, five))
    return near, others, theirs


def played(args, folder):
    path = os.path.join(folder, "reroute.toml")
    with open(path, "w") as file:
        file.write(scenario(args.changes, args.bytes))
    words = [path, "--ringpath", os.path.abspath(args.ringpath), "--switch", args.switch, "--feedback", "none", "--results", folder, "--pcap"]
    given = run.arguments([*words, *(["--flip-gap", args.flip_gap] if args.flip_gap else [])])
    given.policy, given.rho = POLICIES[0], given.rho[0]
    lacking = run.missing(given)
    if lacking and lacking.startswith("there is no program"):
        raise Failure(lacking)
    if lacking:
        print(f"reroute: SKIPPED: {lacking}")
        sys.exit(0)
    experiment = Reroute(given, run.fabric_of(given))
    try:
        document = experiment.run()
    finally:
        # The captures are whole once the switches have ended.
        experiment.clean()
    return check(experiment, document, args.changes)


def main():
    args = arguments()
    end_by_signals()
    began = time.monotonic()
    if not os.geteuid():
        # A switch that waits for a processor for long loses packets at its sockets, and hosts' timers run out.
        os.nice(PRIORITY)
    try:
        if args.keep:
            # What the controller remembers of an earlier run would be a conflict.
            shutil.rmtree(args.keep, ignore_errors=True)
            os.makedirs(args.keep)
            failed = played(args, args.keep)
        else:
            with tempfile.TemporaryDirectory() as folder:
                failed = played(args, folder)
    except Failure as failure:
        sys.exit(f"reroute: FAILED: {failure}")
    print(f"reroute, {args.switch}, {time.monotonic() - began:.0f} s: {'FAILED: ' + '; '.join(failed) if failed else 'ok'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
