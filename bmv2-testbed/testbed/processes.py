"""Processes of a run. In: commands. Out: what they said. All of them end with the run, by id, in reverse order."""
import os
import signal
import socket
import subprocess
import time

# Longest wait for anything that a healthy machine does in a second.
PATIENCE_S = 30


class Failure(Exception):
    """Something that ends the run, in words."""


def free_port():
    """A TCP port of loopback that nobody listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def checked(command, what=None):
    """Runs a command to its end and gives what it printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{what or ' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Processes:
    """What was started, so that it can be ended."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, command, popen=subprocess.Popen, piped=False):
        """Starts one. What it writes goes into NAME.log, standard output into a pipe if that is asked for."""
        with open(os.path.join(self.folder, f"{name}.log"), "w") as log:
            process = popen(command, stdout=subprocess.PIPE if piped else log, stderr=log)
        self.running.append((name, process))
        return process

    def named(self, name):
        return dict(self.running)[name]

    def told(self, name):
        with open(os.path.join(self.folder, f"{name}.log")) as log:
            return log.read().strip()

    def listening(self, name, address):
        """Waits until a process listens there."""
        host, port = address.rsplit(":", 1)
        process, end = self.named(name), time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if process.poll() is not None:
                raise Failure(f"{name} ended at once: {self.told(name)}")
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    return
            time.sleep(0.02)
        raise Failure(f"{name} does not listen on {address}: {self.told(name)}")

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
