#!/usr/bin/env python3
"""The same entries and packets into BMv2 and the embedded switch; whatever they send, count and remember must be equal.

    sudo PYTHON tests/interop/differential.py RINGPATH [--program NAME ...] [--seed N] [--cases N] [--packets N]

PYTHON has tests/interop/requirements.txt. Both switches are processes between veth pairs in a network namespace of their own, programmed over
P4Runtime. A case is a program, entries of every table drawn from the seed, then packets by any port, packet-outs, changes of entries and, for our
program, readouts. Compared: every packet by port, in order; packet-ins with their metadata; what Writes answered; entries as read back; counters of
entries and of cells; registers by readout packets (BMv2 refuses RegisterEntry). Fields that carry clocks or waiting times are masked by name, in
tests/interop/differ/fabric.py. A case that differs is run again, slowly; only what differs then, too, is a difference: the first run lets BMv2's
threads overtake each other. P4C names a p4c tree (https://github.com/p4lang/p4c): then its v1model programs in differ/p4c_programs.txt run, too
(p4c-bm2-ss on the PATH compiles them). SKIPPED by name without simple_switch_grpc or root. Exit code 1: something differs; the command that
repeats just that is printed.
"""
import argparse
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SWITCH = os.environ.get("SIMPLE_SWITCH", "simple_switch_grpc")
INSIDE = "RINGPATH_DIFFERENTIAL_INSIDE"
OURS = ["ringpath", "router", "acl", "entities", "reflect"]
SIDES = ("bmv2", "embedded")
# Longest wait for a packet that one switch sends and the other does not, s.
FAST_S, SLOW_S = 0.006, 0.08
SETTLE_S = 0.3


def arguments():
    parser = argparse.ArgumentParser(description="BMv2 and the embedded switch, side by side.")
    parser.add_argument("ringpath", metavar="RINGPATH")
    parser.add_argument("--program", action="append", metavar="NAME", help="only these programs")
    parser.add_argument("--seed", type=int, default=1, help="of the first case; the next ones follow (default: 1)")
    parser.add_argument("--cases", type=int, default=2, help="per program (default: 2)")
    parser.add_argument("--packets", type=int, default=150, help="steps per case: packets and changes (default: 150)")
    parser.add_argument("--only", type=int, metavar="STEP", help="after the entries, do this step alone")
    parser.add_argument("--slow", action="store_true", help="wait long after every packet")
    parser.add_argument("--sabotage", action="store_true",
                        help="leave every second entry out on one side, and do not read entries back: packets must differ")  # fmt: skip
    return parser.parse_args()


class Case:
    """What is done to both switches: drawn before anything runs, so that it does not depend on answers."""

    def __init__(self, program, seed, steps):
        from differ import entries, fabric, packets, rig

        self.program, self.seed, self.count = program, seed, steps
        rng = random.Random(f"{program.name} {seed}")
        drawn = entries.Entries(program, rng, fabric.HINTS if program.name == "ringpath" else packets.COMMON)
        drawn.shots = rng.random() < 0.4
        self.entries = list(drawn.first())
        self.frames = fabric.Frames(rng) if program.name == "ringpath" else packets.Walk(program, drawn, rng)
        out = program.metadata("packet_out")
        self.steps = []
        for _ in range(steps):
            luck = rng.random()
            change = drawn.change() if luck < 0.12 else None
            if change is not None:
                self.steps.append(("write", change))
            elif out and luck < 0.3:
                self.steps.append(self.packet_out(out, rng))
            else:
                data = self.frames.packet()
                self.steps.append(("packet", rng.choice(rig.PORTS), data.ljust(14, b"\0")))
        if program.name == "ringpath":
            (number,) = out
            self.steps += [("out", data, [(number, 510)]) for data in self.frames.final_readouts()]

    def packet_out(self, out, rng):
        if self.program.name == "ringpath":
            data, port = self.frames.packet_out()
            return "out", data, [(number, port) for number in out]
        metadata = [(number, rng.choice([1, 2, 3, 510, 511]) if name == "egress_port" else 0) for number, (name, _) in out.items()]
        return "out", self.frames.packet(), metadata


def played(case, commands, links, folder, args, slow):
    """What both switches answered: packets by side, codes of Writes, what was read at the end."""
    from differ import rig

    sides = [rig.Side(name, command, links.of(name[0]), case.program, folder) for name, command in zip(SIDES, commands)]
    packets, marks, codes = [[], []], [[], []], [[], []]
    at = "the first entry"
    try:
        for number, update in enumerate(case.entries):
            at = f"entry {number}:\n{update}"
            write(sides, update, codes, f"entry {number}", args.sabotage and number % 2)
        steps = enumerate(case.steps) if args.only is None else [(args.only, case.steps[args.only])]
        for number, step in steps:
            at = f"step {number}: {step_in_words(case, number)}"
            if step[0] == "write":
                write(sides, step[1], codes, f"step {number}")
                continue
            for side in sides:
                if step[0] == "packet":
                    side.sockets[step[1]].send(step[2])
                else:
                    side.packet_out(step[1], step[2])
            rig.settle(sides, packets, SLOW_S if slow else FAST_S)
            for seen, mark in zip(packets, marks):
                mark += [number] * (len(seen) - len(mark))
        time.sleep(SETTLE_S)
        rig.settle(sides, packets, SLOW_S)
        for seen, mark in zip(packets, marks):
            mark += [len(case.steps)] * (len(seen) - len(mark))
        state = [dict(read_all(case.program, side)) for side in sides]
        return [list(zip(mark, seen)) for mark, seen in zip(marks, packets)], codes, state
    except rig.Ended as error:
        raise rig.Ended(f"{error}\nat {at}") from None
    finally:
        for side in sides:
            side.close()


def write(sides, update, codes, what, sabotage=False):
    for side, seen in zip(sides, codes):
        left_out = sabotage and side is sides[1] and update.entity.HasField("table_entry")
        seen.append((what, "OK" if left_out else side.write(update)))


def read_all(program, side):
    """Everything that P4Runtime lets one read on both: kind and name, then what is there, or nothing where the switch refuses."""
    from finsy.proto import p4r as p4rt

    for counter in program.info.counters:
        found = side.read(counter_entry=p4rt.CounterEntry(counter_id=counter.preamble.id))
        cells = None if found is None else [one.counter_entry for one in found]
        yield f"counter {counter.preamble.alias}", cells and {
            f"[{cell.index.index}]": amount(counter, cell.data) for cell in cells if any(amount(counter, cell.data))}  # fmt: skip
    tables = {table.preamble.id: table for table in program.info.tables}
    for counter in program.info.direct_counters:
        table = tables[counter.direct_table_id]
        found = side.read(direct_counter_entry=p4rt.DirectCounterEntry(table_entry=p4rt.TableEntry(table_id=table.preamble.id)))
        entries = None if found is None else [one.direct_counter_entry for one in found]
        yield f"direct counter of {table.preamble.alias}", entries and {
            key(program, table, entry.table_entry): amount(counter, entry.data) for entry in entries}  # fmt: skip
    for table in tables.values():
        found = side.read(table_entry=p4rt.TableEntry(table_id=table.preamble.id))
        entries = None if found is None else [one.table_entry for one in found]
        yield f"entries of {table.preamble.alias}", entries and {key(program, table, entry): action(entry.action) for entry in entries}


def amount(counter, data):
    """Only what the counter's kind counts."""
    kind = type(counter.spec).Unit.Name(counter.spec.unit)
    return (data.packet_count if kind != "BYTES" else None, data.byte_count if kind != "PACKETS" else None)


def key(program, table, entry):
    """The match and the priority; the priority not for entries that the program brings, which BMv2 numbers as it likes."""
    match = " ".join(" ".join(str(one).split()) for one in sorted(entry.match, key=lambda one: one.field_id))
    return match if program.tables[table.preamble.name].get("entries") else f"{match} priority {entry.priority}"


def action(action):
    if action.HasField("action_profile_action_set"):
        return sorted(str(one.action) for one in action.action_profile_action_set.action_profile_actions)
    return str(action)


def differences(case, packets, codes, state, sabotage=False):
    """What is not equal, in words; each with the step that it belongs to, if any."""
    from differ import fabric

    ours = case.program.name == "ringpath"
    mask = fabric.masked if ours else lambda port, metadata, data: data
    for (what, one), (_, other) in zip(*codes):
        if one != other and not sabotage:
            yield None, f"Write of {what}: BMv2 {one}, embedded {other}\n{update_of(case, what)}"
    ports = [collections.defaultdict(list) for _ in SIDES]
    for seen, by_port in zip(packets, ports):
        for step, (port, metadata, data) in seen:
            by_port[port].append((step, metadata, mask(port, metadata, data)))
    for port in sorted({*ports[0], *ports[1]}):
        one, other = ports[0][port], ports[1][port]
        for a, b in zip([*one, None], [*other, None]):
            if a is None or b is None or a[1:] != b[1:]:
                if a is not None or b is not None:
                    step = min(found[0] for found in (a, b) if found is not None)
                    yield step, f"port {port}: BMv2 {said(a)}\n           embedded {said(b)}"
                break
    for what, found in state[0].items():
        # BMv2 refuses to read some of what it has (docs/switch-conformance.md); the embedded switch must not.
        if found is None and state[1][what] is not None or sabotage and what.startswith(("entries", "direct")):
            continue
        one, other = found or {}, state[1][what] or {}
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                yield None, f"{what}, {name}: BMv2 {one.get(name)}, embedded {other.get(name)}"


def update_of(case, what):
    kind, number = what.split()
    return str(case.entries[int(number)] if kind == "entry" else case.steps[int(number)][1])


def said(found):
    if found is None:
        return "nothing"
    step, metadata, data = found
    return f"{data.hex()}{f' metadata {list(metadata)}' if metadata else ''} (step {step})"


def step_in_words(case, step):
    if step >= len(case.steps):
        return "after the last step"
    kind, *rest = case.steps[step]
    if kind == "packet":
        return f"packet by port {rest[0]}: {rest[1].hex()}"
    return f"packet-out {rest[0].hex()} metadata {rest[1]}" if kind == "out" else f"Write {rest[0]}"


def programs(names, folder):
    """Our programs, then p4c's if there is a tree of it."""
    from differ.programs import Program

    tree = os.environ.get("P4C")
    listed = {}
    if tree:
        with open(os.path.join(HERE, "differ/p4c_programs.txt")) as file:
            listed = {line.split()[0]: os.path.join(tree, "testdata/p4_16_samples", line.split()[0] + ".p4")
                      for line in file if line.strip() and not line.startswith("#")}  # fmt: skip
    for name in names or [*OURS, *listed]:
        if name in OURS:
            base = os.path.join(ROOT, "p4/build", name)
            yield Program(name, base + ".json", base + ".p4info.txtpb")
        elif name in listed or tree and os.path.exists(os.path.join(tree, "testdata/p4_16_samples", name + ".p4")):
            base = os.path.join(folder, name)
            source = os.path.join(tree, "testdata/p4_16_samples", name + ".p4")
            words = ["p4c-bm2-ss", "-I", os.path.join(tree, "p4include"), "--p4runtime-files", base + ".p4info.txtpb", "-o", base + ".json"]
            done = subprocess.run([*words, source], capture_output=True, text=True)
            if done.returncode:
                print(f"differential: {name} does not compile: {done.stderr.splitlines()[:1]}")
                continue
            yield Program(name, base + ".json", base + ".p4info.txtpb")
        else:
            sys.exit(f"differential: there is no program {name}; known are {', '.join(OURS)}, and p4c's with P4C set to its tree")


def compared(case, commands, links, folder, args):
    """Differences of a case, slowly if the quick way has any; whether the quick way had some that the slow one did not; packets that came out."""
    from differ import rig

    try:
        for slow in (args.slow, True):
            packets, codes, state = played(case, commands, links, folder, args, slow)
            found = list(differences(case, packets, codes, state, args.sabotage))
            if not found or slow:
                return found, slow and not args.slow and not found, len(packets[1])
    except rig.Ended as error:
        return [(None, str(error))], False, 0


def repeat(args, case, step=None):
    words = ["sudo", sys.executable, "tests/interop/differential.py", args.ringpath, "--program", case.program.name]
    words += ["--seed", str(case.seed), "--cases", "1", "--packets", str(args.packets), "--slow"]
    return " ".join([*words, *(["--only", str(step)] if step is not None else []), *(["--sabotage"] if args.sabotage else [])])


def show(args, case, found, alone):
    print(f"differential: FAILED: {case.program.name}, seed {case.seed}: {len(found)} differences")
    for step, text in found[:6]:
        if step is not None:
            print(f"  {step_in_words(case, step)}")
        print("  " + text.replace("\n", "\n  "))
    print(f"  repeat: {repeat(args, case, alone)}")


def alone(case, found, commands, links, folder, args):
    """The step that differs by itself, without those before it; nothing if it needs them."""
    for step, _ in found:
        if step is not None and step < len(case.steps) and args.only is None:
            args.only = step
            again, *_ = compared(case, commands, links, folder, argparse.Namespace(**{**vars(args), "slow": True}))
            args.only = None
            return step if again else None
    return None


def main():
    args = arguments()
    reason = None
    if shutil.which(SWITCH) is None:
        reason = f"no {SWITCH} on the PATH"
    elif os.geteuid() != 0:
        reason = "not root"
    elif shutil.which("ip") is None or shutil.which("unshare") is None:
        reason = "no iproute2 or util-linux"
    if reason:
        print(f"differential: SKIPPED: {reason}")
        return 0
    args.ringpath = os.path.abspath(args.ringpath)
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable, *sys.argv])
    sys.path.insert(0, HERE)
    from differ import rig

    links = rig.Links([name[0] for name in SIDES])
    commands = [[SWITCH, "-L", "off"], [args.ringpath, "switch"]]
    cases = failed = steps = timing = out = 0
    with tempfile.TemporaryDirectory() as folder:
        for program in programs(args.program, folder):
            for seed in range(args.seed, args.seed + args.cases):
                case = Case(program, seed, args.packets)
                found, only_fast, seen = compared(case, commands, links, folder, args)
                cases, timing, out = cases + 1, timing + only_fast, out + seen
                steps += len(case.entries) + len(case.steps)
                if found:
                    failed += 1
                    show(args, case, found, alone(case, found, commands, links, folder, args))
    print(f"differential: {cases - failed} of {cases} cases equal: {steps} entries, packets and changes in, {out} packets out by each; "
          f"{timing} cases only when run slowly")  # fmt: skip
    # Nothing out would be nothing compared.
    return 1 if failed or not out else 0


if __name__ == "__main__":
    sys.exit(main())
