//! Newtype identifiers. In: nothing. Out: small copyable ids that cannot be mixed up.
//! Must not know what it names beyond the name.
//!
//! Every id is a dense index into the vector that owns the named thing, so lookups are array accesses and
//! iteration order is the order of creation (never hash order).

use serde::{Deserialize, Serialize};

macro_rules! index_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into the vector that owns the named thing.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Saturates at `u32::MAX`; every owner refuses to grow that far.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

index_id!(
    /// A node of the topology. Switches come first: `NodeId(i)` with `i < switch_count` is `SwitchId(i)`,
    /// the rest are hosts: `NodeId(switch_count + h)` is `HostId(h)`.
    NodeId
);
index_id!(
    /// A switch, counted from 0 in node order.
    SwitchId
);
index_id!(
    /// A host (one NIC), counted from 0 in node order.
    HostId
);
index_id!(
    /// One direction of a cable.
    LinkId
);
index_id!(
    /// A training job, in order of submission.
    JobId
);
index_id!(
    /// One ring edge of one channel of one job.
    FlowId
);
index_id!(
    /// A forwarding tree towards a sink leaf; with the sink leaf it makes a label (docs/dataplane).
    TreeId
);

/// A switch port number as the data plane sees it (9 bits on v1model: 0..=511).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PortNo(pub u16);

impl std::fmt::Display for PortNo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
