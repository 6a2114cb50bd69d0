//! One embedded switch with our compiled pipeline, driven in virtual time: what the data-plane tests share.
//! In: names from the p4info, packets. Out: what the switch sent, counters, registers.

use std::fs;
use std::path::{Path, PathBuf};

use ringpath::id::PortNo;
use ringpath::p4runtime::device::Device;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::config::v1::match_field::MatchType;
use ringpath::p4runtime::proto::p4::v1::{
    self as p4, Action, Entity, FieldMatch, ForwardingPipelineConfig, TableAction, TableEntry,
    Update, entity, field_match, table_action, update,
};
use ringpath::p4runtime::value::{decode, encode};
use ringpath::switch::{Config, Switch};
use ringpath::time::{Span, Time};

/// How long after a packet everything that it causes must have left the switch.
const SETTLE: Span = Span::from_millis(10);

/// One field of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    pub name: &'a str,
    pub value: u128,
    /// Ternary: mask. LPM: prefix length. `None`: the whole field.
    pub extent: Option<u128>,
}

/// A key field that must match as a whole.
pub fn is(name: &str, value: u128) -> Key<'_> {
    Key { name, value, extent: None }
}

/// A packet that the switch sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub port: u16,
    pub bytes: Vec<u8>,
}

pub struct Rig {
    pub switch: Switch,
    pub index: Index,
    pub now: Time,
}

/// A file of the repository.
pub fn repo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

impl Rig {
    /// Our pipeline on a switch with eight queues. Port 510 is an ordinary port here (the controller's headers stay on
    /// the packets), as it is on a simple_switch without a controller.
    pub fn new(clock_offset_ns: u64) -> Self {
        let mut config = Config { cpu_port: PortNo(509), priority_queues: 8, ..Config::default() };
        config.clock.offset_ns = clock_offset_ns;
        Self::with(config)
    }

    pub fn with(config: Config) -> Self {
        Self::of("ringpath", config)
    }

    /// A program of `p4/build`.
    pub fn of(program: &str, config: Config) -> Self {
        let built = |extension: &str| repo("p4/build").join(format!("{program}.{extension}"));
        let text = fs::read_to_string(built("p4info.txtpb")).unwrap();
        let index = Index::from_text(&text).unwrap();
        let pipeline = ForwardingPipelineConfig {
            p4info: Some(index.info().clone()),
            p4_device_config: fs::read(built("json")).unwrap().into(),
            cookie: None,
        };
        let mut switch = Switch::new(config);
        switch.load_pipeline(Time::ZERO, &pipeline).unwrap();
        Self { switch, index, now: Time::ZERO }
    }

    fn field_match(&self, table: &str, key: Key<'_>) -> FieldMatch {
        let table = self.index.table(table).unwrap();
        let field = table.field(key.name).unwrap();
        let full = (1u128 << field.width) - 1;
        let kind = match field.kind {
            MatchType::Exact => {
                field_match::FieldMatchType::Exact(field_match::Exact { value: encode(key.value) })
            }
            MatchType::Ternary => field_match::FieldMatchType::Ternary(field_match::Ternary {
                value: encode(key.value),
                mask: encode(key.extent.unwrap_or(full)),
            }),
            MatchType::Lpm => field_match::FieldMatchType::Lpm(field_match::Lpm {
                value: encode(key.value),
                prefix_len: i32::try_from(key.extent.unwrap_or(field.width.into())).unwrap(),
            }),
            other => panic!("{}: match kind {other:?} is not ours", key.name),
        };
        FieldMatch { field_id: field.id, field_match_type: Some(kind) }
    }

    pub fn action(&self, name: &str, args: &[(&str, u128)]) -> Action {
        let action = self.index.action(name).unwrap();
        let value = |wanted: &str| {
            let found = args.iter().find(|(name, _)| *name == wanted);
            found.unwrap_or_else(|| panic!("{name} wants {wanted}")).1
        };
        assert_eq!(action.params.len(), args.len(), "{name} takes other parameters");
        Action {
            action_id: action.names.id,
            params: action
                .params
                .iter()
                .map(|param| p4::action::Param {
                    param_id: param.id,
                    value: encode(value(&param.name)),
                })
                .collect(),
        }
    }

    /// A table entry for `write`; no key and no priority = the default entry.
    pub fn entry(
        &self,
        table: &str,
        priority: i32,
        keys: &[Key<'_>],
        action: table_action::Type,
    ) -> Entity {
        let found = self.index.table(table).unwrap();
        let mut r#match: Vec<FieldMatch> =
            keys.iter().map(|key| self.field_match(table, *key)).collect();
        r#match.sort_by_key(|field| field.field_id);
        let entry = TableEntry {
            table_id: found.names.id,
            is_default_action: found.fields.is_empty(),
            r#match,
            priority,
            action: Some(TableAction { r#type: Some(action) }),
            ..TableEntry::default()
        };
        Entity { entity: Some(entity::Entity::TableEntry(entry)) }
    }

    pub fn write(&mut self, kind: update::Type, entity: Entity) {
        let update = Update { r#type: kind.into(), entity: Some(entity) };
        self.switch.write(self.now, &update).unwrap();
    }

    /// Inserts an entry, or sets the default entry of a table without a key.
    pub fn add(
        &mut self,
        table: &str,
        priority: i32,
        keys: &[Key<'_>],
        action: &str,
        args: &[(&str, u128)],
    ) {
        let action = table_action::Type::Action(self.action(action, args));
        let entity = self.entry(table, priority, keys, action);
        let keyless = self.index.table(table).unwrap().fields.is_empty();
        self.write(if keyless { update::Type::Modify } else { update::Type::Insert }, entity);
    }

    /// Hands the switch a packet and runs it until everything that the packet causes has left; `now` moves on by a
    /// little more than `SETTLE`.
    pub fn send(&mut self, port: u16, bytes: &[u8]) -> Vec<Sent> {
        self.switch.receive(self.now, PortNo(port), bytes);
        let sent = self.run(self.now + SETTLE);
        self.now = self.now + SETTLE + Span::from_micros(1);
        sent
    }

    /// Runs the switch up to `until`.
    pub fn run(&mut self, until: Time) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(at) = self.switch.poll_at().filter(|at| *at <= until) {
            self.switch.advance(at, &mut |packet| {
                sent.push(Sent { port: packet.port.0, bytes: packet.bytes.to_vec() });
            });
        }
        sent
    }

    fn read(&self, pattern: entity::Entity) -> Entity {
        let mut found = Vec::new();
        self.switch
            .read(self.now, &Entity { entity: Some(pattern) }, &mut |entity| found.push(entity))
            .unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    /// Packets in one cell of an indirect counter.
    pub fn counter(&self, name: &str, index: i64) -> i64 {
        let pattern = p4::CounterEntry {
            counter_id: self.index.counter(name).unwrap().names.id,
            index: Some(p4::Index { index }),
            data: None,
        };
        match self.read(entity::Entity::CounterEntry(pattern)).entity {
            Some(entity::Entity::CounterEntry(entry)) => entry.data.unwrap().packet_count,
            other => panic!("no counter entry: {other:?}"),
        }
    }

    /// One cell of a register.
    pub fn register(&self, name: &str, index: i64) -> u128 {
        let pattern = p4::RegisterEntry {
            register_id: self.index.register(name).unwrap().names.id,
            index: Some(p4::Index { index }),
            data: None,
        };
        match self.read(entity::Entity::RegisterEntry(pattern)).entity {
            Some(entity::Entity::RegisterEntry(entry)) => match entry.data.unwrap().data {
                Some(p4::p4_data::Data::Bitstring(bytes)) => decode(&bytes).unwrap(),
                other => panic!("{name}[{index}] is no bit string: {other:?}"),
            },
            other => panic!("no register entry: {other:?}"),
        }
    }

    /// Sets one cell of a register, as the controller does where the target allows it.
    pub fn set_register(&mut self, name: &str, index: i64, value: u128) {
        let entry = p4::RegisterEntry {
            register_id: self.index.register(name).unwrap().names.id,
            index: Some(p4::Index { index }),
            data: Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(encode(value))) }),
        };
        let entity = Entity { entity: Some(entity::Entity::RegisterEntry(entry)) };
        self.write(update::Type::Modify, entity);
    }
}
