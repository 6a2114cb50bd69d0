#!/usr/bin/env python3
"""The testbed's experiments, small, with what each must show: sudo /usr/bin/python3 tests/interop/testbed.py RINGPATH [--switch bmv2]

Real switch processes, controller and TCP on Mininet (bmv2-testbed/run.py). Says SKIPPED by name where root or Mininet is missing. Machines are
noisy: what must hold of times is far from what was measured, and what can be checked by counts is.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = os.path.join(ROOT, "bmv2-testbed/run.py")
# Alone `short` needs 160 ms, sharing the uplink in one queue about 340, served first about 185.
SERVED_FIRST = 0.75
# Over ecmp, which sends most of one direction over one spine: about 0.57 for least-loaded, 0.5 for crux, 0.44 for joint.
PATHS_CHOSEN = 0.85
# 300 kB at a quarter of 20 Mbit/s: what an iteration of the job on the slow cable takes at least; the other spine has room.
ON_SLOW_CABLE_MS = 480
HELPED = 0.7
# After a host has failed: about one second on a quiet machine.
GOES_ON_S = 8


class Bed:
    """Runs scenarios one after the other."""

    def __init__(self, path, switch, folder):
        self.path, self.switch, self.folder = path, switch, folder

    def run(self, scenario, policies, feedback="none"):
        """Documents and controller's events by policy. Without feedback nothing but events and plans moves flows."""
        results = os.path.join(self.folder, f"{scenario}-{feedback}-{'-'.join(policies)}")
        file = os.path.join(ROOT, f"examples/scenarios/testbed-{scenario}.toml")
        command = [sys.executable, RUN, file, "--ringpath", self.path, "--policy", ",".join(policies), "--results", results]
        done = subprocess.run([*command, "--feedback", feedback, "--switch", self.switch], capture_output=True, text=True)
        if done.returncode and ("apt-get install mininet" in done.stderr or "not on the PATH" in done.stderr):
            print(f"testbed.py: SKIPPED: {done.stderr.strip()}")
            sys.exit(0)
        if done.returncode:
            sys.exit(f"testbed.py: FAILED: {scenario}: {done.stdout}{done.stderr}")
        print(done.stdout.strip())
        with open(os.path.join(results, "report.html"), encoding="utf-8") as page:
            text = page.read()
        need("the report has a chart per run and asks for nothing from elsewhere",
             text.count("<svg") == len(policies) and "http" not in text, text[:200])  # fmt: skip
        return [self.read(results if len(policies) == 1 else os.path.join(results, policy)) for policy in policies]

    @staticmethod
    def read(folder):
        with open(os.path.join(folder, "results.json")) as document, open(os.path.join(folder, "events.jsonl")) as events:
            return json.load(document), [json.loads(line) for line in events]


def need(what, good, seen):
    if not good:
        sys.exit(f"testbed.py: FAILED: {what}\n{seen}")
    print(f"  {what}: ok")


def lost(document, reason):
    return sum(switch["losses"][reason] for switch in document["switches"].values())


def of_kind(events, kind):
    return [told for told in events if told["event"]["event"] == kind]


def queues_used(document, switch, port):
    """Data packets by queue at a port; queue 7 is for control and acknowledgements."""
    ports = document["switches"][switch]["ports"]
    queues = next(found for found in ports if found["port"] == port)["queues"]
    return {queue["queue"]: queue["sent"]["packets"] for queue in queues if queue["sent"]["packets"] and queue["queue"] < 7}


def two_jobs(bed):
    (one_queue, _), (queues, _) = bed.run("two-jobs", ["least-loaded", "crux"])
    before, after = (document["jobs"]["short"]["comm_ms"] for document in (one_queue, queues))
    need(f"strict priority on the shared uplink: {before:.0f} ms in one queue, {after:.0f} ms served first",
         after < SERVED_FIRST * before, queues["jobs"])  # fmt: skip
    if queues["switches"]:
        used = queues_used(queues, "leaf1", 3)
        need(f"the two jobs' packets left the uplink by two queues: {used}", len(used) == 2, queues["switches"]["leaf1"])


def policies(bed):
    runs = bed.run("policies", ["ecmp", "least-loaded", "crux", "joint"])
    means = {document["policy"]: document["comm_ms_mean"] for document, _ in runs}
    for policy in ("least-loaded", "crux", "joint"):
        need(f"{policy} beats ecmp: {means[policy]:.0f} ms against {means['ecmp']:.0f}", means[policy] < PATHS_CHOSEN * means["ecmp"], means)
    for document, events in runs:
        need(f"{document['policy']}: nothing was refused and no job is missing",
             not of_kind(events, "refused") and all(job["iterations"] for job in document["jobs"].values()), events)  # fmt: skip


def straggler(bed):
    """The cable is slowed down in the kernel or in the shaper; nobody tells the controller."""
    ((document, events),) = bed.run("straggler", ["joint"], feedback="best")
    slowed = document["events"][0]["wall_s"]
    flagged = of_kind(events, "straggler-flagged")
    if bed.switch == "bmv2":
        # Its queue is the kernel's: only losses, if there are any, show that it is the network which holds the flow up.
        need("a flow that is held up is seen", [told for told in flagged if told["wall_s"] > slowed], events)
        return
    network = [told for told in flagged if told["event"]["kind"] == "network"]
    found = [told for told in network if told["wall_s"] > slowed]
    need("a flow over the slow cable is told to be held up by the network", found, events)
    need("none was before", len(found) == len(network), events)
    moved = of_kind(events, "straggler-rerouted")
    need("it is moved and the move is kept", moved and of_kind(events, "reaction-kept"), events)
    delay = found[0]["wall_s"] - slowed
    phases = document["jobs"]["small"]["phases"]
    after = statistics.median(phase["comm_ms"] for phase in phases if phase["began_s"] > moved[-1]["wall_s"] + 0.5)
    need(f"found {delay:.2f} s after the cable slowed down; {after:.0f} ms since, at least {ON_SLOW_CABLE_MS} on the slow cable",
         after < HELPED * ON_SLOW_CABLE_MS, phases)  # fmt: skip


def link_failure(bed):
    ((failure, events),) = bed.run("link-failure", ["joint"])
    done = [job["iterations"] for job in failure["jobs"].values()]
    need("every iteration is done although a cable failed", done == [15, 12], failure["jobs"])
    if bed.switch == "embedded":
        planned = [told["event"] for told in of_kind(events, "planned")]
        moved = [event for event in planned if event["generation"] > 1 and event["changed"]]
        need("the failure was noticed and flows were moved", moved, events)
        # A label without an entry, a tag from outside, a host that no leaf knows: the program drops them all.
        need("no switch's program had to drop a packet", lost(failure, "ingress") == 0, failure["switches"])


def slow_host(bed):
    ((document, events),) = bed.run("slow-host", ["joint"], feedback="best")
    slowed = document["events"][0]["wall_s"]
    compute = [told for told in of_kind(events, "straggler-flagged") if told["event"]["kind"] == "compute"]
    need("the slow host is told to be one", compute and all(told["wall_s"] > slowed for told in compute), events)
    moved = of_kind(events, "straggler-rerouted") + of_kind(events, "straggler-raised")
    need("and the network is left alone", not moved, moved)


def host_failure(bed):
    ((document, events),) = bed.run("host-failure", ["joint"])
    done = {name: job["iterations"] for name, job in document["jobs"].items()}
    need("every iteration is done although a host failed", done == {"four": 16, "other": 16}, done)
    failed = document["events"][0]["wall_s"]
    (regrouped,) = of_kind(events, "regrouped") or [None]
    need("its job was regrouped without it, once", regrouped and len(regrouped["event"]["ranks"]) == 3, events)
    (four,) = [job for job in document["plan"] if job["name"] == "four"]
    need("three hosts are left in the ring", four["hosts"] == ["h1", "h2", "h5"], four)
    first = min(phase["began_s"] for phase in document["jobs"]["four"]["phases"] if phase["began_s"] > regrouped["wall_s"])
    need(f"noticed after {regrouped['wall_s'] - failed:.2f} s, going on after {first - failed:.2f} s", first - failed < GOES_ON_S, first)


EXPERIMENTS = {"two-jobs": two_jobs, "policies": policies, "straggler": straggler, "link-failure": link_failure, "slow-host": slow_host, "host-failure": host_failure}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ringpath")
    parser.add_argument("--switch", default="embedded")
    parser.add_argument("--only", choices=EXPERIMENTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bed = Bed(os.path.abspath(args.ringpath), args.switch, folder)
        for name, experiment in EXPERIMENTS.items():
            if args.only in (None, name):
                experiment(bed)


if __name__ == "__main__":
    if os.geteuid():
        print("testbed.py: SKIPPED: not root")
        sys.exit(0)
    main()
