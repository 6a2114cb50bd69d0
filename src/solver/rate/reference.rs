//! The slow twin of the rate model and the certificate that rates are right.
//!
//! In: as the rate model. Out: rates found by the textbook loop over all links, and a check that needs no algorithm at
//! all. Must not know: the fast form.

use super::{Layout, SAME};

/// Rates of `active` units by progressive filling (Bertsekas & Gallager, "Data Networks", 6.5.2), one queue after the
/// other, every unit looked at on every link in every step. For units with a single queue each; `rates` as in the
/// fast form.
#[must_use]
pub fn slow_rates(layout: &Layout, capacity: &[f64], active: &[u32]) -> Vec<f64> {
    let mut rates = vec![0.0; layout.len()];
    let mut residual = capacity.to_vec();
    for queue in (0..=u8::MAX).rev() {
        let mut rising: Vec<u32> = active
            .iter()
            .copied()
            .filter(|&unit| layout.demands(unit as usize).iter().any(|d| d.queue == queue))
            .collect();
        while !rising.is_empty() {
            let crossing = |link: usize| -> f64 {
                rising
                    .iter()
                    .flat_map(|&unit| layout.demands(unit as usize))
                    .filter(|demand| demand.link as usize == link)
                    .map(|demand| f64::from(demand.count))
                    .sum()
            };
            let step = (0..capacity.len())
                .filter(|&link| crossing(link) > 0.0)
                .map(|link| residual[link].max(0.0) / crossing(link))
                .fold(f64::INFINITY, f64::min);
            let used: Vec<f64> = (0..capacity.len()).map(|link| step * crossing(link)).collect();
            for (left, used) in residual.iter_mut().zip(&used) {
                *left -= used;
            }
            for &unit in &rising {
                rates[unit as usize] += step;
            }
            rising.retain(|&unit| {
                layout
                    .demands(unit as usize)
                    .iter()
                    .all(|d| residual[d.link as usize] > SAME * capacity[d.link as usize])
            });
        }
    }
    rates
}

/// The certificate: whether no link carries more than it can and every active unit is limited at one of its links
/// (the link is full, nothing in a lower queue moves there, nobody in the same queue is faster).
#[must_use]
pub fn limited_everywhere(
    layout: &Layout,
    capacity: &[f64],
    active: &[u32],
    rates: &[f64],
) -> bool {
    let slack = 1e-6;
    let on =
        |link: u32| {
            active.iter().flat_map(move |&unit| {
                layout.demands(unit as usize).iter().filter(move |demand| demand.link == link).map(
                    move |demand| (demand.queue, f64::from(demand.count), rates[unit as usize]),
                )
            })
        };
    let carried = |link: u32| on(link).map(|(_, count, rate)| count * rate).sum::<f64>();
    let feasible =
        (0..capacity.len()).all(|link| carried(link as u32) <= capacity[link] * (1.0 + slack));
    let limited = |unit: u32| {
        let rate = rates[unit as usize];
        layout.demands(unit as usize).iter().any(|demand| {
            let room = slack * capacity[demand.link as usize];
            carried(demand.link) >= capacity[demand.link as usize] - room
                && on(demand.link).all(|(queue, _, other)| {
                    (queue >= demand.queue || other <= room)
                        && (queue != demand.queue || other <= rate + room)
                })
        })
    };
    feasible && active.iter().all(|&unit| layout.demands(unit as usize).is_empty() || limited(unit))
}
