//! What the switch says by itself and what the controller sends as packets. In: bytes on the CPU port, digest samples,
//! times. Out: `PacketIn`, `DigestList`, `IdleTimeoutNotification`; bytes for `PacketOut`. Must not know streams or
//! clients.

use super::names::HeaderField;
use super::profiles::check_presence;
use super::{Control, Done, unknown_id};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec;
use crate::p4runtime::proto::p4::config::v1::p4_new_type_spec::Representation;
use crate::p4runtime::proto::p4::config::v1::{P4DataTypeSpec, P4TypeInfo};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update as Said;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    DigestEntry, DigestList, DigestListAck, IdleTimeoutNotification, P4Data, P4StructLike,
    PacketIn, PacketMetadata, PacketOut, StreamMessageResponse, digest_entry,
};
use crate::p4runtime::value;
use crate::time::{Span, Time};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Samples in one list, whatever the controller asks for: BMv2's own limit.
pub const MAX_LIST: usize = 1024;

/// Lists of one digest without an acknowledgement; further samples are lost and counted until one comes or times out.
pub const MAX_UNACKED: usize = 64;

/// How often entries are looked at for their age (BMv2: 1 s).
pub const SWEEP: Span = Span(1_000_000_000);

/// How long BMv2 does not report an entry again that stays idle. The specification wants the entry's own time.
const BMV2_REPEAT_NS: u64 = 2_000_000_000;

/// Deepest nesting of a digest's type that is followed.
const MAX_DEPTH: usize = 16;

type Emit<'a> = &'a mut dyn FnMut(Kinds);

/// One digest that is switched on.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    config: digest_entry::Config,
    /// The controller left the config out; it then reads none.
    unset: bool,
    /// Samples of the list to be sent next, each by its values.
    list: Vec<(Vec<u8>, P4Data)>,
    /// When the first of them came.
    since: Time,
    last_list: u64,
    /// Lists on their way: when sent, and their samples.
    unacked: BTreeMap<u64, (Time, Vec<Vec<u8>>)>,
    /// Samples in the list or on their way, which are not sent again.
    known: FxHashMap<Vec<u8>, ()>,
}

/// All digests that are switched on, by id.
#[derive(Clone, Debug, Default)]
pub struct Digests {
    on: BTreeMap<u32, Digest>,
}

fn say(update: Said) -> StreamMessageResponse {
    StreamMessageResponse { update: Some(update) }
}

impl Digest {
    fn size(&self) -> usize {
        match self.config.max_list_size {
            0 => MAX_LIST,
            size => (size.unsigned_abs() as usize).min(MAX_LIST),
        }
    }

    /// When the list is sent even if it is not full.
    fn due(&self) -> Option<Time> {
        let wait = Span(self.config.max_timeout_ns.unsigned_abs());
        (!self.list.is_empty()).then(|| self.since + wait)
    }

    fn forget_old(&mut self, now: Time) {
        let wait = Span(self.config.ack_timeout_ns.unsigned_abs());
        while let Some(oldest) = self.unacked.first_entry() {
            if oldest.get().0 + wait > now {
                break;
            }
            for sample in oldest.remove().1 {
                self.known.remove(&sample);
            }
        }
    }

    /// Takes a sample; false if it is lost because too many lists have no acknowledgement. A known sample is no loss.
    fn take(&mut self, now: Time, name: Vec<u8>, data: P4Data) -> bool {
        self.forget_old(now);
        if self.known.contains_key(&name) {
            return true;
        }
        if self.unacked.len() >= MAX_UNACKED {
            return false;
        }
        if self.list.is_empty() {
            self.since = now;
        }
        self.known.insert(name.clone(), ());
        self.list.push((name, data));
        true
    }

    fn send(&mut self, now: Time, timestamp: i64, id: u32) -> StreamMessageResponse {
        self.last_list += 1;
        let (names, data) = std::mem::take(&mut self.list).into_iter().unzip();
        if self.config.ack_timeout_ns > 0 {
            self.unacked.insert(self.last_list, (now, names));
        } else {
            // Without a time to wait for acknowledgements nothing is held back.
            let names: Vec<Vec<u8>> = names;
            names.iter().for_each(|name| {
                self.known.remove(name);
            });
        }
        let list = DigestList { digest_id: id, list_id: self.last_list, data, timestamp };
        say(Said::Digest(list))
    }
}

impl Control {
    pub(crate) fn write_digest(&mut self, kind: Type, entry: &DigestEntry) -> Done {
        let id = entry.digest_id;
        if !self.names.digests.contains_key(&id) {
            return Err(unknown_id("digest", id));
        }
        check_presence(kind, self.digests.on.contains_key(&id), &format!("digest {id}"))?;
        if kind == Type::Delete {
            self.digests.on.remove(&id);
            return Ok(());
        }
        let digest = self.digests.on.entry(id).or_default();
        digest.unset = entry.config.is_none();
        digest.config = entry.config.unwrap_or_default();
        Ok(())
    }

    pub(crate) fn read_digests(&self, asked: &DigestEntry, emit: Emit<'_>) -> Done {
        if asked.digest_id != 0 && !self.names.digests.contains_key(&asked.digest_id) {
            return Err(unknown_id("digest", asked.digest_id));
        }
        for (id, digest) in &self.digests.on {
            if asked.digest_id == 0 || asked.digest_id == *id {
                let config = (!digest.unset).then_some(digest.config);
                emit(Kinds::DigestEntry(DigestEntry { digest_id: *id, config }));
            }
        }
        Ok(())
    }

    /// Takes the values of one sample, in the order of the learn list at position `list` of the program. A digest that
    /// is switched off takes nothing. Returns false if the sample was lost.
    pub fn sample(
        &mut self,
        now: Time,
        local_ns: u64,
        list: usize,
        values: &[Vec<u8>],
        outbox: &mut Vec<StreamMessageResponse>,
    ) -> bool {
        let found = self.names.digests.iter().find(|(_, at)| **at == list).map(|(id, _)| *id);
        let Some(id) = found else { return true };
        let index = std::sync::Arc::clone(&self.index);
        let timestamp = self.timestamp(local_ns);
        let Some(digest) = self.digests.on.get_mut(&id) else { return true };
        let mut name = Vec::new();
        for value in values {
            name.extend_from_slice(&(value.len() as u32).to_be_bytes());
            name.extend_from_slice(value);
        }
        if !digest.take(now, name, typed(&index, id, values)) {
            return false;
        }
        if digest.list.len() >= digest.size() || digest.config.max_timeout_ns == 0 {
            outbox.extend((!digest.list.is_empty()).then(|| digest.send(now, timestamp, id)));
        }
        true
    }

    /// Sends lists whose time has come.
    pub fn send_digests(
        &mut self,
        now: Time,
        local_ns: u64,
        outbox: &mut Vec<StreamMessageResponse>,
    ) {
        let timestamp = self.timestamp(local_ns);
        for (id, digest) in &mut self.digests.on {
            if digest.due().is_some_and(|due| due <= now) {
                outbox.push(digest.send(now, timestamp, *id));
            }
        }
    }

    /// When the next list must be sent.
    #[must_use]
    pub fn digests_due(&self) -> Option<Time> {
        self.digests.on.values().filter_map(Digest::due).min()
    }

    /// The controller has a list.
    pub fn acknowledge(&mut self, ack: &DigestListAck) {
        let Some(digest) = self.digests.on.get_mut(&ack.digest_id) else { return };
        if let Some((_, samples)) = digest.unacked.remove(&ack.list_id) {
            for sample in samples {
                digest.known.remove(&sample);
            }
        }
    }

    /// A time of the switch's clock as messages carry it: nanoseconds since the Epoch (section 16.4).
    fn timestamp(&self, local_ns: u64) -> i64 {
        i64::try_from(local_ns.saturating_add(self.epoch_ns)).unwrap_or(i64::MAX)
    }

    /// True when some entry ages.
    #[must_use]
    pub fn ages(&self) -> bool {
        let tables = self.memory.program().tables.iter().zip(&self.memory.tables);
        tables
            .filter(|(declared, _)| declared.idle_timeout)
            .any(|(_, table)| table.iter().any(|(_, entry)| entry.idle_timeout_ns > 0))
    }

    /// Looks for entries that were not hit for their time, and says so.
    pub fn sweep(&mut self, local_ns: u64, outbox: &mut Vec<StreamMessageResponse>) {
        let now_us = local_ns / 1000;
        let names = std::sync::Arc::clone(&self.names);
        let mut idle = Vec::new();
        for names in names.tables.values() {
            let mut found = Vec::new();
            for (id, entry) in self.memory.tables[names.no.index()].iter() {
                let age_ns = now_us.saturating_sub(entry.last_hit_us).saturating_mul(1000);
                let told = entry.notified_us.filter(|told| *told >= entry.last_hit_us);
                let limit = entry.idle_timeout_ns.unsigned_abs();
                let again = if self.mimic_bmv2 { BMV2_REPEAT_NS } else { limit };
                let since = |told: u64| now_us.saturating_sub(told).saturating_mul(1000);
                let quiet = told.is_none_or(|told| since(told) >= again);
                if entry.idle_timeout_ns > 0 && age_ns >= limit && quiet {
                    idle.push(self.named(names, entry));
                    found.push(id);
                }
            }
            for id in found {
                if let Some(entry) = self.memory.tables[names.no.index()].get_mut(id) {
                    entry.notified_us = Some(now_us);
                }
            }
        }
        if !idle.is_empty() {
            let timestamp = self.timestamp(local_ns);
            let message = IdleTimeoutNotification { table_entry: idle, timestamp };
            outbox.push(say(Said::IdleTimeoutNotification(message)));
        }
    }

    /// A packet that reached the CPU port as the controller sees it: the `packet_in` header taken apart. A packet
    /// shorter than the header has no metadata.
    #[must_use]
    pub fn packet_in(&self, bytes: &[u8]) -> StreamMessageResponse {
        let fields = &self.names.packet_in;
        let bits: usize = fields.iter().map(|field| field.width as usize).sum();
        let header = bits.div_ceil(8);
        if bytes.len() < header {
            let packet = PacketIn { payload: bytes.to_vec(), metadata: Vec::new() };
            return say(Said::Packet(packet));
        }
        let mut at = 0;
        let mut metadata = Vec::with_capacity(fields.len());
        for field in fields {
            let value = read_bits(bytes, at, field.width as usize);
            at += field.width as usize;
            if !field.padding {
                metadata.push(PacketMetadata {
                    metadata_id: field.id,
                    value: value::canonical(&value).to_vec(),
                });
            }
        }
        say(Said::Packet(PacketIn { payload: bytes[header..].to_vec(), metadata }))
    }

    /// The bytes that a packet-out puts on the CPU port: the `packet_out` header, then the payload. Fields that are
    /// not given are 0.
    #[must_use]
    pub fn packet_out(&self, packet: &PacketOut) -> Vec<u8> {
        let fields = &self.names.packet_out;
        let bits: usize = fields.iter().map(|field| field.width as usize).sum();
        let mut bytes = vec![0; bits.div_ceil(8)];
        let mut at = 0;
        for field in fields {
            let given = packet.metadata.iter().find(|m| m.metadata_id == field.id);
            if let Some(given) = given.filter(|_| !field.padding) {
                write_bits(&mut bytes, at, field, &given.value);
            }
            at += field.width as usize;
        }
        bytes.extend_from_slice(&packet.payload);
        bytes
    }
}

/// `width` bits from bit `at`, counted from the top of the first byte, as right-aligned bytes.
fn read_bits(bytes: &[u8], at: usize, width: usize) -> Vec<u8> {
    let mut out = vec![0; width.div_ceil(8).max(1)];
    let length = out.len();
    for i in 0..width {
        let from = at + width - 1 - i;
        let bit = bytes.get(from / 8).map_or(0, |byte| byte >> (7 - from % 8) & 1);
        out[length - 1 - i / 8] |= bit << (i % 8);
    }
    out
}

fn write_bits(bytes: &mut [u8], at: usize, field: &HeaderField, value: &[u8]) {
    for i in 0..field.width as usize {
        let from_end = i / 8;
        if from_end >= value.len() {
            break;
        }
        let bit = value[value.len() - 1 - from_end] >> (i % 8) & 1;
        let to = at + field.width as usize - 1 - i;
        if let Some(byte) = bytes.get_mut(to / 8) {
            *byte |= bit << (7 - to % 8);
        }
    }
}

/// The values of a sample in the shape that P4Info gives the digest's type.
fn typed(index: &Index, digest: u32, values: &[Vec<u8>]) -> P4Data {
    let empty = P4TypeInfo::default();
    let types = index.info().type_info.as_ref().unwrap_or(&empty);
    let mut rest = values.iter().map(|value| value::canonical(value).to_vec());
    let spec = index.digest_by_id(digest).map(|digest| &digest.sample);
    match spec {
        Some(spec) => shape(types, spec, &mut rest, 0),
        None => P4Data::default(),
    }
}

fn shape(
    types: &P4TypeInfo,
    spec: &P4DataTypeSpec,
    rest: &mut dyn Iterator<Item = Vec<u8>>,
    depth: usize,
) -> P4Data {
    let members = |specs: Vec<&P4DataTypeSpec>, rest: &mut dyn Iterator<Item = Vec<u8>>| {
        let members = specs.into_iter().map(|spec| shape(types, spec, rest, depth + 1)).collect();
        P4StructLike { members }
    };
    let data = match spec.type_spec.as_ref().filter(|_| depth < MAX_DEPTH) {
        Some(TypeSpec::Struct(name)) => {
            let found = types.structs.get(&name.name).map(|spec| &spec.members[..]).unwrap_or(&[]);
            let specs = found.iter().filter_map(|member| member.type_spec.as_ref()).collect();
            Data::Struct(members(specs, rest))
        }
        Some(TypeSpec::Tuple(tuple)) => Data::Tuple(members(tuple.members.iter().collect(), rest)),
        Some(TypeSpec::Bool(_)) => {
            Data::Bool(rest.next().is_some_and(|value| value.iter().any(|byte| *byte != 0)))
        }
        Some(TypeSpec::SerializableEnum(_)) => Data::EnumValue(rest.next().unwrap_or_default()),
        Some(TypeSpec::NewType(name)) => {
            let new = types.new_types.get(&name.name).and_then(|new| new.representation.as_ref());
            match new {
                Some(Representation::OriginalType(spec)) => {
                    return shape(types, spec, rest, depth + 1);
                }
                _ => Data::Bitstring(rest.next().unwrap_or_default()),
            }
        }
        _ => Data::Bitstring(rest.next().unwrap_or_default()),
    };
    P4Data { data: Some(data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_read_as_they_were_written_at_any_place() {
        for (at, width, value) in [(0, 9, 0x1ff_u128), (9, 7, 0x55), (3, 16, 0xbeef), (5, 32, 7)] {
            let mut bytes = vec![0; 8];
            let field = HeaderField { id: 1, width, padding: false };
            write_bits(&mut bytes, at, &field, &value::encode(value));
            assert_eq!(value::decode(&read_bits(&bytes, at, width as usize)), Some(value));
            let set: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(set, value.count_ones(), "nothing else is written");
        }
    }

    fn digest(list: i32, wait: i64, ack: i64) -> Digest {
        let config =
            digest_entry::Config { max_timeout_ns: wait, max_list_size: list, ack_timeout_ns: ack };
        Digest { config, ..Digest::default() }
    }

    #[test]
    fn a_sample_on_its_way_is_not_sent_again_until_acknowledged_or_late() {
        let mut d = digest(2, 100, 1000);
        assert!(d.take(Time(0), vec![1], P4Data::default()));
        assert!(d.take(Time(5), vec![1], P4Data::default()));
        assert_eq!((d.list.len(), d.due()), (1, Some(Time(100))));
        d.send(Time(100), 0, 7);
        assert!(d.take(Time(200), vec![1], P4Data::default()));
        assert!(d.list.is_empty(), "it is on its way");
        assert!(d.take(Time(1100), vec![1], P4Data::default()));
        assert_eq!(d.list.len(), 1, "the acknowledgement is late");
    }

    #[test]
    fn samples_are_lost_when_no_list_is_acknowledged() {
        let mut d = digest(1, 0, 1_000_000);
        for i in 0..MAX_UNACKED as u8 {
            assert!(d.take(Time(0), vec![i], P4Data::default()));
            d.send(Time(0), 0, 1);
        }
        assert!(!d.take(Time(1), vec![200], P4Data::default()));
        assert!(d.take(Time(1_000_000), vec![200], P4Data::default()));
    }
}
