//! Windows and what is believed.

use super::*;
use crate::id::FlowId;
use crate::pipeline::target::Tick;
use crate::pipeline::telemetry::{self as cells, Cell, Sample};
use crate::time::Span;
use crate::units::BitRate;

const FLOW: FlowId = FlowId(3);
const TENURE: Tenure = Tenure { slot: 5, epoch: 2, incarnation: 77 };
const LENGTH: Span = Span::from_millis(100);

fn telemetry() -> Telemetry {
    let rules = Rules { scale: 10.0, port_rate: BitRate(1_000_000_000) };
    let mut telemetry = Telemetry::new(rules);
    telemetry.follow(FLOW, TENURE);
    telemetry
}

fn cell() -> Cell {
    Cell {
        packets: 4,
        bytes: 4_000,
        active: 30_000,
        delay_sum: 100,
        delay_max: 40,
        depth_max: 3,
        first: u32::MAX - 10,
        last: 20,
    }
}

fn sample(interval: u32, totals: (u32, u32)) -> Sample {
    Sample {
        slot: 5,
        epoch: 2,
        interval,
        running: interval.wrapping_add(1),
        incarnation: 77,
        tick: Tick::default(),
        time_ticks: None,
        totals: cells::Totals { lost: totals.0, reordered: totals.1, ..Default::default() },
        cell: Some(cell()),
    }
}

fn take(telemetry: &mut Telemetry, number: u32, sample: &Sample) -> Result<(), Dropped> {
    telemetry.take(FLOW, (number, sample.interval), LENGTH, sample)
}

#[test]
fn a_sample_becomes_an_interval_at_full_size_with_differences_modulo_32_bits() {
    let mut telemetry = telemetry();
    take(&mut telemetry, 1, &sample(9, (u32::MAX - 1, u32::MAX))).unwrap();
    take(&mut telemetry, 2, &sample(10, (3, 1))).unwrap();
    take(&mut telemetry, 3, &sample(11, (1, 1))).unwrap();
    let window = telemetry.window(FLOW).unwrap();
    let lost: Vec<i64> = window.iter().flatten().map(|interval| interval.lost).collect();
    let reordered: Vec<u64> = window.iter().flatten().map(|interval| interval.reordered).collect();
    // A new slot counts from zero: two packets that came late for what the epoch never had.
    assert_eq!((lost, reordered), (vec![-2, 5, -2], vec![u64::from(u32::MAX), 2, 0]));
    let wanted = Interval {
        number: 3,
        length: LENGTH,
        packets: 4,
        bytes: 40_000,
        active: Span::from_millis(30),
        delay_mean: Span::from_micros(25),
        delay_max: Span::from_micros(40),
        depth_max: 3,
        lost: -2,
        reordered: 0,
    };
    assert_eq!(window.last(), Some(&wanted));
    assert_eq!((telemetry.totals().samples, telemetry.totals().bytes_seen), (3, 120_000));
}

#[test]
fn spans_follow_the_length_of_the_switch_s_tick() {
    let mut telemetry = telemetry();
    let tick = crate::pipeline::Target::Tofino.tick();
    take(&mut telemetry, 1, &Sample { tick, ..sample(9, (0, 0)) }).unwrap();
    let window = telemetry.window(FLOW).unwrap();
    let spans = window.last().map(|i| (i.active.0, i.delay_mean.0, i.delay_max.0));
    assert_eq!(spans, Some((30_720_000, 25_600, 40_960)));
}

#[test]
fn an_interval_without_packets_is_there_and_a_missing_one_is_a_gap() {
    let mut telemetry = telemetry();
    take(&mut telemetry, 4, &Sample { cell: None, ..sample(1, (0, 0)) }).unwrap();
    telemetry.miss(FLOW, 5, Missing::NoAnswer);
    take(&mut telemetry, 7, &sample(4, (0, 0))).unwrap();
    let window = telemetry.window(FLOW).unwrap();
    let packets: Vec<_> = window.iter().map(|place| place.map(|i| (i.number, i.packets))).collect();
    assert_eq!(packets, [Some((4, 0)), None, None, Some((7, 4))]);
    assert_eq!(
        (window.get(4).map(|i| i.packets), window.get(5), window.get(8)),
        (Some(0), None, None)
    );
    assert_eq!((window.missing(), window.newest(), telemetry.totals().missing), (2, Some(7), 1));
}

#[test]
fn samples_of_another_tenant_life_or_interval_are_dropped_and_counted() {
    let good = sample(9, (5, 0));
    let cases = [
        (Sample { epoch: 3, ..good }, Dropped::Epoch),
        (Sample { incarnation: 0, ..good }, Dropped::Incarnation),
        (Sample { slot: 6, ..good }, Dropped::Incarnation),
        (Sample { running: 11, ..good }, Dropped::Interval),
        (Sample { running: 9, ..good }, Dropped::Interval),
    ];
    for (bad, reason) in cases {
        let mut telemetry = telemetry();
        take(&mut telemetry, 1, &sample(8, (0, 0))).unwrap();
        assert_eq!(take(&mut telemetry, 2, &bad), Err(reason));
        assert_eq!(telemetry.totals().dropped.get(&reason), Some(&1), "{reason:?}");
        assert!(telemetry.window(FLOW).unwrap().last().is_none(), "missing, not the old one");
        assert_eq!(telemetry.take(FLOW, (3, 7), LENGTH, &good), Err(Dropped::Interval));
    }
    assert_eq!(telemetry().take(FlowId(9), (1, 9), LENGTH, &good), Err(Dropped::Unknown));
}

#[test]
fn a_new_flow_has_no_packets_until_its_epoch_is_seen_and_a_rebased_one_has_no_sample() {
    let mut telemetry = telemetry();
    let old = Sample { epoch: 1, ..sample(1, (50, 50)) };
    take(&mut telemetry, 1, &old).unwrap();
    assert_eq!(telemetry.window(FLOW).unwrap().last().map(|i| (i.packets, i.lost)), Some((0, 0)));
    take(&mut telemetry, 2, &sample(2, (1, 0))).unwrap();
    assert_eq!(telemetry.window(FLOW).unwrap().last().map(|i| (i.packets, i.lost)), Some((4, 1)));
    telemetry.follow(FLOW, Tenure { epoch: 3, incarnation: 78, ..TENURE });
    let next = |interval, lost| Sample { epoch: 3, incarnation: 78, ..sample(interval, (lost, 0)) };
    // Packets of before still carry the old epoch, and the first interval of the new one begins in its middle.
    let before = Sample { incarnation: 78, ..sample(3, (0, 0)) };
    assert_eq!(take(&mut telemetry, 3, &before), Err(Dropped::Epoch));
    assert_eq!(take(&mut telemetry, 4, &next(4, 9)), Err(Dropped::Rebased));
    take(&mut telemetry, 5, &next(5, 10)).unwrap();
    assert_eq!(telemetry.window(FLOW).unwrap().last().map(|i| i.lost), Some(1));
}

#[test]
fn a_flow_of_before_a_restart_of_the_controller_starts_with_a_base() {
    let mut telemetry = telemetry();
    telemetry.resume(FlowId(4), TENURE);
    let first = sample(1, (500, 0));
    assert_eq!(telemetry.take(FlowId(4), (1, 1), LENGTH, &first), Err(Dropped::Rebased));
    telemetry.take(FlowId(4), (2, 2), LENGTH, &sample(2, (501, 0))).unwrap();
    assert_eq!(telemetry.window(FlowId(4)).unwrap().last().map(|i| i.lost), Some(1));
}

#[test]
fn cells_that_no_port_could_have_filled_are_not_believed() {
    let good = sample(1, (0, 0));
    let with = |cell: Cell| Sample { cell: Some(cell), ..good };
    // 1 Gb/s over a scale of 10 carries 1.25 MB in 100 ms.
    let most = 2 * 1_250_000 + 65_536;
    for (bad, fine) in [
        (Cell { bytes: most + 1, ..cell() }, Cell { bytes: most, ..cell() }),
        (Cell { packets: 201, ..cell() }, Cell { packets: 200, ..cell() }),
        (Cell { packets: 0, ..cell() }, Cell { packets: 1, delay_sum: 40, ..cell() }),
        (Cell { delay_sum: 161, ..cell() }, Cell { delay_sum: 160, ..cell() }),
        (Cell { first: 21, ..cell() }, Cell { first: 20, ..cell() }),
    ] {
        let mut telemetry = telemetry();
        assert_eq!(take(&mut telemetry, 1, &with(bad)), Err(Dropped::Impossible), "{bad:?}");
        assert_eq!(take(&mut telemetry, 1, &with(fine)), Ok(()), "{fine:?}");
    }
}

#[test]
fn a_window_is_bounded_and_ignores_what_is_not_newer() {
    let mut window = Window::default();
    let interval = |number| Interval { number, ..Interval::default() };
    let start = u32::MAX - 3;
    (0..200).for_each(|i| window.push(interval(start.wrapping_add(i))));
    assert_eq!((window.len(), window.newest()), (WINDOW_INTERVALS, Some(195)));
    window.push(interval(150));
    assert_eq!((window.len(), window.get(150).is_some(), window.newest()), (64, true, Some(195)));
    window.miss(100_000);
    assert_eq!((window.len(), window.missing(), window.last()), (64, 64, None));
    assert_eq!(window.tail(3).count(), 3);
}
