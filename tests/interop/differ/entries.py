"""Valid entries for every table, profile, group and replication list of a program, drawn from a seed.

Values come from small pools that the packets are drawn from, too, so that entries are hit. Priorities are unique within a table: which of two entries
of one priority wins is nobody's contract.
"""
from finsy.proto import p4i as p4info_pb2
from finsy.proto import p4r as p4rt

MATCH = p4info_pb2.MatchField
UPDATE = p4rt.Update
# Unknown ports, the drop port and the controller's are places to send to, too.
PLACES = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 9, 510, 511]


def octets(value):
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Pools:
    """Few values per name and width; given ones come from the program's own hints."""

    def __init__(self, rng, hints):
        self.rng, self.hints, self.drawn = rng, hints, {}

    def values(self, name, width):
        name = name.rsplit(".", 1)[-1]
        if name in self.hints:
            return [value & (1 << width) - 1 for value in self.hints[name]]
        if width <= 0:
            return [0]
        if (name, width) not in self.drawn:
            count = min(4, 1 << min(width, 3))
            self.drawn[name, width] = [self.rng.choice([self.rng.getrandbits(width), self.rng.randrange(min(8, 1 << width))]) for _ in range(count)]
        return self.drawn[name, width]

    def value(self, name, width):
        if self.rng.random() < 0.85:
            return self.rng.choice(self.values(name, width))
        return self.rng.choice([0, (1 << width) - 1, self.rng.getrandbits(width)])


class Entries:
    """Draws updates. `live` is what is on the switch, so that what is modified and deleted exists."""

    def __init__(self, program, rng, hints, most=10):
        self.program, self.rng, self.most = program, rng, most
        self.pools = Pools(rng, hints)
        self.live, self.members, self.groups = {}, {}, {}
        self.priorities = {}
        # BMv2 ends when a packet hits an entry of a profile that several tables share (docs/switch-conformance.md).
        self.profiles = [one for one in program.info.action_profiles if len(one.table_ids) == 1]
        self.shared = {one for profile in program.info.action_profiles if len(profile.table_ids) > 1 for one in profile.table_ids}

    # -- what is written first ---------------------------------------------------------------------------------------------------

    def first(self):
        for profile in self.profiles:
            yield from self.profile(profile)
        for table in self.program.info.tables:
            yield from self.fill(table)
        if {"clone_ingress_pkt_to_egress", "clone_egress_pkt_to_egress"} & self.program.primitives:
            for session in range(1, 8):
                entry = p4rt.CloneSessionEntry(session_id=session, replicas=[p4rt.Replica(egress_port=self.rng.choice([1, 2, 3]), instance=1)])
                yield self.update("INSERT", packet_replication_engine_entry=p4rt.PacketReplicationEngineEntry(clone_session_entry=entry))
        if b"mcast_grp" in self.program.device_config:
            for group in range(1, 8):
                ports = self.rng.sample([1, 2, 3, 4], self.rng.randint(1, 3))
                entry = p4rt.MulticastGroupEntry(multicast_group_id=group, replicas=[
                    p4rt.Replica(egress_port=port, instance=number) for number, port in enumerate(ports, 1)])  # fmt: skip
                yield self.update("INSERT", packet_replication_engine_entry=p4rt.PacketReplicationEngineEntry(multicast_group_entry=entry))

    @staticmethod
    def update(kind, **entity):
        return p4rt.Update(type=UPDATE.Type.Value(kind), entity=p4rt.Entity(**entity))

    def profile(self, profile):
        number = profile.preamble.id
        tables = [table for table in self.program.info.tables if table.preamble.id in profile.table_ids]
        self.members[number], self.groups[number] = {}, {}
        most = min(profile.size or 8, 8)
        for member in range(1, self.rng.randint(2, max(2, most)) + 1):
            if member > most:
                break
            action = self.action(self.rng.choice(tables))
            self.members[number][member] = action
            yield self.update("INSERT", action_profile_member=self.member(number, member, action))
        if not profile.with_selector:
            return
        for group in range(1, self.rng.randint(2, 4)):
            yield self.update("INSERT", action_profile_group=self.group(profile, group))

    @staticmethod
    def member(profile, member, action):
        return p4rt.ActionProfileMember(action_profile_id=profile, member_id=member, action=action)

    def group(self, profile, group):
        number = profile.preamble.id
        most = min(profile.max_group_size or 6, 6)
        chosen = self.rng.sample(sorted(self.members[number]), self.rng.randint(1, min(len(self.members[number]), most)))
        entry = p4rt.ActionProfileGroup(action_profile_id=number, group_id=group)
        # It may not change in the group's life.
        entry.max_size = self.groups[number].setdefault(group, most)
        for member in chosen:
            entry.members.add(member_id=member, weight=1)
        return entry

    def fill(self, table):
        if table.preamble.id in self.shared or table.is_const_table or self.program.tables[table.preamble.name].get("entries"):
            return
        number = table.preamble.id
        self.live[number] = {}
        if table.match_fields:
            for _ in range(self.rng.randint(1, min(self.most, max(1, table.size - 1)))):
                update = self.insert(table)
                if update:
                    yield update
        if not table.implementation_id and not table.const_default_action_id and self.rng.random() < 0.7:
            yield self.default(table)

    # -- what changes while packets run ------------------------------------------------------------------------------------------

    def change(self):
        """One more update; nothing if none was to be had."""
        tables = [table for table in self.program.info.tables if table.preamble.id in self.live]
        if not tables:
            return None
        table = self.rng.choice(tables)
        live = self.live[table.preamble.id]
        kind = self.rng.choice(["insert", "modify", "modify", "delete", "default", "member", "group"])
        if kind == "default":
            return None if table.implementation_id or table.const_default_action_id else self.default(table)
        if kind in ("member", "group") and self.members:
            return self.change_profile(kind)
        if kind == "insert" and table.match_fields and len(live) < min(table.size - 1, 2 * self.most):
            return self.insert(table)
        if not live:
            return None
        key = self.rng.choice(sorted(live))
        entry = p4rt.TableEntry()
        entry.CopyFrom(live[key])
        if kind == "delete":
            del live[key]
            entry.ClearField("action")
            return self.update("DELETE", table_entry=entry)
        self.decide(table, entry)
        live[key] = entry
        return self.update("MODIFY", table_entry=entry)

    def change_profile(self, kind):
        profile = self.rng.choice(self.profiles)
        number = profile.preamble.id
        if kind == "group" and self.groups[number]:
            return self.update("MODIFY", action_profile_group=self.group(profile, self.rng.choice(sorted(self.groups[number]))))
        tables = [table for table in self.program.info.tables if table.preamble.id in profile.table_ids]
        member = self.rng.choice(sorted(self.members[number]))
        return self.update("MODIFY", action_profile_member=self.member(number, member, self.action(self.rng.choice(tables))))

    def aim(self):
        """Field values, by the last part of their names, that would hit an entry that is there."""
        tables = [table for table in self.program.info.tables if self.live.get(table.preamble.id)]
        if not tables:
            return {}
        table = self.rng.choice(tables)
        live = self.live[table.preamble.id]
        entry, targets, values = live[self.rng.choice(sorted(live))], self.program.targets(table), {}
        widths = {field.id: field.bitwidth for field in table.match_fields}
        for match in entry.match:
            width, spare = widths[match.field_id], self.rng.getrandbits(widths[match.field_id])
            kind = match.WhichOneof("field_match_type")
            if kind == "range":
                low, high = (int.from_bytes(end, "big") for end in (match.range.low, match.range.high))
                values[targets[match.field_id]] = self.rng.choice([low, high, low + spare % (high - low + 1)])
                continue
            own = getattr(match, kind)
            mask = (1 << width) - 1
            if kind == "lpm":
                mask &= ~((1 << width - match.lpm.prefix_len) - 1)
            elif kind == "ternary":
                mask = int.from_bytes(match.ternary.mask, "big")
            values[targets[match.field_id]] = int.from_bytes(own.value, "big") & mask | spare & ~mask
        return values

    # -- pieces ------------------------------------------------------------------------------------------------------------------

    def insert(self, table):
        entry = p4rt.TableEntry(table_id=table.preamble.id)
        targets = self.program.targets(table)
        ordered = False
        for field in table.match_fields:
            ordered |= field.match_type in (MATCH.TERNARY, MATCH.RANGE, MATCH.OPTIONAL)
            match = self.match(field, targets[field.id])
            if match:
                entry.match.append(match)
        key = entry.SerializeToString()
        if key in self.live[table.preamble.id]:
            return None
        if ordered:
            used = self.priorities.setdefault(table.preamble.id, set())
            entry.priority = self.rng.choice([number for number in range(1, 200) if number not in used])
            used.add(entry.priority)
        self.decide(table, entry)
        self.live[table.preamble.id][key] = entry
        return self.update("INSERT", table_entry=entry)

    def match(self, field, target):
        width, rng = field.bitwidth, self.rng
        value = self.pools.value(target, width)
        whole = (1 << width) - 1
        match = p4rt.FieldMatch(field_id=field.id)
        if field.match_type == MATCH.EXACT:
            match.exact.value = octets(value)
        elif field.match_type == MATCH.LPM:
            length = rng.choice([0, width, width, rng.randint(1, width)])
            if not length:
                return None
            match.lpm.value = octets(value & whole & ~((1 << width - length) - 1))
            match.lpm.prefix_len = length
        elif field.match_type == MATCH.TERNARY:
            mask = rng.choice([0, 0, whole, whole, whole, rng.getrandbits(width)])
            if not mask:
                return None
            match.ternary.value, match.ternary.mask = octets(value & mask), octets(mask)
        elif field.match_type == MATCH.RANGE:
            low, high = sorted((value, rng.choice([value, self.pools.value(target, width), rng.getrandbits(width)])))
            if (low, high) == (0, whole):
                return None
            match.range.low, match.range.high = octets(low), octets(high)
        else:
            if rng.random() < 0.4:
                return None
            match.optional.value = octets(value)
        return match

    def decide(self, table, entry):
        """What the entry does."""
        entry.ClearField("action")
        profile = table.implementation_id
        if not profile:
            entry.action.action.CopyFrom(self.action(table))
            return
        # One shot or by number, not both in one table: BMv2 keeps the two apart by table, and so must a valid client.
        if self.one_shot(table):
            for _ in range(self.rng.randint(1, 3)):
                entry.action.action_profile_action_set.action_profile_actions.add(action=self.action(table), weight=1)
        elif self.groups[profile] and self.rng.random() < 0.7:
            entry.action.action_profile_group_id = self.rng.choice(sorted(self.groups[profile]))
        else:
            entry.action.action_profile_member_id = self.rng.choice(sorted(self.members[profile]))

    def one_shot(self, table):
        sharing = [one for one in self.program.info.tables if one.implementation_id == table.implementation_id]
        selector = next(one for one in self.program.info.action_profiles if one.preamble.id == table.implementation_id).with_selector
        return selector and len(sharing) == 1 and self.program.name == "ringpath" and self.shots

    shots = False

    def action(self, table, default=False):
        forbidden = p4info_pb2.ActionRef.TABLE_ONLY if default else p4info_pb2.ActionRef.DEFAULT_ONLY
        action = self.program.actions[self.rng.choice([one.id for one in table.action_refs if one.scope != forbidden])]
        params = [p4rt.Action.Param(param_id=one.id, value=octets(self.parameter(one))) for one in action.params]
        return p4rt.Action(action_id=action.preamble.id, params=params)

    def parameter(self, param):
        if param.bitwidth == 9:
            return self.rng.choice(PLACES)
        return self.pools.value(param.name, param.bitwidth)

    def default(self, table):
        entry = p4rt.TableEntry(table_id=table.preamble.id, is_default_action=True)
        entry.action.action.CopyFrom(self.action(table, default=True))
        return self.update("MODIFY", table_entry=entry)
