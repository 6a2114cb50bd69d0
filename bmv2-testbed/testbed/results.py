"""What a run comes to. In: an experiment that is over. Out: its document, written as `results.json`, its iterations as `iterations.csv`.

Communication phases are measured as everywhere: from the first byte that any rank hands over to the last that the last rank has reduced, ms;
means leave each job's first iteration out. Times of processes on one machine are of one clock."""
import csv
import json
import statistics


def phases(workers):
    """(iteration, begin in seconds since 1970, milliseconds) of a job, as far as every rank that is still there came. An iteration that a
    failure broke counts as it was done again."""
    if not workers:
        return []
    by_rank = [{line["iteration"]: line for line in worker.lines} for worker in workers]
    there = [lines for lines, worker in zip(by_rank, workers) if not worker.killed] or by_rank
    done = []
    for number in sorted(set.intersection(*[set(lines) for lines in there])):
        lines = [rank[number] for rank in by_rank if number in rank]
        last = max(line["generation"] for line in lines)
        lines = [line for line in lines if line["generation"] == last]
        begin = min(line["comm_began_s"] for line in lines)
        end = max(line["comm_began_s"] + line["comm_ms"] / 1e3 for line in lines)
        done.append((number, begin, (end - begin) * 1e3))
    return done


def job(workers):
    own = phases(workers)
    counted = [ms for _, _, ms in own[1:]]
    return {
        "iterations": len(own),
        "comm_ms": statistics.fmean(counted) if counted else None,
        "longest_ms": max(counted, default=None),
        "phases": [{"iteration": number, "began_s": begin, "comm_ms": ms} for number, begin, ms in own],
    }


def write(experiment, played):
    args, fabric = experiment.args, experiment.fabric
    jobs = {
        told["name"]: job([worker for worker in experiment.workers if worker.job == told["name"]]) for told in fabric["jobs"]
    }
    means = [told["comm_ms"] for told in jobs.values() if told["comm_ms"] is not None]
    document = {
        "scenario": fabric["name"], "policy": args.policy, "switch": args.switch, "feedback": args.feedback, "rho": args.rho,
        "comm_ms_mean": statistics.fmean(means) if means else None, "jobs": jobs, "events": played,
        "plan": json.loads(experiment.job("list", "-o", "json")), "switches": experiment.switches.counted(),
        "controller": [event for event in experiment.events if event["event"]["event"] in TOLD],
    }  # fmt: skip
    with open(experiment.path("results.json"), "w") as file:
        json.dump(document, file, indent=1)
    with open(experiment.path("iterations.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["job", "iteration", "comm_ms", "began_s"])
        for name, told in jobs.items():
            for phase in told["phases"]:
                writer.writerow([name, phase["iteration"], f"{phase['comm_ms']:.3f}", f"{phase['began_s']:.6f}"])
    return document


# What a reader of the results wants to know of the controller; all of it is in events.jsonl.
TOLD = {
    "planned", "flip-forced", "straggler-flagged", "straggler-raised", "straggler-rerouted", "reaction-kept", "reaction-undone", "regrouped",
    "job-stopped", "refused", "rejected", "switch-lost", "switch-back", "table-full",
}  # fmt: skip
# Those that say that a straggler was moved to another path or queue.
MOVED = {"straggler-raised", "straggler-rerouted"}


def told(document, kinds):
    return [event for event in document["controller"] if event["event"]["event"] in kinds]


def found(document):
    """Verdicts that name a cause; "unknown" is none."""
    return [event for event in told(document, {"straggler-flagged"}) if event["event"]["kind"] != "unknown"]


def compare(documents):
    """Rows of a table of runs: name, switch, mean communication, ratio to the first, each job's, stragglers found, moved, and moves that helped and stayed, forced flips."""
    first = documents[0]["comm_ms_mean"]
    sweep = len({document["rho"] for document in documents}) > 1
    rows = []
    for document in documents:
        mean = document["comm_ms_mean"]
        rows.append({
            "run": f"{document['policy']}, rho {document['rho']:g}" if sweep else document["policy"],
            "comm_ms_mean": mean,
            "ratio": mean / first if mean and first else None,
            "jobs": {name: told["comm_ms"] for name, told in document["jobs"].items()},
            "found": len(found(document)),
            "moved": len(told(document, MOVED)),
            "kept": len(told(document, {"reaction-kept"})),
            "forced_flips": len(told(document, {"flip-forced"})),
        })  # fmt: skip
    return rows


def write_comparison(rows, path):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        jobs = list(rows[0]["jobs"])
        writer.writerow(["run", "comm_ms_mean", "ratio", *[f"comm_ms_{name}" for name in jobs], "found", "moved", "kept", "forced_flips"])
        for row in rows:
            times = [row["comm_ms_mean"], row["ratio"], *[row["jobs"][name] for name in jobs]]
            writer.writerow([row["run"], *["" if time is None else f"{time:.4f}" for time in times], row["found"], row["moved"], row["kept"], row["forced_flips"]])
