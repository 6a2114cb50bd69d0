#!/usr/bin/env python3
"""Mininet with `ringpath switch` where simple_switch_grpc stood: two hosts ping and run iperf3 through p4/samples/router.p4.

    sudo /usr/bin/python3 tests/interop/mininet_switch.py RINGPATH SHELL_PYTHON

Two switch classes start it with the flags that the classes of p4lang's tutorials and of p4-utils give. Entries are written with
p4runtime-shell by SHELL_PYTHON (see requirements-shell.txt). Hosts keep the offloads that Linux starts them with; those classes have to turn
them off for BMv2. Needs root and the Debian packages mininet, iperf3, iputils-ping and tcpdump; says SKIPPED by name where one is missing.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.path.join(REPO, "p4/build/router.json")
P4INFO = os.path.join(REPO, "p4/build/router.p4info.txtpb")
ENTRIES = os.path.join(REPO, "tests/interop/router_entries.py")
PATIENCE_S = 20
IPERF_S = 2


def missing():
    if os.geteuid():
        return "not root"
    for tool in ("iperf3", "ping", "tcpdump", "mnexec"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    try:
        import mininet  # noqa: F401
    except ImportError:
        return f"{sys.executable} has no mininet (Debian package mininet, for /usr/bin/python3)"
    return None


def classes():
    """The switch classes; here, so that the file can say what is missing without Mininet."""
    from mininet.node import Switch

    class ProcessSwitch(Switch):
        """A switch that is a process in the root namespace."""

        def __init__(self, name, path=None, folder=None, device_id=0, grpc_port=0, **parameters):
            super().__init__(name, **parameters)
            self.path, self.folder, self.device_id, self.grpc_port = path, folder, device_id, grpc_port
            self.process = None

        def port_flags(self):
            flags = []
            for port, interface in self.intfs.items():
                if not interface.IP():
                    flags += ["-i", f"{port}@{interface.name}"]
            return flags

        def start(self, controllers):
            command = [self.path, *self.flags()]
            self.log = open(os.path.join(self.folder, f"{self.name}.log"), "w+")
            self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
            end = time.monotonic() + PATIENCE_S
            while not listens(self.grpc_port):
                if self.process.poll() is not None or time.monotonic() > end:
                    sys.exit(f"{' '.join(command)} does not listen:\n{self.told()}")
                time.sleep(0.05)

        def told(self):
            self.log.seek(0)
            return self.log.read()

        def stop(self, deleteIntfs=True):
            if self.process and self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)
                try:
                    self.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    self.process.kill()
            super().stop(deleteIntfs)

    class TutorialsSwitch(ProcessSwitch):
        """As p4lang/tutorials start it: the program on the command line, then pushed by the controller."""

        def flags(self):
            return [
                *self.port_flags(), "--pcap", self.folder, "--nanolog", f"ipc:///tmp/bm-{self.device_id}-log.ipc",
                "--device-id", str(self.device_id), PROGRAM, "--log-console", "--thrift-port", "9090",
                "--", "--grpc-server-addr", f"0.0.0.0:{self.grpc_port}", "--cpu-port", "255", "--priority-queues", "8",
            ]  # fmt: skip

    class UtilsSwitch(ProcessSwitch):
        """As p4-utils start it, with the program left to the controller."""

        def flags(self):
            return [
                *self.port_flags(), f"--pcap={self.folder}", "--nanolog", f"ipc:///tmp/bm-{self.device_id}-log.ipc",
                "--device-id", str(self.device_id), "--no-p4", "--log-console", "--thrift-port", "9091",
                "--", "--grpc-server-addr", f"0.0.0.0:{self.grpc_port}",
            ]  # fmt: skip

    return TutorialsSwitch, UtilsSwitch


def listens(port):
    with open("/proc/net/tcp") as file:
        lines = [line.split() for line in file][1:]
    return any(int(line[1].split(":")[1], 16) == port and line[3] == "0A" for line in lines)


def need(what, good, seen):
    if not good:
        sys.exit(f"mininet_switch: FAILED: {what}\n{seen}")
    print(f"  {what}: ok")


def traffic(hosts):
    """Pings and iperf3 from the first host to the second; returns Mbit/s of TCP."""
    h1, h2 = hosts
    out = h1.cmd(f"ping -c 5 -i 0.1 -W 2 {h2.IP()}")
    need("5 pings are answered", " 0% packet loss" in out, out)
    server = h2.popen(["iperf3", "-s", "-1", "-i", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    end = time.monotonic() + PATIENCE_S
    while "5201" not in h2.cmd("ss -tln") and time.monotonic() < end:
        time.sleep(0.05)
    out = h1.cmd(f"iperf3 -c {h2.IP()} -t {IPERF_S} -i 0 -J")
    server.wait(PATIENCE_S)
    try:
        rate = json.loads(out)["end"]["sum_received"]["bits_per_second"] / 1e6
    except (ValueError, KeyError):
        rate = 0
    need(f"iperf3 gets {rate:,.0f} Mbit/s of TCP", rate > 1, out)


def run(kind, path, python, number, folder):
    from mininet.net import Mininet
    from mininet.topo import Topo

    class Two(Topo):
        def build(self):
            port = {"path": path, "folder": folder, "device_id": number, "grpc_port": 50051 + number}
            switch = self.addSwitch("s1", cls=kind, **port)
            for n in (1, 2):
                via = f"via 10.0.{n}.254"
                host = self.addHost(f"h{n}", ip=f"10.0.{n}.{n}/24", mac=f"08:00:00:00:0{n}:0{n}", defaultRoute=via)
                self.addLink(host, switch, port2=n)

    net = Mininet(topo=Two(), controller=None)
    switch = net.get("s1")
    try:
        net.start()
        hosts = [net.get(f"h{n}") for n in (1, 2)]
        for n, host in enumerate(hosts, 1):
            host.cmd(f"ip neigh replace 10.0.{n}.254 lladdr 08:00:00:00:0{n}:00 dev {host.defaultIntf()}")
        address = f"127.0.0.1:{switch.grpc_port}"
        entries = [python, ENTRIES, address, str(number), P4INFO, PROGRAM]
        done = subprocess.run(entries, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        need("p4runtime-shell pushes the program and two routes", done.returncode == 0, done.stdout + switch.told())
        traffic(hosts)
        ask = [path, "--stats", "--grpc-server-addr", address, "--device-id", str(number), "-o", "json"]
        stats = json.loads(subprocess.run(ask, stdout=subprocess.PIPE, check=True).stdout)
        sent = {port["interface"]: port["sent"]["packets"] for port in stats["ports"]}
        need(f"--stats counts both directions: {sent}", all(count > 10 for count in sent.values()) and len(sent) == 2, stats)
    finally:
        net.stop()
    need("it ends with 0 on SIGTERM", switch.process.returncode == 0, switch.told())
    for side in ("in", "out"):
        file = os.path.join(folder, f"s1-eth1_{side}.pcap")
        read = subprocess.run(["tcpdump", "-nr", file, "icmp"], capture_output=True, text=True)
        lines = len(re.findall(r"ICMP echo", read.stdout))
        need(f"tcpdump finds the pings in s1-eth1_{side}.pcap", lines == 5, read.stdout + read.stderr)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    reason = missing()
    if reason:
        print(f"mininet_switch: SKIPPED: {reason}")
        return 0
    binary, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    for number, kind in enumerate(classes()):
        with tempfile.TemporaryDirectory() as folder:
            # Both classes start one program by its path: this one says `ringpath switch`.
            path = os.path.join(folder, "simple_switch_grpc")
            with open(path, "w") as file:
                file.write(f'#!/bin/sh\nexec {binary} switch "$@"\n')
            os.chmod(path, 0o755)
            print(f"{kind.__name__}:")
            run(kind, path, python, number, folder)
    print("mininet_switch: all ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
