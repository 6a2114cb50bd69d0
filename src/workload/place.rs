//! Which hosts a job gets when the scenario gives only a number.
//!
//! In: how many hosts each job wants, how many jobs may share a host, a seed. Out: hosts in ring order per job.
//! Must not know: models, paths.

use crate::id::HostId;
use crate::time::stream;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// How the hosts of a job are ordered in its ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RingOrder {
    /// By host number, so that hosts of one leaf are neighbours: what NCCL does when it sees the racks.
    #[default]
    Sorted,
    /// As drawn: what happens when nobody sorts the host list.
    Shuffled,
}

/// More jobs want hosts than there are places.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} workers do not fit: {hosts} hosts take {per_host} jobs each, and no host serves one job twice; place \
     fewer workers or raise jobs_per_host"
)]
pub struct NoRoom {
    /// Workers of all jobs together.
    pub wanted: usize,
    /// Hosts.
    pub hosts: usize,
    /// Jobs that may share a host.
    pub per_host: u32,
}

/// Draws of the whole placement before the drawn order gives way to emptiest-first.
const TRIES: u64 = 64;

/// Hosts for each job, in ring order. `taken[h]` places of host `h` are in use already (explicitly placed jobs).
/// Hosts are drawn uniformly; if jobs drawn early leave too few distinct hosts for later ones, everything is drawn
/// again, and in the end big jobs choose first and take the emptiest hosts, which fits whenever anything fits.
///
/// # Errors
/// [`NoRoom`] when no placement exists.
pub fn place(
    wanted: &[usize],
    taken: &[u32],
    per_host: u32,
    order: RingOrder,
    seed: u64,
) -> Result<Vec<Vec<HostId>>, NoRoom> {
    if !fits(wanted, taken, per_host) {
        return Err(NoRoom { wanted: wanted.iter().sum(), hosts: taken.len(), per_host });
    }
    let mut rings = (0..TRIES)
        .find_map(|attempt| {
            anywhere(wanted, taken, per_host, &mut stream(seed, "placement", attempt))
        })
        .unwrap_or_else(|| {
            emptiest(wanted, taken, per_host, &mut stream(seed, "placement", TRIES))
        });
    if order == RingOrder::Sorted {
        rings.iter_mut().for_each(|ring| ring.sort_unstable());
    }
    Ok(rings)
}

/// Gale and Ryser 1957: jobs of sizes w₁ ≥ w₂ ≥ ... fit hosts with c_h free places iff for every k the k largest want no
/// more than `Σ_h min(c_h, k)`.
fn fits(wanted: &[usize], taken: &[u32], per_host: u32) -> bool {
    let mut sizes = wanted.to_vec();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let at_least = |k: u32| taken.iter().filter(|&&t| per_host.saturating_sub(t) >= k).count();
    let (mut asked, mut room) = (0, 0);
    sizes.iter().zip(1_u32..).all(|(size, k)| {
        asked += size;
        room += if k <= per_host { at_least(k) } else { 0 };
        asked <= room
    })
}

/// Every job in turn on hosts drawn uniformly among those with room; `None` if a job finds too few.
fn anywhere(
    wanted: &[usize],
    taken: &[u32],
    per_host: u32,
    rng: &mut Pcg64,
) -> Option<Vec<Vec<HostId>>> {
    let mut load = taken.to_vec();
    let mut free: Vec<usize> = (0..load.len()).filter(|&host| load[host] < per_host).collect();
    let mut rings = Vec::with_capacity(wanted.len());
    for &size in wanted {
        if free.len() < size {
            return None;
        }
        let drawn = free.partial_shuffle(rng, size).0.to_vec();
        for &host in &drawn {
            load[host] += 1;
        }
        if drawn.iter().any(|&host| load[host] >= per_host) {
            free.retain(|&host| load[host] < per_host);
        }
        rings.push(drawn.into_iter().map(HostId::from).collect());
    }
    Some(rings)
}

/// Big jobs first, each on the emptiest hosts, ties drawn: the greedy proof of Gale and Ryser.
fn emptiest(wanted: &[usize], taken: &[u32], per_host: u32, rng: &mut Pcg64) -> Vec<Vec<HostId>> {
    let mut by_load: Vec<Vec<usize>> = vec![Vec::new(); per_host as usize];
    for (host, &load) in taken.iter().enumerate() {
        if let Some(hosts) = by_load.get_mut(load as usize) {
            hosts.push(host);
        }
    }
    let mut jobs: Vec<usize> = (0..wanted.len()).collect();
    jobs.sort_by_key(|&job| std::cmp::Reverse(wanted[job]));
    let mut rings = vec![Vec::new(); wanted.len()];
    for job in jobs {
        let mut raised: Vec<(usize, usize)> = Vec::new();
        for (load, hosts) in by_load.iter_mut().enumerate() {
            let size = (wanted[job] - raised.len()).min(hosts.len());
            let mut drawn = hosts.partial_shuffle(rng, size).0.to_vec();
            drawn.sort_unstable();
            hosts.retain(|host| drawn.binary_search(host).is_err());
            raised.extend(drawn.into_iter().map(|host| (host, load + 1)));
        }
        for (host, load) in raised {
            rings[job].push(HostId::from(host));
            if let Some(hosts) = by_load.get_mut(load) {
                hosts.push(host);
            }
        }
    }
    rings
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_fabric_is_filled_to_the_last_place() {
        for seed in 0..50 {
            let rings = place(&[8, 8, 8, 8], &[0; 16], 2, RingOrder::Sorted, seed).unwrap();
            assert!(rings.iter().all(|ring| ring.is_sorted() && ring.len() == 8));
            for host in 0..16 {
                let shares = rings.iter().filter(|ring| ring.contains(&HostId(host))).count();
                assert_eq!(shares, 2);
            }
        }
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let draw = |seed| place(&[4, 4], &[0; 16], 2, RingOrder::Shuffled, seed).unwrap();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn too_many_workers_are_refused_with_the_numbers() {
        let error = place(&[4, 5], &[0, 0, 0, 0], 2, RingOrder::Sorted, 0).unwrap_err();
        assert_eq!(error, NoRoom { wanted: 9, hosts: 4, per_host: 2 });
    }

    proptest! {
        #[test]
        fn what_fits_by_counting_is_placed(
            wanted in proptest::collection::vec(1_usize..7, 1..6), per_host in 1_u32..4, seed in any::<u64>(),
        ) {
            // Gale-Ryser for equal capacities: fits iff the sum fits and no job wants more than all hosts.
            let fits = wanted.iter().sum::<usize>() <= 6 * per_host as usize
                && wanted.iter().all(|&w| w <= 6)
                && wanted.iter().map(|&w| w.min(6)).sum::<usize>() <= 6 * per_host as usize;
            let result = place(&wanted, &[0; 6], per_host, RingOrder::Shuffled, seed);
            prop_assert_eq!(result.is_ok(), fits, "{:?}", wanted);
            for (ring, want) in result.unwrap_or_default().iter().zip(&wanted) {
                let mut hosts = ring.clone();
                hosts.sort_unstable();
                hosts.dedup();
                prop_assert_eq!(hosts.len(), *want);
            }
        }
    }
}
