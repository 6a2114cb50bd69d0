"""Packets and masks for our own program, p4/build/ringpath.json; the contract is p4/README.md."""
import struct

from .packets import bend

TAG, MESSAGE = 0x88B5, 0x88B6
READ, ADVANCE, SOURCE, PROBE = 1, 2, 3, 16
MACS = [0x0200_0000_0001, 0x0200_0000_0002, 0xFFFF_FFFF_FFFF]
ADDRESSES = [0x0A000001, 0x0A000002, 0x0A000101, 0x0A000102, 0x0A0001FE, 0xC0A80001]
SLOTS = [0, 1, 2, 3, 4, 5, 4095, 4096, 65535]
# A gap of 0 is always long enough, one of 35 minutes never: what lies between depends on the machine, not on the switch.
NEVER = 0x7FFF_FFFF
HINTS = {
    "src_addr": ADDRESSES, "dst_addr": ADDRESSES, "target_addr": ADDRESSES, "sender_addr": ADDRESSES,
    "ingress_port": [1, 2, 3, 4, 5, 510], "role": [0, 1, 1, 1, 1, 2, 3], "protocol": [6, 17, 1], "src_port": [20000, 20001, 5001],
    "dst_port": [20000, 4791, 5001], "dst_qp": [1, 2, 0xABCDEF], "label": [1, 2, 3, 4, 5, 0], "old_label": [1, 2, 3, 4, 5, 0],
    "queue": list(range(8)), "old_queue": list(range(8)), "src_slot": SLOTS, "slot": SLOTS, "epoch": [0, 1, 2, 255],
    "flip": [0, 1, 2, 255], "force": [0, 0, 1], "flip_gap": [0, NEVER, 0xFFFF_FFFF], "dscp": [0, 10, 46, 63], "mac": MACS,
    "incarnation": [1, 2, 0xFFFF_FFFF], "idle_gap": [0, 200, 0xFFFF_FFFF],
}  # fmt: skip


def checksum(head):
    total = sum(struct.unpack(f"!{len(head) // 2}H", head))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Frames:
    """Draws frames as hosts, neighbours, a controller and nobody sensible send them."""

    def __init__(self, rng):
        self.rng = rng
        self.seqs = {}

    def pick(self, name):
        return self.rng.choice(HINTS[name])

    def packet(self):
        kind = self.rng.choices([self.host, self.tagged, self.arp, self.message, self.strange], [40, 35, 8, 12, 5])[0]
        data = bend(kind(), self.rng)
        if len(data) > 14 and int.from_bytes(data[12:14], "big") == TAG:
            # `sink` is 0 on every wire. With 1, a transit switch takes the packet for delivered and reads a length that may not be there.
            data = data[:14] + bytes([data[14] & 0xFE]) + data[15:]
        return data

    def ethernet(self, kind, body):
        return self.rng.choice(MACS).to_bytes(6, "big") + self.rng.choice(MACS).to_bytes(6, "big") + struct.pack("!H", kind) + body

    def host(self):
        return self.ethernet(0x0800, self.ipv4())

    def ipv4(self):
        rng = self.rng
        protocol = rng.choice([6, 6, 17, 17, 17, 1, 47])
        payload = rng.randbytes(rng.choice([0, 6, 40, 300, 1400]))
        inner = payload
        if protocol in (6, 17):
            port = rng.choice([4791, 4791, self.pick("dst_port")]) if protocol == 17 else self.pick("dst_port")
            inner = struct.pack("!HH", self.pick("src_port"), port)
            inner += struct.pack("!HH", 8 + len(payload), 0) if protocol == 17 else rng.randbytes(16)
            if port == 4791 and protocol == 17:
                # BTH: op code, flags, partition, reserved, the destination queue pair, acknowledge and sequence number.
                inner += bytes([4, 0, 0xFF, 0xFF, 0]) + self.pick("dst_qp").to_bytes(3, "big") + rng.randbytes(4)
            inner += payload
        words = rng.choice([5, 5, 5, 5, 5, 5, 6, 15, 4])
        first = rng.choice([0x40] * 9 + [0x60]) | words
        fragment = rng.choice([0, 0x4000, 0x4000, 0x4000, 0x2000, 0x00B9, 0x20B9, 0x8000])
        dscp = self.pick("dscp") << 2 | rng.randrange(4)
        ttl = rng.choice([0, 1, 2, 3, 64, 64, 64, 64, 65, 66, 67, 255])
        options = rng.randbytes(max(0, words - 5) * 4)
        length = 20 + len(options) + len(inner)
        head = [first, dscp, length if rng.random() < 0.95 else rng.getrandbits(16), rng.getrandbits(16), fragment, ttl, protocol]
        addresses = (self.pick("src_addr"), self.pick("dst_addr"))
        wrong = rng.random() < 0.1
        sum_ = rng.choice([0, 0xFFFF, 0xFEFF, 0xFEFE, rng.getrandbits(16)]) if wrong else checksum(struct.pack("!BBHHHBBHII", *head, 0, *addresses))
        return struct.pack("!BBHHHBBHII", *head, sum_, *addresses) + options + inner

    def tagged(self):
        rng = self.rng
        slot = self.pick("slot")
        seq = (self.seqs.get(slot, 0) + rng.choice([0, 0, 0, 0, 1, 3, -1, -2, 1 << 31, 0xFFFF_FFF0])) & 0xFFFF_FFFF
        self.seqs[slot] = (seq + 1) & 0xFFFF_FFFF
        version = rng.choice([1] * 12 + [0, 2, 15])
        first = version << 4 | self.pick("queue") << 1
        hops = rng.choice([0, 1, 1, 2, 3, 7, 8, 9, 255])
        kind, inner = rng.choice([(0x0800, self.ipv4())] * 6 + [(0x86DD, rng.randbytes(40)), (0x0806, rng.randbytes(28)), (TAG, rng.randbytes(24))])
        epoch = rng.choice([1, 1, 1, 1, self.pick("epoch")])
        tag = struct.pack("!BBHHBBIIIHH", first, hops, self.pick("label"), slot, epoch, 0, seq, rng.getrandbits(32),
                          rng.choice([0, 5, 1000, 0xFFFF_FF00]), rng.choice([0, 3, 60, 0xFFFF]), kind)  # fmt: skip
        return self.ethernet(TAG, tag + inner)

    def arp(self):
        rng = self.rng
        operation = rng.choice([1, 1, 1, 1, 2, 3])
        body = struct.pack("!HHBBH", rng.choice([1, 1, 1, 6]), 0x0800, 6, 4, operation)
        sender, target = self.pick("sender_addr"), self.pick("target_addr")
        target = sender if rng.random() < 0.1 else target
        body += rng.choice(MACS).to_bytes(6, "big") + struct.pack("!I", sender) + bytes(6) + struct.pack("!I", target)
        return self.ethernet(0x0806, body + bytes(rng.choice([0, 18])))

    def message(self):
        return self.readout() if self.rng.random() < 0.6 else self.probe()

    def head(self, op):
        rng = self.rng
        magic, version = rng.choice([(0x5250, 1)] * 12 + [(0x5251, 1), (0x5250, 2)])
        return struct.pack("!HBB", magic, version, op if rng.random() < 0.95 else rng.randrange(256))

    def readout(self, op=None, slot=None, interval=None):
        rng = self.rng
        op = op or rng.choice([READ, READ, ADVANCE, SOURCE])
        slot = self.pick("slot") if slot is None else slot
        interval = rng.choice([0, 1, 2, 3, 4, 5, 0x8000_0000, 0xFFFF_FFFF]) if interval is None else interval
        return self.ethernet(MESSAGE, self.head(op) + struct.pack("!IHHI", rng.getrandbits(32), slot, 0, interval) + bytes(rng.choice([0, 30])))

    def probe(self):
        return self.ethernet(MESSAGE, self.head(PROBE) + self.rng.randbytes(46) + bytes(self.rng.choice([0, 10])))

    def strange(self):
        kind = self.rng.choice([0x86DD, 0x8100, 0x88CC, 0x0005, 0x0800, TAG, MESSAGE, 0x0806])
        return self.ethernet(kind, self.rng.randbytes(self.rng.choice([0, 3, 19, 23, 24, 60])))

    def packet_out(self):
        """Payload and the port asked for."""
        rng = self.rng
        body = self.readout() if rng.random() < 0.6 else self.packet()
        if rng.random() < 0.05:
            body = body[: rng.randrange(14)]
        return body, rng.choice([1, 2, 3, 4, 5, 9, 510, 511, 513, 65535])

    def final_readouts(self):
        """Every cell of every slot that a packet may have touched."""
        for slot in SLOTS:
            for interval in (0, 1):
                yield self.plain(READ, slot, interval)
            yield self.plain(SOURCE, slot, 0)

    @staticmethod
    def plain(op, slot, interval):
        return bytes(12) + struct.pack("!HHBBIHHI", MESSAGE, 0x5250, 1, op, 0xABCD_0000 | slot, slot, 0, interval)


# -- what may differ, and why ------------------------------------------------------------------------------------------------------

CLOCK = "a time of the switch's own clock"
QUEUEING = "microseconds that the packet waited"
# (name, first byte, bytes, reason) of a frame with a tag, a readout reply, a probe's stamp.
TAG_MASKS = [("tag.delay", 30, 4, QUEUEING)]
SOURCE_TAG_MASKS = [("tag.time", 26, 4, CLOCK)]
STAMP_MASKS = [("stamp.time", 30, 4, CLOCK)]
SLOT_MASKS = [
    ("interval_active", 74, 4, CLOCK), ("interval_delay_sum", 78, 4, QUEUEING), ("interval_delay_max", 82, 4, QUEUEING),
    ("interval_first", 90, 4, CLOCK), ("interval_last", 94, 4, CLOCK),
]  # fmt: skip
SOURCE_MASKS = [("source_seen", 42, 4, CLOCK)]
PROBE_MASKS = [("probe.time", 50, 4, CLOCK)]


def masks(port, metadata, data):
    """The masks of one packet that a switch sent."""
    kind = int.from_bytes(data[12:14], "big")
    if kind == TAG and len(data) >= 38:
        # One hop: its source leaf is the switch under test.
        return TAG_MASKS + (SOURCE_TAG_MASKS if data[15] == 1 else [])
    reason = dict(metadata).get(2)
    if reason == 1 and len(data) >= 38:
        return STAMP_MASKS + (SOURCE_MASKS if data[17] == SOURCE else SLOT_MASKS)
    return PROBE_MASKS if reason == 2 else []


def masked(port, metadata, data):
    """The packet with every masked field set to stars, times only to whether they are zero."""
    head = b"".join(value.to_bytes(size, "big") for (_, value), size in zip(sorted(metadata), (2, 1)))
    if head and int.from_bytes((head + data)[12:14], "big") == TAG:
        # Sent to the controller by a label: its first bytes are taken for the packet-in's header.
        return masked(port, (), head + data)
    data = bytearray(data)
    for _, first, length, reason in masks(port, metadata, data):
        if reason == QUEUEING:
            data[first : first + length] = b"*" * length
        elif first + length <= len(data):
            data[first : first + length] = b"T" * length if any(data[first : first + length]) else bytes(length)
    return bytes(data)
