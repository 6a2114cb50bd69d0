//! Multicast groups and clone sessions. In: `PacketReplicationEngineEntry`. Out: the same, read back as written. Must
//! not know packets.

use super::profiles::check_presence;
use super::{Control, Done, refuse};
use crate::id::PortNo;
use crate::p4runtime::device::Refusal;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Copies;
use crate::p4runtime::proto::p4::v1::replica::PortKind;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    CloneSessionEntry, MulticastGroupEntry, PacketReplicationEngineEntry, Replica as Wire,
};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;
use crate::switch::replication::{MAX_GROUPS, MAX_REPLICAS, Replica, Session};
use crate::switch::traffic::{MAX_PORTS, MAX_QUEUES};

type Emit<'a> = &'a mut dyn FnMut(Kinds);

/// A port number in bytes; `None` if empty or beyond the ports that the switch has.
pub(crate) fn port_no(bytes: &[u8]) -> Option<PortNo> {
    let port = value::decode(bytes).filter(|_| !bytes.is_empty())?;
    u16::try_from(port).ok().filter(|port| usize::from(*port) < MAX_PORTS).map(PortNo)
}

/// The port that a member watches, none for an empty string (section 9.2.2).
pub(crate) fn watched(what: &str, bytes: &[u8]) -> Result<Option<PortNo>, Refusal> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let Some(port) = port_no(bytes) else {
        let text =
            format!("'{what}': the watch port does not exist; ports are 0 to {}", MAX_PORTS - 1);
        return refuse(Code::InvalidArgument, text);
    };
    Ok(Some(port))
}

impl Control {
    #[allow(deprecated, reason = "old controllers name ports by number")]
    fn replicas(&self, what: &str, wire: &[Wire]) -> Result<Vec<Replica>, Refusal> {
        if wire.len() > MAX_REPLICAS {
            return self.full(format!("{what}: more than {MAX_REPLICAS} replicas"));
        }
        let bad_port = || {
            let text = format!(
                "{what}: a replica's port is missing or does not exist; ports are 0 to {}",
                MAX_PORTS - 1
            );
            Refusal::new(Code::InvalidArgument, text)
        };
        let instance = |wanted: u32| {
            u16::try_from(wanted).map_err(|_| {
                let text = format!("{what}: instance {wanted} is beyond 16 bits");
                Refusal::new(Code::InvalidArgument, text)
            })
        };
        let mut replicas = Vec::with_capacity(wire.len());
        for one in wire {
            let port = match &one.port_kind {
                Some(PortKind::Port(bytes)) => port_no(bytes),
                Some(PortKind::EgressPort(port)) => u16::try_from(*port).ok().map(PortNo),
                None => None,
            };
            let mut backups = Vec::new();
            for backup in &one.backup_replicas {
                let port = port_no(&backup.port).ok_or_else(bad_port)?;
                backups.push((port, instance(backup.instance)?));
            }
            let port = port.ok_or_else(bad_port)?;
            replicas.push(Replica { port, instance: instance(one.instance)?, backups });
        }
        Ok(replicas)
    }

    pub(crate) fn write_copies(
        &mut self,
        kind: Type,
        entry: &PacketReplicationEngineEntry,
    ) -> Done {
        match &entry.r#type {
            Some(Copies::MulticastGroupEntry(group)) => self.write_multicast(kind, group),
            Some(Copies::CloneSessionEntry(session)) => self.write_session(kind, session),
            None => refuse(Code::InvalidArgument, "neither a multicast group nor a clone session"),
        }
    }

    fn write_multicast(&mut self, kind: Type, group: &MulticastGroupEntry) -> Done {
        let id = group.multicast_group_id;
        let what = format!("multicast group {id}");
        check_presence(kind, self.groups.contains_key(&id), &what)?;
        if kind == Type::Delete {
            self.groups.remove(&id);
            self.replication.groups.remove(&id);
            return Ok(());
        }
        if kind == Type::Insert && self.groups.len() >= MAX_GROUPS {
            return self.full(format!("there are {MAX_GROUPS} multicast groups"));
        }
        let replicas = self.replicas(&what, &group.replicas)?;
        self.replication.groups.insert(id, replicas);
        self.groups.insert(id, group.clone());
        Ok(())
    }

    fn write_session(&mut self, kind: Type, session: &CloneSessionEntry) -> Done {
        let id = session.session_id;
        let what = format!("clone session {id}");
        check_presence(kind, self.sessions.contains_key(&id), &what)?;
        if kind == Type::Delete {
            self.sessions.remove(&id);
            self.replication.sessions.remove(&id);
            return Ok(());
        }
        if kind == Type::Insert && self.sessions.len() >= MAX_GROUPS {
            return self.full(format!("there are {MAX_GROUPS} clone sessions"));
        }
        if self.mimic_bmv2 && session.class_of_service != 0 {
            let text = "Class of service for clone session is not supported";
            return refuse(Code::Unimplemented, text);
        }
        if self.mimic_bmv2 && session.packet_length_bytes != 0 {
            return refuse(Code::Unknown, "Truncation of clones is not supported");
        }
        let queue = u8::try_from(session.class_of_service).ok().filter(|queue| *queue < MAX_QUEUES);
        let Some(queue) = queue else {
            let text = format!(
                "{what}: class of service {} names no queue; queues are 0 to {}",
                session.class_of_service,
                MAX_QUEUES - 1
            );
            return refuse(Code::InvalidArgument, text);
        };
        let replicas = self.replicas(&what, &session.replicas)?;
        let truncate = u32::try_from(session.packet_length_bytes).ok().filter(|bytes| *bytes > 0);
        self.replication.sessions.insert(id, Session { replicas, queue, truncate });
        self.sessions.insert(id, session.clone());
        Ok(())
    }

    pub(crate) fn read_copies(&self, asked: &PacketReplicationEngineEntry, emit: Emit<'_>) -> Done {
        let mut send = |copies| {
            let entry = PacketReplicationEngineEntry { r#type: Some(copies) };
            emit(Kinds::PacketReplicationEngineEntry(entry));
        };
        let groups = |wanted: u32| {
            let fits = move |(id, _): &(&u32, &MulticastGroupEntry)| wanted == 0 || **id == wanted;
            self.groups.iter().filter(fits).map(|(_, g)| Copies::MulticastGroupEntry(g.clone()))
        };
        let sessions = |wanted: u32| {
            let fits = move |(id, _): &(&u32, &CloneSessionEntry)| wanted == 0 || **id == wanted;
            self.sessions.iter().filter(fits).map(|(_, s)| Copies::CloneSessionEntry(s.clone()))
        };
        match &asked.r#type {
            Some(Copies::MulticastGroupEntry(g)) => {
                groups(g.multicast_group_id).for_each(&mut send)
            }
            Some(Copies::CloneSessionEntry(s)) => sessions(s.session_id).for_each(&mut send),
            None => {
                groups(0).for_each(&mut send);
                sessions(0).for_each(&mut send);
            }
        }
        Ok(())
    }
}
