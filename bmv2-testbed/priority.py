#!/usr/bin/env python3
"""Measures strict priority on links of the testbed: sudo /usr/bin/python3 bmv2-testbed/priority.py [--switch bmv2] [--ringpath PATH]

Two flows share one link of 20 Mbit/s: on the uplink with a tag (TCP between workers' ports, queues by the plan), on the uplink without one
(UDP, queues by DSCP) and on the link to one host (UDP by DSCP; TCP by the flow's port). Prints a table; exit code 1 if something could not
be run. Rates are iperf3's payload; 20 Mbit/s at 1,400 bytes a packet are 19.3 of it without a tag, or 18.8 for TCP with one.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from run import ROOT, fabric_of, missing
from testbed.experiment import Experiment, end_by_signals
from testbed.processes import PATIENCE_S, Failure

UDP_PORT = 15300
UDP_S = 6
# TCP: LO runs alone, then HI joins it, then LO is alone again, long enough for its retransmission timer, which has backed off; seconds.
ALONE, JOINED, AFTER = 3, 6, 8
# Seconds left out around a change, since iperf3 counts whole seconds.
EDGE = 1
DSCP = {"high": 40, "low": 8}
QUEUES = {"high": 5, "low": 1}


class Priority(Experiment):
    """The testbed of two jobs without its workers: `short` (h1 to h3) is the high flow, `long` (h2 to h4) the low one."""

    def __init__(self, args, fabric):
        super().__init__(args, fabric)
        self.runs = 0

    def bring_up(self):
        self.network.build(self.switches.offloads)
        self.switches.start()
        self.start_controller()
        self.submit(self.fabric["jobs"])
        self.follow_once()
        self.port = {job["name"]: job["first_port"] for job in self.fabric["jobs"]}

    def iperf(self, source, destination, port, *flags):
        """Starts a server and a client; gives the client."""
        self.runs += 1
        there = self.network.host(destination)
        self.processes.start(f"server-{self.runs}", ["iperf3", "-s", "-1", "-p", str(port)], there.popen)
        end = time.monotonic() + PATIENCE_S
        while f":{port} " not in there.cmd("ss -tln"):
            if time.monotonic() > end:
                raise Failure(f"iperf3 does not listen on {destination}")
            time.sleep(0.02)
        command = ["iperf3", "-c", there.IP(), "-p", str(port), "-J", *[str(flag) for flag in flags]]
        return self.processes.start(f"client-{self.runs}", command, self.network.host(source).popen, piped=True)

    @staticmethod
    def told(client):
        document = json.loads(client.communicate(timeout=PATIENCE_S + 60)[0])
        if "error" in document:
            raise Failure(f"iperf3: {document['error']}")
        return document

    def ping(self, source, destination, tos, seconds):
        """Mean round trip in ms of packets of a class; the way back is not shared."""
        out = self.network.host(source).cmd(f"ping -q -Q {tos} -i 0.05 -w {seconds} {self.network.host(destination).IP()}")
        return out.strip().rsplit("=", 1)[-1].split("/")[1] if "=" in out else "–"

    def udp(self, pairs, offered):
        """Two UDP flows; (payload Mbit/s, share lost) of high and low, and the high class's mean round trip."""
        clients = [
            self.iperf(*pair, UDP_PORT + at, "-u", "-l", 1400, "-b", f"{rate}M", "-t", UDP_S, "-S", DSCP[name] << 2)
            for at, (pair, rate, name) in enumerate(zip(pairs, offered, DSCP))
        ]
        time.sleep(1)
        rtt = self.ping(*pairs[0], DSCP["high"] << 2, 3)
        ends = [self.told(client)["end"] for client in clients]
        # Not by the receiver's own clock: it starts with the first packet, which a starved flow gets late.
        return [(end["sum_received"]["bytes"] * 8e-6 / UDP_S, end["sum"]["lost_percent"]) for end in ends], rtt

    def tcp(self, low, high):
        """LO for the whole time, HI in the middle; mean Mbit/s of LO before, LO meanwhile, HI, LO in the last 3 s."""
        total = ALONE + JOINED + AFTER
        clients = [self.iperf(*low, "-t", total)]
        time.sleep(ALONE)
        clients.append(self.iperf(*high, "-t", JOINED))
        rates = [[part["sum"]["bits_per_second"] / 1e6 for part in self.told(client)["intervals"]] for client in clients]
        parts = (rates[0][EDGE:ALONE], rates[0][ALONE + EDGE:ALONE + JOINED], rates[1][EDGE:JOINED], rates[0][total - 3:])  # fmt: skip
        return [statistics.fmean(part) for part in parts]

    def measure(self):
        self.bring_up()
        print("| shared link | offered, Mbit/s | high got | low got | high lost | round trip of the high class, ms |\n|---|---|---|---|---|---|")
        links = [("uplink, no tag, by DSCP", [("h1", "h3"), ("h2", "h4")]), ("to one host, by DSCP", [("h1", "h3"), ("h2", "h3")])]
        for what, pairs in links:
            for offered in ((25, 25), (12, 25), (15, 15)):
                ((high, lost), (low, _)), rtt = self.udp(pairs, offered)
                print(f"| {what} | {offered[0]} + {offered[1]} | {high:.1f} | {low:.1f} | {lost:.1f} % | {rtt} |", flush=True)
        print("\n| shared link | low alone | low while high sends | high | low after |\n|---|---|---|---|---|")
        flow = lambda job, pair: (*pair, self.port[job])
        for what, low, high in [
            ("uplink, with a tag (TCP)", flow("long", ("h2", "h4")), flow("short", ("h1", "h3"))),
            ("to one host, by the flow's port (TCP)", flow("long", ("h2", "h3")), flow("short", ("h1", "h3"))),
        ]:
            before, low_then, high_then, after = self.tcp(low, high)
            print(f"| {what} | {before:.1f} | {low_then:.1f} | {high_then:.1f} | {after:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Measure strict priority on links of the testbed.")
    parser.add_argument("--switch", default="bmv2", choices=["embedded", "bmv2"])
    parser.add_argument("--ringpath", default=os.path.join(ROOT, "target/release/ringpath"))
    args = parser.parse_args()
    if lacking := missing(args):
        sys.exit(f"priority: {lacking}")
    end_by_signals()
    with tempfile.TemporaryDirectory() as folder:
        scenario = os.path.join(ROOT, "examples/scenarios/testbed-two-jobs.toml")
        own = {**vars(args), "scenario": scenario, "policy": "crux", "feedback": "none", "rho": 0.2, "seed": None, "results": folder, "pcap": False, "flip_gap": None, "dscp": [(DSCP[name], QUEUES[name]) for name in DSCP]}  # fmt: skip
        own = argparse.Namespace(**own)
        experiment = Priority(own, fabric_of(own))
        try:
            experiment.measure()
        except Failure as failure:
            sys.exit(f"priority: {failure}")
        finally:
            experiment.clean()


if __name__ == "__main__":
    main()
