#!/usr/bin/env python3
"""Means over seeds 0..10 of `ringpath demo` on the default scenario, as docs/scheduling.md quotes them.

Usage: bars.py PATH_TO_RINGPATH [FIRST_SEED LAST_SEED] [more arguments of demo]

Prints a Markdown table and says which of the bars hold: joint against crux (communication <= 0.816, utilisation >=
1.104), seeds in which another policy beats joint on both metrics (at most one), `--objective comm` against least-loaded,
losses and reordering without a forced flip (none). Exit code 1 if one does not hold.
"""

import json
import subprocess
import sys


def demo(ringpath, seed, *more):
    command = [ringpath, "demo", "--seed", str(seed), "-o", "json", "--no-report", *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def main():
    ringpath = sys.argv[1]
    first, last = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (0, 10)
    runs = [demo(ringpath, seed, *sys.argv[4:]) for seed in range(first, last + 1)]
    by = [{policy["name"]: policy for policy in run["policies"]} for run in runs]
    names = list(by[0])
    comm = {name: mean(run[name]["comm_ms_mean"] for run in by) for name in names}
    util = {name: mean(run[name]["gpu_utilisation"] for run in by) for name in names}
    alone = mean(run["contention_free"]["comm_ms_mean"] for run in runs)
    alone_util = mean(run["contention_free"]["gpu_utilisation"] for run in runs)
    print("| policy | communication ms | vs crux | GPU utilisation | vs crux | forced flips | reordered | duplicated |")
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        forced, late, twice = (
            sum(run[name]["forced_flips"] for run in by),
            sum(run[name]["packets"]["reordered"] for run in by),
            sum(run[name]["packets"]["duplicated"] for run in by),
        )
        print(
            f"| {name} | {comm[name]:.1f} | {comm[name] / comm['crux']:.3f} | {util[name]:.4f} "
            f"| {util[name] / util['crux']:.3f} | {forced} | {late} | {twice} |"
        )
    print(f"| (alone) | {alone:.1f} | {alone / comm['crux']:.3f} | {alone_util:.4f} | {alone_util / util['crux']:.3f} | | | |")

    beaten = [
        (first + place, name)
        for place, run in enumerate(by)
        for name in names
        if not name.startswith("joint")
        and run[name]["comm_ms_mean"] < run["joint"]["comm_ms_mean"]
        and run[name]["gpu_utilisation"] > run["joint"]["gpu_utilisation"]
    ]
    unforced = [
        (first + place, name)
        for place, run in enumerate(by)
        for name in names
        if run[name]["packets"]["reordered"] and not run[name]["forced_flips"]
    ]
    label_miss = sum(run[name]["packets"]["dropped"]["label_miss"] for run in by for name in names)
    twice = sum(run[name]["packets"]["duplicated"] for run in by for name in names)
    own = [demo(ringpath, seed, "--policy", "joint", "--objective", "comm") for seed in range(first, last + 1)]
    comm_own = mean(run["policies"][0]["comm_ms_mean"] for run in own)
    bars = {
        "joint/crux communication <= 0.816": comm["joint"] / comm["crux"] <= 0.816,
        "joint/crux utilisation >= 1.104": util["joint"] / util["crux"] >= 1.104,
        f"another policy beats joint on both in at most one seed: {beaten}": len({seed for seed, _ in beaten}) <= 1,
        f"--objective comm ({comm_own:.1f} ms) <= least-loaded": comm_own <= comm["least-loaded"],
        f"label_miss {label_miss}, duplicated {twice}": label_miss == twice == 0,
        f"reordered without a forced flip: {unforced}": not unforced,
    }
    for bar, holds in bars.items():
        print(("holds:     " if holds else "FAILS:     ") + bar)
    sys.exit(0 if all(bars.values()) else 1)


if __name__ == "__main__":
    main()
