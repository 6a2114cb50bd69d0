//! A fabric with jobs on it, drawn from a seed.
//!
//! In: a [`Case`]: sizes, rates, how full, a seed. Out: [`Drawn`]: a topology, jobs, flows and their candidate paths. Must not know:
//! policies.
//!
//! Models come evenly from the sourced table (a drawn order, gone through again and again), ring sizes from a list likewise; a size
//! that no longer fits gives way to the largest of the list that does. Compute times are spread by 10 % per job and by 3 % per
//! iteration; hosts are drawn, rings are sorted by host unless the case says otherwise.

use super::EvaluateError;
use crate::id::JobId;
use crate::solver::{InForce, Problem};
use crate::time::{Span, stream};
use crate::topology::generate::LeafSpine;
use crate::topology::{LinkSet, Path, Paths, Topology};
use crate::units::BitRate;
use crate::workload::place::{RingOrder, place};
use crate::workload::scenario::{DEFAULT_QUEUES, RESERVED_QUEUES, contention_free_iteration};
use crate::workload::{Flow, Job, flows, models};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

/// Longest contention-free periods that every job lasts: ten times as long as it is judged, so no plan can count on its end.
pub const LASTING_PERIODS: f64 = 480.0;
/// GPUs of a job on each of its hosts.
pub(super) const GPUS: u32 = 4;
/// Spread of compute times between jobs of one model.
pub(super) const SPREAD: f64 = 0.1;
/// Standard deviation of compute times between iterations.
pub(super) const JITTER: f64 = 0.03;

/// A leaf-spine fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fabric {
    /// Leaves.
    pub leaves: u32,
    /// Spines at 1:1.
    pub spines: u32,
    /// Hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// Factor by which the capacity above the leaves is cut.
    pub oversubscription: u32,
    /// By narrower cables instead of fewer spines.
    pub thin: bool,
    /// Rate of host cables in Gb/s. Fabric cables are as fast as makes the uncut fabric 1:1.
    pub gbps: u32,
}

impl Fabric {
    /// `4x4x4 2:1 thin 25G`.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { leaves, spines, hosts_per_leaf, oversubscription, thin, gbps } = self;
        let how = if *thin { " thin" } else { "" };
        format!("{leaves}x{spines}x{hosts_per_leaf} {oversubscription}:1{how} {gbps}G")
    }

    /// Hosts in all.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.leaves * self.hosts_per_leaf
    }

    fn build(&self) -> Result<Topology, String> {
        let host_link = BitRate(u64::from(self.gbps) * 1_000_000_000);
        let up = host_link.0 * u64::from(self.hosts_per_leaf) / u64::from(self.spines.max(1));
        let fabric = LeafSpine {
            fabric_link: BitRate(up),
            oversubscription: self.oversubscription,
            thin: self.thin,
            ..LeafSpine::new(self.leaves, self.spines, self.hosts_per_leaf, host_link)
        };
        fabric.build().map_err(|error| error.to_string())
    }
}

/// Everything that decides a fabric with jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The fabric.
    pub fabric: Fabric,
    /// Jobs that may share a host's interface.
    pub jobs_per_nic: u32,
    /// Places (hosts x jobs per interface) that are taken, in per cent, rounded down.
    pub full_percent: u32,
    /// Hosts per ring, in ascending order.
    pub sizes: Vec<usize>,
    /// How hosts are ordered in a ring.
    pub order: RingOrder,
    /// Draws everything else.
    pub seed: u64,
}

impl Case {
    /// Without its seed: `4x4x4 2:1 thin 25G, 2/NIC`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, {}/NIC", self.fabric.name(), self.jobs_per_nic)
    }

    /// Builds it.
    ///
    /// # Errors
    /// [`EvaluateError::Case`] if there is no such fabric or nothing fits on it.
    pub fn draw(&self) -> Result<Drawn, EvaluateError> {
        let topology = self.fabric.build().map_err(EvaluateError::Case)?;
        let places = self.fabric.hosts() * self.jobs_per_nic * self.full_percent / 100;
        self.populate(topology, &self.sizes_for(places as usize))
    }

    /// Sizes of rings that together take so many places.
    #[must_use]
    pub fn sizes_for(&self, places: usize) -> Vec<usize> {
        sizes(&self.sizes, places, self.seed)
    }

    /// Puts rings of these sizes on a fabric.
    ///
    /// # Errors
    /// As [`Self::draw`].
    pub fn populate(&self, topology: Topology, wanted: &[usize]) -> Result<Drawn, EvaluateError> {
        let taken = vec![0; topology.host_count()];
        let rings = place(wanted, &taken, self.jobs_per_nic, self.order, self.seed)
            .map_err(|error| EvaluateError::Case(error.to_string()))?;
        let models = models_in_turn(rings.len(), self.seed);
        let jobs: Vec<Job> = rings
            .into_iter()
            .zip(models)
            .enumerate()
            .map(|(id, (ranks, model))| {
                let mut random = stream(self.seed, "compute-spread", id as u64);
                let factor = random.random_range(1.0 - SPREAD..=1.0 + SPREAD);
                Job {
                    id: JobId::from(id),
                    name: format!("{}-{id}", model.name),
                    model: model.name.to_owned(),
                    ranks,
                    gpus_per_rank: GPUS,
                    gradient: model.gradient(),
                    compute: Span::from_secs_f64(model.compute().as_secs_f64() * factor),
                    overlap: 0.0,
                    jitter: JITTER,
                    iterations: 1,
                    start: Span::ZERO,
                    channels: 1,
                }
            })
            .collect();
        Drawn::new(topology, jobs).map_err(EvaluateError::Case)
    }
}

/// Ring sizes that together take `places` or, if the smallest no longer fits, a little less.
fn sizes(list: &[usize], places: usize, seed: u64) -> Vec<usize> {
    let mut random = stream(seed, "ring-sizes", 0);
    let mut bag: Vec<usize> = Vec::new();
    let mut left = places;
    let mut found = Vec::new();
    loop {
        if bag.is_empty() {
            bag = list.to_vec();
            bag.shuffle(&mut random);
        }
        let drawn = bag.pop().unwrap_or(0);
        let fits = if drawn <= left { Some(drawn) } else { None };
        let smaller = || list.iter().copied().filter(|size| *size <= left).max();
        match fits.or_else(smaller).filter(|size| *size > 0) {
            Some(size) => {
                left -= size;
                found.push(size);
            }
            None => return found,
        }
    }
}

fn models_in_turn(count: usize, seed: u64) -> Vec<&'static models::Model> {
    let mut order: Vec<&models::Model> = models::MODELS.iter().collect();
    order.shuffle(&mut stream(seed, "models", 0));
    order.into_iter().cycle().take(count).collect()
}

/// A fabric with jobs.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The fabric.
    pub topology: Topology,
    /// Jobs, each with as many iterations as fit into [`LASTING_PERIODS`].
    pub jobs: Vec<Job>,
    /// Flows.
    pub flows: Vec<Flow>,
    /// Candidate paths by flow.
    pub paths: Vec<Vec<Path>>,
    /// The longest contention-free period of a job, seconds.
    pub longest: f64,
}

impl Drawn {
    fn new(topology: Topology, mut jobs: Vec<Job>) -> Result<Self, String> {
        let periods: Vec<f64> = jobs
            .iter()
            .map(|job| contention_free_iteration(&topology, job).as_secs_f64())
            .collect();
        let longest = periods.iter().copied().fold(0.0, f64::max);
        last(&mut jobs, &periods, LASTING_PERIODS * longest);
        let flows = flows(&topology, &jobs).map_err(|error| error.to_string())?;
        let paths = Paths::build(&topology, &LinkSet::new(), crate::topology::DEFAULT_MAX_PATHS)
            .map_err(|error| error.to_string())?;
        let paths = flows.iter().map(|flow| paths.candidates(&topology, flow.src, flow.dst));
        let paths = paths.collect();
        Ok(Self { paths, topology, jobs, flows, longest })
    }

    /// Gives every job as many iterations as fit into so many longest periods.
    pub fn shorten(&mut self, longest_periods: f64) {
        let period = |job: &Job| contention_free_iteration(&self.topology, job).as_secs_f64();
        let periods: Vec<f64> = self.jobs.iter().map(period).collect();
        last(&mut self.jobs, &periods, longest_periods * self.longest);
    }

    /// The problem that policies are given.
    #[must_use]
    pub fn problem(&self) -> Problem<'_> {
        Problem {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &self.flows,
            paths: &self.paths,
            levels: DEFAULT_QUEUES - RESERVED_QUEUES,
            in_force: InForce::default(),
        }
    }
}

/// As many iterations as fit into so many seconds, at least two.
fn last(jobs: &mut [Job], periods: &[f64], seconds: f64) {
    for (job, period) in jobs.iter_mut().zip(periods) {
        job.iterations = ((seconds / period).round() as u32).max(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(seed: u64) -> Case {
        let fabric = Fabric {
            leaves: 8,
            spines: 4,
            hosts_per_leaf: 8,
            oversubscription: 1,
            thin: false,
            gbps: 25,
        };
        Case {
            fabric,
            jobs_per_nic: 2,
            full_percent: 90,
            sizes: vec![2, 4, 4, 8, 16],
            order: RingOrder::Sorted,
            seed,
        }
    }

    #[test]
    fn nine_tenths_of_the_places_are_taken_by_sizes_and_models_of_the_lists() {
        for seed in 0..10 {
            let drawn = case(seed).draw().unwrap();
            let taken: usize = drawn.jobs.iter().map(|job| job.ranks.len()).sum();
            // 64 hosts x 2 x 90 % = 115; the smallest ring is 2.
            assert!((114..=115).contains(&taken), "{taken}");
            assert!(drawn.jobs.iter().all(|job| [2, 4, 8, 16].contains(&job.ranks.len())));
            assert!(drawn.jobs.iter().all(|job| job.ranks.is_sorted()));
            let of = |model: &str| drawn.jobs.iter().filter(|job| job.model == model).count();
            let counts: Vec<usize> = models::MODELS.iter().map(|model| of(model.name)).collect();
            let (least, most) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
            assert!(most - least <= 1, "{counts:?}");
        }
    }

    #[test]
    fn an_uncut_fabric_carries_all_its_hosts_and_a_cut_one_a_half() {
        let above = |oversubscription, thin| {
            let fabric = Fabric { oversubscription, thin, ..case(0).fabric };
            let topology = fabric.build().unwrap();
            let links = (0..topology.links().len() as u32).map(crate::id::LinkId);
            let inner = links.filter(|link| topology.is_inner(*link));
            inner.map(|link| topology.link(link).rate.0).sum::<u64>()
        };
        let hosts = 64 * 25_000_000_000_u64;
        assert_eq!(above(1, false), 2 * hosts);
        assert_eq!(above(2, false), hosts);
        assert_eq!(above(2, true), hosts);
    }

    #[test]
    fn one_seed_gives_one_case() {
        let jobs = |seed| case(seed).draw().unwrap().jobs;
        assert_eq!(jobs(1), jobs(1));
        assert_ne!(jobs(1), jobs(2));
    }
}
