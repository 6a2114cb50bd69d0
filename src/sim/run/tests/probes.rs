//! Probes over the packet network and the compiled program: what crosses cables there is what the switches make of it.

use super::*;
use crate::controller::{ProbeConfig, TelemetryConfig, TelemetryWay};
use crate::id::LinkId;
use crate::sim::packet::Forwarder as _;
use crate::sim::world::World;
use crate::time::Time;

const INTERVAL: Span = Span::from_millis(10);

/// A run with probes, telemetry by readout packets on the same CPU ports, and at `fails` one direction that carries nothing from then on,
/// of which nobody tells.
fn probed(seed: u64, fails: Option<Span>) -> (World<DirectWire>, Option<(Time, LinkId)>) {
    let mut scenario = calm(seed);
    for job in &mut scenario.jobs {
        job.iterations *= 4;
    }
    let mut spec = spec(&scenario, WireKind::Direct);
    spec.options.probes = ProbeConfig { interval: Some(INTERVAL), ..ProbeConfig::default() };
    spec.options.telemetry = TelemetryConfig {
        way: TelemetryWay::Readout,
        interval: INTERVAL,
        ..spec.options.telemetry
    };
    let assembly = assemble(&spec).expect("a world");
    let wire = DirectWire::new(&assembly.servers);
    let mut world = assembly.into_world(wire);
    let mut failed = None;
    let ended = world.run(&mut |world: &mut World<DirectWire>, now, _| {
        let due = |origin| fails.is_some_and(|after| now >= origin + after);
        if failed.is_none() && world.origin().is_some_and(due) {
            let crossed = world.core.goals().values().find(|goal| goal.path.links.len() == 4);
            let link = crossed.expect("a flow between leaves").path.links[1];
            world.net.set_link(&mut world.queue, now, link, (false, 1.0));
            // Only the fibre out is broken: the port itself is up, and so is what comes in by it.
            let (from, port) =
                (world.topology.link(link).from, world.topology.link(link).from_port);
            let from = world.topology.as_switch(from).expect("a switch");
            world.net.forwarder_mut(from).set_port(now, port, true, None);
            failed = Some((now, link));
        }
        Ok::<(), WorldError>(())
    });
    ended.expect("all jobs end");
    (world, failed)
}

fn deaths(world: &World<DirectWire>) -> Vec<(Time, LinkId)> {
    let dead = |(at, notice): &(Time, Notice)| match notice {
        Notice::LinkDead { link, .. } => Some((*at, *link)),
        _ => None,
    };
    world.notices.iter().filter_map(dead).collect()
}

#[test]
fn a_link_that_fails_one_way_in_silence_is_found_by_its_probes_and_no_job_is_lost() {
    for seed in [1, 4] {
        let (world, failed) = probed(seed, Some(Span::from_millis(60)));
        let (at, link) = failed.expect("it failed");
        let found = deaths(&world);
        assert_eq!(found.iter().map(|(_, dead)| *dead).collect::<Vec<_>>(), [link], "seed {seed}");
        let took = found[0].0 - at;
        assert!(took > INTERVAL && took < Span(INTERVAL.0 * 9 / 2), "seed {seed}: after {took:?}");
        let around = |path: &crate::topology::Path| !path.links.contains(&link);
        assert!(world.core.goals().values().all(|goal| around(&goal.path)), "seed {seed}");
    }
}

#[test]
fn in_a_sound_fabric_no_probe_is_lost_beside_traffic_and_readouts_and_a_run_repeats() {
    let (world, _) = probed(2, None);
    let counts = world.core.probe_counts();
    assert!(counts.sent > 200 && counts.heard > 200, "{counts:?}");
    assert_eq!((counts.lost, counts.forged, counts.stale, counts.astray), (0, 0, 0, 0));
    assert_eq!(deaths(&world), []);
    assert_eq!(probed(2, None).0.digest(), world.digest());
}
