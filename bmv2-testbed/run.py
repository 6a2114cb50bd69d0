#!/usr/bin/env python3
"""Runs a scenario on Mininet: real switch processes, the real controller, workers that reduce over real TCP.

    sudo /usr/bin/python3 bmv2-testbed/run.py SCENARIO.toml [--policy joint] [--results DIR] [--cli]

Needs root, the Debian packages mininet, iperf3 and ethtool, and a built `ringpath` (`cargo build --release`, or --ringpath). What it does: builds the
fabric that `ringpath fabric` prints, starts a switch per node and the controller in the root namespace, submits the jobs, starts one worker per
rank on its host, plays the scenario's events, and leaves DIR/results.json, DIR/iterations.csv, the controller's events and inputs, and every
process's log. Everything that it starts ends with it. Exit code 0: all workers finished; 1: something failed, said on standard error.
"""
import argparse
import csv
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PATIENCE_S = 30
# Our tag is 24 bytes, and an Ethernet frame of a host is at most 1,500 + 14.
FABRIC_MTU = 1600
FIRST_PORT = 20000
# With BMv2 the queues are the kernel's (see `shape`); a send buffer that is too small would make the switch wait in send().
SEND_BUFFER = "/proc/sys/net/core/wmem_default"
SEND_BUFFER_BYTES = 4_000_000
# Packets per class, as many as the embedded switch has per queue.
CLASS_PACKETS = 64
TAG_ETHERTYPE = "0x88b5"
BACKGROUND_PORT = 15201
# What the testbed can do to real links and processes; the rest is refused before anything is built.
EVENTS = {"link-down", "link-up", "background-flow", "job-departure"}


class Failure(Exception):
    """Something that ends the run, in words."""


def arguments():
    parser = argparse.ArgumentParser(description="Run a scenario on Mininet with real switches.")
    parser.add_argument("scenario", metavar="SCENARIO.toml")
    parser.add_argument("--switch", default="embedded", choices=["embedded", "bmv2"],
                        help="ringpath switch, or simple_switch_grpc from the PATH (default: embedded)")  # fmt: skip
    parser.add_argument("--policy", default="joint", help="policy that plans (default: joint)")
    parser.add_argument("--feedback", default="best", choices=["none", "raise", "best"], help="how stragglers are helped")
    parser.add_argument("--seed", help="draws what the scenario leaves open (default: the scenario's own)")
    parser.add_argument("--ringpath", default=os.path.join(ROOT, "target/release/ringpath"), help="the program")
    parser.add_argument("--results", default="testbed-results", metavar="DIR", help="where results go (default: testbed-results)")
    parser.add_argument("--pcap", action="store_true", help="record every port of every switch into DIR")
    parser.add_argument("--cli", action="store_true", help="open Mininet's command line once the paths are installed")
    return parser.parse_args()


def missing(args):
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


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Processes:
    """What was started, so that it can be ended: by id, in reverse."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command, popen=subprocess.Popen, stdout=None):
        log = open(os.path.join(self.folder, f"{name}.log"), "w")
        process = popen(command, stdout=stdout or log, stderr=log, text=stdout is not None)
        self.running.append((name, process))
        return process

    def told(self, name):
        with open(os.path.join(self.folder, f"{name}.log")) as log:
            return log.read().strip()

    def end(self):
        for _, process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for _, process in reversed(self.running):
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Testbed:
    """One run. In: arguments and the fabric as `ringpath fabric` prints it. Out: a results folder."""

    def __init__(self, args, fabric):
        self.args, self.fabric = args, fabric
        self.seed = seed(args)
        self.processes = Processes(args.results)
        self.grpc = {name: free_port() for name in fabric["switches"]}
        self.ids = {name: number for number, name in enumerate(fabric["switches"], 1)}
        self.api = f"127.0.0.1:{free_port()}"
        self.net = None
        self.workers = []
        self.readers = []
        self.background = []
        self.lines = {}
        self.played = []

    def ringpath(self, *words):
        done = subprocess.run([self.args.ringpath, *words], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"ringpath {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    # -- network ---------------------------------------------------------------------------------------------------------------

    def build(self):
        from mininet.net import Mininet
        from mininet.node import Node

        class Bare(Node):
            """A switch of the fabric: its interfaces are in the root namespace, its process is ours."""

            def __init__(self, name, **parameters):
                super().__init__(name, inNamespace=False, **parameters)

        self.net = Mininet(controller=None, autoSetMacs=False)
        for host in self.fabric["hosts"]:
            # One flat prefix: every other host is on the link, and the leaf answers ARP for it.
            self.net.addHost(host["name"], ip=f"{host['ip']}/8", mac=host["mac"])
        for switch in self.fabric["switches"]:
            self.net.addHost(switch, cls=Bare)
        for cable in self.fabric["cables"]:
            a, b = self.net.get(cable["a"]), self.net.get(cable["b"])
            self.net.addLink(a, b, port1=cable["a_port"], port2=cable["b_port"])
        self.net.build()
        for cable in self.fabric["cables"]:
            self.prepare(cable)

    @staticmethod
    def ends(cable):
        """Node and port of either end."""
        return (cable["a"], cable["a_port"]), (cable["b"], cable["b_port"])

    def interface(self, node, port):
        return self.net.get(node).intfs[port].name

    def prepare(self, cable):
        """No IPv6 chatter, room for the tag between switches."""
        inner = cable["a"] in self.ids and cable["b"] in self.ids
        for node, port in self.ends(cable):
            interface, host = self.interface(node, port), self.net.get(node)
            host.cmd(f"sysctl -qw net.ipv6.conf.{interface}.disable_ipv6=1")
            if inner:
                host.cmd(f"ip link set {interface} mtu {FABRIC_MTU}")
            if self.args.switch == "bmv2":
                # BMv2 passes on checksums and segments that the sender left to hardware; TCP would never connect.
                host.cmd(f"ethtool -K {interface} tx off tso off gso off gro off")
            host.cmd(f"ip link set {interface} up")

    def start_switches(self):
        ports = {name: [] for name in self.ids}
        for cable in self.fabric["cables"]:
            for node, port in self.ends(cable):
                if node in ports:
                    ports[node].append((port, cable["rate_bps"]))
        start = self.start_bmv2 if self.args.switch == "bmv2" else self.start_embedded
        start(ports)

    def all_listen(self):
        for name in self.ids:
            self.listening(name, f"127.0.0.1:{self.grpc[name]}")

    def start_embedded(self, ports):
        for name, own in ports.items():
            command = [self.args.ringpath, "switch", "--no-p4", "--device-id", str(self.ids[name])]
            command += ["--priority-queues", str(self.fabric["queues"]), "--cpu-port", "510", "--drop-port", "511"]
            command += ["--grpc-server-addr", f"127.0.0.1:{self.grpc[name]}"]
            for port, rate in own:
                command += ["-i", f"{port}@{self.interface(name, port)}", "--port-rate", f"{port}={rate}bps"]
            if self.args.pcap:
                command += ["--pcap", self.args.results]
            self.processes.start(name, command)
        self.all_listen()

    def start_bmv2(self, ports):
        knows = subprocess.run(["simple_switch_grpc", "--help"], capture_output=True, text=True)
        thrift = "--thrift-port" in knows.stdout + knows.stderr
        with open(SEND_BUFFER) as file:
            before = file.read()
        with open(SEND_BUFFER, "w") as file:
            file.write(str(SEND_BUFFER_BYTES))
        try:
            for name, own in ports.items():
                command = ["simple_switch_grpc", "--no-p4", "--device-id", str(self.ids[name]), "-L", "error"]
                # Thrift listens on all addresses and knows no passwords; at least no two switches get in each other's way.
                command += ["--thrift-port", str(free_port())] if thrift else []
                for port, rate in own:
                    self.shape(name, port, rate)
                    command += ["-i", f"{port}@{self.interface(name, port)}"]
                if self.args.pcap:
                    command += ["--pcap", self.args.results]
                command += ["--", "--grpc-server-addr", f"127.0.0.1:{self.grpc[name]}", "--cpu-port", "510"]
                command += ["--drop-port", "511", "--priority-queues", str(self.fabric["queues"])]
                self.processes.start(name, command)
            self.all_listen()
        finally:
            with open(SEND_BUFFER, "w") as file:
                file.write(before)

    def shape(self, name, port, rate):
        """Strict priority at a port of BMv2, whose own queues cannot share a rate: one HTB class per queue of the tag's first byte. Packets
        without a tag, those to hosts among them, share the lowest queue's class."""
        device, queues = self.interface(name, port), self.fabric["queues"]
        commands = [
            "qdisc add dev DEV root handle 1: htb default 10 r2q 1",
            f"class add dev DEV parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst 3000 cburst 3000 quantum 1600",
        ]
        for queue in range(queues):
            minor = f"1:1{queue}"
            commands += [
                f"class add dev DEV parent 1:1 classid {minor} htb rate 8kbit ceil {rate}bit prio {queues - 1 - queue} burst 1600 "
                "cburst 3000 quantum 1600",
                f"qdisc add dev DEV parent {minor} handle 2{queue}: pfifo limit {CLASS_PACKETS}",
                f"filter add dev DEV parent 1: protocol {TAG_ETHERTYPE} prio 1 u32 match u8 {queue << 1:#x} 0x0e at 0 flowid {minor}",
            ]
        for command in commands:
            done = subprocess.run(["tc", *command.replace("DEV", device).split()], capture_output=True, text=True)
            if done.returncode:
                raise Failure(f"tc {command.replace('DEV', device)}: {done.stderr.strip()}")

    def listening(self, name, address):
        host, port = address.rsplit(":", 1)
        process = dict(self.processes.running)[name]
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if process.poll() is not None:
                raise Failure(f"{name} ended at once: {self.processes.told(name)}")
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.02)
        raise Failure(f"{name} does not listen on {address}: {self.processes.told(name)}")

    # -- controller and jobs ---------------------------------------------------------------------------------------------------

    def start_controller(self):
        args, folder = self.args, self.args.results
        command = [args.ringpath, "controller", args.scenario, *self.seed, "--listen", self.api]
        command += ["--policy", args.policy, "--feedback", args.feedback]
        command += ["--store", os.path.join(folder, "store.redb"), "--record", os.path.join(folder, "inputs.jsonl")]
        for name in self.fabric["switches"]:
            command += ["--switch", f"{name}=127.0.0.1:{self.grpc[name]},{self.ids[name]}"]
        self.processes.start("controller", command)
        self.listening("controller", self.api)
        events = open(os.path.join(folder, "events.jsonl"), "w")
        self.processes.start("watch", [args.ringpath, "job", "watch", "--controller", self.api], stdout=events)

    def submit(self):
        names = [job["name"] for job in self.fabric["jobs"]]
        words = ["job", "submit", self.args.scenario, *names, *self.seed, "--tcp", str(FIRST_PORT)]
        self.ringpath(*words, "--wait", "installed", "--controller", self.api)
        port = FIRST_PORT
        for job in self.fabric["jobs"]:
            job["first_port"] = port
            port += len(job["hosts"]) * job["channels"]

    def start_workers(self):
        address = {host["name"]: host["ip"] for host in self.fabric["hosts"]}
        for job in self.fabric["jobs"]:
            peers = ",".join(address[host] for host in job["hosts"])
            for rank, host in enumerate(job["hosts"]):
                command = [self.args.ringpath, "worker", "--rank", str(rank), "--peers", peers]
                command += ["--first-port", str(job["first_port"]), "--bytes", f"{job['gradient_bytes']}B"]
                command += ["--compute", f"{job['compute_ns']}ns", "--iterations", str(job["iterations"])]
                command += ["--channels", str(job["channels"]), "--job", job["name"], "-o", "json"]
                name = f"worker-{job['name']}-{rank}"
                process = self.processes.start(name, command, self.net.get(host).popen, stdout=subprocess.PIPE)
                self.workers.append((job["name"], rank, name, process))
                reader = threading.Thread(target=self.read, args=(job["name"], rank, process), daemon=True)
                reader.start()
                self.readers.append(reader)

    def read(self, job, rank, process):
        for line in process.stdout:
            text = line if isinstance(line, str) else line.decode()
            self.lines.setdefault((job, rank), []).append(json.loads(text))

    # -- events ----------------------------------------------------------------------------------------------------------------

    def play(self):
        """Plays the events, then waits for the workers."""
        begin = time.monotonic()
        for event in sorted(self.fabric["events"], key=lambda event: event["at_ns"]):
            while time.monotonic() - begin < event["at_ns"] / 1e9 and self.working():
                time.sleep(0.01)
            getattr(self, event["kind"].replace("-", "_"))(event)
            self.played.append({"at_s": time.monotonic() - begin, **event})
        longest = sum(job["iterations"] * (job["compute_ns"] / 1e9 + 60) for job in self.fabric["jobs"])
        while self.working():
            if time.monotonic() - begin > longest:
                raise Failure("the workers do not end")
            time.sleep(0.05)
        for reader in self.readers:
            # What a worker wrote may still be on its way when it has ended.
            reader.join(PATIENCE_S)
        for job, rank, name, process in self.workers:
            if process.returncode and not self.departed(job):
                raise Failure(f"rank {rank} of {job} failed: {self.processes.told(name)}")
        for name, process in self.background:
            if process.poll():
                raise Failure(f"background traffic failed: {self.processes.told(name)}")

    def departed(self, job):
        return any(event["kind"] == "job-departure" and event["job"] == job for event in self.played)

    def working(self):
        return any(process.poll() is None for _, _, _, process in self.workers)

    def both_ends(self, cable, state):
        for found in self.fabric["cables"]:
            if {found["a"], found["b"]} == set(cable):
                for node, port in self.ends(found):
                    self.net.get(node).cmd(f"ip link set {self.interface(node, port)} {state}")

    def link_down(self, event):
        self.both_ends(event["cable"], "down")

    def link_up(self, event):
        self.both_ends(event["cable"], "up")

    def background_flow(self, event):
        source, destination = self.net.get(event["source"]), self.net.get(event["destination"])
        port = str(BACKGROUND_PORT + len(self.background))
        self.processes.start(f"iperf3-server-{port}", ["iperf3", "-s", "-1", "-p", port], destination.popen)
        end = time.monotonic() + PATIENCE_S
        while f":{port} " not in destination.cmd("ss -tln"):
            if time.monotonic() > end:
                raise Failure(f"iperf3 does not listen: {self.processes.told(f'iperf3-server-{port}')}")
            time.sleep(0.02)
        # Whole seconds, or until everything is ended.
        seconds = math.ceil(event["lasts_ns"] / 1e9) if event["lasts_ns"] else 3600
        command = ["iperf3", "-c", destination.IP(), "-p", port, "-u", "-b", str(event["rate_bps"]), "-t", str(seconds)]
        self.background.append((f"iperf3-{port}", self.processes.start(f"iperf3-{port}", command, source.popen)))

    def job_departure(self, event):
        for job, _, _, process in self.workers:
            if job == event["job"] and process.poll() is None:
                process.send_signal(signal.SIGTERM)
        self.ringpath("job", "cancel", event["job"], "--controller", self.api)

    # -- results ---------------------------------------------------------------------------------------------------------------

    def results(self):
        """Communication phases as everywhere: the first byte that any rank hands over to the last that the last rank has reduced, ms."""
        jobs, rows = {}, []
        for job in self.fabric["jobs"]:
            ranks = [self.lines.get((job["name"], rank), []) for rank in range(len(job["hosts"]))]
            done = min(len(rank) for rank in ranks)
            phases = []
            for number in range(done):
                begin = min(rank[number]["comm_began_s"] for rank in ranks)
                end = max(rank[number]["comm_began_s"] + rank[number]["comm_ms"] / 1e3 for rank in ranks)
                phases.append((end - begin) * 1e3)
                rows.append([job["name"], number, f"{phases[-1]:.3f}", f"{begin:.6f}"])
            counted = phases[1:]
            mean = sum(counted) / len(counted) if counted else None
            jobs[job["name"]] = {"iterations": done, "comm_ms": mean, "longest_ms": max(counted, default=None)}
        means = [job["comm_ms"] for job in jobs.values() if job["comm_ms"] is not None]
        switches = {} if self.args.switch == "bmv2" else {
            name: json.loads(self.ringpath("switch", "--stats", "--device-id", str(self.ids[name]), "-o", "json",
                                           "--grpc-server-addr", f"127.0.0.1:{self.grpc[name]}"))
            for name in self.fabric["switches"]
        }  # fmt: skip
        listed = json.loads(self.ringpath("job", "list", "-o", "json", "--controller", self.api))
        document = {
            "scenario": self.fabric["name"], "policy": self.args.policy, "switch": self.args.switch,
            "comm_ms_mean": sum(means) / len(means) if means else None, "jobs": jobs, "events": self.played,
            "plan": listed, "switches": switches,
        }  # fmt: skip
        with open(os.path.join(self.args.results, "results.json"), "w") as file:
            json.dump(document, file, indent=1)
        with open(os.path.join(self.args.results, "iterations.csv"), "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["job", "iteration", "comm_ms", "began_s"])
            writer.writerows(rows)
        return document

    def run(self):
        self.build()
        self.start_switches()
        self.start_controller()
        self.submit()
        if self.args.cli:
            from mininet.cli import CLI

            CLI(self.net)
        self.start_workers()
        self.play()
        return self.results()

    def clean(self):
        self.processes.end()
        if self.net:
            self.net.stop()


def seed(args):
    return ["--seed", args.seed] if args.seed else []


def ms(value):
    return "-" if value is None else f"{value:.1f} ms"


def main():
    args = arguments()
    lacking = missing(args)
    if lacking:
        sys.exit(f"testbed: {lacking}")
    os.makedirs(args.results, exist_ok=True)
    for left in ("store.redb", "inputs.jsonl"):
        if os.path.exists(os.path.join(args.results, left)):
            os.remove(os.path.join(args.results, left))
    told = subprocess.run([args.ringpath, "fabric", args.scenario, *seed(args), "-o", "json"], capture_output=True, text=True)
    if told.returncode:
        sys.exit(told.stderr.strip())
    fabric = json.loads(told.stdout)
    if any(event["kind"] == "background-flow" for event in fabric["events"]) and shutil.which("iperf3") is None:
        sys.exit("testbed: the scenario has background traffic and iperf3 is not here; apt-get install iperf3")
    strange = sorted({event["kind"] for event in fabric["events"]} - EVENTS)
    if strange:
        sys.exit(f"testbed: events of kind {', '.join(strange)} cannot be played on real links and processes yet; remove them")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("testbed: ended by a signal"))
    testbed = Testbed(args, fabric)
    try:
        document = testbed.run()
    except Failure as failure:
        sys.exit(f"testbed: {failure}")
    except KeyboardInterrupt:
        sys.exit("testbed: stopped")
    finally:
        testbed.clean()
    print(f"{document['scenario']}, {args.policy}, {args.switch}: communication {ms(document['comm_ms_mean'])}")
    for name, job in document["jobs"].items():
        print(f"  {name:16} {ms(job['comm_ms']):>12} over {job['iterations']} iterations, longest {ms(job['longest_ms'])}")
    print(f"results in {args.results}")


if __name__ == "__main__":
    main()
