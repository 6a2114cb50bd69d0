#!/usr/bin/env python3
"""Writes a first corpus for each fuzz target from the project's own files.

    fuzz/seeds.py        fills fuzz/corpus/{json,packets,stf}; p4runtime's comes from a test, see fuzz/README.md
"""
import glob
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(HERE)


def put(target, name, data):
    folder = os.path.join(HERE, "corpus", target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def main():
    for path in ["tests/data/switch/small.json", "tests/data/switch/exercise.json", "tests/data/conformance/program.json"]:
        with open(os.path.join(REPO, path), "rb") as file:
            text = file.read()
        # What p4c says of source positions only makes the text longer.
        text = re.sub(rb'"source_info"\s*:\s*\{[^{}]*\},?', b"", text)
        put("json", path.replace("/", "-"), re.sub(rb"\s+", b" ", text))
    for path in glob.glob(os.path.join(REPO, "tests/data/stf/*.stf")):
        with open(path) as file:
            text = file.read()
        name = os.path.basename(path)
        put("stf", name, text.encode())
        for i, (port, data) in enumerate(re.findall(r"^packet (\d+) ([0-9A-Fa-f ]+)$", text, re.M)):
            data = bytes.fromhex(data)[:255]
            put("packets", f"{name}-{i}", bytes([0, int(port) % 255, len(data)]) + data)
    for op in range(25):
        data = bytes.fromhex("000000000002000000000001" + "88b6" + f"{op:02x}03000500000005") + bytes(20)
        put("packets", f"exercise-{op}", bytes([1, 1, len(data)]) + data)
    with open(os.path.join(REPO, "tests/it/bad_input/stf.rs")) as file:
        good = file.read().split('pub const GOOD: &str = "\\\n')[1].split('";')[0]
    put("stf", "good", good.encode())


if __name__ == "__main__":
    main()
