#!/usr/bin/env python3
"""Recomputes what `ringpath plan -o json` claims, from the JSON alone and with nothing but the standard library.

Usage: ringpath plan SCENARIO -o json | check_plan.py

Checks that every key is there, every number finite, every path made of the listed links; then lets all flows start at 0
(strict priority between queues, max-min inside a queue, rates anew at each completion) and compares rates, completions,
their sums and the bound. Ends with 1 and a line on standard error at the first disagreement.
"""

import json
import math
import sys

KEYS = {
    "": "solver seed objective bounds gap drain_sum_s drain_bound_s links jobs flows",
    "objective": "name value unit",
    "bounds": "name value",
    "links": "from to capacity_bps",
    "jobs": "name comm_s drain_s",
    "flows": "job channel src dst bytes queue path rate0_bps drain_s",
}
TOLERANCE = 1e-6


def fail(message):
    print(f"check_plan: {message}", file=sys.stderr)
    sys.exit(1)


def same(found, claimed, what):
    if abs(found - claimed) > TOLERANCE * max(abs(found), abs(claimed), 1e-9):
        fail(f"{what}: recomputed {found}, claimed {claimed}")


def check_shape(plan):
    def walk(value, where):
        if isinstance(value, dict):
            for key, inner in value.items():
                walk(inner, f"{where}.{key}")
        elif isinstance(value, list):
            for i, inner in enumerate(value):
                walk(inner, f"{where}[{i}]")
        elif isinstance(value, float) and not math.isfinite(value):
            fail(f"{where} is {value}")
        elif value is None and where != ".gap":
            fail(f"{where} is null")

    walk(plan, "")
    for part, keys in KEYS.items():
        rows = plan if part == "" else plan[part]
        for row in rows if isinstance(rows, list) else [rows]:
            if list(row) != keys.split():
                fail(f"{part or 'the plan'} has keys {list(row)}, wanted {keys}")


def rates(flows, active, capacity):
    """Progressive filling, queue by queue."""
    left = dict(capacity)
    rate = [0.0] * len(flows)
    for queue in sorted({flow["queue"] for flow in flows}, reverse=True):
        rising = [i for i in active if flows[i]["queue"] == queue]
        while rising:
            rising = [
                i for i in rising if all(left[l] > capacity[l] * 1e-9 for l in flows[i]["links"])
            ]
            crossing = {}
            for i in rising:
                for link in flows[i]["links"]:
                    crossing[link] = crossing.get(link, 0) + 1
            if not crossing:
                break
            step = min(left[link] / count for link, count in crossing.items())
            for i in rising:
                rate[i] += step
                for link in flows[i]["links"]:
                    left[link] -= step
    return rate


def completions(flows, capacity):
    bits = [flow["bytes"] * 8.0 for flow in flows]
    done = [0.0 if b == 0 else None for b in bits]
    now, first = 0.0, None
    while None in done:
        active = [i for i, d in enumerate(done) if d is None]
        rate = rates(flows, active, capacity)
        first = first or rate
        waits = [bits[i] / rate[i] for i in active if rate[i] > 0]
        if not waits:
            fail("some flow never completes")
        now += min(waits)
        for i in active:
            bits[i] -= rate[i] * min(waits)
            if bits[i] <= flows[i]["bytes"] * 8e-9:
                done[i] = now
    return first or [], done


def main():
    plan = json.load(sys.stdin)
    check_shape(plan)
    capacity = {}
    for link in plan["links"]:
        ends = (link["from"], link["to"])
        if ends in capacity:
            fail(f"two links {ends}: parallel cables must be merged or named apart")
        capacity[ends] = float(link["capacity_bps"])
    for i, flow in enumerate(plan["flows"]):
        path = flow["path"]
        if path[0] != flow["src"] or path[-1] != flow["dst"] or len(set(path)) != len(path):
            fail(f"flow {i}: path {path} does not lead from {flow['src']} to {flow['dst']}")
        flow["links"] = list(zip(path, path[1:]))
        for link in flow["links"]:
            if link not in capacity:
                fail(f"flow {i}: no link {link}")
    first, done = completions(plan["flows"], capacity)
    jobs = {}
    for i, flow in enumerate(plan["flows"]):
        same(first[i], flow["rate0_bps"], f"rate0_bps of flow {i}")
        same(done[i], flow["drain_s"], f"drain_s of flow {i}")
        jobs[flow["job"]] = max(jobs.get(flow["job"], 0.0), done[i])
    for job in plan["jobs"]:
        same(jobs.get(job["name"], 0.0), job["drain_s"], f"drain_s of job {job['name']}")
    same(sum(jobs.values()), plan["drain_sum_s"], "drain_sum_s")
    if not 0 <= plan["drain_bound_s"] <= plan["drain_sum_s"] * (1 + TOLERANCE):
        fail(f"bound {plan['drain_bound_s']} above the sum {plan['drain_sum_s']}")
    print(f"check_plan: {len(plan['flows'])} flows of {len(plan['jobs'])} jobs agree")


if __name__ == "__main__":
    main()
