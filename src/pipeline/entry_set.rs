//! The entries that a switch should hold, as a pure function of topology, candidate paths, labels and flows.
//!
//! In: the fabric, one switch, the legs of flows that enter at it. Out: an [`EntrySet`]: every wanted entity by key,
//! with its place in the order of writing and with what must be installed before it. Must not know jobs, or what the
//! switch holds now.

use super::classify;
use super::identity::{EntityKey, key_of, normal_form};
use super::labels::{Label, Labels};
use super::{Program, arp, host, path_forward, port_role, route, switch_config, traffic_class};
use crate::id::{HostId, PortNo, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::time::Span;
use crate::topology::{FlowKey, LinkSet, Paths, Topology};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Order of writing on one switch: create in this order, delete in reverse (design: control, "Order and barriers").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Members of action profiles.
    Member,
    /// Groups of members.
    Group,
    /// Entries that lean on members and groups, or on nothing.
    Entry,
    /// Default entries.
    Default,
    /// `path_forward` entries, by number of hops to the sink leaf.
    Label(u8),
    /// `classify` entries.
    Flow,
}

/// What must be installed before an entity is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// An entity of the same switch.
    Here(EntityKey),
    /// The `path_forward` entry of a label on the next switch towards its sink.
    Label {
        /// The next switch.
        switch: SwitchId,
        /// The label.
        label: Label,
    },
    /// The `path_forward` entries of a label on every switch from this one to its sink.
    Walk {
        /// The label.
        label: Label,
    },
}

/// An entity that a switch should hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// In normal form.
    pub entity: proto::Entity,
    /// Its place in the order of writing.
    pub level: Level,
    /// What must be there first.
    pub needs: Vec<Need>,
}

/// Everything that one switch should hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntrySet {
    entities: BTreeMap<EntityKey, Wanted>,
}

/// Settings of the program that are not decided per flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// Ownership mark of every entry: `ringpath/` and the cluster's name.
    pub mark: String,
    /// Silence of a source that counts as idle.
    pub idle_gap: Span,
    /// Silence after which a flow may change path or queue without reordering.
    pub flip_gap: Span,
    /// Queues of untagged traffic: (DSCP, queue).
    pub classes: Vec<(u8, u8)>,
}

/// The packet times that a gap must exceed (design: data plane, "Orderly flip").
const GAP_PACKETS: u64 = 32;
/// The shortest gap threshold.
const GAP_FLOOR: Span = Span::from_micros(200);

impl Settings {
    /// Settings for a cluster: both gaps are max(200 µs, 32 times `packet_time`), the time of a full packet on the
    /// slowest host port.
    #[must_use]
    pub fn new(cluster: &str, packet_time: Span) -> Self {
        let gap = Span(packet_time.0.saturating_mul(GAP_PACKETS)).max(GAP_FLOOR);
        Self {
            mark: format!("ringpath/{cluster}"),
            idle_gap: gap,
            flip_gap: gap,
            classes: Vec::new(),
        }
    }
}

/// One direction of a flow at the leaf where it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Which packets.
    pub key: FlowKey,
    /// What they are tagged with.
    pub tag: classify::Action,
}

/// What the entries of all switches depend on.
#[derive(Clone, Copy)]
pub struct Fabric<'a> {
    /// Names and ids of the program.
    pub program: &'a Program,
    /// The cabling.
    pub topology: &'a Topology,
    /// Candidate paths.
    pub paths: &'a Paths,
    /// Links that carry nothing.
    pub failed: &'a LinkSet,
    /// Labels, current and retired.
    pub labels: &'a Labels,
    /// Marks and thresholds.
    pub settings: &'a Settings,
}

impl EntrySet {
    /// All wanted entities, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&EntityKey, &Wanted)> {
        self.entities.iter()
    }

    /// One wanted entity.
    #[must_use]
    pub fn get(&self, key: &EntityKey) -> Option<&Wanted> {
        self.entities.get(key)
    }

    /// Number of wanted entities.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Wants the entry of a leg, in place of an earlier one of the same key.
    pub fn put_leg(&mut self, fabric: &Fabric<'_>, leg: &Leg) {
        let mut needs = vec![Need::Walk { label: leg.tag.label }];
        if leg.tag.old_label != leg.tag.label {
            needs.push(Need::Walk { label: leg.tag.old_label });
        }
        let entry = fabric.program.classify.to_entry(leg.key, leg.tag);
        self.put(fabric, Kind::TableEntry(entry), Level::Flow, needs);
    }

    /// Wants no entry for a flow key any more.
    pub fn remove_leg(&mut self, fabric: &Fabric<'_>, key: FlowKey) {
        if let Some(key) = leg_key(fabric.program, key) {
            self.entities.remove(&key);
        }
    }

    fn put(&mut self, fabric: &Fabric<'_>, mut kind: Kind, level: Level, needs: Vec<Need>) {
        if let Kind::TableEntry(entry) = &mut kind {
            entry.metadata = fabric.settings.mark.clone().into_bytes();
        }
        let entity = proto::Entity { entity: Some(kind) };
        if let Some(key) = key_of(&entity) {
            let entity = normal_form(&entity);
            self.entities.insert(key, Wanted { entity, level, needs });
        }
    }
}

/// The key of a flow's `classify` entry.
#[must_use]
pub fn leg_key(program: &Program, key: FlowKey) -> Option<EntityKey> {
    let tag = classify::Action {
        label: Label(0),
        queue: 0,
        src_slot: 0,
        slot: 0,
        epoch: 0,
        flip: 0,
        old_label: Label(0),
        old_queue: 0,
        force: false,
        flip_gap: 0,
    };
    let entry = program.classify.to_entry(key, tag);
    key_of(&proto::Entity { entity: Some(Kind::TableEntry(entry)) })
}

/// The key of a label's `path_forward` entry; the same on every switch.
#[must_use]
pub fn label_key(program: &Program, label: Label) -> Option<EntityKey> {
    let key = path_forward::Key { label };
    let entry = program.path_forward.to_entry(key, path_forward::Action::Sink);
    key_of(&proto::Entity { entity: Some(Kind::TableEntry(entry)) })
}

/// What `switch` should hold for the fabric and the given legs. `incarnation` is the value that tells a restart.
#[must_use]
pub fn entries<'l>(
    fabric: &Fabric<'_>,
    switch: SwitchId,
    incarnation: u32,
    legs: impl IntoIterator<Item = &'l Leg>,
) -> EntrySet {
    let mut set = EntrySet::default();
    ports(fabric, switch, &mut set);
    hosts(fabric, switch, &mut set);
    routes(fabric, switch, &mut set);
    for &(dscp, queue) in &fabric.settings.classes {
        let (key, action) = (traffic_class::Key { dscp }, traffic_class::Action { queue });
        let entry = fabric.program.traffic_class.to_entry(key, action);
        set.put(fabric, Kind::TableEntry(entry), Level::Entry, Vec::new());
    }
    let idle_gap = fabric.program.target.gap(fabric.settings.idle_gap);
    let own = switch_config::Action { incarnation, idle_gap };
    let entry = fabric.program.switch_config.to_entry(own);
    set.put(fabric, Kind::TableEntry(entry), Level::Default, Vec::new());
    labels(fabric, switch, &mut set);
    for leg in legs {
        set.put_leg(fabric, leg);
    }
    set
}

/// Fabric ports are named; edge is the program's default.
fn ports(fabric: &Fabric<'_>, switch: SwitchId, set: &mut EntrySet) {
    let topology = fabric.topology;
    for &link in topology.out_links(topology.switch_node(switch)) {
        let link = topology.link(link);
        if topology.as_switch(link.to).is_some() {
            let key = port_role::Key { port: link.from_port };
            let action = port_role::Action { role: port_role::Role::Fabric };
            let entry = fabric.program.port_role.to_entry(key, action);
            set.put(fabric, Kind::TableEntry(entry), Level::Entry, Vec::new());
        }
    }
}

/// A leaf delivers to its own hosts, and answers its hosts' questions for every host's Ethernet address.
fn hosts(fabric: &Fabric<'_>, switch: SwitchId, set: &mut EntrySet) {
    let topology = fabric.topology;
    let mut is_leaf = false;
    for host in topology.hosts().filter(|host| topology.leaf_of(*host) == switch) {
        is_leaf = true;
        let port = topology.link(topology.downlink(host)).from_port;
        let key = host::Key { address: topology.host_ip(host) };
        let entry = fabric.program.host.to_entry(key, host::Action { port });
        set.put(fabric, Kind::TableEntry(entry), Level::Entry, Vec::new());
    }
    for host in topology.hosts().filter(|_| is_leaf) {
        let key = arp::Key { address: topology.host_ip(host) };
        let action = arp::Action { mac: topology.host_mac(host) };
        let entry = fabric.program.arp.to_entry(key, action);
        set.put(fabric, Kind::TableEntry(entry), Level::Entry, Vec::new());
    }
}

/// Untagged traffic: one host route per remote host, to the group of next hops towards its leaf.
fn routes(fabric: &Fabric<'_>, switch: SwitchId, set: &mut EntrySet) {
    let mut by_leaf: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
    for host in fabric.topology.hosts() {
        by_leaf.entry(fabric.topology.leaf_of(host)).or_default().push(host);
    }
    by_leaf.remove(&switch);
    let table = &fabric.program.route;
    let profile = table.profile();
    let links = fabric.topology.out_links(fabric.topology.switch_node(switch)).iter();
    let to_switch = |link| fabric.topology.as_switch(fabric.topology.link(link).to).is_some();
    let room = links.filter(|link| to_switch(**link)).count();
    for (leaf, hosts) in by_leaf {
        let ports = next_hops(fabric, switch, leaf);
        if ports.is_empty() {
            continue;
        }
        let mut needs = Vec::new();
        for port in &ports {
            let member = table.member(*port);
            needs.push(Need::Here(EntityKey::Member { profile, member: member.member_id }));
            set.put(fabric, Kind::ActionProfileMember(member), Level::Member, Vec::new());
        }
        let group = table.group(leaf, &ports, room);
        let need = Need::Here(EntityKey::Group { profile, group: group.group_id });
        set.put(fabric, Kind::ActionProfileGroup(group), Level::Group, needs);
        for host in hosts {
            let key = route::Key { address: fabric.topology.host_ip(host), length: 32 };
            let entry = table.to_entry(key, route::Action::Group { leaf });
            set.put(fabric, Kind::TableEntry(entry), Level::Entry, vec![need.clone()]);
        }
    }
}

/// Ports of `switch` that lie on a candidate tree to `leaf`, ascending. A leaf uses only the trees that carry its own
/// candidate paths, so that packets never turn round at a leaf.
fn next_hops(fabric: &Fabric<'_>, switch: SwitchId, leaf: SwitchId) -> Vec<PortNo> {
    let topology = fabric.topology;
    let own = fabric.paths.trees_between(switch, leaf);
    let is_leaf = topology.hosts().any(|host| topology.leaf_of(host) == switch);
    let all: Vec<_> = (0..fabric.paths.tree_count()).map(crate::id::TreeId).collect();
    let trees = if is_leaf { own } else { &all };
    let node = topology.switch_node(switch);
    let links = trees.iter().filter_map(|tree| fabric.paths.next_link(leaf, *tree, node));
    let live = links.filter(|link| !fabric.failed.contains(*link));
    let ports: BTreeSet<PortNo> = live.map(|link| topology.link(link).from_port).collect();
    ports.into_iter().collect()
}

/// Every label with a meaning is installed on every switch of its tree, before any flow uses it.
fn labels(fabric: &Fabric<'_>, switch: SwitchId, set: &mut EntrySet) {
    for (label, meaning) in fabric.labels.all() {
        // Hops that do not lead to the sink (the tree lost a link before the label was made) carry no path.
        let Some(walk) = meaning.walk(fabric.topology, switch) else { continue };
        let key = path_forward::Key { label };
        let (action, needs) = match (meaning.hops.get(&switch), walk.get(1)) {
            (Some(link), Some(next)) if switch != meaning.sink => {
                let port = fabric.topology.link(*link).from_port;
                let need = Need::Label { switch: *next, label };
                (path_forward::Action::Forward { port }, vec![need])
            }
            _ => (path_forward::Action::Sink, Vec::new()),
        };
        let depth = u8::try_from(walk.len() - 1).unwrap_or(u8::MAX);
        let entry = fabric.program.path_forward.to_entry(key, action);
        set.put(fabric, Kind::TableEntry(entry), Level::Label(depth), needs);
    }
}
