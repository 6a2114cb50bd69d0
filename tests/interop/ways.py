#!/usr/bin/env python3
"""Checks from outside that `ringpath demo` finds the same stragglers whether it reads registers or readout packets.

Usage: ways.py PATH_TO_RINGPATH [SEED...]

The two ways take different times, so instants may differ by a few milliseconds; jobs, flows, links, what was done and whether it
was kept may not. Exit code 1 if they do, or if no seed has any straggler (then nothing was compared).
"""

import json
import subprocess
import sys


def told(ringpath, seed, way):
    command = [ringpath, "demo", "--no-report", "--policy", "joint", "--seed", seed, "--telemetry", way, "-o", "json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {policy["name"]: policy["stragglers"] for policy in report["policies"]}


def differ(one, other):
    """Why two lists of stragglers are not the same, or nothing."""
    if len(one) != len(other):
        return f"{len(one)} against {len(other)} stragglers"
    for a, b in zip(one, other):
        for key in ("job", "flow", "link", "kept"):
            if a[key] != b[key]:
                return f"{key} is {a[key]} against {b[key]} in {a}"
        for key in ("flagged_at_ms", "raised_at_ms"):
            if (a[key] is None) != (b[key] is None) or (a[key] is not None and abs(a[key] - b[key]) > 20):
                return f"{key} is {a[key]} against {b[key]} in {a}"
    return None


def main():
    ringpath, seeds = sys.argv[1], sys.argv[2:] or ["0"]
    compared = 0
    for seed in seeds:
        register, readout = (told(ringpath, seed, way) for way in ("register", "readout"))
        for name, stragglers in register.items():
            reason = differ(stragglers, readout[name])
            if reason:
                sys.exit(f"seed {seed}, {name}: register and readout differ: {reason}")
            compared += len(stragglers)
    if compared == 0:
        sys.exit("no run had a straggler: nothing was compared")
    print(f"{compared} stragglers in {len(seeds)} seeds are the same by either way")


if __name__ == "__main__":
    main()
