#!/usr/bin/env python3
"""Pushes p4/samples/router.p4 with p4runtime-shell and writes the routes of tests/interop/mininet_switch.py.

    python router_entries.py ADDRESS DEVICE_ID P4INFO JSON        needs p4runtime-shell (requirements-shell.txt)
"""
import sys

import p4runtime_sh.shell as sh


def main():
    address, device_id, p4info, program = sys.argv[1:]
    sh.setup(device_id=int(device_id), grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, program))
    for port in (1, 2):
        entry = sh.TableEntry("route")(action="forward")
        entry.match["dst_addr"] = f"10.0.{port}.0/24"
        entry.action["next_hop_mac"] = f"08:00:00:00:0{port}:0{port}"
        entry.action["port_mac"] = f"08:00:00:00:0{port}:00"
        entry.action["port"] = str(port)
        entry.insert()
    found = len(list(sh.TableEntry("route").read()))
    sh.teardown()
    if found < 2:
        sys.exit(f"only {found} of 2 routes are read back")


if __name__ == "__main__":
    main()
