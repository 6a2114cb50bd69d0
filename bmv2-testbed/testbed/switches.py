"""The switches of a run as processes, one per node. In: a network and the fabric. Out: P4Runtime addresses and device ids."""
import json
import subprocess

from testbed.processes import checked, free_port

# A send buffer that is too small would make BMv2 wait in send() while a kernel queue is full, with all its ports.
SEND_BUFFER = "/proc/sys/net/core/wmem_default"
SEND_BUFFER_BYTES = 4_000_000


class Switches:
    """Either kind behind the same words."""

    # Whether hosts may leave checksums and segments to hardware that is not there.
    offloads = True
    # Whether the others of its ports go on while an interface is down.
    stands_down = True

    def __init__(self, fabric, network, processes, args):
        self.fabric, self.network, self.processes, self.args = fabric, network, processes, args
        self.address = {name: f"127.0.0.1:{free_port()}" for name in fabric["switches"]}
        self.ids = {name: number for number, name in enumerate(fabric["switches"], 1)}

    def ports(self, name):
        return sorted((end for end in self.network.links.values() if end.node == name), key=lambda end: end.port)

    def start(self):
        for name in self.ids:
            self.processes.start(name, self.command(name))
        for name, address in self.address.items():
            self.processes.listening(name, address)

    def common(self):
        return ["--cpu-port", "510", "--drop-port", "511", "--priority-queues", str(self.fabric["queues"])]

    def flags(self):
        """For the controller."""
        return [word for name in self.ids for word in ("--switch", f"{name}={self.address[name]},{self.ids[name]}")]


class Embedded(Switches):
    """`ringpath switch`: its shapers have strict-priority queues in front, and it can be asked what it counted."""

    def command(self, name):
        command = [self.args.ringpath, "switch", "--no-p4", "--device-id", str(self.ids[name])]
        command += [*self.common(), "--grpc-server-addr", self.address[name]]
        for end in self.ports(name):
            command += ["-i", f"{end.port}@{end.interface}", "--port-rate", f"{end.port}={end.rate}bps"]
        return command + (["--pcap", self.args.results] if self.args.pcap else [])

    def slow(self, end, factor):
        checked([self.args.ringpath, "switch", "port-rate", f"{end.port}={int(end.rate * factor)}bps", "--device-id",
                 str(self.ids[end.node]), "--grpc-server-addr", self.address[end.node]])  # fmt: skip

    def counted(self):
        return {
            name: json.loads(checked([self.args.ringpath, "switch", "--stats", "--device-id", str(self.ids[name]), "-o", "json",
                                      "--grpc-server-addr", self.address[name]]))
            for name in self.ids
        }  # fmt: skip


class Bmv2(Switches):
    """simple_switch_grpc: its own queues pace each for itself and never share a rate, so the kernel's do."""

    offloads = False
    # libpcap's reader of all its ports waits for the one that is down.
    stands_down = False

    def start(self):
        with open(SEND_BUFFER) as file:
            before = file.read()
        with open(SEND_BUFFER, "w") as file:
            file.write(str(SEND_BUFFER_BYTES))
        try:
            for name in self.ids:
                for end in self.ports(name):
                    end.shape(self.fabric["queues"], self.args.dscp)
            super().start()
        finally:
            with open(SEND_BUFFER, "w") as file:
                file.write(before)

    def command(self, name):
        knows = subprocess.run(["simple_switch_grpc", "--help"], capture_output=True, text=True)
        command = ["simple_switch_grpc", "--no-p4", "--device-id", str(self.ids[name]), "-L", "error"]
        if "--thrift-port" in knows.stdout + knows.stderr:
            # Thrift listens on all addresses and knows no passwords; at least no two switches get in each other's way.
            command += ["--thrift-port", str(free_port())]
        for end in self.ports(name):
            command += ["-i", f"{end.port}@{end.interface}"]
        command += ["--pcap", self.args.results] if self.args.pcap else []
        return command + ["--", "--grpc-server-addr", self.address[name], *self.common()]

    def slow(self, end, factor):
        end.slow(factor)

    def counted(self):
        return {}


KINDS = {"embedded": Embedded, "bmv2": Bmv2}
