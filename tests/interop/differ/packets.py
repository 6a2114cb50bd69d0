"""Packets for any program: along its own parser, so that they get somewhere, with values that its entries name, then bent at random."""


def bits_to_bytes(bits):
    """A list of (value, width) as bytes, zeros behind."""
    value, width = 0, 0
    for part, size in bits:
        value, width = value << size | part & (1 << size) - 1, width + size
    spare = -width % 8
    return (value << spare).to_bytes((width + spare) // 8, "big")


def number(text):
    return int(text, 16) if text else 0


# What fields of these names hold in packets that get anywhere, whatever the program.
COMMON = {"protocol": [6, 17], "ihl": [5, 5, 5, 5, 6], "version": [4], "ttl": [0, 1, 2, 64, 64, 64, 255], "fragment_offset": [0, 0, 0, 1], "fragOffset": [0, 0, 0, 1]}
CHECKSUMS = ("checksum", "hdrChecksum", "hdr_checksum")


def internet_checksum(data):
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Walk:
    """Draws packets; `entries` has what tables hold, so that they are hit."""

    MOST_STATES = 24

    def __init__(self, program, entries, rng):
        self.program, self.entries, self.pools, self.rng = program, entries, entries.pools, rng
        self.aimed = {}
        (parser, *_) = program.json["parsers"]
        self.states = {state["name"]: state for state in parser["parse_states"]}
        self.begin = parser["init_state"]
        self.stacks = {one["name"]: one for one in program.json.get("header_stacks", [])}

    def packet(self):
        body = self.along()
        if self.rng.random() < 0.8:
            body += self.rng.randbytes(self.rng.choice([0, 4, 20, 46, 100, 700]))
        return bend(body, self.rng)

    def along(self):
        """Headers in the order of one way through the parser, fields of selections set to what leads on."""
        fields, order, name = {}, [], self.begin
        ahead = []
        self.aimed = self.entries.aim() if self.rng.random() < 0.7 else {}
        for _ in range(self.MOST_STATES):
            if name is None:
                break
            state = self.states[name]
            for operation in state["parser_ops"]:
                self.extract(operation, fields, order, ahead)
            name = self.choose(state, fields, ahead)
        if self.rng.random() < 0.9:
            self.sum(fields, order)
        body = bits_to_bytes([(fields[key], width) for key, width in order])
        return body + bits_to_bytes(ahead)

    def extract(self, operation, fields, order, ahead):
        if operation["op"] not in ("extract", "extract_VL"):
            return
        what = operation["parameters"][0]
        header = what["value"]
        if what["type"] == "regular":
            kind = self.program.headers[header]
        elif what["type"] == "stack" and header in self.stacks:
            kind = self.program.types[self.stacks[header]["header_type"]]
        else:
            return
        for field in kind["fields"]:
            width = field[1] if isinstance(field[1], int) else 8 * self.rng.randrange(4)
            key = (header, field[0], len(order))
            fields[key] = self.value(field[0], width)
            order.append((key, width))
            fields[header, field[0]] = key
        # What was looked ahead at is now what was extracted.
        while ahead and order:
            value, width = ahead.pop(0)
            first = len(order) - len(kind["fields"])
            self.overlay(fields, order[first:], value, width)

    def value(self, name, width):
        if not width:
            return 0
        if name in self.aimed:
            return self.aimed[name] & (1 << width) - 1
        return self.rng.choice(COMMON[name]) if name in COMMON and self.rng.random() < 0.9 else self.pools.value(name, width)

    @staticmethod
    def sum(fields, order):
        """Right checksums in headers like IPv4's."""
        for header, name, place in [key for key, width in order if key[1] in CHECKSUMS and width == 16]:
            own = [(key, width) for key, width in order if key[0] == header and key[2] < place + 20 and key[2] > place - 20]
            if (header, "ttl") in {key[:2] for key, _ in own} and sum(width for _, width in own) == 160:
                fields[header, name, place] = 0
                fields[header, name, place] = internet_checksum(bits_to_bytes([(fields[key], width) for key, width in own]))

    @staticmethod
    def overlay(fields, keys, value, width):
        """Sets the first `width` bits of the fields to `value`."""
        for key, size in keys:
            if width <= 0:
                return
            take = min(size, width)
            part = value >> (width - take) & (1 << take) - 1
            fields[key] = part << (size - take) | fields[key] & (1 << size - take) - 1
            width -= take

    def choose(self, state, fields, ahead):
        ways = [way for way in state["transitions"] if way["type"] in ("hexstr", "default")]
        if not ways:
            return None
        way = self.rng.choice(ways)
        if way["type"] == "default":
            return way["next_state"]
        value = number(way["value"])
        mask = number(way["mask"]) if way.get("mask") else None
        keys = state["transition_key"]
        widths = [self.width(key) for key in keys]
        total = sum(-(-width // 8) * 8 for width in widths)
        for key, width in zip(keys, widths):
            total -= -(-width // 8) * 8
            part = value >> total & (1 << width) - 1
            care = (1 << width) - 1 if mask is None else mask >> total & (1 << width) - 1
            if key["type"] == "lookahead":
                skip, size = key["value"]
                ahead += [(self.rng.getrandbits(skip), skip)] if skip else []
                ahead.append((part, size))
            elif key["type"] in ("field", "stack_field"):
                place = fields.get(tuple(key["value"]))
                if place is not None:
                    fields[place] = part & care | fields[place] & ~care & (1 << width) - 1
        return way["next_state"]

    def width(self, key):
        if key["type"] == "lookahead":
            return key["value"][1]
        header, name = key["value"]
        kind = self.program.headers.get(header)
        if kind is None and header in self.stacks:
            kind = self.program.types[self.stacks[header]["header_type"]]
        return next((field[1] for field in kind["fields"] if field[0] == name), 8) if kind else 8


def bend(body, rng):
    """Mostly as it is; else cut short, or with some bytes changed. Linux sends nothing shorter than an Ethernet header."""
    luck = rng.random()
    if luck < 0.08:
        body = body[: rng.randrange(len(body) + 1)]
    elif luck < 0.13:
        body = bytearray(body)
        for _ in range(rng.randint(1, 3)):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        body = bytes(body)
    elif luck < 0.16:
        body = rng.randbytes(rng.choice([14, 15, 33, 60, 200, 1500]))
    return body
