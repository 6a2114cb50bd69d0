//! The loose form of coupling, in small time steps: the slow twin of [`super::Fluid`] and the judge where the order of
//! two rings differs from link to link.
//!
//! In: an [`Instance`], a [`Choice`], [`Draws`] and a [`Window`]. Out: an [`Outcome`]. A rank may be at most `ahead`
//! bytes past what its predecessor delivered (it forwards what it received, plus what it holds from the start) and
//! `buffer` bytes past its successor (unconsumed receive buffers); NCCL's default buffer is 4 MB. Must not know: the
//! tight form.

use super::{Draws, Outcome};
use crate::solver::instance::{Choice, Instance};
use crate::solver::rate::{Layout, RateModel};

/// How far the flows of one ring may come apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Bytes a flow may be past the flow before it in the ring.
    pub ahead: f64,
    /// Bytes a flow may be past the flow after it in the ring.
    pub buffer: f64,
    /// Seconds of one step: the start of a phase is noticed up to this late.
    pub step: f64,
}

/// Steps simulated at most, so that a flow without capacity cannot hang the caller.
const STEPS_MAX: u64 = 20_000_000;

/// Times within one step that capacity is shared anew after a flow met its window.
const SUB_STEPS: usize = 16;

struct State {
    computing_until: Vec<f64>,
    send_at: Vec<f64>,
    iteration: Vec<u32>,
    sending: Vec<bool>,
    done: Vec<bool>,
    sent: Vec<f64>,
    comm_start: Vec<f64>,
    comm_sum: Vec<f64>,
    ended: Vec<f64>,
}

/// Runs every job to completion under the loose form.
#[must_use]
pub fn run(instance: &Instance, choice: &Choice, draws: &Draws, window: Window) -> Outcome {
    let layout = Layout::of_flows(instance, choice);
    let mut model = RateModel::new(instance.capacity.len());
    let mut state = start(instance, draws);
    for tick in 0..STEPS_MAX {
        if state.done.iter().all(|&done| done) {
            break;
        }
        turn_over(instance, draws, tick as f64 * window.step, &mut state);
        send(instance, &layout, &mut model, &mut state, window);
    }
    let jobs = instance.jobs.iter().enumerate();
    let counted = |iterations: u32| f64::from(iterations.saturating_sub(1).max(1));
    Outcome {
        comm: jobs.clone().map(|(id, job)| state.comm_sum[id] / counted(job.iterations)).collect(),
        window: jobs.map(|(id, _)| state.ended[id] - draws.start[id]).collect(),
        compute: draws.compute.iter().map(|times| times.iter().sum()).collect(),
        stalled: state.done.iter().map(|&done| !done).collect(),
    }
}

fn start(instance: &Instance, draws: &Draws) -> State {
    let jobs = instance.jobs.len();
    let first = |job: usize| draws.compute[job][0];
    let send_at = |job: usize| draws.start[job] + (1.0 - instance.jobs[job].overlap) * first(job);
    State {
        computing_until: (0..jobs).map(|job| draws.start[job] + first(job)).collect(),
        send_at: (0..jobs).map(send_at).collect(),
        iteration: vec![0; jobs],
        sending: vec![false; jobs],
        done: vec![false; jobs],
        sent: vec![0.0; instance.flows.len()],
        comm_start: vec![f64::INFINITY; jobs],
        comm_sum: vec![0.0; jobs],
        ended: vec![0.0; jobs],
    }
}

/// Starts communication phases and iterations that are due.
fn turn_over(instance: &Instance, draws: &Draws, now: f64, state: &mut State) {
    for (id, job) in instance.jobs.iter().enumerate() {
        if state.done[id] || now < state.send_at[id] {
            continue;
        }
        let flows =
            || job.rings.iter().flat_map(|&ring| instance.rings[ring].flows.iter().copied());
        if state.comm_start[id].is_infinite() {
            state.comm_start[id] = now;
            state.sending[id] = true;
            flows().for_each(|flow| state.sent[flow] = 0.0);
        }
        let whole = |flow: usize| instance.flows[flow].bytes * (1.0 - 1e-9);
        if state.sending[id] && flows().all(|flow| state.sent[flow] >= whole(flow)) {
            state.sending[id] = false;
            if state.iteration[id] > 0 || job.iterations == 1 {
                state.comm_sum[id] += now - state.comm_start[id];
            }
        }
        if !state.sending[id] && now >= state.computing_until[id] {
            state.iteration[id] += 1;
            state.comm_start[id] = f64::INFINITY;
            if state.iteration[id] >= job.iterations {
                state.done[id] = true;
                state.ended[id] = now;
                continue;
            }
            let compute = draws.compute[id][state.iteration[id] as usize];
            state.send_at[id] = now + (1.0 - job.overlap) * compute;
            state.computing_until[id] = now + compute;
        }
    }
}

/// One step: flows that their windows allow to send share the links; one that meets its window waits for the next step.
fn send(
    instance: &Instance,
    layout: &Layout,
    model: &mut RateModel,
    state: &mut State,
    window: Window,
) {
    let mut allowed = vec![0.0_f64; instance.flows.len()];
    let mut rates = vec![0.0; instance.flows.len()];
    for ring in instance.rings.iter().filter(|ring| state.sending[ring.job]) {
        let count = ring.flows.len();
        for (position, &flow) in ring.flows.iter().enumerate() {
            let before = ring.flows[(position + count - 1) % count];
            let after = ring.flows[(position + 1) % count];
            allowed[flow] = (instance.flows[flow].bytes - state.sent[flow])
                .min(state.sent[before] + window.ahead - state.sent[flow])
                .min(state.sent[after] + window.buffer - state.sent[flow]);
        }
    }
    let mut budget = window.step;
    for _ in 0..SUB_STEPS {
        let may_send = |&flow: &u32| allowed[flow as usize] > 1e-6;
        let active: Vec<u32> = (0..allowed.len() as u32).filter(may_send).collect();
        if active.is_empty() || budget <= 0.0 {
            break;
        }
        model.rates(layout, &instance.capacity, &active, &mut rates);
        let step = active
            .iter()
            .map(|&flow| allowed[flow as usize] / rates[flow as usize])
            .filter(|step| !step.is_nan())
            .fold(budget, f64::min);
        for &flow in &active {
            let moved = rates[flow as usize] * step;
            state.sent[flow as usize] += moved;
            allowed[flow as usize] -= moved;
        }
        budget -= step;
    }
}
