"""Two switches side by side: each a process between veth pairs of its own, driven over P4Runtime.

In: a compiled program and the commands' names. Out: what each switch sends, by port, in order. Knows nothing of what packets mean.
"""
import collections
import os
import queue
import select
import socket
import struct
import subprocess
import threading
import time


import grpc
from finsy.proto import p4r as p4rt
from finsy.proto import p4r_grpc

# 0 is where a program sends what it does not send anywhere.
PORTS = [0, 1, 2, 3, 4, 5]
CPU_PORT, DROP_PORT = 510, 511
QUEUES = 8
PATIENCE_S = 20
MTU = "9000"
# linux/if_packet.h: a VLAN tag that the kernel took off comes beside the frame.
SOL_PACKET, PACKET_AUXDATA = 263, 8
AUXDATA = struct.Struct("=IIIHHHH")
VLAN_VALID, VLAN_TPID_VALID = 1 << 4, 1 << 6


class Ended(Exception):
    """A switch that ended, or answers no more."""


def run(*words):
    subprocess.run(words, check=True)


class Links:
    """A veth pair per switch and port: <side><port>s for the switch, <side><port>t for the test."""

    def __init__(self, sides):
        run("ip", "link", "set", "lo", "up")
        for name in ("all", "default"):
            with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
                file.write("1")
        self.sockets = {}
        for side in sides:
            for port in PORTS:
                ends = [f"{side}{port}s", f"{side}{port}t"]
                run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
                for end in ends:
                    run("ip", "link", "set", end, "mtu", MTU, "up")
                raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
                raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
                raw.bind((ends[1], 0))
                raw.setblocking(False)
                self.sockets[side, port] = raw

    def of(self, side):
        return {port: raw for (of, port), raw in self.sockets.items() if of == side}


def frame(raw):
    """The next frame that came in, whole; nothing if there is none."""
    while True:
        try:
            data, extra, _, address = raw.recvmsg(65536, 256)
        except BlockingIOError:
            return None
        if address[2] == socket.PACKET_OUTGOING:
            continue
        for level, kind, value in extra:
            if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                status, _, _, _, _, tci, tpid = AUXDATA.unpack(value[: AUXDATA.size])
                if status & VLAN_VALID:
                    tpid = tpid if status & VLAN_TPID_VALID else 0x8100
                    data = data[:12] + struct.pack("!HH", tpid, tci) + data[12:]
        return data


class Side:
    """One switch with its program."""

    def __init__(self, name, command, sockets, program, folder):
        self.name, self.sockets, self.program = name, sockets, program
        self.packet_ins = collections.deque()
        while any(frame(raw) for raw in sockets.values()):
            pass
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        words = [*command, "--no-p4", "--device-id", "1"]
        for port in PORTS:
            words += ["-i", f"{port}@{name[0]}{port}s"]
        words += ["--", "--grpc-server-addr", address, "--cpu-port", str(CPU_PORT), "--drop-port", str(DROP_PORT)]
        words += ["--priority-queues", str(QUEUES)]
        self.log = open(os.path.join(folder, f"{name}.log"), "w+")
        self.process = subprocess.Popen(words, stdout=self.log, stderr=self.log)
        try:
            self.connect(address)
        except BaseException:
            self.close()
            raise

    def connect(self, address):
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.election = p4rt.Uint128(low=1)
        self.requests = queue.Queue()
        first = p4rt.StreamMessageRequest()
        first.arbitration.device_id = 1
        first.arbitration.election_id.low = 1
        self.requests.put(first)
        self.answer(lambda: grpc.channel_ready_future(self.channel).result(PATIENCE_S))
        self.stream = self.stub.StreamChannel(iter(self.requests.get, None))
        next(self.stream)
        threading.Thread(target=self.listen, daemon=True).start()
        request = p4rt.SetForwardingPipelineConfigRequest(device_id=1, election_id=self.election, action="VERIFY_AND_COMMIT")
        request.config.p4info.CopyFrom(self.program.info)
        request.config.p4_device_config = self.program.device_config
        self.answer(lambda: self.stub.SetForwardingPipelineConfig(request, timeout=PATIENCE_S))

    def answer(self, call):
        try:
            return call()
        except (grpc.FutureTimeoutError, grpc.RpcError) as error:
            if self.process.poll() is not None:
                raise Ended(f"{self.name} ended with {self.process.returncode}: {self.told()}") from None
            raise Ended(f"{self.name}: {error!r}") from None

    def told(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()[-300:].strip()

    def listen(self):
        try:
            for message in self.stream:
                if message.HasField("packet"):
                    fields = tuple((one.metadata_id, int.from_bytes(one.value, "big")) for one in message.packet.metadata)
                    self.packet_ins.append((fields, message.packet.payload))
        except grpc.RpcError:
            pass

    def write(self, update):
        """The code of the update: `OK`, or what stopped it."""
        request = p4rt.WriteRequest(device_id=1, election_id=self.election, updates=[update])
        try:
            self.stub.Write(request, timeout=PATIENCE_S)
            return "OK"
        except grpc.RpcError as error:
            if self.process.poll() is not None or error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise Ended(f"{self.name} does not answer a Write: {error.details()} {self.told()}") from None
            return "refused"

    def read(self, **entity):
        """What matches, or nothing at all where the switch refuses the Read."""
        request = p4rt.ReadRequest(device_id=1)
        request.entities.add(**entity)
        try:
            return [found for answer in self.stub.Read(request, timeout=PATIENCE_S) for found in answer.entities]
        except grpc.RpcError as error:
            if self.process.poll() is not None or error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise Ended(f"{self.name} does not answer a Read: {error.details()} {self.told()}") from None
            return None

    def packet_out(self, payload, metadata):
        message = p4rt.StreamMessageRequest()
        message.packet.payload = payload
        for number, value in metadata:
            message.packet.metadata.add(metadata_id=number, value=value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))
        self.requests.put(message)

    def collect(self, into):
        for port, raw in self.sockets.items():
            while (data := frame(raw)) is not None:
                into.append((port, (), data))
        while self.packet_ins:
            fields, payload = self.packet_ins.popleft()
            into.append((CPU_PORT, fields, payload))

    def wait(self, seconds):
        select.select(list(self.sockets.values()), [], [], seconds)

    def close(self):
        if hasattr(self, "requests"):
            self.requests.put(None)
            self.channel.close()
        self.process.kill()
        self.process.wait()
        self.log.close()


def settle(sides, told, most_s, quiet_s=0.0005):
    """Waits until all sides have sent the same number of packets by each port since the last call and are quiet, or `most_s`. `told` has the
    packets of each side so far and grows."""
    before = [len(seen) for seen in told]
    end = time.monotonic() + most_s
    while True:
        sides[0].wait(quiet_s)
        grown = False
        for side, seen in zip(sides, told):
            count = len(seen)
            side.collect(seen)
            grown |= len(seen) > count
        ports = [collections.Counter(port for port, _, _ in seen[start:]) for seen, start in zip(told, before)]
        if not grown and ports[0] and all(one == ports[0] for one in ports):
            return
        if time.monotonic() > end and not grown:
            return
