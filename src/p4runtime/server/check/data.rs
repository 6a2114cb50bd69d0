//! Values of registers against their type in P4Info (section 8.4).

use super::{Check, Checked, invalid};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as BitType;
use crate::p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec;
use crate::p4runtime::proto::p4::config::v1::p4_new_type_spec::Representation;
use crate::p4runtime::proto::p4::config::v1::p4_new_type_translation::SdnType;
use crate::p4runtime::proto::p4::config::v1::{
    P4BitTypeSpec, P4BitstringLikeTypeSpec, P4DataTypeSpec, P4TypeInfo,
};
use crate::p4runtime::proto::p4::v1::P4Data;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;

/// Deepest nesting of types followed. P4 has no recursive types; a P4Info could claim one.
const DEPTH_MAX: usize = 16;

impl Check<'_> {
    /// A value has the type and its numbers fit; makes them canonical.
    pub(super) fn data(&self, what: &str, spec: &P4DataTypeSpec, data: &mut P4Data) -> Checked {
        self.typed(what, spec, data, 0)
    }

    fn typed(&self, what: &str, spec: &P4DataTypeSpec, data: &mut P4Data, depth: usize) -> Checked {
        if depth > DEPTH_MAX {
            return Err(invalid(format!("{what}: its type is nested more than {DEPTH_MAX} deep")));
        }
        let mismatch = || invalid(format!("{what}: the value is not of the type in P4Info"));
        let (Some(spec), Some(data)) = (spec.type_spec.as_ref(), data.data.as_mut()) else {
            return Err(mismatch());
        };
        let types = types(self.index);
        match (spec, data) {
            (TypeSpec::Bitstring(spec), data) => self.bitstring(what, spec, data),
            (TypeSpec::Bool(_), Data::Bool(_)) => Ok(()),
            (TypeSpec::Tuple(tuple), Data::Tuple(members)) => {
                self.members(what, tuple.members.iter(), &mut members.members, depth)
            }
            (TypeSpec::Struct(name), Data::Struct(members)) => {
                let spec = types.structs.get(&name.name).ok_or_else(mismatch)?;
                let specs = spec.members.iter().filter_map(|member| member.type_spec.as_ref());
                self.members(what, specs, &mut members.members, depth)
            }
            (TypeSpec::SerializableEnum(name), Data::EnumValue(bytes)) => {
                let spec = types.serializable_enums.get(&name.name).ok_or_else(mismatch)?;
                let width = spec.underlying_type.as_ref().map_or(0, |bits| bits.bitwidth);
                self.bits(|| what.to_owned(), width.unsigned_abs(), bytes)
            }
            (TypeSpec::Enum(name), Data::Enum(member)) => {
                let spec = types.enums.get(&name.name).ok_or_else(mismatch)?;
                let known = spec.members.iter().any(|candidate| candidate.name == *member);
                if known { Ok(()) } else { Err(mismatch()) }
            }
            (TypeSpec::Error(_), Data::Error(member)) => {
                let known = types.error.as_ref().is_some_and(|spec| spec.members.contains(member));
                if known { Ok(()) } else { Err(mismatch()) }
            }
            (TypeSpec::NewType(name), data) => {
                let spec = types.new_types.get(&name.name).ok_or_else(mismatch)?;
                self.new_type(what, spec.representation.as_ref(), data, depth)
            }
            (TypeSpec::Header(name), Data::Header(header)) => {
                let spec = types.headers.get(&name.name).ok_or_else(mismatch)?;
                let wanted = if header.is_valid { spec.members.len() } else { 0 };
                if header.bitstrings.len() != wanted {
                    return Err(mismatch());
                }
                for (bytes, member) in header.bitstrings.iter_mut().zip(&spec.members) {
                    let spec = member.type_spec.as_ref().ok_or_else(mismatch)?;
                    let mut field = Data::Bitstring(std::mem::take(bytes));
                    self.bitstring(what, spec, &mut field)?;
                    if let Data::Bitstring(checked) = field {
                        *bytes = checked;
                    }
                }
                Ok(())
            }
            // Registers of unions and stacks exist in no architecture that this server runs.
            _ => Err(mismatch()),
        }
    }

    fn members<'t>(
        &self,
        what: &str,
        specs: impl Iterator<Item = &'t P4DataTypeSpec>,
        members: &mut [P4Data],
        depth: usize,
    ) -> Checked {
        let specs: Vec<_> = specs.collect();
        if specs.len() != members.len() {
            let (wanted, given) = (specs.len(), members.len());
            return Err(invalid(format!(
                "{what}: the type has {wanted} members, the value {given}"
            )));
        }
        for (spec, member) in specs.into_iter().zip(members) {
            self.typed(what, spec, member, depth + 1)?;
        }
        Ok(())
    }

    fn new_type(
        &self,
        what: &str,
        representation: Option<&Representation>,
        data: &mut Data,
        depth: usize,
    ) -> Checked {
        match representation {
            Some(Representation::OriginalType(spec)) => {
                let mut inner = P4Data { data: Some(data.clone()) };
                self.typed(what, spec, &mut inner, depth + 1)?;
                if let Some(checked) = inner.data {
                    *data = checked;
                }
                Ok(())
            }
            Some(Representation::TranslatedType(translation)) => {
                let width = match translation.sdn_type {
                    Some(SdnType::SdnBitwidth(bits)) => bits,
                    _ => 0,
                };
                let bit = P4BitTypeSpec { bitwidth: width };
                let spec = P4BitstringLikeTypeSpec {
                    type_spec: Some(BitType::Bit(bit)),
                    ..P4BitstringLikeTypeSpec::default()
                };
                self.bitstring(what, &spec, data)
            }
            None => Err(invalid(format!("{what}: its type is not in P4Info"))),
        }
    }

    fn bitstring(&self, what: &str, spec: &P4BitstringLikeTypeSpec, data: &mut Data) -> Checked {
        match (spec.type_spec.as_ref(), data) {
            (Some(BitType::Bit(bit)), Data::Bitstring(bytes)) => {
                self.bits(|| what.to_owned(), bit.bitwidth.unsigned_abs(), bytes)
            }
            (Some(BitType::Int(int)), Data::Bitstring(bytes)) => {
                let (width, needed) =
                    (int.bitwidth.unsigned_abs() as usize, value::bit_length_signed(bytes));
                if needed == 0 || needed > width {
                    let text =
                        format!("{what}: the value needs {needed} bits, the width is {width}");
                    return Err(Refusal::new(self.too_wide(), text));
                }
                let copies = bytes.len() - value::canonical_signed(bytes).len();
                bytes.drain(..copies);
                Ok(())
            }
            (Some(BitType::Varbit(spec)), Data::Varbit(varbit)) => {
                if !(0..=spec.max_bitwidth).contains(&varbit.bitwidth) {
                    let (now, most) = (varbit.bitwidth, spec.max_bitwidth);
                    let text = format!("{what}: {now} bits do not fit a varbit<{most}>");
                    return Err(Refusal::new(Code::OutOfRange, text));
                }
                self.bits(|| what.to_owned(), varbit.bitwidth.unsigned_abs(), &mut varbit.bitstring)
            }
            _ => Err(invalid(format!("{what}: the value is not of the type in P4Info"))),
        }
    }
}

/// The named types; a program without any has none.
fn types(index: &Index) -> &P4TypeInfo {
    static NONE: std::sync::LazyLock<P4TypeInfo> = std::sync::LazyLock::new(P4TypeInfo::default);
    index.info().type_info.as_ref().unwrap_or(&NONE)
}
