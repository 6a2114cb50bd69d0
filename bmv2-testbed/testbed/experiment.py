"""One run of a scenario: network, switches, controller, workers, events. In: arguments and the fabric as `ringpath fabric` prints it. Out: a
results folder. Whatever it started has ended when `clean` returns."""
import json
import os
import shutil
import signal
import tempfile
import threading
import time

from testbed import results
from testbed.events import Player
from testbed.network import Network
from testbed.processes import PATIENCE_S, Failure, Processes, checked, free_port
from testbed.switches import KINDS

FIRST_PORT = 20000
# Acknowledgements go in the queue above those of all data.
CONTROL = -1
# Time between two looks at queues that kernel classes follow.
FOLLOW_S = 0.05
# What a run that cannot end is given per iteration beyond its computing.
LONGEST_ITERATION_S = 60


class Worker:
    """One rank of a job and what it has said."""

    def __init__(self, job, rank, host, name, process):
        self.job, self.rank, self.host, self.name, self.process = job, rank, host, name, process
        self.lines = []
        self.killed = False

    def read(self):
        for line in self.process.stdout:
            # A rank that is killed may leave a part of a line.
            if line.endswith(b"\n") or not self.killed:
                self.lines.append(json.loads(line))


def end_by_signals():
    """A signal that ends a program ends it as Ctrl-C does: with its `finally`."""

    def end(number, _):
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)


class Experiment:
    def __init__(self, args, fabric):
        self.args, self.fabric = args, fabric
        self.processes = Processes(args.results)
        self.network = Network(fabric)
        self.switches = KINDS[args.switch](fabric, self.network, self.processes, args)
        self.api = f"127.0.0.1:{free_port()}"
        # Namespaces have no way to each other's loopback; files they share. A socket's path may have 107 bytes, so not among the results.
        self.sockets = tempfile.mkdtemp(prefix="ringpath-")
        self.local = os.path.join(self.sockets, "controller")
        self.workers = []
        self.events = []
        self.departed = set()
        # Jobs that have not arrived yet.
        self.waiting = set()
        self.over = threading.Event()
        self.troubles = []
        # Those that look at the run's end.
        self.threads = []
        self.seed = ["--seed", args.seed] if args.seed else []
        # Jobs that are submitted together have ports that follow each other.
        port = FIRST_PORT
        for job in sorted(fabric["jobs"], key=lambda job: job["start_ns"] > 0):
            job["first_port"] = port
            port += len(job["hosts"]) * job["channels"]

    def path(self, name):
        return os.path.join(self.args.results, name)

    def job(self, *words):
        """`ringpath job …` at this run's controller."""
        return checked([self.args.ringpath, "job", *words, "--controller", self.api])

    # -- controller and jobs ---------------------------------------------------------------------------------------------------

    def start_controller(self):
        args = self.args
        command = [args.ringpath, "controller", args.scenario, *self.seed, "--listen", self.api]
        command += ["--policy", args.policy, "--feedback", args.feedback, "--rho", str(args.rho)]
        command += [word for dscp, queue in args.dscp for word in ("--dscp", f"{dscp}={queue}")]
        command += ["--local", self.local, "--store", self.path("store.redb"), "--record", self.path("inputs.jsonl"), *self.switches.flags()]
        command += ["--flip-gap", args.flip_gap] if args.flip_gap else []
        self.processes.start("controller", command)
        self.processes.listening("controller", self.api)
        watch = self.processes.start("watch", [args.ringpath, "job", "watch", "--controller", self.api], piped=True)
        self.background(self.note_events, watch)

    def background(self, work, *given):
        """A thread whose failure ends the run."""

        def run():
            try:
                work(*given)
            except Exception as error:
                self.troubles.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def note_events(self, watch):
        with open(self.path("events.jsonl"), "w") as file:
            for line in watch.stdout:
                event = {"wall_s": time.time(), **json.loads(line)}
                self.events.append(event)
                file.write(json.dumps(event) + "\n")

    def submit(self, jobs):
        names = [job["name"] for job in jobs]
        words = ["submit", self.args.scenario, *names, *self.seed, "--tcp", str(jobs[0]["first_port"])]
        self.job(*words, "--wait", "installed")

    def start_workers(self, job):
        address = {host["name"]: host["ip"] for host in self.fabric["hosts"]}
        peers = ",".join(address[host] for host in job["hosts"])
        for rank, host in enumerate(job["hosts"]):
            command = [self.args.ringpath, "worker", "--rank", str(rank), "--peers", peers]
            command += ["--first-port", str(job["first_port"]), "--bytes", f"{job['gradient_bytes']}B"]
            command += ["--compute", f"{job['compute_ns']}ns", "--iterations", str(job["iterations"])]
            command += ["--channels", str(job["channels"]), "--job", job["name"], "-o", "json"]
            command += ["--controller", f"unix:{self.local}", "--pace-file", self.pace_file(host)]
            name = f"worker-{job['name']}-{rank}"
            process = self.processes.start(name, command, self.network.host(host).popen, piped=True)
            worker = Worker(job["name"], rank, host, name, process)
            worker.reader = self.background(worker.read)
            self.workers.append(worker)

    def pace_file(self, host):
        return self.path(f"pace-{host}")

    def pace(self, host, factor):
        """How fast the host's workers compute from their next iteration on."""
        with open(self.pace_file(host) + ".new", "w") as file:
            file.write(str(factor))
        os.replace(self.pace_file(host) + ".new", self.pace_file(host))

    def kill_host(self, host):
        for worker in self.workers:
            if worker.host == host and worker.process.poll() is None:
                worker.killed = True
                worker.process.kill()

    def end_job(self, job, signal):
        self.departed.add(job)
        for worker in self.workers:
            if worker.job == job and worker.process.poll() is None:
                worker.process.send_signal(signal)

    # -- kernel queues ---------------------------------------------------------------------------------------------------------

    def follow(self):
        """Keeps the kernel's classes of hosts' links in step with the flows' queues until the run is over."""
        while not self.over.is_set():
            self.follow_once()
            self.over.wait(FOLLOW_S)

    def follow_once(self):
        control = self.fabric["queues"] + CONTROL
        wanted = {host: ({}, {}) for host in self.network.to_hosts()}
        for told in json.loads(self.job("list", "-o", "json")):
            for flow in told["flows"]:
                if flow["source"] not in told["hosts"]:
                    continue
                edge = told["hosts"].index(flow["source"])
                port = told["first_port"] + flow["channel"] * len(told["hosts"]) + edge
                wanted[flow["source"]][1][port, "dport"] = wanted[flow["destination"]][0][port, "dport"] = flow["queue"]
                wanted[flow["source"]][0][port, "sport"] = wanted[flow["destination"]][1][port, "sport"] = control
        for host, ends in self.network.to_hosts().items():
            for end, classes in zip(ends, wanted[host]):
                if end.queues:
                    end.follow(classes)

    # -- the run ---------------------------------------------------------------------------------------------------------------

    def working(self):
        return any(worker.process.poll() is None for worker in self.workers) or bool(self.waiting)

    def run(self):
        self.network.build(self.switches.offloads)
        for _, host in self.network.to_hosts().values():
            host.shape(self.fabric["queues"], self.args.dscp)
        self.switches.start()
        self.start_controller()
        first = [job for job in self.fabric["jobs"] if not job["start_ns"]]
        later = [job for job in self.fabric["jobs"] if job["start_ns"]]
        self.waiting = {job["name"] for job in later}
        player = Player(self)
        for job in later:
            player.at(job["start_ns"] / 1e9, {"kind": "job-arrival", "job": job["name"]}, lambda _, job=job: self.arrive(job))
        if first:
            self.submit(first)
        self.follow_once()
        self.threads.append(self.background(self.follow))
        if self.args.cli:
            from mininet.cli import CLI

            CLI(self.network.mininet)
        for job in first:
            self.start_workers(job)
        began = time.monotonic()
        player.play(lambda: not self.working() or bool(self.troubles))
        longest = max(job["start_ns"] / 1e9 + job["iterations"] * (job["compute_ns"] / 1e9 + LONGEST_ITERATION_S) for job in self.fabric["jobs"])
        while self.working() and not self.troubles:
            if time.monotonic() - began > longest:
                raise Failure("the workers do not end")
            time.sleep(0.02)
        self.finish(player)
        return results.write(self, player.played)

    def arrive(self, job):
        self.submit([job])
        self.start_workers(job)
        self.waiting.discard(job["name"])

    def finish(self, player):
        for worker in self.workers:
            # What a worker wrote may still be on its way when it has ended.
            worker.reader.join(PATIENCE_S)
        for worker in self.workers:
            if worker.process.returncode and not worker.killed and worker.job not in self.departed:
                raise Failure(f"rank {worker.rank} of {worker.job} failed: {self.processes.told(worker.name)}")
        player.check()
        if self.troubles:
            raise Failure(self.troubles[0])

    def clean(self):
        self.over.set()
        for thread in self.threads:
            # Nothing may run `tc` in a host that is being taken down.
            thread.join(PATIENCE_S)
        try:
            self.processes.end()
        finally:
            self.network.stop()
            shutil.rmtree(self.sockets, ignore_errors=True)
