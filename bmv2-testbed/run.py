#!/usr/bin/env python3
"""Runs a scenario on Mininet: real switch processes, the real controller, workers that reduce over real TCP.

    sudo /usr/bin/python3 bmv2-testbed/run.py SCENARIO.toml [--policy joint] [--results DIR] [--cli]
    sudo /usr/bin/python3 bmv2-testbed/run.py SCENARIO.toml --policy ecmp,least-loaded,crux,joint
    sudo /usr/bin/python3 bmv2-testbed/run.py SCENARIO.toml --rho 0.1,0.2,0.3

Needs root, the Debian packages mininet, iperf3 and ethtool, and a built `ringpath` (`cargo build --release`, or --ringpath). For each policy (and
rho) it builds the fabric that `ringpath fabric` prints, starts a switch per node and the controller in the root namespace, submits the jobs,
starts one worker per rank on its host, plays the scenario's events, and leaves results.json, iterations.csv, the controller's events and
inputs, and every process's log; over all of them comparison.csv and report.html. Everything that it starts ends with it. Exit code 0: all
workers finished; 1: something failed, said on standard error.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from testbed import events, page, results
from testbed.experiment import Experiment, end_by_signals
from testbed.processes import Failure

ROOT = os.path.dirname(HERE)


def share(text):
    value = float(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share between 0 and 1")
    return value


def code_point(text):
    try:
        dscp, queue = (int(part) for part in text.split("="))
    except ValueError:
        dscp = queue = -1
    if not (0 <= dscp <= 63 and 0 <= queue <= 6):
        raise argparse.ArgumentTypeError(f"{text} is no class: a code point from 0 to 63 and a queue from 0 to 6, such as 40=5")
    return dscp, queue


def listed(one):
    """A list with commas of what `one` reads."""
    return lambda text: [one(part.strip()) for part in text.split(",") if part.strip()]


def arguments(words=None):
    parser = argparse.ArgumentParser(description="Run a scenario on Mininet with real switches.")
    parser.add_argument("scenario", metavar="SCENARIO.toml")
    parser.add_argument("--switch", default="embedded", choices=["embedded", "bmv2"],
                        help="ringpath switch, or simple_switch_grpc from the PATH (default: embedded)")  # fmt: skip
    parser.add_argument("--policy", default=["joint"], type=listed(str), metavar="NAME[,NAME…]", help="policies that plan (default: joint)")
    parser.add_argument("--feedback", default="best", choices=["none", "raise", "best"], help="how stragglers are helped")
    parser.add_argument("--rho", default=[0.2], type=listed(share), metavar="X[,X…]", help="how far below expectation is slow (default: 0.2)")
    parser.add_argument("--dscp", default=[], type=listed(code_point), metavar="DSCP=QUEUE[,…]", help="queues of traffic that is no job's")
    parser.add_argument("--seed", help="draws what the scenario leaves open (default: the scenario's own)")
    parser.add_argument("--flip-gap", metavar="TIME", help="silence after which a flow may change path or queue (default: the controller's)")
    parser.add_argument("--ringpath", default=os.path.join(ROOT, "target/release/ringpath"), help="the program")
    parser.add_argument("--results", default="testbed-results", metavar="DIR", help="where results go (default: testbed-results)")
    parser.add_argument("--pcap", action="store_true", help="record every port of every switch into the results")
    parser.add_argument("--cli", action="store_true", help="open Mininet's command line once the paths are installed")
    return parser.parse_args(words)


def missing(args):
    """What the machine lacks, or nothing."""
    if os.geteuid():
        return "root is needed (network namespaces); run it with sudo"
    for tool in ("mnexec", "ethtool", "ip", "tc"):
        if shutil.which(tool) is None:
            return f"{tool} is not here; apt-get install mininet ethtool iproute2"
    if args.switch == "bmv2" and shutil.which("simple_switch_grpc") is None:
        return "simple_switch_grpc is not on the PATH; build it as p4lang/behavioral-model says, or use --switch embedded"
    if not os.access(args.ringpath, os.X_OK):
        return f"there is no program {args.ringpath}; cargo build --release, or give --ringpath"
    try:
        import mininet  # noqa: F401
    except ImportError:
        return f"{sys.executable} has no mininet; apt-get install mininet and run this with /usr/bin/python3"
    return None


def fabric_of(args):
    """What the scenario comes to; ends the program if it cannot be run here."""
    seed = ["--seed", args.seed] if args.seed else []
    told = subprocess.run([args.ringpath, "fabric", args.scenario, *seed, "-o", "json"], capture_output=True, text=True)
    if told.returncode:
        sys.exit(told.stderr.strip())
    fabric = json.loads(told.stdout)
    if not fabric["jobs"]:
        sys.exit(f"testbed: {args.scenario} has no [[job]]: nothing would run")
    if why := events.refused(fabric["events"]):
        sys.exit(f"testbed: {why}")
    if any(event["kind"] == "background-flow" for event in fabric["events"]) and shutil.which("iperf3") is None:
        sys.exit("testbed: the scenario has background traffic and iperf3 is not here; apt-get install iperf3")
    return fabric


def one(args, policy, rho, folder):
    """One run with a fresh fabric, since runs note things in it."""
    os.makedirs(folder, exist_ok=True)
    for left in os.listdir(folder):
        if left in ("store.redb", "inputs.jsonl") or left.startswith("pace-"):
            os.remove(os.path.join(folder, left))
    own = argparse.Namespace(**{**vars(args), "policy": policy, "rho": rho, "results": folder})
    experiment = Experiment(own, fabric_of(args))
    try:
        return experiment.run()
    except Failure as failure:
        sys.exit(f"testbed: {policy}: {failure}")
    except KeyboardInterrupt:
        sys.exit("testbed: stopped")
    finally:
        experiment.clean()


def ms(value):
    return "-" if value is None else f"{value:.1f} ms"


def tell(document):
    print(f"{document['scenario']}, {document['policy']}, {document['switch']}: communication {ms(document['comm_ms_mean'])}", flush=True)
    for name, job in document["jobs"].items():
        print(f"  {name:16} {ms(job['comm_ms']):>12} over {job['iterations']} iterations, longest {ms(job['longest_ms'])}", flush=True)


def main():
    args = arguments()
    if lacking := missing(args):
        sys.exit(f"testbed: {lacking}")
    fabric_of(args)
    end_by_signals()
    runs = [(policy, rho) for policy in args.policy for rho in args.rho]
    documents = []
    for policy, rho in runs:
        name = policy if len(args.rho) == 1 else f"{policy}-rho-{rho:g}"
        document = one(args, policy, rho, args.results if len(runs) == 1 else os.path.join(args.results, name))
        documents.append(document)
        tell(document)
    rows = results.compare(documents)
    results.write_comparison(rows, os.path.join(args.results, "comparison.csv"))
    with open(os.path.join(args.results, "report.html"), "w", encoding="utf-8") as file:
        file.write(page.page(documents, rows))
    if len(rows) > 1:
        print("\n| run | communication ms | × first | stragglers found | moved | kept | forced flips |\n|---|---|---|---|---|---|---|")
        for row in rows:
            ratio = "–" if row["ratio"] is None else f"{row['ratio']:.3f}"
            print(f"| {row['run']} | {ms(row['comm_ms_mean'])} | {ratio} | {row['found']} | {row['moved']} | {row['kept']} | {row['forced_flips']} |")
    print(f"results in {args.results}: report.html")


if __name__ == "__main__":
    main()
