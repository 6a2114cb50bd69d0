#!/usr/bin/env python3
"""Compares our P4Runtime descriptors with those of the `p4runtime` package of PyPI, field by field.

The .proto files in proto/ are ours; names, numbers, types, labels, oneofs and enum values must be those of the
protocol. Our descriptor set is written by an integration test that takes the file's name from the environment:

    RINGPATH_DESCRIPTORS=/tmp/descriptors.bin cargo test --test it -- writes_the_descriptor_set
    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install p4runtime==1.6.0
    /tmp/venv/bin/python tests/interop/descriptors.py /tmp/descriptors.bin

Exit code 0: equal. 1: the differences are listed, ours marked +, theirs marked -.
"""

import os
import sys

# The package's generated code is older than the protobuf runtime that it asks for, and only the Python one takes it.
os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"

from google.protobuf import descriptor_pb2
from google.rpc import code_pb2, status_pb2
from p4.config.v1 import p4info_pb2, p4types_pb2
from p4.v1 import p4data_pb2, p4runtime_pb2

THEIRS = [p4runtime_pb2, p4data_pb2, p4info_pb2, p4types_pb2, status_pb2, code_pb2]


def enum_facts(prefix, enum):
    yield f"enum {prefix}"
    for value in enum.value:
        yield f"enum {prefix} {value.name} = {value.number}"


def message_facts(prefix, message):
    yield f"message {prefix} map_entry={message.options.map_entry}"
    for field in message.field:
        oneof = message.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""
        yield (
            f"field {prefix}.{field.name} = {field.number} type={field.type} of={field.type_name} "
            f"label={field.label} oneof={oneof} deprecated={field.options.deprecated} "
            f"optional={field.proto3_optional} packed={field.options.packed} json={json_name(field)}"
        )
    for nested in message.nested_type:
        yield from message_facts(f"{prefix}.{nested.name}", nested)
    for enum in message.enum_type:
        yield from enum_facts(f"{prefix}.{enum.name}", enum)


def json_name(field):
    """protoc fills json_name in, other compilers may leave it out where it follows from the name."""
    head, *rest = field.name.split("_")
    return field.json_name or head + "".join(part[:1].upper() + part[1:] for part in rest)


def file_facts(file):
    yield f"file {file.name} package={file.package} syntax={file.syntax} imports={sorted(file.dependency)}"
    for message in file.message_type:
        yield from message_facts(f"{file.package}.{message.name}", message)
    for enum in file.enum_type:
        yield from enum_facts(f"{file.package}.{enum.name}", enum)
    for service in file.service:
        for method in service.method:
            yield (
                f"method {file.package}.{service.name}/{method.name} {method.input_type} -> {method.output_type} "
                f"client_stream={method.client_streaming} server_stream={method.server_streaming}"
            )


def main():
    ours = descriptor_pb2.FileDescriptorSet()
    with open(sys.argv[1], "rb") as file:
        ours.ParseFromString(file.read())
    ours = {file.name: file for file in ours.file}
    differences, facts = [], 0
    for module in THEIRS:
        theirs = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(theirs)
        if theirs.name not in ours:
            differences.append(f"- file {theirs.name}")
            continue
        left, right = set(file_facts(ours[theirs.name])), set(file_facts(theirs))
        facts += len(right)
        differences += [f"+ {fact}" for fact in sorted(left - right)]
        differences += [f"- {fact}" for fact in sorted(right - left)]
    for line in differences:
        print(line)
    print(f"{facts} facts compared in {len(THEIRS)} files, {len(differences)} differences")
    return 1 if differences or facts < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
