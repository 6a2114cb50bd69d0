//! Cables as probes see them.

use super::net::{Net, job};
use super::{LEAF, SOON, fabric, tuned, uplink};
use crate::controller::ProbeConfig;
use crate::controller::core::probes::Prober;
use crate::controller::messages::{Event, Input};
use crate::id::{FlowId, LinkId, SwitchId};
use crate::time::Span;
use crate::topology::generate::LeafSpine;
use crate::units::BitRate;
use std::collections::BTreeMap;

const INTERVAL: Span = Span::from_millis(100);

/// The job of `running`, and probes every 100 ms.
fn probing() -> Net {
    let mut net = tuned(|config| config.probes.interval = Some(INTERVAL));
    net.run(Span::from_millis(1_000));
    assert_eq!(dead(&net), Vec::<LinkId>::new(), "nothing is wrong");
    assert!(net.core.probe_counts().heard > 100, "{:?}", net.core.probe_counts());
    net
}

fn dead(net: &Net) -> Vec<LinkId> {
    let dead = net.events.iter().filter_map(|event| match event {
        Event::LinkDead { link, .. } => Some(*link),
        _ => None,
    });
    dead.collect()
}

fn back(net: &Net, link: LinkId) -> usize {
    net.seen(|event| *event == Event::LinkBack { link })
}

fn crosses(net: &Net, cable: LinkId) -> bool {
    let path = &net.core.goals()[&FlowId(0)].path;
    path.links.iter().any(|link| *link == cable || *link == fabric().reverse(cable))
}

#[test]
fn a_link_that_fails_one_way_is_dead_after_four_intervals_and_back_after_ten_probes() {
    let mut net = probing();
    let link = uplink(&net);
    assert!(crosses(&net, link));
    net.silent.insert(link);
    net.run(Span::from_millis(290));
    assert_eq!(dead(&net), [], "two probes, perhaps three");
    net.run(Span::from_millis(120));
    assert_eq!(dead(&net), [link]);
    net.converge(SOON);
    assert!(!crosses(&net, link), "its cable is avoided in both directions");
    net.assert_as_wanted();
    assert_eq!(net.core.inner_links(), (11, 1));

    net.silent.clear();
    net.run(Span::from_millis(880));
    assert_eq!(back(&net, link), 0);
    net.run(Span::from_millis(230));
    assert_eq!(back(&net, link), 1);
    assert_eq!((dead(&net), net.core.inner_links()), (vec![link], (12, 0)));
    let counts = net.core.probe_counts();
    assert!((3..=5).contains(&counts.lost), "{counts:?}");
}

#[test]
fn a_cable_that_leads_elsewhere_is_named_with_what_was_expected_and_found_and_is_avoided() {
    let mut net = probing();
    let link = uplink(&net);
    let other = net.core.topology().links().len();
    let ends = |link: LinkId| (fabric().link(link).to, fabric().link(link).to_port);
    let mut others = (0..other).map(LinkId::from).filter(|other| fabric().is_inner(*other));
    let other = others.find(|other| ends(*other).0 != ends(link).0).unwrap();
    net.wired.insert(link, other);
    net.run(INTERVAL + INTERVAL);
    let name = |link: LinkId| {
        let (node, port) = ends(link);
        format!("{} port {}", fabric().node(node).name, port.0)
    };
    let told = Event::Miswired { link, expected: name(link), found: name(other) };
    assert_eq!(net.seen(|event| *event == told), 1, "{:?}", net.events.last());
    assert_eq!(dead(&net), [link], "the first probe says it, three need not be missed");
    net.converge(SOON);
    assert!(!crosses(&net, link));
    net.run(SOON);
    assert_eq!(net.seen(|event| *event == told), 1, "it is told once");
    net.wired.clear();
    net.run(SOON);
    assert_eq!(back(&net, link), 1);
}

#[test]
fn forged_and_replayed_probes_neither_kill_a_link_nor_bring_one_back() {
    let mut net = probing();
    let link = uplink(&net);
    net.silent.insert(link);
    net.run(Span::from_millis(500));
    assert_eq!(dead(&net), [link]);
    let before = net.core.probe_counts();
    let (at, genuine) = net.probes[&link].clone();
    for copy in 0..30_u8 {
        // What was heard once, and what somebody without the key makes of it: the number of the probe that is due.
        net.packet_in(at, genuine.clone(), Span::ZERO);
        let mut forged = genuine.clone();
        forged.payload[37] = forged.payload[37].wrapping_add(5 + copy / 3);
        net.packet_in(at, forged, Span::ZERO);
        // The same at another switch, as if the cable led there.
        net.packet_in(LEAF, genuine.clone(), Span::ZERO);
        net.run(Span::from_millis(50));
    }
    let counts = net.core.probe_counts();
    assert_eq!((counts.forged - before.forged, counts.stale - before.stale), (30, 60));
    assert_eq!((dead(&net), back(&net, link)), (vec![link], 0));
    assert_eq!(net.seen(|event| matches!(event, Event::Miswired { .. })), 0);
}

#[test]
fn neither_a_controller_nor_a_switch_that_restarts_makes_links_flap() {
    let mut net = probing();
    net.crash();
    net.run(SOON);
    assert_eq!(dead(&net), []);
    let heard = net.core.probe_counts().heard;
    assert!(heard > 100, "it has learned again that probes come: {heard}");
    net.check_labels = false;
    net.restart(LEAF);
    net.run(SOON);
    net.dead.insert(LEAF);
    net.break_stream(LEAF);
    net.run(SOON);
    net.dead.clear();
    net.run(SOON);
    assert_eq!(dead(&net), []);
    net.converge(SOON);
}

#[test]
fn where_no_probe_ever_comes_links_are_taken_as_the_cabling_says() {
    let mut net = Net::tuned(fabric(), |config| config.probes.interval = Some(INTERVAL));
    net.silent = (0..fabric().links().len()).map(LinkId::from).collect();
    net.boot();
    net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
    net.converge(SOON);
    net.run(SOON);
    assert_eq!((dead(&net), net.core.probe_counts().heard), (vec![], 0));
    assert!(net.core.probe_counts().sent > 100);
}

#[test]
fn a_cable_that_was_dead_when_the_controller_started_is_found() {
    let mut net = Net::tuned(fabric(), |config| config.probes.interval = Some(INTERVAL));
    net.silent.insert(LinkId(0));
    let inner = (0..fabric().links().len()).map(LinkId::from).find(|link| fabric().is_inner(*link));
    let link = inner.unwrap();
    net.silent.insert(link);
    net.boot();
    net.run(SOON);
    assert_eq!(dead(&net), [link], "both its ends have others by which they show that they can");
}

#[test]
fn ports_that_tell_are_believed_at_once_in_both_directions() {
    let mut net = probing();
    let link = uplink(&net);
    net.silent.insert(link);
    net.link(link, false);
    assert_eq!(net.core.inner_links(), (11, 1));
    net.run(SOON);
    net.silent.clear();
    net.link(link, true);
    assert_eq!((net.core.inner_links(), dead(&net)), ((12, 0), vec![]));
    net.run(SOON);
    assert_eq!(dead(&net), []);
}

#[test]
fn a_switch_whose_stamp_changes_is_read_once() {
    let mut net = probing();
    net.converge(SOON);
    let reads =
        |net: &Net| net.seen(|e| matches!(e, Event::Read { switch, .. } if *switch == LEAF));
    let before = reads(&net);
    net.stamps.insert(LEAF, 0);
    net.run(SOON);
    assert_eq!(reads(&net) - before, 1, "0: not programmed since it restarted");
    net.stamps.insert(LEAF, 5);
    net.run(SOON);
    assert_eq!(reads(&net) - before, 2);
    assert_eq!(dead(&net), []);
}

#[test]
fn probes_keep_to_the_budget_and_those_that_end_at_one_switch_are_spread() {
    let topology = LeafSpine::new(40, 4, 1, BitRate(1_000_000_000)).build().unwrap();
    let inner = 2 * 40 * 4;
    let asked = ProbeConfig { interval: Some(INTERVAL), ..ProbeConfig::default() };
    let prober = Prober::new(&topology, &asked);
    assert_eq!(prober.interval, Some(INTERVAL), "3,200 a second");
    let scarce = Prober::new(&topology, &ProbeConfig { budget: 640, ..asked });
    assert_eq!(scarce.interval, Some(Span::from_millis(500)), "640 a second");
    assert_eq!(prober.slots.iter().map(Vec::len).sum::<usize>(), inner);
    for slot in &prober.slots {
        let mut ends: BTreeMap<SwitchId, usize> = BTreeMap::new();
        for link in slot {
            *ends.entry(topology.as_switch(topology.link(*link).to).unwrap()).or_default() += 1;
        }
        // A spine has 40 links: 4 in each of 10 slots.
        assert!(ends.values().all(|probes| *probes <= 4), "{ends:?}");
    }
}
