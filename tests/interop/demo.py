#!/usr/bin/env python3
"""Runs `ringpath demo -o json` as a stranger would and checks the answer from outside.

Usage: demo.py PATH_TO_RINGPATH [SEED]

Checks: the documented keys are there, all numbers are finite, packets are conserved, nothing was lost, duplicated or
reordered beyond forced flips, `joint` holds its bars against Crux on this seed, progress went to standard error only,
and the process stayed below 1 GB. Exit code 0 when all hold.
"""

import json
import math
import resource
import subprocess
import sys
import time

POLICIES = ["ecmp", "least-loaded", "sebf", "crux", "paper", "joint", "joint+feedback"]
DROPS = ["label_miss", "queue_full", "link_down", "host_down", "other"]
MEMORY_KB_MAX = 1_000_000


def fail(message):
    sys.exit(f"demo check failed: {message}")


def finite(value, where="$"):
    if isinstance(value, dict):
        for key, inner in value.items():
            finite(inner, f"{where}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            finite(inner, f"{where}[{index}]")
    elif isinstance(value, float) and not math.isfinite(value):
        fail(f"{where} is {value}")


def check_policy(policy, jobs):
    name, packets = policy["name"], policy["packets"]
    if set(policy["comm_ms_per_job"]) != jobs:
        fail(f"{name}: jobs differ from those of the first policy")
    if not 0 < policy["gpu_utilisation"] < 1 or policy["comm_ms_mean"] <= 0:
        fail(f"{name}: utilisation or communication time out of range")
    mean = sum(policy["comm_ms_per_job"].values()) / len(jobs)
    if abs(mean - policy["comm_ms_mean"]) > 1e-6 * mean:
        fail(f"{name}: comm_ms_mean is not the mean over jobs")
    dropped = packets["dropped"]
    if sorted(dropped) != sorted(DROPS):
        fail(f"{name}: drop reasons are {sorted(dropped)}")
    out = packets["sent"] + packets["control_sent"]
    arrived = packets["delivered"] + packets["duplicated"] + packets["control_delivered"]
    if out != arrived + sum(dropped.values()):
        fail(f"{name}: {packets} does not add up")
    if dropped["label_miss"] or packets["duplicated"]:
        fail(f"{name}: label_miss {dropped['label_miss']}, duplicated {packets['duplicated']}")
    if packets["reordered"] and not policy["forced_flips"]:
        fail(f"{name}: {packets['reordered']} packets reordered without a forced flip")


def check_events(policy):
    """The scenario slows a cable and stops a host under every policy."""
    restarts = policy["restarts"]
    if not restarts:
        fail(f"{policy['name']}: a host failed and no job has another membership")
    for restart in restarts:
        if restart["iterations_lost"] > 1 or not 300 <= restart["duration_ms"] <= 5000:
            fail(f"{policy['name']}: {restart}")
    for straggler in policy["stragglers"]:
        if not straggler["evidence"]:
            fail(f"{policy['name']}: a straggler without evidence: {straggler}")


def main():
    ringpath, seed = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "0"
    start = time.monotonic()
    run = subprocess.run([ringpath, "demo", "--seed", seed, "-o", "json", "--no-report"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - start
    if run.returncode != 0:
        fail(f"exit code {run.returncode}: {run.stderr[-2000:]}")
    result = json.loads(run.stdout)
    finite(result)
    if result["seed"] != int(seed) or result["packet_scale"] < 1 or result["entries_written"] <= 0:
        fail("seed, packet_scale or entries_written")
    by_name = {policy["name"]: policy for policy in result["policies"]}
    if list(by_name) != POLICIES:
        fail(f"policies are {list(by_name)}")
    jobs = set(by_name["ecmp"]["comm_ms_per_job"])
    for policy in result["policies"]:
        check_policy(policy, jobs)
        check_events(policy)
    comm = by_name["joint"]["comm_ms_mean"] / by_name["crux"]["comm_ms_mean"]
    utilisation = by_name["joint"]["gpu_utilisation"] / by_name["crux"]["gpu_utilisation"]
    if comm >= 1 or utilisation <= 1:
        fail(f"joint against crux: communication {comm:.3f}, utilisation {utilisation:.3f}")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    if memory > MEMORY_KB_MAX:
        fail(f"{memory} kB resident")
    print(f"seed {seed}: joint/crux communication {comm:.3f}, utilisation {utilisation:.3f}; {seconds:.0f} s, {memory // 1000} MB")


if __name__ == "__main__":
    main()
