#!/usr/bin/env python3
"""Drives a P4Runtime server with p4runtime-shell (PyPI), a client that others wrote; over TLS where certificates are given.

    shell.py HOST:PORT P4INFO JSON [CACERT CERT KEY]

The program is tests/data/conformance. The integration test `interop` starts the server and calls this; it needs

    python3 -m venv /tmp/shell && /tmp/shell/bin/pip install -r tests/interop/requirements-shell.txt
    RINGPATH_SHELL_PYTHON=/tmp/shell/bin/python cargo test --test it -- --ignored p4runtime_shell
"""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException, SSLOptions


def check(what, got, wanted):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"
    print("ok", what)


def refused(what, code, action):
    try:
        action()
    except P4RuntimeWriteException as error:
        codes = [detail[1].canonical_code for detail in error.errors]
        check(what, codes, [code])
    else:
        raise AssertionError(f"{what}: was not refused")


def exact(port, out, table="exact_t"):
    entry = sh.TableEntry(table)(action="watched")
    entry.match["a"] = str(port)
    entry.action["port"] = str(out)
    return entry


def tables():
    exact(1, 2).insert()
    exact(3, 4).insert()
    refused("the same entry again", 6, lambda: exact(1, 2).insert())
    changed = exact(1, 9)
    changed.modify()
    read = [(e.match["a"].exact.value, e.action["port"].value) for e in sh.TableEntry("exact_t").read()]
    check("entries read back", sorted(read), [(b"\x01", b"\x09"), (b"\x03", b"\x04")])
    exact(3, 4).delete()
    refused("an entry that is gone", 5, lambda: exact(3, 4).delete())
    kinds = sh.TableEntry("all_kinds")(action="forward")
    kinds.match["e"] = "1"
    kinds.match["l"] = "10.0.0.0/8"
    kinds.match["t"] = "1&&&0xf"
    kinds.match["r"] = "2..9"
    kinds.match["o"] = "1"
    kinds.action["port"] = "3"
    kinds.action["mac"] = "00:00:00:00:00:07"
    kinds.priority = 10
    kinds.insert()
    check("all match kinds", len(list(sh.TableEntry("all_kinds").read())), 1)
    default = sh.TableEntry("exact_t")(action="drop", is_default=True)
    default.modify()
    check("constant entries", len(list(sh.TableEntry("const_t").read())), 2)


def profiles():
    member = sh.ActionProfileMember("members")(member_id=1, action="forward")
    member.action["port"] = "1"
    member.action["mac"] = "1"
    member.insert()
    entry = sh.TableEntry("indirect")(member_id=1)
    entry.match["a"] = "1"
    entry.insert()
    refused("a member in use", 9, member.delete)
    shot = sh.TableEntry("route")
    shot.match["l"] = "10.1.0.0/16"
    for weight in (1, 2):
        action = sh.Action("forward")
        action["port"] = str(weight)
        action["mac"] = "1"
        shot.oneshot.add(action, weight=weight)
    shot.insert()
    read = [len(e.oneshot._msg.action_profile_actions) if hasattr(e.oneshot, "_msg") else len(e.oneshot.actions) for e in sh.TableEntry("route").read()]
    check("a one-shot set", read, [2])


def groups():
    for n in (1, 2):
        member = sh.ActionProfileMember("ecmp")(member_id=n, action="forward")
        member.action["port"] = str(n)
        member.action["mac"] = "1"
        refused("a member beside one-shot sets", 3, member.insert)
    for entry in sh.TableEntry("route").read():
        entry.delete()
    for n in (1, 2):
        member = sh.ActionProfileMember("ecmp")(member_id=n, action="forward")
        member.action["port"] = str(n)
        member.action["mac"] = "1"
        member.insert()
    group = sh.ActionProfileGroup("ecmp")(group_id=1)
    group.max_size = 8
    group.add(1, 1).add(2, 3)
    group.insert()
    weights = [[m.weight for m in g._msg.members] if hasattr(g, "_msg") else [m.weight for m in g.members] for g in sh.ActionProfileGroup("ecmp").read()]
    check("a group", weights, [[1, 3]])


def resources():
    counter = sh.DirectCounterEntry("exact_counter")
    counter.table_entry = exact(1, 9, "MyIngress.exact_t")
    counter.packet_count = 5
    counter.modify()
    check("a direct counter", [c.packet_count for c in counter.read()], [5])
    meter = sh.DirectMeterEntry("exact_meter")
    meter.table_entry = exact(1, 9, "MyIngress.exact_t")
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    check("a direct meter", [m.pir for m in meter.read()], [3])
    missing = sh.DirectCounterEntry("exact_counter")
    missing.table_entry = exact(8, 1, "MyIngress.exact_t")
    missing.packet_count = 1
    refused("a direct counter of no entry", 5, missing.modify)


def arrays():
    counter = sh.CounterEntry("drops")(index=3)
    counter.packet_count = 7
    counter.modify()
    check("a counter cell", [c.data.packet_count for c in sh.CounterEntry("drops")(index=3).read()], [7])
    check("all counter cells", len(list(sh.CounterEntry("drops").read())), 8)
    meter = sh.MeterEntry("police")(index=1)
    meter.cir, meter.cburst, meter.pir, meter.pburst = 1, 2, 3, 4
    meter.modify()
    check("a meter cell", [m.config.pir for m in sh.MeterEntry("police")(index=1).read()], [3])


def replication():
    group = sh.MulticastGroupEntry(1)
    group.add(1, 1).add(2, 1)
    group.insert()
    check("a multicast group", [len(g.replicas) for g in sh.MulticastGroupEntry(1).read()], [2])
    session = sh.CloneSessionEntry(5)
    session.add(1, 1)
    session.insert()
    check("a clone session", [len(s.replicas) for s in sh.CloneSessionEntry(5).read()], [1])


def packets():
    out = sh.PacketOut(payload=b"a packet for the controller itself")
    out.metadata["egress_port"] = "510"
    out.metadata["pad"] = "0"
    out.send()
    got = []
    sh.PacketIn().sniff(lambda packet: got.append(packet.packet.payload), timeout=3)
    check("a packet that comes back", got, [b"a packet for the controller itself"])


def digests():
    digest = sh.DigestEntry("pair_t")
    digest.max_list_size = 1
    digest.ack_timeout_ns = 1_000_000_000
    digest.insert()
    check("a digest's config", [d.ack_timeout_ns for d in sh.DigestEntry("pair_t").read()], [1_000_000_000])
    sent = sh.PacketOut(payload=b"a packet whose fields are learnt")
    sent.metadata["egress_port"] = "1"
    sent.metadata["pad"] = "0"
    sent.send()
    # Not sh.DigestList: its thread never ends, and the process with it.
    got = sh.client.get_stream_packet("digest", timeout=5)
    check("a digest list", len(got.digest.data), 1)
    digest.delete()


def main():
    address, p4info, json, *certificates = sys.argv[1:]
    ssl = SSLOptions(False, *certificates) if certificates else None
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, json), ssl_options=ssl)
    try:
        for part in (tables, profiles, groups, resources, arrays, replication, packets, digests):
            part()
    finally:
        # Its threads keep the process alive.
        sh.teardown()
    print("all ok")


if __name__ == "__main__":
    main()
