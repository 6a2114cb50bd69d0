//! Links and switches that come and go: candidate paths, labels, wanted entries.
//!
//! In: reported link states, switches lost or back. Out: new candidate paths and labels, wanted entries per switch.
//! Must not plan.

use super::super::messages::{Event, TimerKey};
use super::switch::Phase;
use super::{Core, Key, fabric};
use crate::id::{LinkId, SwitchId};
use crate::pipeline::{Leg, entries};
use crate::topology::{LinkSet, Path, Paths};

impl Core {
    pub(super) fn link(&mut self, link: LinkId, up: bool) {
        if link.index() >= self.config.topology.links().len() {
            let reason = format!("link {link} is not in the topology; nothing was changed");
            self.notify(Event::Rejected { reason });
            return;
        }
        match up {
            true => self.ground.reported.remove(link),
            false => self.ground.reported.insert(link),
        };
        self.link_changed(link);
        if !self.config.topology.is_inner(link) {
            self.weigh_all();
        }
    }

    /// Probes of a link come or do not.
    pub(super) fn silent_link(&mut self, link: LinkId, silent: bool) {
        match silent {
            true => self.ground.silent.insert(link),
            false => self.ground.silent.remove(link),
        };
        self.link_changed(link);
    }

    fn link_changed(&mut self, link: LinkId) {
        let ground = &mut self.ground;
        let down = ground.reported.contains(link) || ground.silent.contains(link);
        let changed = match down {
            true => ground.down.insert(link),
            false => ground.down.remove(link),
        };
        self.rebuild |= changed;
    }

    /// Whether a port at either end of the link's cable is reported down.
    pub(super) fn ports_down(&self, link: LinkId) -> bool {
        let reverse = self.config.topology.reverse(link);
        self.ground.reported.contains(link) || self.ground.reported.contains(reverse)
    }

    /// Whether either direction of the link's cable is reported down.
    pub(super) fn dead(&self, link: LinkId) -> bool {
        let reverse = self.config.topology.reverse(link);
        self.ground.down.contains(link) || self.ground.down.contains(reverse)
    }

    /// Whether every link of a path may be planned on.
    pub(super) fn live(&self, path: &Path) -> bool {
        path.links.iter().all(|link| !self.ground.failed.contains(*link))
    }

    /// Computes candidate paths and labels anew, and what every switch should hold.
    pub(super) fn rebuild_fabric(&mut self) {
        self.rebuild = false;
        let topology = &self.config.topology;
        let mut failed = LinkSet::new();
        for link in self.ground.down.iter() {
            failed.insert_cable(topology, link);
        }
        // A leaf without links would leave its hosts unreachable, for which there are no candidate paths at all; jobs
        // on such hosts are left out of plans instead, and detours are sought for the others.
        let mut for_paths = failed.clone();
        for switch in self.switches.iter().filter(|switch| switch.excluded) {
            let node = topology.switch_node(switch.id);
            let is_leaf = topology.hosts().any(|host| topology.leaf_of(host) == switch.id);
            for link in topology.out_links(node) {
                failed.insert_cable(topology, *link);
                if !is_leaf {
                    for_paths.insert_cable(topology, *link);
                }
            }
        }
        self.ground.failed = failed;
        let max_paths = self.config.planning.max_paths;
        // Hosts cut off: the trees of the cabling serve those that are not; `live` sorts the dead paths out.
        let paths = Paths::build(topology, &for_paths, max_paths)
            .or_else(|_| Paths::build(topology, &LinkSet::new(), max_paths));
        if let Ok(paths) = paths {
            self.ground.paths = paths;
        }
        match self.ground.labels.adopt(&self.config.topology, &self.ground.paths) {
            Ok(added) if added.is_empty() => {}
            Ok(_) => {
                self.dirty.insert(Key::Labels);
            }
            Err(error) => {
                self.dirty.insert(Key::Labels);
                self.notify(Event::Rejected { reason: error.to_string() });
            }
        }
        for index in 0..self.switches.len() {
            self.rebuild_wanted(SwitchId::from(index));
        }
        self.leave_dead_routes();
        self.replan = !self.jobs.is_empty();
    }

    /// What a switch should hold, from nothing.
    pub(super) fn rebuild_wanted(&mut self, id: SwitchId) {
        let gap = self.config.program.target.gap(self.config.settings.flip_gap);
        let states = self.states.values().filter(|state| !state.leaving);
        let legs = states.flat_map(|state| &state.legs).filter(|leg| leg.leaf == id);
        let legs: Vec<Leg> = legs.map(|leg| Leg { key: leg.key, tag: leg.tag(gap) }).collect();
        let switch = &mut self.switches[id.index()];
        let fabric = fabric(&self.config, &self.ground);
        switch.wanted = entries(&fabric, id, switch.incarnation, &legs);
        // Before the first programming there is no incarnation to write; it is drawn when the switch has been read.
        switch.synced = false;
        switch.pump = true;
    }

    /// Every switch may have something to do: an entry that others wait for has appeared, or wanted entries changed.
    pub(super) fn wake(&mut self) {
        for switch in self.switches.iter_mut().filter(|switch| !switch.synced) {
            switch.pump = true;
        }
    }

    /// A switch has no session: if that lasts, plans avoid it.
    pub(super) fn went_down(&mut self, id: SwitchId) {
        let after = self.config.limits.lost;
        let switch = &mut self.switches[id.index()];
        switch.phase = Phase::Down;
        switch.forget_calls();
        self.telemetry_down(id);
        let switch = &mut self.switches[id.index()];
        if !std::mem::replace(&mut switch.out, true) {
            switch.outage += 1;
            let outage = switch.outage;
            self.set_timer(after, TimerKey::Lost(id, outage));
        }
    }

    pub(super) fn lost(&mut self, id: SwitchId, outage: u64) {
        let Some(switch) = self.switches.get(id.index()) else { return };
        if switch.outage == outage && switch.out && !switch.excluded {
            self.notify(Event::SwitchLost { switch: id });
            self.exclude(id);
        }
    }

    /// Plans avoid the switch from now on.
    pub(super) fn exclude(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        if !switch.excluded {
            switch.excluded = true;
            self.rebuild = true;
        }
    }

    /// A switch that plans avoided holds what is wanted again.
    pub(super) fn include(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        if switch.excluded {
            switch.excluded = false;
            self.rebuild = true;
            self.notify(Event::SwitchBack { switch: id });
        }
    }
}
