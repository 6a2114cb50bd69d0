//! A device that stores what it is told, for tests of the server, the service and the client. It knows no packets: a
//! packet-out comes back as a packet-in, and the payload `idle` or `digest` makes it emit such a message.

use prost::Message as _;
use ringpath::p4runtime::device::{Device, Refusal};
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use ringpath::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{
    CounterEntry, DigestList, DigestListAck, Entity, ForwardingPipelineConfig,
    IdleTimeoutNotification, Index as Cell, PacketIn, PacketMetadata, PacketOut, RegisterEntry,
    StreamMessageResponse, TableEntry, Update,
};
use ringpath::p4runtime::rpc::Code;
use ringpath::time::Time;
use std::any::Any;
use std::collections::BTreeMap;

/// Entries of one table at most, whatever P4Info says.
pub const TABLE_SIZE: usize = 4;

#[derive(Clone, Default)]
pub struct FakeDevice {
    pub id: u64,
    pub program: Option<Index>,
    pub loads: usize,
    pub acks: Vec<DigestListAck>,
    pub state: BTreeMap<Key, Entity>,
    outbox: Vec<StreamMessageResponse>,
}

/// Kind of entity, object id, and the rest of the key as bytes.
type Key = (u8, u32, Vec<u8>);

impl FakeDevice {
    pub fn new(id: u64) -> Self {
        Self { id, ..Self::default() }
    }

    fn sizes(&self, key: &Key) -> i64 {
        let index = self.program.as_ref().unwrap();
        match key.0 {
            7 => index.counter_by_id(key.1).unwrap().size,
            11 => index.register_by_id(key.1).unwrap().size,
            _ => 0,
        }
    }

    fn emit(&mut self, update: Response) {
        self.outbox.push(StreamMessageResponse { update: Some(update) });
    }
}

fn entry_key(entry: &TableEntry) -> Vec<u8> {
    let key = TableEntry {
        r#match: entry.r#match.clone(),
        priority: entry.priority,
        is_default_action: entry.is_default_action,
        ..TableEntry::default()
    };
    key.encode_to_vec()
}

fn key(entity: &Entity) -> Key {
    let number = |n: u32| n.to_be_bytes().to_vec();
    match entity.entity.as_ref().unwrap() {
        Kinds::TableEntry(entry) => (2, entry.table_id, entry_key(entry)),
        Kinds::ActionProfileMember(m) => (3, m.action_profile_id, number(m.member_id)),
        Kinds::ActionProfileGroup(g) => (4, g.action_profile_id, number(g.group_id)),
        Kinds::CounterEntry(c) => {
            (7, c.counter_id, c.index.map_or(vec![], |i| i.index.to_be_bytes().to_vec()))
        }
        Kinds::RegisterEntry(r) => {
            (11, r.register_id, r.index.map_or(vec![], |i| i.index.to_be_bytes().to_vec()))
        }
        Kinds::PacketReplicationEngineEntry(p) => match p.r#type.as_ref().unwrap() {
            Replication::MulticastGroupEntry(g) => (9, 1, number(g.multicast_group_id)),
            Replication::CloneSessionEntry(s) => (9, 2, number(s.session_id)),
        },
        Kinds::ValueSetEntry(v) => (10, v.value_set_id, vec![]),
        Kinds::DigestEntry(d) => (12, d.digest_id, vec![]),
        Kinds::DirectCounterEntry(d) => {
            let entry = d.table_entry.as_ref().unwrap();
            (2, entry.table_id, entry_key(entry))
        }
        other => panic!("the fake does not know {other:?}"),
    }
}

impl Device for FakeDevice {
    fn device_id(&self) -> u64 {
        self.id
    }

    fn verify_pipeline(&self, config: &ForwardingPipelineConfig) -> Result<(), Refusal> {
        if config.p4_device_config.starts_with(b"bad") {
            return Err(Refusal::new(Code::InvalidArgument, "the device config is bad"));
        }
        Ok(())
    }

    fn load_pipeline(&mut self, _: Time, config: &ForwardingPipelineConfig) -> Result<(), Refusal> {
        self.program = Some(Index::new(config.p4info.clone().unwrap()).unwrap());
        self.loads += 1;
        self.state.clear();
        Ok(())
    }

    fn blank(&self) -> Self {
        Self::new(self.id)
    }

    fn write(&mut self, _: Time, update: &Update) -> Result<(), Refusal> {
        let entity = update.entity.clone().unwrap();
        let key = key(&entity);
        let exists = self.state.contains_key(&key);
        let always = matches!(key.0, 7 | 10 | 11)
            || matches!(&entity.entity, Some(Kinds::TableEntry(e)) if e.is_default_action);
        if matches!(key.0, 7 | 11) && key.2.is_empty() {
            for index in 0..self.sizes(&key) {
                let cell = (key.0, key.1, index.to_be_bytes().to_vec());
                self.state.insert(cell, with_index(&entity, index));
            }
            return Ok(());
        }
        match (update.r#type(), exists || always) {
            (Type::Insert, true) => {
                return Err(Refusal::new(Code::AlreadyExists, "it exists"));
            }
            (Type::Modify | Type::Delete, false) => {
                return Err(Refusal::new(Code::NotFound, "it does not exist"));
            }
            (Type::Delete, true) => {
                self.state.remove(&key);
                return Ok(());
            }
            _ => {}
        }
        let same = self.state.keys().filter(|k| (k.0, k.1) == (key.0, key.1)).count();
        if key.0 == 2 && !exists && !always && same >= TABLE_SIZE {
            return Err(Refusal::new(Code::ResourceExhausted, "the table is full"));
        }
        self.state.insert(key, entity);
        Ok(())
    }

    fn read(&self, _: Time, pattern: &Entity, emit: &mut dyn FnMut(Entity)) -> Result<(), Refusal> {
        let wanted = match pattern.entity.as_ref().unwrap() {
            Kinds::MeterEntry(_) | Kinds::DirectMeterEntry(_) => return Ok(()),
            Kinds::DirectCounterEntry(d) if d.table_entry.is_none() => return Ok(()),
            _ => key(pattern),
        };
        let (mut default, mut exact, mut all_keys) = (false, true, wanted.2.is_empty());
        match pattern.entity.as_ref().unwrap() {
            Kinds::TableEntry(e) => {
                default = e.is_default_action;
                all_keys = e.r#match.is_empty() && !default;
                exact = e.priority == 0;
            }
            Kinds::ActionProfileMember(m) => all_keys = m.member_id == 0,
            Kinds::ActionProfileGroup(g) => all_keys = g.group_id == 0,
            Kinds::PacketReplicationEngineEntry(_) => all_keys = wanted.2 == [0; 4],
            _ => {}
        }
        for (key, entity) in &self.state {
            let object = key.0 == wanted.0 && (wanted.1 == 0 || key.1 == wanted.1);
            let is_default =
                matches!(&entity.entity, Some(Kinds::TableEntry(e)) if e.is_default_action);
            if !object || is_default != default || !(all_keys || key.2 == wanted.2) {
                continue;
            }
            if let (Some(Kinds::TableEntry(e)), Some(Kinds::TableEntry(p))) =
                (&entity.entity, &pattern.entity)
                && !exact
                && e.priority != p.priority
            {
                continue;
            }
            emit(entity.clone());
        }
        Ok(())
    }

    fn packet_out(&mut self, now: Time, packet: &PacketOut) -> Result<(), Refusal> {
        match packet.payload.as_slice() {
            b"refuse" => return Err(Refusal::new(Code::InvalidArgument, "the packet is too long")),
            b"idle" => {
                let entry = TableEntry { table_id: 0x0200_0001, ..TableEntry::default() };
                let timestamp = i64::try_from(now.0).unwrap();
                self.emit(Response::IdleTimeoutNotification(IdleTimeoutNotification {
                    table_entry: vec![entry],
                    timestamp,
                }));
            }
            b"digest" => {
                self.emit(Response::Digest(DigestList {
                    digest_id: 0x1700_0001,
                    list_id: 7,
                    ..DigestList::default()
                }));
            }
            _ => {
                let metadata = vec![PacketMetadata {
                    metadata_id: 1,
                    value: packet.metadata[0].value.clone(),
                }];
                self.emit(Response::Packet(PacketIn { payload: packet.payload.clone(), metadata }));
            }
        }
        Ok(())
    }

    fn digest_ack(&mut self, _: Time, ack: &DigestListAck) {
        self.acks.push(*ack);
    }

    fn take_outbox(&mut self) -> Vec<StreamMessageResponse> {
        std::mem::take(&mut self.outbox)
    }

    fn checkpoint(&self) -> Box<dyn Any + Send> {
        Box::new(self.state.clone())
    }

    fn restore(&mut self, checkpoint: Box<dyn Any + Send>) {
        if let Ok(state) = checkpoint.downcast() {
            self.state = *state;
        }
    }
}

fn with_index(entity: &Entity, index: i64) -> Entity {
    let cell = Some(Cell { index });
    let kind = match entity.entity.clone().unwrap() {
        Kinds::CounterEntry(entry) => Kinds::CounterEntry(CounterEntry { index: cell, ..entry }),
        Kinds::RegisterEntry(entry) => Kinds::RegisterEntry(RegisterEntry { index: cell, ..entry }),
        other => other,
    };
    Entity { entity: Some(kind) }
}
