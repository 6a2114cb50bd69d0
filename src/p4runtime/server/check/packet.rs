//! Metadata of packet-outs (section 16.1).

use super::{Check, Checked, Profile, invalid};
use crate::p4runtime::proto::p4::v1::{PacketMetadata, PacketOut};

impl Check<'_> {
    /// Exactly one value per field of the `packet_out` header, each fitting; puts them into the header's order.
    pub(in crate::p4runtime::server) fn packet_out(&self, packet: &mut PacketOut) -> Checked {
        let header = self.index.headers().iter().find(|header| header.names.name == "packet_out");
        let fields = header.map_or(&[][..], |header| &header.fields);
        let mut given = std::mem::take(&mut packet.metadata);
        if let Some(unknown) = given
            .iter()
            .find(|metadata| fields.iter().all(|field| field.id != metadata.metadata_id))
        {
            return Err(invalid(format!("packet_out has no metadata {}", unknown.metadata_id)));
        }
        for field in fields {
            let mut values = given.iter_mut().filter(|metadata| metadata.metadata_id == field.id);
            let value = match (values.next(), values.next()) {
                (Some(metadata), None) => std::mem::take(&mut metadata.value),
                (Some(_), Some(_)) => {
                    return Err(invalid(format!("packet_out: '{}' is given twice", field.name)));
                }
                // PI fills in what is missing.
                (None, _) if self.profile == Profile::Bmv2 => vec![0],
                (None, _) => {
                    return Err(invalid(format!("packet_out: '{}' is missing", field.name)));
                }
            };
            let mut metadata = PacketMetadata { metadata_id: field.id, value };
            self.bits(|| format!("packet_out: '{}'", field.name), field.width, &mut metadata.value)
                // Section 16.6 names one code for all that does not match P4Info.
                .map_err(|refusal| invalid(refusal.message))?;
            packet.metadata.push(metadata);
        }
        Ok(())
    }
}
