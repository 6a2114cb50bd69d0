"""A compiled program as the generators of entries and packets see it: its P4Info, its tables' keys and its parser."""
import json

from google.protobuf import text_format
from finsy.proto import p4i as p4info_pb2


class Program:
    """In: the JSON and the P4Info that p4c-bm2-ss wrote."""

    def __init__(self, name, json_path, info_path):
        self.name = name
        with open(json_path) as file:
            self.json = json.load(file)
        self.device_config = json.dumps(self.json).encode()
        self.info = p4info_pb2.P4Info()
        with open(info_path) as file:
            text_format.Parse(file.read(), self.info)
        self.tables = {table["name"]: table for pipeline in self.json["pipelines"] for table in pipeline["tables"]}
        self.types = {one["name"]: one for one in self.json["header_types"]}
        self.headers = {one["name"]: self.types[one["header_type"]] for one in self.json["headers"]}
        self.actions = {one.preamble.id: one for one in self.info.actions}
        self.primitives = {word["op"] for one in self.json["actions"] for word in one["primitives"]}

    def targets(self, table):
        """The last part of the name of each key's field, by the field's id in P4Info."""
        keys = self.tables[table.preamble.name]["key"]
        return {field.id: key["target"][-1] if isinstance(key["target"], list) else key["target"]
                for field, key in zip(table.match_fields, keys)}  # fmt: skip

    def metadata(self, name):
        """Names and widths of a controller header's fields, by id."""
        for header in self.info.controller_packet_metadata:
            if header.preamble.name == name:
                return {one.id: (one.name, one.bitwidth) for one in header.metadata}
        return {}
