#!/usr/bin/env python3
"""Drives a P4Runtime server with finsy (PyPI), a client that others wrote; it covers registers, value sets and digests.

    finsy_client.py HOST:PORT P4INFO JSON

The program is tests/data/conformance. The integration test `interop` starts the server and calls this; it needs

    python3 -m venv /tmp/finsy && /tmp/finsy/bin/pip install -r tests/interop/requirements.txt
    RINGPATH_FINSY_PYTHON=/tmp/finsy/bin/python cargo test --test it -- --ignored finsy
"""

import asyncio
import sys
from pathlib import Path

import finsy as fy
from finsy.p4entity import P4ValueSetMember


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
    address, p4info, json = sys.argv[1:]
    options = fy.SwitchOptions(p4info=Path(p4info), p4blob=Path(json))
    async with fy.Switch("sw", address, options) as sw:
        check("the version", (sw.p4runtime_version.major, sw.p4runtime_version.minor), (1, 5))
        for part in (tables, registers, others, stream):
            await part(sw)
    print("all ok")


if __name__ == "__main__":
    asyncio.run(main())
