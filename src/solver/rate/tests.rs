use super::*;
use proptest::prelude::*;

const LINKS: usize = 6;

fn demand(link: u32, queue: u8) -> Demand {
    Demand { link, queue, count: 1 }
}

fn rates_of(capacity: &[f64], units: &[Vec<Demand>]) -> Vec<f64> {
    let layout = Layout::from_demands(units);
    let active: Vec<u32> = (0..units.len() as u32).collect();
    let mut rates = vec![0.0; units.len()];
    RateModel::new(capacity.len()).rates(&layout, capacity, &active, &mut rates);
    rates
}

fn close(got: &[f64], wanted: &[f64]) {
    for (g, w) in got.iter().zip(wanted) {
        assert!((g - w).abs() <= 1e-6 * w.abs().max(1.0), "got {got:?}, wanted {wanted:?}");
    }
}

#[test]
fn one_link_serves_the_higher_queue_first_and_shares_inside_a_queue() {
    let unit = |queue| vec![demand(0, queue)];
    close(&rates_of(&[12.0], &[unit(1), unit(1), unit(1)]), &[4.0; 3]);
    close(&rates_of(&[12.0], &[unit(0), unit(3), unit(3)]), &[0.0, 6.0, 6.0]);
}

#[test]
fn what_a_higher_unit_cannot_use_goes_to_the_lower() {
    // The high unit is held at 2 by link 1; the low one gets the rest of link 0.
    let high = vec![demand(0, 5), demand(1, 5)];
    close(&rates_of(&[10.0, 2.0], &[high, vec![demand(0, 0)]]), &[2.0, 8.0]);
}

#[test]
fn a_parking_lot_gives_the_long_unit_the_scarcest_share() {
    // Links 0 and 1 of 10; link 1 has two more users: 10/3 for the long one, the rest of link 0 for its neighbour.
    let long = vec![demand(0, 0), demand(1, 0)];
    let units = [long, vec![demand(0, 0)], vec![demand(1, 0)], vec![demand(1, 0)]];
    let third = 10.0 / 3.0;
    close(&rates_of(&[10.0, 10.0], &units), &[third, 10.0 - third, third, third]);
}

#[test]
fn a_ring_with_two_flows_on_a_link_counts_twice_there() {
    let ring = vec![Demand { link: 0, queue: 0, count: 2 }];
    close(&rates_of(&[12.0], &[ring, vec![demand(0, 0)]]), &[4.0, 4.0]);
}

#[test]
fn two_queues_of_one_ring_on_one_link_move_at_the_lower_one() {
    let layout = Layout::from_demands(&[vec![demand(0, 5), demand(0, 2)]]);
    assert_eq!(layout.demands(0), [Demand { link: 0, queue: 2, count: 2 }]);
}

#[test]
fn a_ring_that_sends_nothing_is_not_limited() {
    let rates = rates_of(&[1.0], &[Vec::new(), vec![demand(0, 0)]]);
    assert_eq!(rates, [f64::INFINITY, 1.0]);
}

#[test]
fn a_link_without_capacity_gives_nothing() {
    close(
        &rates_of(&[0.0, 5.0], &[vec![demand(0, 0), demand(1, 0)], vec![demand(1, 0)]]),
        &[0.0, 5.0],
    );
}

#[test]
fn different_orders_on_different_links_are_followed_link_by_link() {
    // B is above A on link 0, A above C on link 1, C alone on link 2 with B above it.
    let a = vec![demand(0, 1), demand(1, 4)];
    let b = vec![demand(0, 3), demand(2, 5)];
    let c = vec![demand(1, 2), demand(2, 0)];
    // B 4 (link 2), A 10 - 4 = 6 (link 0), C min(8 - 6, 4 - 4) = 0.
    close(&rates_of(&[10.0, 8.0, 4.0], &[a, b, c]), &[6.0, 4.0, 0.0]);
}

#[test]
fn rings_that_wait_for_each_other_in_a_circle_share() {
    let a = vec![demand(0, 1), demand(1, 0)];
    let b = vec![demand(0, 0), demand(1, 1)];
    close(&rates_of(&[10.0, 10.0], &[a, b]), &[5.0, 5.0]);
}

fn capacities() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((1_u32..=40).prop_map(f64::from), LINKS)
}

fn unit(mixed: bool) -> impl Strategy<Value = Vec<Demand>> {
    let links = prop::collection::btree_map(0..LINKS as u32, (0_u8..4, 1_u16..=2), 1..=4);
    (links, 0_u8..4).prop_map(move |(links, queue)| {
        links
            .into_iter()
            .map(|(link, (own, count))| Demand {
                link,
                queue: if mixed { own } else { queue },
                count,
            })
            .collect()
    })
}

fn units(mixed: bool) -> impl Strategy<Value = Vec<Vec<Demand>>> {
    prop::collection::vec(unit(mixed), 1..10)
}

fn all(units: &[Vec<Demand>]) -> (Layout, Vec<u32>) {
    (Layout::from_demands(units), (0..units.len() as u32).collect())
}

proptest! {
    #[test]
    fn the_fast_form_agrees_with_the_slow_twin(capacity in capacities(), units in units(false)) {
        let (layout, active) = all(&units);
        close(&rates_of(&capacity, &units), &slow_rates(&layout, &capacity, &active));
    }

    #[test]
    fn the_fast_form_agrees_with_the_slow_twin_on_many_units(
        capacity in capacities(),
        units in prop::collection::vec(unit(false), 30..60),
    ) {
        let (layout, active) = all(&units);
        close(&rates_of(&capacity, &units), &slow_rates(&layout, &capacity, &active));
    }

    #[test]
    fn every_unit_is_limited_where_the_certificate_says(capacity in capacities(), units in units(false)) {
        let (layout, active) = all(&units);
        prop_assert!(limited_everywhere(&layout, &capacity, &active, &rates_of(&capacity, &units)));
    }

    #[test]
    fn mixed_queues_fill_no_link_over_and_leave_no_unit_that_could_rise(
        capacity in capacities(),
        units in units(true),
    ) {
        let rates = rates_of(&capacity, &units);
        let mut carried = [0.0; LINKS];
        for (unit, rate) in units.iter().zip(&rates) {
            for demand in unit {
                carried[demand.link as usize] += rate * f64::from(demand.count);
            }
        }
        for link in 0..LINKS {
            prop_assert!(carried[link] <= capacity[link] * (1.0 + 1e-6));
        }
        let full = |demand: &Demand| {
            let link = demand.link as usize;
            carried[link] >= capacity[link] * (1.0 - 1e-6)
        };
        for unit in &units {
            prop_assert!(unit.iter().any(full), "{units:?} {rates:?}");
        }
    }

    #[test]
    fn the_mixed_form_equals_the_queue_form_when_queues_do_not_mix(
        capacity in capacities(),
        units in units(false),
    ) {
        let (mut layout, active) = all(&units);
        let plain = rates_of(&capacity, &units);
        // Hide that each unit has one queue: the general algorithm must find the same rates.
        layout.queue.iter_mut().for_each(|queue| *queue = None);
        let mut rates = vec![0.0; units.len()];
        RateModel::new(LINKS).rates(&layout, &capacity, &active, &mut rates);
        close(&rates, &plain);
    }

    #[test]
    fn the_order_of_units_does_not_matter(
        capacity in capacities(),
        units in units(true),
        seed in any::<u64>(),
    ) {
        use rand::seq::SliceRandom as _;
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.shuffle(&mut crate::time::stream(seed, "shuffle", 0));
        let shuffled: Vec<_> = order.iter().map(|&unit| units[unit].clone()).collect();
        let (plain, other) = (rates_of(&capacity, &units), rates_of(&capacity, &shuffled));
        let back: Vec<f64> = order.iter().map(|&unit| plain[unit]).collect();
        close(&other, &back);
    }

    #[test]
    fn lower_queues_take_nothing_from_higher_ones(capacity in capacities(), units in units(false)) {
        let high: Vec<_> = units.iter().filter(|unit| unit[0].queue >= 2).cloned().collect();
        let kept: Vec<f64> = units
            .iter()
            .zip(rates_of(&capacity, &units))
            .filter(|(unit, _)| unit[0].queue >= 2)
            .map(|(_, rate)| rate)
            .collect();
        close(&rates_of(&capacity, &high), &kept);
    }

    #[test]
    fn rates_scale_with_capacity(capacity in capacities(), units in units(true)) {
        let twice: Vec<f64> = capacity.iter().map(|c| 2.0 * c).collect();
        let doubled: Vec<f64> = rates_of(&capacity, &units).iter().map(|r| 2.0 * r).collect();
        close(&rates_of(&twice, &units), &doubled);
    }

    // On one link both are theorems; on a network max-min may take from one unit what helps another.
    #[test]
    fn on_one_link_more_priority_or_capacity_never_hurts(
        capacity in 1.0_f64..40.0,
        more in 0.0_f64..10.0,
        queues in prop::collection::vec((0_u8..4, 1_u16..=3), 1..8),
        pick in any::<prop::sample::Index>(),
    ) {
        let unit = |&(queue, count): &(u8, u16)| vec![Demand { link: 0, queue, count }];
        let units: Vec<_> = queues.iter().map(unit).collect();
        let before = rates_of(&[capacity], &units);
        let wider = rates_of(&[capacity + more], &units);
        prop_assert!(before.iter().zip(&wider).all(|(b, w)| *w >= *b - 1e-9));
        let pick = pick.index(units.len());
        let mut raised = units;
        raised[pick][0].queue += 1;
        prop_assert!(rates_of(&[capacity], &raised)[pick] >= before[pick] - 1e-9);
    }
}
