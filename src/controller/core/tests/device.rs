//! A device that keeps entities and nothing else, with faults to order.

use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::rpc::Code;
use crate::pipeline::identity::{key_of, normal_form};
use crate::pipeline::{EntityKey, Program};
use crate::time::Time;
use proto::{ForwardingPipelineConfig, StreamMessageResponse, Update};
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How the flip register of a slot answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Flips {
    /// There was a gap: the written flip is in force.
    #[default]
    AtOnce,
    /// There never is a gap: the register holds what it held at the start, 0.
    Never,
    /// RegisterEntry is not offered, as on BMv2.
    Unreadable,
}

/// Refuses updates that fit, once each.
pub(super) type Fault = (fn(&EntityKey, Type) -> bool, Code);

pub(super) struct FakeDevice {
    id: u64,
    program: Arc<Program>,
    pub(super) entities: BTreeMap<EntityKey, proto::Entity>,
    pub(super) loads: usize,
    pub(super) updates: usize,
    pub(super) flips: Flips,
    pub(super) faults: VecDeque<Fault>,
    /// Packets counted by every entry.
    pub(super) packets: i64,
}

impl FakeDevice {
    pub(super) fn new(id: u64, program: Arc<Program>) -> Self {
        Self {
            id,
            program,
            entities: BTreeMap::new(),
            loads: 0,
            updates: 0,
            flips: Flips::AtOnce,
            faults: VecDeque::new(),
            packets: 0,
        }
    }

    fn fault(&mut self, key: &EntityKey, kind: Type) -> Option<Code> {
        let place = self.faults.iter().position(|(fits, _)| fits(key, kind))?;
        self.faults.remove(place).map(|(_, code)| code)
    }

    fn register(&self, entry: &proto::RegisterEntry) -> Result<proto::Entity, Refusal> {
        let slot = entry.index.as_ref().map_or(0, |index| index.index);
        let tags = self.entities.values().filter_map(|entity| self.program.tag_of(entity));
        let written = tags.filter(|tag| i64::from(tag.src_slot) == slot).map(|tag| tag.flip);
        let flip = match self.flips {
            Flips::AtOnce => written.max().unwrap_or(0),
            Flips::Never => 0,
            Flips::Unreadable => {
                let text = "Register reads are not supported yet";
                return Err(Refusal::new(Code::Unimplemented, text));
            }
        };
        let data = proto::P4Data { data: Some(proto::p4_data::Data::Bitstring(vec![flip])) };
        let entry = proto::RegisterEntry { data: Some(data), ..entry.clone() };
        Ok(proto::Entity { entity: Some(Kind::RegisterEntry(entry)) })
    }
}

/// Whether `entity` is among what `pattern` asks for.
fn fits(pattern: &proto::Entity, entity: &proto::Entity) -> bool {
    match (pattern.entity.as_ref(), entity.entity.as_ref()) {
        (Some(Kind::TableEntry(p)), Some(Kind::TableEntry(e))) => {
            let keyed = || key_of(pattern) == key_of(entity);
            let table = p.table_id == 0 || p.table_id == e.table_id;
            let wild = p.r#match.is_empty() && table && p.is_default_action == e.is_default_action;
            wild || keyed()
        }
        (Some(Kind::ActionProfileMember(p)), Some(Kind::ActionProfileMember(e))) => {
            p.member_id == 0 || p.member_id == e.member_id
        }
        (Some(Kind::ActionProfileGroup(p)), Some(Kind::ActionProfileGroup(e))) => {
            p.group_id == 0 || p.group_id == e.group_id
        }
        _ => false,
    }
}

impl Device for FakeDevice {
    fn device_id(&self) -> u64 {
        self.id
    }

    fn blank(&self) -> Self {
        Self::new(self.id, self.program.clone())
    }

    fn verify_pipeline(&self, _config: &ForwardingPipelineConfig) -> Result<(), Refusal> {
        Ok(())
    }

    fn load_pipeline(
        &mut self,
        _now: Time,
        _config: &ForwardingPipelineConfig,
    ) -> Result<(), Refusal> {
        self.entities.clear();
        self.loads += 1;
        Ok(())
    }

    fn write(&mut self, _now: Time, update: &Update) -> Result<(), Refusal> {
        self.updates += 1;
        let entity = update.entity.as_ref().unwrap();
        let (key, kind) = (key_of(entity).unwrap(), update.r#type());
        if let Some(code) = self.fault(&key, kind) {
            return Err(Refusal::new(code, "ordered by the test"));
        }
        let exists = self.entities.contains_key(&key) || matches!(key, EntityKey::Default { .. });
        match kind {
            Type::Insert if exists => Err(Refusal::new(Code::AlreadyExists, key.to_string())),
            Type::Modify | Type::Delete if !exists => {
                Err(Refusal::new(Code::NotFound, key.to_string()))
            }
            Type::Delete => {
                self.entities.remove(&key);
                Ok(())
            }
            _ => {
                self.entities.insert(key, normal_form(entity));
                Ok(())
            }
        }
    }

    fn read(
        &self,
        _now: Time,
        pattern: &proto::Entity,
        emit: &mut dyn FnMut(proto::Entity),
    ) -> Result<(), Refusal> {
        if let Some(Kind::RegisterEntry(entry)) = &pattern.entity {
            emit(self.register(entry)?);
            return Ok(());
        }
        let counts =
            matches!(&pattern.entity, Some(Kind::TableEntry(e)) if e.counter_data.is_some());
        for entity in self.entities.values().filter(|entity| fits(pattern, entity)) {
            let mut entity = entity.clone();
            if let (true, Some(Kind::TableEntry(entry))) = (counts, entity.entity.as_mut()) {
                let packet_count = self.packets;
                entry.counter_data = Some(proto::CounterData { byte_count: 0, packet_count });
            }
            emit(entity);
        }
        Ok(())
    }

    fn packet_out(&mut self, _now: Time, _packet: &proto::PacketOut) -> Result<(), Refusal> {
        Ok(())
    }

    fn digest_ack(&mut self, _now: Time, _ack: &proto::DigestListAck) {}

    fn take_outbox(&mut self) -> Vec<StreamMessageResponse> {
        Vec::new()
    }

    fn checkpoint(&self) -> Box<dyn Any + Send> {
        Box::new(self.entities.clone())
    }

    fn restore(&mut self, checkpoint: Box<dyn Any + Send>) {
        if let Ok(entities) = checkpoint.downcast() {
            self.entities = *entities;
        }
    }
}
