//! The fields of every message of the protocol, by name.
//! In: the built-in descriptor set. Out: lookups. Must not know texts.

use crate::p4runtime::proto::DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) number: i32,
    pub(super) kind: Type,
    pub(super) label: Label,
    /// Full name of the message or enum, without the leading dot.
    pub(super) type_name: String,
    /// Index of the oneof it belongs to.
    pub(super) oneof: Option<i32>,
}

/// A message type.
#[derive(Debug)]
pub(super) struct MessageType {
    /// Full name.
    pub(super) name: String,
    /// By name as written in the .proto file.
    pub(super) fields: BTreeMap<String, Field>,
}

/// All message and enum types by full name.
#[derive(Debug, Default)]
pub(super) struct Schema {
    messages: BTreeMap<String, MessageType>,
    enums: BTreeMap<String, Vec<(String, i32)>>,
}

static BUILT_IN: LazyLock<Schema> = LazyLock::new(|| {
    // The set was written by our own build; if it did not decode, nothing would be known and every text refused.
    let set = FileDescriptorSet::decode(DESCRIPTOR_SET).unwrap_or_default();
    let mut schema = Schema::default();
    for file in &set.file {
        let package = file.package();
        file.message_type.iter().for_each(|message| schema.add_message(package, message));
        file.enum_type.iter().for_each(|values| schema.add_enum(package, values));
    }
    schema
});

impl Schema {
    /// The schema of P4Runtime.
    pub(super) fn built_in() -> &'static Self {
        &BUILT_IN
    }

    pub(super) fn message(&self, name: &str) -> Option<&MessageType> {
        self.messages.get(name)
    }

    pub(super) fn enumeration(&self, name: &str) -> Option<&[(String, i32)]> {
        self.enums.get(name).map(Vec::as_slice)
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message.nested_type.iter().for_each(|nested| self.add_message(&name, nested));
        message.enum_type.iter().for_each(|values| self.add_enum(&name, values));
        let fields = message.field.iter().map(|field| (field.name().to_owned(), convert(field)));
        let fields = fields.collect();
        self.messages.insert(name.clone(), MessageType { name, fields });
    }

    fn add_enum(&mut self, scope: &str, values: &EnumDescriptorProto) {
        let list = values.value.iter().map(|value| (value.name().to_owned(), value.number()));
        self.enums.insert(format!("{scope}.{}", values.name()), list.collect());
    }
}

fn convert(field: &FieldDescriptorProto) -> Field {
    Field {
        name: field.name().to_owned(),
        number: field.number(),
        kind: field.r#type(),
        label: field.label(),
        type_name: field.type_name().trim_start_matches('.').to_owned(),
        oneof: field.oneof_index,
    }
}
