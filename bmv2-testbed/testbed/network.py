"""The fabric on Mininet, and what the kernel does to its links. In: the fabric as `ringpath fabric` prints it. Out: hosts in namespaces of
their own, switches' interfaces in the root namespace, rates and priorities where a switch cannot have them itself. Must not know jobs.

**Kernel queues.** A port of BMv2 and the interface of every host get an HTB with one class per queue under one rate: strict priority, and no
class ever idles a link that another could use. Which class a packet takes is read, in this order, from the tag's first byte (between
switches), from its TCP port if that belongs to a flow of a job (`follow`; to and from hosts, where no tag is), or from its DSCP as the
controller has the switches do (`--dscp`). All else takes the lowest.
"""
import threading

from testbed.processes import Failure, checked

# Our tag is 24 bytes, and an Ethernet frame of a host is at most 1,500 + 14.
FABRIC_MTU = 1600
# Packets per class, as many as the embedded switch has per queue.
CLASS_PACKETS = 64
TAG_ETHERTYPE = "0x88b5"
# Filters of flows come after those of tags (1) and before those of DSCP.
FLOW_PRIO, DSCP_PRIO = 10, 20000


def tc(*words):
    checked(["tc", *[str(word) for word in words]])


class Link:
    """One end of a cable: where it is, and what its kernel queues follow."""

    def __init__(self, node, port, interface, inside, rate):
        self.node, self.port, self.interface, self.inside, self.rate = node, port, interface, inside, rate
        self.queues = 0
        self.followed = {}
        # Of the classes: flows are followed beside events.
        self.lock = threading.Lock()
        self.severed = False
        self.factor = 1

    def run(self, command):
        """A command where the interface is."""
        done = self.inside(command)
        if done[1]:
            raise Failure(f"{' '.join(command)} on {self.node}: {done[0].strip()}")

    def shape(self, queues, classes):
        """Strict priority at a rate; see the module. `classes`: (DSCP, queue)."""
        device, self.queues, rate = self.interface, queues, self.now()
        lines = [
            "qdisc add dev DEV root handle 1: htb default 10 r2q 1",
            f"class add dev DEV parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst 3000 cburst 3000 quantum 1600",
        ]
        for queue in range(queues):
            minor = f"1:1{queue}"
            lines += [
                f"class add dev DEV parent 1:1 classid {minor} htb rate 8kbit ceil {rate}bit prio {queues - 1 - queue} burst 1600 "
                "cburst 3000 quantum 1600",
                f"qdisc add dev DEV parent {minor} handle 2{queue}: pfifo limit {CLASS_PACKETS}",
                f"filter add dev DEV parent 1: protocol {TAG_ETHERTYPE} prio 1 u32 match u8 {queue << 1:#x} 0x0e at 0 flowid {minor}",
            ]
        lines += [
            f"filter add dev DEV parent 1: protocol ip prio {DSCP_PRIO} u32 match ip dsfield {dscp << 2:#x} 0xfc flowid 1:1{queue}"
            for dscp, queue in classes
        ]
        for line in lines:
            self.run(["tc", *line.replace("DEV", device).split()])

    def now(self):
        """Its rate at this time, bits per second."""
        return max(int(self.rate * self.factor), 8000)

    def slow(self, factor):
        """Another rate for the whole link; 1 = its own. A link that is cut has it once it is mended."""
        with self.lock:
            self.factor = factor
            if not self.severed:
                self.change()

    def change(self):
        rate = self.now()
        line = f"class change dev {self.interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst 3000 cburst 3000 quantum 1600"
        self.run(["tc", *line.split()])
        for queue in range(self.queues):
            line = (f"class change dev {self.interface} parent 1:1 classid 1:1{queue} htb rate 8kbit ceil {rate}bit "
                    f"prio {self.queues - 1 - queue} burst 1600 cburst 3000 quantum 1600")  # fmt: skip
            self.run(["tc", *line.split()])

    def follow(self, wanted):
        """Has packets with a TCP port take a queue. In: {(port, "dport" or "sport"): queue}; what is no longer in it is forgotten."""
        with self.lock:
            if not self.severed:
                self.classify(wanted)

    def classify(self, wanted):
        for key in sorted({*self.followed, *wanted}):
            if self.followed.get(key) == wanted.get(key):
                continue
            port, side = key
            prio = str(FLOW_PRIO + 2 * (port % 5000) + (side == "sport"))
            if key in self.followed:
                self.run(["tc", "filter", "del", "dev", self.interface, "parent", "1:", "prio", prio])
                del self.followed[key]
            if key in wanted:
                line = f"filter add dev {self.interface} parent 1: protocol ip prio {prio} u32 match ip protocol 6 0xff match ip {side} {port} 0xffff"
                self.run(["tc", *line.split(), "flowid", f"1:1{wanted[key]}"])
                self.followed[key] = wanted[key]

    def offloads_off(self):
        """BMv2 passes on checksums and segments that the sender left to hardware; TCP would never connect."""
        self.run(["ethtool", "-K", self.interface, "tx", "off", "tso", "off", "gso", "off", "gro", "off"])

    def cut(self):
        """Lets nothing out, and nobody see that: the interface stays up."""
        with self.lock:
            self.severed = True
            self.followed.clear()
            self.run(["tc", "qdisc", "replace", "dev", self.interface, "root", "pfifo", "limit", "0"])

    def mend(self, classes):
        """As it was shaped before `cut`."""
        with self.lock:
            if not self.severed:
                return
            self.run(["tc", "qdisc", "del", "dev", self.interface, "root"])
            self.shape(self.queues, classes)
            self.severed = False

    def state(self, up):
        self.run(["ip", "link", "set", self.interface, "up" if up else "down"])


class Network:
    """Hosts, switches' interfaces and cables. Made by `build`, gone after `stop`."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.mininet = None
        self.links = {}

    def build(self, offloads):
        """`offloads`: whether the switches can take packets whose checksums are left to hardware."""
        from mininet.net import Mininet
        from mininet.node import Node

        class Bare(Node):
            """A switch of the fabric: its interfaces are in the root namespace, its process is ours."""

            def __init__(self, name, **parameters):
                super().__init__(name, inNamespace=False, **parameters)

        self.mininet = Mininet(controller=None, autoSetMacs=False)
        for host in self.fabric["hosts"]:
            # One flat prefix: every other host is on the link, and the leaf answers ARP for it.
            self.mininet.addHost(host["name"], ip=f"{host['ip']}/8", mac=host["mac"])
        for switch in self.fabric["switches"]:
            self.mininet.addHost(switch, cls=Bare)
        for cable in self.fabric["cables"]:
            a, b = self.mininet.get(cable["a"]), self.mininet.get(cable["b"])
            self.mininet.addLink(a, b, port1=cable["a_port"], port2=cable["b_port"])
        self.mininet.build()
        for cable in self.fabric["cables"]:
            inner = all(end in self.fabric["switches"] for end in (cable["a"], cable["b"]))
            for end in self.open(cable):
                # No IPv6 chatter, room for the tag between switches.
                end.run(["sysctl", "-qw", f"net.ipv6.conf.{end.interface}.disable_ipv6=1"])
                if inner:
                    end.run(["ip", "link", "set", end.interface, "mtu", str(FABRIC_MTU)])
                if not offloads:
                    end.offloads_off()
                end.state(True)

    def open(self, cable):
        """Both ends of a cable."""
        ends = []
        for node, port in ((cable["a"], cable["a_port"]), (cable["b"], cable["b_port"])):
            there = self.mininet.get(node)

            def inside(command, there=there):
                out, errors, code = there.pexec(command)
                return errors or out, code

            end = self.links[node, port] = Link(node, port, there.intfs[port].name, inside, cable["rate_bps"])
            ends.append(end)
        return ends

    def host(self, name):
        return self.mininet.get(name)

    def ends(self, cable):
        """Ends of the cable between two nodes."""
        for found in self.fabric["cables"]:
            if {found["a"], found["b"]} == set(cable):
                return [self.links[found["a"], found["a_port"]], self.links[found["b"], found["b_port"]]]
        raise Failure(f"there is no cable between {' and '.join(cable)}")

    def cables_of(self, node):
        return [(cable["a"], cable["b"]) for cable in self.fabric["cables"] if node in (cable["a"], cable["b"])]

    def to_hosts(self):
        """(switch end, host) of every cable to a host, then (host end, host)."""
        switches, hosts = set(self.fabric["switches"]), {}
        for cable in self.fabric["cables"]:
            ends = self.ends((cable["a"], cable["b"]))
            host = next((end for end in ends if end.node not in switches), None)
            if host:
                hosts[host.node] = (next(end for end in ends if end is not host), host)
        return hosts

    def stop(self):
        if self.mininet:
            self.mininet.stop()
