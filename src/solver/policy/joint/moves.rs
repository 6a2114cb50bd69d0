//! The neighbourhoods: small changes of a choice.
//!
//! In: a choice and a random stream. Out: the choice, changed. Must not know: scores.

use super::super::{greedy, least_loaded, paper};
use super::scope::Scope;
use crate::solver::instance::{Choice, Instance};
use rand::RngExt as _;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand_pcg::Pcg64;

/// Proposes moves on one instance.
pub(super) struct Mover<'a> {
    instance: &'a Instance,
    /// Average bytes per second of each flow.
    rate: Vec<f64>,
    jobs: Vec<usize>,
    flows_of: Vec<Vec<usize>>,
    /// Flows with more than one candidate path.
    movable: Vec<usize>,
}

impl<'a> Mover<'a> {
    /// Moves what the scope does not freeze.
    pub fn new(instance: &'a Instance, scope: &Scope) -> Self {
        let free = |flow: &usize| !scope.is_frozen(*flow);
        let moves = |&job: &usize| {
            let rings = instance.jobs[job].rings.iter();
            rings.flat_map(|&ring| &instance.rings[ring].flows).any(free)
        };
        let jobs: Vec<usize> = (0..instance.jobs.len()).filter(moves).collect();
        Self {
            instance,
            rate: least_loaded::rates(instance),
            jobs,
            flows_of: (0..instance.jobs.len())
                .map(|job| greedy::flows_of(instance, &[job]))
                .collect(),
            movable: (0..instance.flows.len())
                .filter(free)
                .filter(|&flow| instance.flows[flow].candidates.len() > 1)
                .collect(),
        }
    }

    /// Makes one random move. It may happen to change nothing.
    pub fn propose(&self, choice: &mut Choice, random: &mut Pcg64) {
        match random.random_range(0..100_u32) {
            0..20 => self.set_job_queue(choice, random),
            20..32 => self.swap_jobs(choice, random),
            32..42 => self.insert_job(choice, random),
            42..52 => self.set_flow_queue(choice, random),
            52..70 => self.repath_flow(choice, random),
            70..78 => self.exchange_paths(choice, random),
            78..86 => self.repath_job(choice, random),
            86..92 => self.repath_hot_pair(choice, random),
            92..97 => self.flatten_link(choice, random),
            _ => self.replan_by_paper(choice, random),
        }
    }

    fn job(&self, random: &mut Pcg64) -> Option<usize> {
        self.jobs.choose(random).copied()
    }

    fn queue(&self, random: &mut Pcg64) -> u8 {
        random.random_range(0..self.instance.levels)
    }

    fn set_queue(&self, choice: &mut Choice, job: usize, queue: u8) {
        for &flow in &self.flows_of[job] {
            choice.queue[flow] = queue;
        }
    }

    /// The queue most of a job's flows have; the highest of equals.
    fn queue_of(&self, choice: &Choice, job: usize) -> u8 {
        let mut count = [0_usize; 8];
        for &flow in &self.flows_of[job] {
            count[usize::from(choice.queue[flow])] += 1;
        }
        (0..8_u8).max_by_key(|&queue| count[usize::from(queue)]).unwrap_or(0)
    }

    fn set_job_queue(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let Some(job) = self.job(random) {
            let queue = self.queue(random);
            self.set_queue(choice, job, queue);
        }
    }

    fn swap_jobs(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let (Some(a), Some(b)) = (self.job(random), self.job(random)) {
            let (of_a, of_b) = (self.queue_of(choice, a), self.queue_of(choice, b));
            self.set_queue(choice, a, of_b);
            self.set_queue(choice, b, of_a);
        }
    }

    /// A job gets a queue of its own between the others: those at or below it move down, as far as there is room.
    fn insert_job(&self, choice: &mut Choice, random: &mut Pcg64) {
        let Some(job) = self.job(random) else { return };
        let queue = self.queue(random);
        let down = random.random_bool(0.5);
        let top = self.instance.levels - 1;
        for other in &mut choice.queue {
            if down && *other <= queue {
                *other = other.saturating_sub(1);
            } else if !down && *other >= queue {
                *other = (*other + 1).min(top);
            }
        }
        self.set_queue(choice, job, queue);
    }

    fn set_flow_queue(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let Some(flow) = (0..choice.queue.len()).collect::<Vec<_>>().choose(random) {
            choice.queue[*flow] = self.queue(random);
        }
    }

    fn repath_flow(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let Some(&flow) = self.movable.choose(random) {
            let count = self.instance.flows[flow].candidates.len();
            choice.path[flow] = random.random_range(0..count) as u16;
        }
    }

    /// Two flows that could take each other's candidate (by index) exchange them.
    fn exchange_paths(&self, choice: &mut Choice, random: &mut Pcg64) {
        let (Some(&a), Some(&b)) = (self.movable.choose(random), self.movable.choose(random))
        else {
            return;
        };
        let fits =
            |flow: usize, path: u16| usize::from(path) < self.instance.flows[flow].candidates.len();
        if fits(a, choice.path[b]) && fits(b, choice.path[a]) {
            choice.path.swap(a, b);
        }
    }

    /// Takes the given flows off the fabric and places them again, in random order, where the load is least.
    fn replace(&self, choice: &mut Choice, flows: &mut [usize], random: &mut Pcg64) {
        let mut loads = greedy::Loads::new(self.instance);
        for flow in 0..choice.path.len() {
            if !flows.contains(&flow) {
                loads.add(self.instance, flow, usize::from(choice.path[flow]), self.rate[flow]);
            }
        }
        flows.shuffle(random);
        for &mut flow in flows {
            let path = loads.least(self.instance, flow, self.rate[flow]);
            loads.add(self.instance, flow, path, self.rate[flow]);
            choice.path[flow] = path as u16;
        }
    }

    fn repath_job(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let Some(job) = self.job(random) {
            let mut flows = self.flows_of[job].clone();
            let two = random.random_bool(0.3);
            if let Some(other) = self.job(random).filter(|&other| two && other != job) {
                flows.extend_from_slice(&self.flows_of[other]);
            }
            self.replace(choice, &mut flows, random);
        }
    }

    /// Links between switches by average load, hottest first, as far as some flow could avoid them.
    fn hot_link(&self, choice: &Choice, random: &mut Pcg64) -> Option<usize> {
        let mut load = vec![0.0_f64; self.instance.capacity.len()];
        for &flow in &self.movable {
            let path = self.instance.links(choice, flow);
            for &link in &path[1..path.len().max(2) - 1] {
                load[link] += self.rate[flow] / self.instance.capacity[link];
            }
        }
        let mut order: Vec<usize> = (0..load.len()).filter(|&link| load[link] > 0.0).collect();
        order.sort_by(|&a, &b| load[b].total_cmp(&load[a]).then(a.cmp(&b)));
        order.truncate(HOT_LINKS);
        order.choose(random).copied()
    }

    fn on_link(&self, choice: &Choice, link: usize) -> Vec<usize> {
        (0..choice.path.len())
            .filter(|&flow| self.instance.links(choice, flow).contains(&link))
            .collect()
    }

    fn repath_hot_pair(&self, choice: &mut Choice, random: &mut Pcg64) {
        let Some(link) = self.hot_link(choice, random) else { return };
        let mut flows = self.on_link(choice, link);
        flows.shuffle(random);
        flows.truncate(2);
        for flow in flows {
            let count = self.instance.flows[flow].candidates.len();
            choice.path[flow] = random.random_range(0..count) as u16;
        }
    }

    /// All flows on one link get the queue of one of them.
    fn flatten_link(&self, choice: &mut Choice, random: &mut Pcg64) {
        let link = random.random_range(0..self.instance.capacity.len());
        let flows = self.on_link(choice, link);
        if let Some(queue) = flows.choose(random).map(|&flow| choice.queue[flow]) {
            for flow in flows {
                choice.queue[flow] = queue;
            }
        }
    }

    fn replan_by_paper(&self, choice: &mut Choice, random: &mut Pcg64) {
        if let Some(job) = self.job(random) {
            paper::replan_job(self.instance, choice, job);
        }
    }
}

/// Among how many of the most loaded links a hot one is drawn.
const HOT_LINKS: usize = 4;
