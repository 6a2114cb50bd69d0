use super::super::*;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::action::Param;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use crate::p4runtime::proto::p4::v1::table_action::Type as ActionType;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{Action, FieldMatch, TableAction, TableEntry};
use crate::p4runtime::value::encode;

pub(super) fn ringpath() -> (Switch, Index) {
    let json = include_bytes!("../../../../p4/build/ringpath.json");
    let text = include_str!("../../../../p4/build/ringpath.p4info.txtpb");
    let info = Index::from_text(text).unwrap();
    let mut switch = Switch::new(Config { priority_queues: 8, ..Config::default() });
    let config = ForwardingPipelineConfig {
        p4info: Some(info.info().clone()),
        p4_device_config: json.to_vec().into(),
        cookie: None,
    };
    switch.load_pipeline(Time(0), &config).unwrap();
    (switch, info)
}

/// A packet that left, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Out {
    pub port: u16,
    pub op: u8,
    pub arg: u8,
    pub index: u16,
    pub key: u32,
    pub result: u32,
    pub length: usize,
    pub start: u64,
    pub end: u64,
}

pub(super) struct Rig {
    pub switch: Switch,
    pub info: Index,
    pub config: ForwardingPipelineConfig,
    pub now: u64,
}

pub(super) fn exact(value: u128) -> FieldMatchType {
    FieldMatchType::Exact(field_match::Exact { value: encode(value) })
}

pub(super) fn ternary(value: u128, mask: u128) -> FieldMatchType {
    FieldMatchType::Ternary(field_match::Ternary { value: encode(value), mask: encode(mask) })
}

pub(super) fn lpm(value: u128, prefix_len: i32) -> FieldMatchType {
    FieldMatchType::Lpm(field_match::Lpm { value: encode(value), prefix_len })
}

pub(super) fn range(low: u128, high: u128) -> FieldMatchType {
    FieldMatchType::Range(field_match::Range { low: encode(low), high: encode(high) })
}

pub(super) fn optional(value: u128) -> FieldMatchType {
    FieldMatchType::Optional(field_match::Optional { value: encode(value) })
}

/// A command for destination 2 as bytes, 60 bytes long.
pub(super) fn command(op: u8, arg: u8, index: u16, key: u32) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x88, 0xb6, op, arg];
    bytes.extend_from_slice(&index.to_be_bytes());
    bytes.extend_from_slice(&key.to_be_bytes());
    bytes.resize(60, 0);
    bytes
}

pub(super) fn parse(port: PortNo, bytes: &[u8]) -> Out {
    let word = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    };
    Out {
        port: port.0,
        op: bytes.get(14).copied().unwrap_or(0),
        arg: bytes.get(15).copied().unwrap_or(0),
        index: (word(14) & 0xffff) as u16,
        key: word(18),
        result: word(22),
        length: bytes.len(),
        ..Out::default()
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with(Config { priority_queues: 8, ..Config::default() })
    }

    pub(super) fn with(config: Config) -> Self {
        let json = include_bytes!("../../../../tests/data/switch/exercise.json");
        let text = include_str!("../../../../tests/data/switch/exercise.p4info.txtpb");
        let info = Index::from_text(text).unwrap();
        let pipeline = ForwardingPipelineConfig {
            p4info: Some(info.info().clone()),
            p4_device_config: json.to_vec().into(),
            cookie: None,
        };
        let mut switch = Switch::new(config);
        switch.load_pipeline(Time(0), &pipeline).unwrap();
        let mut rig = Self { switch, info, config: pipeline, now: 0 };
        rig.insert("deliver", &[("dst", exact(2))], 0, ("send", &[("port", 2)]));
        rig
    }

    pub(super) fn action(&self, name: &str, params: &[(&str, u128)]) -> Action {
        let action = self.info.action(name).unwrap();
        let param = |(name, value): &(&str, u128)| Param {
            param_id: action.param(name).unwrap().id,
            value: encode(*value),
        };
        Action { action_id: action.names.id, params: params.iter().map(param).collect() }
    }

    pub(super) fn entry(
        &self,
        table: &str,
        key: &[(&str, FieldMatchType)],
        priority: i32,
        action: Option<ActionType>,
    ) -> TableEntry {
        let table = self.info.table(table).unwrap();
        let field = |(name, kind): &(&str, FieldMatchType)| FieldMatch {
            field_id: table.field(name).unwrap().id,
            field_match_type: Some(kind.clone()),
        };
        TableEntry {
            table_id: table.names.id,
            r#match: key.iter().map(field).collect(),
            priority,
            action: action.map(|kind| TableAction { r#type: Some(kind) }),
            ..TableEntry::default()
        }
    }

    pub(super) fn write(&mut self, kind: Type, entity: Kinds) -> Result<(), Code> {
        let entity = Some(Entity { entity: Some(entity) });
        let update = Update { r#type: kind.into(), entity };
        self.switch.write(Time(self.now), &update).map_err(|refusal| refusal.code)
    }

    pub(super) fn insert(
        &mut self,
        table: &str,
        key: &[(&str, FieldMatchType)],
        priority: i32,
        (action, params): (&str, &[(&str, u128)]),
    ) {
        let action = ActionType::Action(self.action(action, params));
        let entry = self.entry(table, key, priority, Some(action));
        self.write(Type::Insert, Kinds::TableEntry(entry)).unwrap();
    }

    pub(super) fn read(&self, entity: Kinds) -> Vec<Kinds> {
        let mut all = Vec::new();
        let pattern = Entity { entity: Some(entity) };
        let read = self.switch.read(Time(self.now), &pattern, &mut |e| all.extend(e.entity));
        read.unwrap();
        all
    }

    pub(super) fn read_all(&self, table: &str) -> Vec<TableEntry> {
        let pattern = self.entry(table, &[], 0, None);
        let entries = self.read(Kinds::TableEntry(pattern)).into_iter();
        entries
            .map(|kind| match kind {
                Kinds::TableEntry(entry) => entry,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    /// Everything that leaves now.
    pub(super) fn sent(&mut self) -> Vec<Out> {
        let mut out = Vec::new();
        self.switch.advance(Time(self.now), &mut |sent| {
            let times =
                Out { start: sent.start.0, end: sent.end.0, ..parse(sent.port, sent.bytes) };
            out.push(times);
        });
        out
    }

    /// Sends a command on port 1 and gives all packets that leave at once.
    pub(super) fn all(&mut self, op: u8, arg: u8, index: u16, key: u32) -> Vec<Out> {
        self.switch.receive(Time(self.now), PortNo(1), &command(op, arg, index, key));
        self.sent()
    }

    /// As `all`, for commands with one answer on port 2.
    pub(super) fn ask(&mut self, op: u8, arg: u8, index: u16, key: u32) -> Option<Out> {
        let out = self.all(op, arg, index, key);
        assert!(out.len() <= 1, "{out:?}");
        out.into_iter().next()
    }

    pub(super) fn outbox(&mut self) -> Vec<StreamMessageResponse> {
        self.switch.take_outbox()
    }
}
