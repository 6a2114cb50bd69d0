#!/usr/bin/env python3
"""Drives a P4Runtime server with finsy (PyPI), a client that others wrote: the pipeline, every entity that finsy has, packets,
digests, idle notifications, and TLS where certificates are given.

    finsy_client.py HOST:PORT P4INFO JSON [CACERT CERT KEY]

The program is tests/data/conformance. The integration test `interop` starts the server and calls this; it needs

    python3 -m venv /tmp/finsy && /tmp/finsy/bin/pip install -r tests/interop/requirements.txt
    RINGPATH_FINSY_PYTHON=/tmp/finsy/bin/python cargo test --test it -- --ignored finsy
"""

import asyncio
import sys
from pathlib import Path

import finsy as fy
from finsy.p4entity import P4BackupReplica, P4Replica, P4ValueSetMember


def check(what, got, wanted):
    assert got == wanted, f"{what}: got {got!r}, wanted {wanted!r}"
    print("ok", what)


async def one(sw, entity):
    return [found async for found in sw.read(entity)]


def exact_entry():
    return fy.P4TableEntry("exact_t", match=fy.Match(a=1), action=fy.Action("watched", port=2), metadata=b"mine")


def kinds_entry():
    return fy.P4TableEntry(
        "all_kinds",
        match=fy.Match(e=1, l="10.0.0.0/8", t="1/&0xf", r="2...9", o=1),
        action=fy.Action("forward", port=3, mac="00:00:00:00:00:07"),
        priority=10,
    )


async def tables(sw):
    await sw.write([+exact_entry(), +kinds_entry()])
    [read] = await one(sw, fy.P4TableEntry("exact_t"))
    check("an entry", (read.match["a"], read.action.args["port"], read.metadata), (1, 2, b"mine"))
    try:
        await sw.write([+exact_entry(), -kinds_entry()])
        raise AssertionError("a second INSERT was not refused")
    except fy.P4ClientError as error:
        codes = {index: detail.canonical_code.name for index, detail in error.details.items()}
        check("the code of each update", codes, {0: "ALREADY_EXISTS"})
    check("the other update was done", await one(sw, fy.P4TableEntry("all_kinds")), [])
    await sw.write([~fy.P4TableEntry("exact_t", is_default_action=True, action=fy.Action("drop"))])


async def registers(sw):
    await sw.modify([fy.P4RegisterEntry("cells", index=3, data=4_000_000_000), fy.P4RegisterEntry("smalls", index=1, data=-7)])
    [cell] = await one(sw, fy.P4RegisterEntry("cells", index=3))
    [small] = await one(sw, fy.P4RegisterEntry("smalls", index=1))
    check("register cells", (cell.data, small.data), (4_000_000_000, -7))
    check("all cells of a register", len(await one(sw, fy.P4RegisterEntry("cells"))), 8)
    await sw.modify([fy.P4RegisterEntry("cells", data=5)])
    values = {found.data for found in await one(sw, fy.P4RegisterEntry("cells"))}
    check("a write to all cells", values, {5})


async def others(sw):
    await sw.modify([fy.P4ValueSetEntry("pvs", members=[P4ValueSetMember(5), P4ValueSetMember(6)])])
    [pvs] = await one(sw, fy.P4ValueSetEntry("pvs", members=[]))
    check("a value set", len(pvs.members), 2)
    await sw.write([+fy.P4MulticastGroupEntry(1, replicas=[1, (2, 7)])])
    [group] = await one(sw, fy.P4MulticastGroupEntry(1))
    check("a multicast group", len(group.replicas), 2)
    await sw.modify([fy.P4MeterEntry("police", index=2, config=fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4))])
    [meter] = await one(sw, fy.P4MeterEntry("police", index=2))
    check("a meter", (meter.config.cir, meter.config.pburst), (1, 4))


async def resources(sw):
    """Direct counters and meters, with the entry and by themselves; those of a default entry."""
    entry = fy.P4TableEntry("exact_t", match=fy.Match(a=7), action=fy.Action("watched", port=2))
    rates = fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    counted = fy.P4TableEntry(
        "exact_t",
        match=fy.Match(a=7),
        action=fy.Action("watched", port=2),
        counter_data=fy.P4CounterData(byte_count=80, packet_count=8),
        meter_config=rates,
    )
    await sw.insert([counted])
    [direct] = await one(sw, fy.P4DirectCounterEntry("exact_counter", table_entry=entry))
    check("a direct counter", (direct.packet_count, direct.byte_count), (8, 80))
    await sw.modify([fy.P4DirectCounterEntry("exact_counter", table_entry=entry, data=fy.P4CounterData(packet_count=3))])
    [direct] = await one(sw, fy.P4DirectCounterEntry("exact_counter", table_entry=entry))
    check("a direct counter that was set", direct.packet_count, 3)
    [meter] = await one(sw, fy.P4DirectMeterEntry(table_entry=entry))
    check("a direct meter", (meter.config.cir, meter.config.pburst), (1, 4))
    await sw.modify([fy.P4DirectMeterEntry(table_entry=entry)])
    [meter] = await one(sw, fy.P4DirectMeterEntry(table_entry=entry))
    check("a direct meter that was reset", meter.config, None)
    await sw.delete([entry])


async def profiles(sw):
    forward = [fy.Action("forward", port=n, mac=n) for n in (1, 2)]
    member = fy.P4ActionProfileMember("members", member_id=1, action=forward[0])
    entry = fy.P4TableEntry("indirect", match=fy.Match(a=1), action=fy.P4IndirectAction(member_id=1))
    await sw.insert([member])
    await sw.insert([entry])
    [found] = await one(sw, fy.P4TableEntry("indirect"))
    check("an entry on a member", found.action.member_id, 1)
    try:
        await sw.delete([member])
        raise AssertionError("a member in use was deleted")
    except fy.P4ClientError as error:
        codes = [detail.canonical_code.name for detail in error.details.values()]
        check("a member in use", codes, ["FAILED_PRECONDITION"])
    await sw.delete([entry])
    await sw.delete([member])

    both = [fy.P4ActionProfileMember("ecmp", member_id=n, action=forward[n - 1]) for n in (1, 2)]
    members = [fy.P4Member(1, weight=1), fy.P4Member(2, weight=(2, 4))]
    group = fy.P4ActionProfileGroup("ecmp", group_id=1, max_size=8, members=members)
    await sw.insert([both[0], both[1]])
    await sw.insert([group])
    [found] = await one(sw, fy.P4ActionProfileGroup("ecmp"))
    check("a group with a watch port", [m.weight for m in found.members], [1, (2, 4)])
    routed = fy.P4TableEntry("route", match=fy.Match(l="10.0.0.0/8"), action=fy.P4IndirectAction(group_id=1))
    await sw.insert([routed])
    await sw.delete([routed])
    await sw.delete([group])
    await sw.delete([both[0], both[1]])
    shots = fy.P4IndirectAction(action_set=[(1, forward[0]), (3, forward[1])])
    await sw.insert([fy.P4TableEntry("route", match=fy.Match(l="10.0.0.0/8"), action=shots)])
    [found] = await one(sw, fy.P4TableEntry("route"))
    check("a one-shot set", [weight for weight, _ in found.action.action_set], [1, 3])


async def copies(sw):
    await sw.insert([fy.P4CloneSessionEntry(3, packet_length_bytes=64, replicas=[(1, 5)])])
    [session] = await one(sw, fy.P4CloneSessionEntry(3))
    check("a clone session", (session.packet_length_bytes, len(session.replicas)), (64, 1))
    backups = [P4BackupReplica(6, instance=1), P4BackupReplica(7, instance=1)]
    await sw.insert([fy.P4MulticastGroupEntry(9, replicas=[P4Replica(5, instance=1, backup_replicas=backups)])])
    [group] = await one(sw, fy.P4MulticastGroupEntry(9))
    check("backups in their order", [b.port for b in group.replicas[0].backup_replicas], [6, 7])


async def counters(sw):
    await sw.modify([fy.P4CounterEntry("drops", index=3, data=fy.P4CounterData(packet_count=7))])
    [cell] = await one(sw, fy.P4CounterEntry("drops", index=3))
    check("a counter cell", cell.packet_count, 7)
    check("all cells of a counter", len(await one(sw, fy.P4CounterEntry("drops"))), 8)


async def idle(sw):
    entry = fy.P4TableEntry("exact_t", match=fy.Match(a=9), action=fy.Action("watched", port=2), idle_timeout_ns=1_000_000)
    notice = asyncio.create_task(anext(sw.read_idle_timeouts()))
    await asyncio.sleep(0)
    await sw.insert([entry])
    notice = await asyncio.wait_for(notice, 10)
    check("an idle entry", [found.match["a"] for found in notice.table_entry], [9])


async def stream(sw):
    await sw.write([+fy.P4DigestEntry("pair_t", max_list_size=1)])
    # finsy starts to collect when it is first asked.
    packet = asyncio.create_task(anext(sw.read_packets()))
    digest = asyncio.create_task(anext(sw.read_digests("pair_t")))
    await asyncio.sleep(0)
    await sw.write([fy.P4PacketOut(b"a packet for the controller itself", egress_port=510, pad=0)])
    packet = await asyncio.wait_for(packet, 5)
    check("a packet that comes back", packet.payload, b"a packet for the controller itself")
    digest = await asyncio.wait_for(digest, 5)
    check("a digest", len(digest), 1)
    await sw.write([digest.ack()])


async def main():
    address, p4info, json, *certificates = sys.argv[1:]
    credentials = None
    if certificates:
        cacert, cert, key = map(Path, certificates)
        credentials = fy.GRPCCredentialsTLS(cacert=cacert, cert=cert, private_key=key)
    options = fy.SwitchOptions(p4info=Path(p4info), p4blob=Path(json), channel_credentials=credentials)
    async with fy.Switch("sw", address, options) as sw:
        check("the version", (sw.p4runtime_version.major, sw.p4runtime_version.minor), (1, 5))
        for part in (tables, resources, profiles, registers, counters, others, copies, stream, idle):
            await part(sw)
    print("all ok")


if __name__ == "__main__":
    asyncio.run(main())
