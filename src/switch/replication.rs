//! Copies of packets: multicast groups and clone sessions. In: entries from the control plane. Out: (port, instance)
//! pairs. Must not know packets or messages.

use crate::id::PortNo;
use std::collections::BTreeMap;

/// Replicas per group or session: enough for every port of v1model with a few instances each.
pub const MAX_REPLICAS: usize = 4096;

/// Groups, and sessions, per switch: v1model's group ids have 16 bits, BMv2's sessions 15.
pub const MAX_GROUPS: usize = 1 << 15;

/// One copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Where it goes.
    pub port: PortNo,
    /// `egress_rid` of the copy.
    pub instance: u16,
    /// Ports to use, in order, while `port` is down.
    pub backups: Vec<(PortNo, u16)>,
}

/// A clone session: what to do with each clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The copies.
    pub replicas: Vec<Replica>,
    /// The clone's queue.
    pub queue: u8,
    /// Bytes to keep; `None` keeps all.
    pub truncate: Option<u32>,
}

/// All groups and sessions. Survives nothing: a new program starts without.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    /// Multicast groups.
    pub groups: BTreeMap<u32, Vec<Replica>>,
    /// Clone sessions.
    pub sessions: BTreeMap<u32, Session>,
}

impl Replica {
    /// Port and instance of this copy now: the first that is up, or the wanted one if none is.
    #[must_use]
    pub fn target(&self, up: impl Fn(PortNo) -> bool) -> (PortNo, u16) {
        if up(self.port) {
            return (self.port, self.instance);
        }
        let backup = self.backups.iter().find(|(port, _)| up(*port));
        backup.copied().unwrap_or((self.port, self.instance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_backup_that_is_up_stands_in() {
        let replica =
            Replica { port: PortNo(1), instance: 7, backups: vec![(PortNo(2), 8), (PortNo(3), 9)] };
        assert_eq!(replica.target(|_| true), (PortNo(1), 7));
        assert_eq!(replica.target(|port| port == PortNo(3)), (PortNo(3), 9));
        assert_eq!(replica.target(|_| false), (PortNo(1), 7));
    }
}
