"""What a scenario does to a fabric while its jobs run, on real links and processes. In: events as `ringpath fabric` prints them. Out: the same
events with the time at which each was played. Those that only a simulator can do are refused before anything is built."""
import math
import signal
import time

from testbed.processes import PATIENCE_S, Failure

BACKGROUND_PORT = 15201
# What each does is in README.md.
KINDS = [
    "background-flow", "host-fail", "host-slow", "job-arrival", "job-departure", "link-down", "link-slow", "link-up", "replan", "set-policy",
]  # fmt: skip


def refused(events):
    """Why these events cannot be played, or nothing."""
    strange = sorted({event["kind"] for event in events} - set(KINDS))
    if strange:
        return f"events of kind {', '.join(strange)} exist in simulation only; remove them ({', '.join(KINDS)} can be played)"
    return None


class Player:
    """Plays events on an experiment: each at its time, and what has an end undone at that."""

    def __init__(self, experiment):
        self.experiment = experiment
        self.network, self.switches = experiment.network, experiment.switches
        self.processes = experiment.processes
        self.background = []
        self.played = []
        self.due = []
        for event in experiment.fabric["events"]:
            if event["kind"] != "job-arrival":  # A job's start says the same.
                self.at(event["at_ns"] / 1e9, event, getattr(self, event["kind"].replace("-", "_")))

    def at(self, seconds, event, action):
        self.due.append((seconds, len(self.due), event, action))

    def play(self, until):
        """Plays everything in order, as long as `until` does not say that the run is over."""
        begin = time.monotonic()
        while self.due:
            self.due.sort(key=lambda entry: entry[:2])
            seconds, _, event, action = self.due.pop(0)
            while time.monotonic() - begin < seconds:
                if until():
                    return
                time.sleep(0.005)
            wall = time.time()
            action(event)
            self.played.append({"at_s": time.monotonic() - begin, "wall_s": wall, **event})

    def check(self):
        for name, process in self.background:
            if process.poll():
                raise Failure(f"background traffic failed: {self.processes.told(name)}")

    def later(self, event, action, kind):
        """What ends an event."""
        if event.get("lasts_ns"):
            told = {key: value for key, value in event.items() if key not in ("lasts_ns", "factor")}
            self.at((event["at_ns"] + event["lasts_ns"]) / 1e9, {**told, "kind": kind}, action)

    def both(self, cable, up):
        for end in self.network.ends(cable):
            if end.node not in self.switches.ids or self.switches.stands_down:
                end.state(up)
            elif up:
                end.mend(self.experiment.args.dscp)
            else:
                end.cut()

    def link_down(self, event):
        self.both(event["cable"], False)

    def link_up(self, event):
        self.both(event["cable"], True)

    def link_slow(self, event):
        self.pace(event["cable"], event["factor"])
        self.later(event, lambda _: self.pace(event["cable"], 1), "link-slow-ends")

    def pace(self, cable, factor):
        for end in self.network.ends(cable):
            if end.node in self.switches.ids:
                self.switches.slow(end, factor)
            else:
                end.slow(factor)

    def host_slow(self, event):
        self.experiment.pace(event["host"], event["factor"])
        self.later(event, lambda _: self.experiment.pace(event["host"], 1), "host-slow-ends")

    def host_fail(self, event):
        for cable in self.network.cables_of(event["host"]):
            self.both(cable, False)
        self.experiment.kill_host(event["host"])

    def background_flow(self, event):
        source, destination = self.network.host(event["source"]), self.network.host(event["destination"])
        port = str(BACKGROUND_PORT + len(self.background))
        self.processes.start(f"iperf3-server-{port}", ["iperf3", "-s", "-1", "-p", port], destination.popen)
        end = time.monotonic() + PATIENCE_S
        while f":{port} " not in destination.cmd("ss -tln"):
            if time.monotonic() > end:
                raise Failure(f"iperf3 does not listen: {self.processes.told(f'iperf3-server-{port}')}")
            time.sleep(0.02)
        # Whole seconds, or until everything is ended.
        seconds = math.ceil(event["lasts_ns"] / 1e9) if event["lasts_ns"] else 3600
        command = ["iperf3", "-c", destination.IP(), "-p", port, "-u", "-l", "1400", "-b", str(event["rate_bps"]), "-t", str(seconds)]
        self.background.append((f"iperf3-{port}", self.processes.start(f"iperf3-{port}", command, source.popen)))

    def job_departure(self, event):
        self.experiment.end_job(event["job"], signal.SIGTERM)
        self.experiment.job("cancel", event["job"])

    def replan(self, _):
        self.experiment.job("replan")

    def set_policy(self, event):
        self.experiment.job("replan", "--policy", event["policy"])
