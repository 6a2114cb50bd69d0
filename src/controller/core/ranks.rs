//! The processes of jobs' ranks: how far they are, which ring they have formed, who of them is gone.
//!
//! In: what ranks say of themselves, streams that end, a timer. Out: progress, rings that stand, hosts that have failed, jobs that form
//! another ring. Must not know streams or who speaks for a rank: its own process now, the agent of its host later.
//!
//! **When a rank is gone.** One witness is not enough: a stream may break where the rank lives on, and a neighbour may lose a connection to one
//! that is well. Two of these are: *its own silence* (its stream ended without a word), *a neighbour that lost it*, or waits for it in vain, *its host's cable reported
//! down*. Then its host has failed, for all its jobs, unless another process of the host is still heard; then only this job goes on without it.
//!
//! ```text
//!  all in one ring ──a rank is gone──────────────────────────────► ring of the others      (generation + 1)
//!        │ └────────a neighbour lost one that is heard, for GRACE ──► ring of the same      (at most FUTILE times without an iteration)
//!        ▼
//!  forming ──all have joined──► planned, installed, go
//!        ├──one is silent for GRACE ─────────────────────────────► ring of the others
//!        └──one does not join within JOIN ───────────────────────► ring of the others
//! ```

use super::super::messages::{Event, RankSaid, RankState, TimerKey};
use super::Core;
use crate::elastic::Generation;
use crate::id::{HostId, JobId};
use crate::time::{Span, Time};
use crate::workload::{Flow, Job, Transport, ring_flows_over};
use std::collections::{BTreeMap, BTreeSet};

/// How long contradictory evidence is left to clear up: a dead process is known by its stream after four seconds at the latest.
const GRACE: Span = Span::from_millis(5_000);
/// How long a rank that is heard may take to form its ring.
const JOIN: Span = Span::from_millis(60_000);
/// Rings of the same ranks that may break without an iteration in between.
const FUTILE: u32 = 3;
/// The lowest port that a ring is given.
const LOWEST_PORT: u16 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contact {
    Heard,
    /// Its stream ended without a word.
    Silent,
    /// It said that it is done.
    Left,
}

#[derive(Clone, Copy, Debug)]
struct Rank {
    contact: Contact,
    state: RankState,
}

/// How often a job's ring was formed anew for nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Futile {
    rings: u32,
    done: u32,
}

/// What is known of the ranks that say something of themselves.
#[derive(Default)]
pub(super) struct Ranks {
    known: BTreeMap<(JobId, HostId), Rank>,
    timed: BTreeSet<JobId>,
    /// Since when there is evidence against a rank, of one witness.
    doubts: BTreeMap<JobId, Time>,
    /// Since when a job forms a ring.
    forming: BTreeMap<JobId, Time>,
    futile: BTreeMap<JobId, Futile>,
}

impl Ranks {
    pub(super) fn forget(&mut self, job: JobId) {
        self.known.retain(|(of, _), _| *of != job);
        self.doubts.remove(&job);
        self.forming.remove(&job);
        self.futile.remove(&job);
    }

    fn of(&self, job: JobId) -> impl Iterator<Item = (HostId, Rank)> + '_ {
        let all = (job, HostId(0))..=(job, HostId(u32::MAX));
        self.known.range(all).map(|((_, host), rank)| (*host, *rank))
    }

    fn contact(&self, job: JobId, host: HostId) -> Option<Contact> {
        self.known.get(&(job, host)).map(|rank| rank.contact)
    }
}

/// The ring that a job's ranks are to form, or have formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its number.
    pub generation: Generation,
    /// Hosts in ring order.
    pub ranks: Vec<HostId>,
    /// Port of the first edge of a ring over TCP.
    pub first_port: Option<u16>,
    /// Time that an iteration computes.
    pub compute: Span,
    /// Whether everything that it needs is installed.
    pub ready: bool,
    /// The iteration to begin with.
    pub from: u32,
}

impl Core {
    /// The ring that a job's ranks are to form, or have formed; `None` if there is no such job.
    #[must_use]
    pub fn membership(&self, id: JobId) -> Option<Membership> {
        let (job, _) = self.jobs.get(&id)?;
        Some(Membership {
            generation: self.generation_of(id),
            ranks: job.ranks.clone(),
            first_port: self.first_ports.get(&id).copied(),
            compute: job.compute,
            ready: self.is_ready(id),
            from: self.iterations_done(id),
        })
    }

    pub(super) fn rank(&mut self, job: JobId, host: HostId, said: RankSaid) {
        // One that is cut off is told so by the membership.
        let member = |(job, _): &(Job, Vec<_>)| job.ranks.contains(&host);
        let member = self.jobs.get(&job).is_some_and(member);
        match said {
            RankSaid::State(state) => {
                self.failed_hosts.remove(&host);
                if member {
                    let rank = Rank { contact: Contact::Heard, state };
                    self.ranks.known.insert((job, host), rank);
                    self.count_iterations(job);
                    self.form(job);
                    self.weigh(job);
                }
            }
            RankSaid::Left | RankSaid::Silent => {
                let contact = if said == RankSaid::Left { Contact::Left } else { Contact::Silent };
                if let Some(rank) = self.ranks.known.get_mut(&(job, host)) {
                    rank.contact = contact;
                }
                if member {
                    self.weigh(job);
                }
            }
        }
    }

    pub(super) fn generation_of(&self, job: JobId) -> Generation {
        self.memberships.get(&job).copied().unwrap_or_default()
    }

    /// The state of every rank of the job's present ring that has said something; `None` where one has not.
    fn states(&self, job: JobId) -> Vec<Option<RankState>> {
        let Some((spec, _)) = self.jobs.get(&job) else { return Vec::new() };
        let generation = self.generation_of(job);
        let state = |host: &HostId| {
            let rank = self.ranks.known.get(&(job, *host))?;
            Some(rank.state).filter(|state| state.generation == generation)
        };
        spec.ranks.iter().map(state).collect()
    }

    /// A job is as far as the last of its ranks that says how far it is.
    fn count_iterations(&mut self, job: JobId) {
        if self.forming.contains(&job) {
            return;
        }
        let states = self.states(job);
        let Some(done) = states.iter().flatten().map(|state| state.iterations).min() else {
            return;
        };
        if done <= self.iterations_done(job) {
            return;
        }
        self.progressed(job, done);
        let compute: Option<Vec<Span>> =
            states.iter().map(|state| state.map(|state| state.compute)).collect();
        if let Some(compute) = compute {
            self.computed(job, &compute);
        }
    }

    /// Plans a ring that all its ranks have formed. They begin where the last of them is.
    fn form(&mut self, id: JobId) {
        if !self.forming.contains(&id) {
            return;
        }
        if !self.ranks.forming.contains_key(&id) {
            // As after a restart of the controller.
            self.expect_ring(id);
        }
        let states: Option<Vec<RankState>> = self.states(id).into_iter().collect();
        let Some(states) = states.filter(|all| all.iter().all(|state| state.joined)) else {
            return;
        };
        if let Some(from) = states.iter().map(|state| state.iterations).min() {
            self.progressed(id, from);
        }
        self.ranks.forming.remove(&id);
        match self.ring_of(id) {
            Ok(flows) => self.joined(id, self.generation_of(id), flows),
            Err(reason) => self.stop_job(id, reason),
        }
    }

    fn ring_of(&self, id: JobId) -> Result<Vec<Flow>, String> {
        let Some((job, _)) = self.jobs.get(&id) else { return Ok(Vec::new()) };
        if job.ranks.len() == 1 {
            // Nobody to send to.
            return Ok(Vec::new());
        }
        let transport = match self.first_ports.get(&id) {
            Some(port) => Transport::Tcp { first_port: *port },
            None => Transport::RoceV2,
        };
        ring_flows_over(&self.config.topology, job, self.next_ids().1, transport)
            .map_err(|error| error.to_string())
    }

    /// Looks whether ranks are gone.
    pub(super) fn weigh(&mut self, job: JobId) {
        let Some((spec, _)) = self.jobs.get(&job) else { return };
        let lost = self.missed_by(job, |state| state.lost);
        let stalled = self.missed_by(job, |state| state.stalled);
        let mut gone: BTreeMap<HostId, String> = BTreeMap::new();
        let mut doubt = false;
        for host in &spec.ranks {
            let contact = self.ranks.contact(job, *host);
            // One that only waits for it is a witness beside another, but no reason to doubt one that is heard.
            let by = lost.get(host).or_else(|| stalled.get(host)).copied();
            // One that was done and left cannot have been: somebody needs it.
            let silent = contact == Some(Contact::Silent)
                || (contact == Some(Contact::Left) && by.is_some());
            let cable = self.is_unplugged(*host);
            let why = match (silent, by, cable) {
                (true, Some(by), _) => {
                    format!("it is silent, and {} misses it", self.host_name(by))
                }
                (true, None, true) => "it is silent, and its cable is down".to_owned(),
                (false, Some(by), true) => {
                    format!("its cable is down, and {} misses it", self.host_name(by))
                }
                (silent, _, _) => {
                    doubt |= silent || lost.contains_key(host);
                    continue;
                }
            };
            gone.insert(*host, why);
        }
        if gone.is_empty() && doubt {
            self.ranks.doubts.entry(job).or_insert(self.now);
            return self.time_ranks(job, GRACE);
        }
        self.ranks.doubts.remove(&job);
        if !gone.is_empty() {
            self.go_on_without(job, gone);
        }
    }

    /// Ranks that others of the present ring miss in one way, each with one of those.
    fn missed_by(
        &self,
        job: JobId,
        way: impl Fn(RankState) -> Option<HostId>,
    ) -> BTreeMap<HostId, HostId> {
        let generation = self.generation_of(job);
        let heard = self.ranks.of(job).filter(|(_, rank)| rank.contact == Contact::Heard);
        let now = heard.filter(|(_, rank)| rank.state.generation == generation);
        now.filter_map(|(by, rank)| Some((way(rank.state)?, by))).collect()
    }

    /// A cable to a host was reported up or down.
    pub(super) fn weigh_all(&mut self) {
        let jobs: BTreeSet<JobId> = self.ranks.known.keys().map(|(job, _)| *job).collect();
        for job in jobs {
            self.weigh(job);
        }
    }

    fn is_unplugged(&self, host: HostId) -> bool {
        let up = self.config.topology.uplink(host);
        self.dead(up)
    }

    pub(super) fn host_name(&self, host: HostId) -> &str {
        &self.config.topology.node(self.config.topology.host_node(host)).name
    }

    /// Ranks are gone; whoever is done goes with them, since it will form no other ring.
    fn go_on_without(&mut self, job: JobId, gone: BTreeMap<HostId, String>) {
        let mut only_here = BTreeSet::new();
        let mut causes = Vec::new();
        for (host, why) in gone {
            let mut others = self.ranks.known.iter().filter(|((_, of), _)| *of == host);
            let lives = others.any(|((of, _), rank)| *of != job && rank.contact == Contact::Heard);
            let name = self.host_name(host).to_owned();
            if lives {
                causes.push(format!("the rank on {name} is gone: {why}"));
                only_here.insert(host);
            } else {
                // One event for all its jobs, this one among them.
                self.host_failed(host, &format!("host {name} failed: {why}"));
            }
        }
        if !only_here.is_empty() {
            self.leave_out(job, &only_here, &causes.join("; "));
        }
    }

    fn time_ranks(&mut self, job: JobId, after: Span) {
        if self.ranks.timed.insert(job) {
            self.set_timer(after, TimerKey::Ranks(job));
        }
    }

    /// A job is to form another ring. Ranks that say something of themselves are waited for.
    pub(super) fn expect_ring(&mut self, job: JobId) {
        if self.ranks.of(job).next().is_some() {
            self.ranks.forming.insert(job, self.now);
            self.time_ranks(job, GRACE);
        }
    }

    /// Ranks that have left will not come back for another ring.
    pub(super) fn have_left(&self, job: JobId) -> BTreeSet<HostId> {
        let left = self.ranks.of(job).filter(|(_, rank)| rank.contact == Contact::Left);
        left.map(|(host, _)| host).collect()
    }

    /// What did not clear up is decided.
    pub(super) fn ranks_due(&mut self, job: JobId) {
        self.ranks.timed.remove(&job);
        if !self.jobs.contains_key(&job) {
            return;
        }
        let forming = self.ranks.forming.get(&job).copied();
        let Some(since) = forming.or_else(|| self.ranks.doubts.get(&job).copied()) else { return };
        let waited = self.now.since(since);
        if waited < GRACE {
            // The timer was set for something that has cleared up.
            return self.time_ranks(job, Span(GRACE.0 - waited.0));
        }
        match forming {
            Some(since) => self.ring_overdue(job, since),
            None => self.doubt_overdue(job),
        }
    }

    fn ring_overdue(&mut self, job: JobId, since: Time) {
        let Some((spec, _)) = self.jobs.get(&job) else { return };
        let (count, ranks) = (spec.ranks.len(), spec.ranks.iter().zip(self.states(job)));
        let missing = ranks.filter(|(_, state)| !state.is_some_and(|state| state.joined));
        let missing: Vec<HostId> = missing.map(|(host, _)| *host).collect();
        let heard = |host: &&HostId| self.ranks.contact(job, **host) == Some(Contact::Heard);
        let silent: Vec<HostId> = missing.iter().filter(|host| !heard(host)).copied().collect();
        let late = self.now.since(since) >= JOIN;
        // Those that are heard have not failed, whatever keeps them from this ring: only this job goes on without them.
        let slow = silent.is_empty() && late;
        let gone = if slow { missing } else { silent };
        // Whoever has nobody that would go on waits for somebody to be heard.
        if gone.is_empty() || gone.len() == count {
            return self.time_ranks(job, GRACE);
        }
        if slow {
            let names: Vec<&str> = gone.iter().map(|host| self.host_name(*host)).collect();
            let cause = format!("the ranks on {} did not form the new ring", names.join(", "));
            return self.leave_out(job, &gone.into_iter().collect(), &cause);
        }
        let why = |host| (host, "it did not form the new ring".to_owned());
        self.go_on_without(job, gone.into_iter().map(why).collect());
    }

    fn doubt_overdue(&mut self, job: JobId) {
        self.ranks.doubts.remove(&job);
        let lost = self.missed_by(job, |state| state.lost);
        let heard = |host: &HostId| self.ranks.contact(job, *host) == Some(Contact::Heard);
        let gone: BTreeMap<HostId, String> = lost
            .iter()
            .filter(|(host, _)| !heard(host))
            .map(|(host, by)| {
                (*host, format!("{} has lost it, and nobody has heard of it", self.host_name(*by)))
            })
            .collect();
        if !gone.is_empty() {
            return self.go_on_without(job, gone);
        }
        let Some((host, by)) = lost.into_iter().next() else { return };
        let (host, by) = (self.host_name(host).to_owned(), self.host_name(by).to_owned());
        let done = self.iterations_done(job);
        let futile = self.ranks.futile.entry(job).or_default();
        if futile.done != done {
            *futile = Futile { rings: 0, done };
        }
        futile.rings += 1;
        if futile.rings > FUTILE {
            let reason = format!(
                "its ring broke {FUTILE} times between {by} and {host}, which are both heard, without an iteration in between; look at the network between them"
            );
            return self.stop_job(job, reason);
        }
        self.form_again(job, &format!("{by} has lost the connection to {host}, which is heard"));
    }

    /// A job cannot go on.
    pub(super) fn stop_job(&mut self, job: JobId, reason: String) {
        self.notify(Event::JobStopped { job, reason });
        self.finish(job);
    }

    /// A range of ports that no ring has, nor the job's own of before, whose entries may not be gone yet.
    pub(super) fn fresh_ports(&self, job: &Job) -> Option<u16> {
        let old = *self.first_ports.get(&job.id)?;
        let count = |job: &Job| u16::try_from(job.ranks.len() * usize::from(job.channels));
        let before = self.jobs.get(&job.id).and_then(|(before, _)| count(before).ok())?;
        let used: BTreeSet<u16> =
            self.flows.values().filter_map(|flow| flow.key.dst_port).collect();
        free_ports(&used, (old, before), count(job).ok()?)
    }
}

/// The first of `count` ports in a row that are not used and not of the range `old` (first, number): above it, or else from the lowest on.
fn free_ports(used: &BTreeSet<u16>, old: (u16, u16), count: u16) -> Option<u16> {
    let below = u32::from(old.0);
    let above = below + u32::from(old.1);
    let free = |start: &u32| {
        let end = start + u32::from(count.max(1)) - 1;
        let (Ok(first), Ok(last)) = (u16::try_from(*start), u16::try_from(end)) else {
            return false;
        };
        (end < below || *start >= above) && used.range(first..=last).next().is_none()
    };
    let lowest = u32::from(LOWEST_PORT);
    let mut starts = (above.max(lowest)..=u32::from(u16::MAX)).chain(lowest..above.max(lowest));
    starts.find(free).and_then(|start| u16::try_from(start).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_ring_gets_ports_above_its_old_ones_that_nobody_has_or_below() {
        let used = |ports: &[u16]| ports.iter().copied().collect::<BTreeSet<u16>>();
        assert_eq!(free_ports(&used(&[20_000, 20_001]), (20_000, 2), 2), Some(20_002));
        assert_eq!(free_ports(&used(&[20_003, 20_006]), (20_000, 2), 3), Some(20_007));
        assert_eq!(free_ports(&used(&[]), (65_530, 4), 4), Some(1_024), "no room above");
        assert_eq!(free_ports(&used(&[1_025]), (65_530, 4), 4), Some(1_026));
        let all: BTreeSet<u16> = (1_024..=u16::MAX).collect();
        assert_eq!(free_ports(&all, (20_000, 2), 1), None);
    }
}
