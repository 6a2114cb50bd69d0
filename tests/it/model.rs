//! A model-based fuzzer of the P4Runtime server: well-formed updates are drawn from P4Info, some are made wrong in a way whose
//! code the specification knows, batches are sent in every mode, and after each the server must have answered as the
//! model allows and hold exactly what the model holds.
//!
//! A step is one seed, so a failing run shrinks to few steps. More of them by hand:
//!
//!     PROPTEST_CASES=20000 cargo test --release --test it whatever_happens

use crate::p4runtime_text as t;
use proptest::prelude::*;
use prost::Message as _;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::proto::p4::v1::write_request::Atomicity;
use ringpath::p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, ReadRequest, Uint128, Update, WriteRequest,
};
use ringpath::p4runtime::proto::ringpath::v1::RoleConfig;
use ringpath::p4runtime::rpc::{Code, Reply, Rpc};
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::switch::{Config, Switch};
use ringpath::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

mod draw;
mod mutate;
mod state;

use draw::Draw;
use state::{Key, Model, State, everything, key, sorted};

const NOW: Time = Time(1_000_000_000);
const ID: u64 = 5;
/// Runs if PROPTEST_CASES does not say.
const CASES: u32 = 48;

struct Program {
    index: Index,
    config: ForwardingPipelineConfig,
}

fn program(info: &str, json: &'static [u8]) -> Program {
    let index = Index::from_text(info).unwrap();
    let config = ForwardingPipelineConfig {
        p4info: Some(index.info().clone()),
        p4_device_config: json.into(),
        cookie: None,
    };
    Program { index, config }
}

static PROGRAMS: LazyLock<[Program; 3]> = LazyLock::new(|| {
    [
        program(
            include_str!("../../p4/build/entities.p4info.txtpb"),
            include_bytes!("../../p4/build/entities.json"),
        ),
        program(
            include_str!("../../p4/build/ringpath.p4info.txtpb"),
            include_bytes!("../../p4/build/ringpath.json"),
        ),
        program(
            include_str!("../../p4/build/router.p4info.txtpb"),
            include_bytes!("../../p4/build/router.json"),
        ),
    ]
});

/// A server with a primary of the default role and one of the role `few`, which may touch every other object.
struct Rig {
    server: Server<Switch>,
    few: BTreeSet<u32>,
}

impl Rig {
    fn new(program: &Program) -> Self {
        let config = Config { device_id: 1, ..Config::default() };
        let mut server = Server::new(Switch::new(config), Profile::Spec);
        let stream = server.open_stream();
        server.stream_message(NOW, stream, t::arbitration(ID));
        let set = t::pipeline(ID, Action::VerifyAndCommit, Some(program.config.clone()));
        assert_eq!(server.call(NOW, set), Ok(Reply::SetPipeline));
        let tables = program.index.tables().iter().map(|table| table.names.id);
        let profiles = program.index.profiles().iter().map(|profile| profile.names.id);
        let few: BTreeSet<u32> = tables.chain(profiles).step_by(2).collect();
        let value =
            RoleConfig { object_ids: few.iter().copied().collect(), ..RoleConfig::default() };
        let mut message = t::stream(
            "arbitration { device_id: 1 role { name: 'few' config { type_url: 'x/ringpath.v1.RoleConfig' } } election_id { low: 5 } }",
        );
        if let Some(
            ringpath::p4runtime::proto::p4::v1::stream_message_request::Update::Arbitration(update),
        ) = &mut message.update
        {
            update.role.as_mut().unwrap().config.as_mut().unwrap().value = value.encode_to_vec();
        }
        let stream = server.open_stream();
        assert_eq!(server.stream_message(NOW, stream, message).len(), 1);
        Self { server, few }
    }

    /// Everything that the server holds.
    fn read(&mut self, index: &Index) -> State {
        let request =
            ReadRequest { device_id: 1, entities: everything(index), ..ReadRequest::default() };
        let Ok(Reply::Read(entities)) = self.server.call(NOW, Rpc::Read(request)) else {
            panic!("a Read failed")
        };
        let mut state = State::new();
        for entity in entities {
            let name = key(&entity).unwrap();
            assert!(state.insert(name, sorted(entity.clone())).is_none(), "read twice: {entity:?}");
        }
        state
    }
}

/// Whose batch it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Primary,
    Few,
    Stranger,
    WrongId,
}

/// One update with what may come of it: nothing for "ask the model".
struct Sent {
    plain: Update,
    update: Update,
    wrong: Option<Code>,
    name: &'static str,
}

fn drawn(model: &Model<'_>, seed: u64) -> Sent {
    let mut draw = Draw::new(seed, model);
    let plain = draw.update();
    if draw.chance(3) {
        // Not every mutation fits every update: try some, in an order of chance.
        for _ in 0..12 {
            let (name, mutation) = mutate::MUTATIONS[draw.below(mutate::MUTATIONS.len())];
            let mut update = plain.clone();
            if let Some(code) = mutation(&mut draw, &mut update) {
                return Sent { plain, update, wrong: Some(code), name };
            }
        }
    }
    Sent { update: plain.clone(), plain, wrong: None, name: "" }
}

fn in_scope(few: &BTreeSet<u32>, update: &Update) -> bool {
    let of = |entry: &Option<ringpath::p4runtime::proto::p4::v1::TableEntry>| {
        entry.as_ref().map_or(0, |e| e.table_id)
    };
    let id = match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
        Some(Kinds::TableEntry(entry)) => entry.table_id,
        Some(Kinds::ActionProfileMember(member)) => member.action_profile_id,
        Some(Kinds::ActionProfileGroup(group)) => group.action_profile_id,
        Some(Kinds::DirectCounterEntry(direct)) => of(&direct.table_entry),
        Some(Kinds::DirectMeterEntry(direct)) => of(&direct.table_entry),
        None => return true,
        _ => 0,
    };
    few.contains(&id)
}

/// What was sent and what came back.
#[derive(Default)]
struct Tally {
    sent: BTreeMap<&'static str, u32>,
    codes: BTreeMap<Code, u32>,
    /// Kinds of keys that the model held.
    held: BTreeSet<usize>,
}

/// The place of a key's kind in `Key`.
fn kind_of(key: &Key) -> usize {
    match key {
        Key::Entry(..) => 0,
        Key::Default(_) => 1,
        Key::Member(..) => 2,
        Key::Group(..) => 3,
        Key::Counter(..) => 4,
        Key::Meter(..) => 5,
        Key::Register(..) => 6,
        Key::ValueSet(_) => 7,
        Key::Multicast(_) => 8,
        Key::Session(_) => 9,
        Key::Digest(_) => 10,
    }
}

/// Sends one batch.
fn step(rig: &mut Rig, model: &mut Model<'_>, seed: u64, tally: &mut Tally) {
    let (mode, sender) = {
        let mut draw = Draw::new(seed, model);
        let mode = [
            Atomicity::ContinueOnError,
            Atomicity::ContinueOnError,
            Atomicity::RollbackOnError,
            Atomicity::DataplaneAtomic,
        ][draw.below(4)];
        let sender = [Sender::Few, Sender::Stranger, Sender::WrongId]
            .get(draw.below(24))
            .copied()
            .unwrap_or(Sender::Primary);
        (mode, sender)
    };
    let count = 1 + seed % 5;
    // Each update is drawn from what the model would hold if all before it were executed.
    let before = model.clone();
    let (mut updates, mut allowed) = (Vec::new(), Vec::new());
    for number in 0..count {
        let sent = drawn(model, seed.wrapping_add(number + 1));
        *tally.sent.entry(sent.name).or_default() += 1;
        let wanted = match sent.wrong {
            // Whatever else may be wrong with it, the role is told first (section 12).
            _ if sender == Sender::Few && !in_scope(&rig.few, &sent.update) => {
                vec![Code::PermissionDenied]
            }
            // It may have been wrong in another way before.
            Some(code) => [vec![code], model.clone().execute(&sent.plain)].concat(),
            None => model.execute(&sent.update),
        };
        let mut update = sent.update;
        if sent.wrong.is_none() {
            mutate::harmless(&mut Draw::new(seed, &before), &mut update);
        }
        updates.push(update);
        allowed.push((sent.name, wanted));
    }
    let request = WriteRequest {
        device_id: 1,
        role: match sender {
            Sender::Few => "few".to_owned(),
            Sender::Stranger => "nobody".to_owned(),
            _ => String::new(),
        },
        election_id: Some(Uint128 { high: 0, low: if sender == Sender::WrongId { 4 } else { ID } }),
        updates: updates.clone(),
        atomicity: mode.into(),
        ..WriteRequest::default()
    };
    let result = rig.server.call(NOW, Rpc::Write(request));
    match sender {
        Sender::Stranger | Sender::WrongId => {
            let want =
                if sender == Sender::Stranger { Code::NotFound } else { Code::PermissionDenied };
            let failure = result.unwrap_err();
            assert_eq!((failure.code, failure.updates.len()), (want, 0), "{failure}");
            *model = before;
            return;
        }
        Sender::Primary | Sender::Few => {}
    }
    let codes = match &result {
        Ok(_) => vec![Code::Ok; updates.len()],
        Err(failure) => {
            failure.updates.iter().map(|e| Code::from_number(e.canonical_code)).collect()
        }
    };
    assert_eq!(codes.len(), updates.len(), "{result:?}");
    let first_bad = allowed.iter().position(|(_, wanted)| !wanted.is_empty());
    let atomic = mode != Atomicity::ContinueOnError;
    for (place, (code, (name, wanted))) in codes.iter().zip(&allowed).enumerate() {
        let fine = match first_bad {
            Some(bad) if atomic && place != bad => *code == Code::Aborted,
            _ if wanted.is_empty() => *code == Code::Ok,
            _ => wanted.contains(code),
        };
        let message = || match &result {
            Err(failure) => failure.updates[place].message.clone(),
            Ok(_) => String::new(),
        };
        *tally.codes.entry(*code).or_default() += 1;
        assert!(
            fine,
            "{name}: {:?} in {mode:?} as {sender:?}: got {code} ({}), allowed {wanted:?}",
            updates[place],
            message()
        );
    }
    if atomic && first_bad.is_some() {
        *model = before;
    }
}

fn compare(rig: &mut Rig, model: &Model<'_>) {
    let read = rig.read(model.index);
    for (name, wanted) in &model.state {
        assert_eq!(read.get(name), Some(wanted), "{name:?}");
    }
    let extra: Vec<&Entity> =
        read.iter().filter(|(name, _)| !model.state.contains_key(name)).map(|(_, e)| e).collect();
    assert!(extra.is_empty(), "the server holds more: {extra:?}");
}

fn session(program: &Program, seeds: &[u64], tally: &mut Tally) {
    let mut rig = Rig::new(program);
    let fresh = rig.read(&program.index);
    let mut model = Model::new(&program.index, fresh);
    for seed in seeds {
        step(&mut rig, &mut model, *seed, tally);
        compare(&mut rig, &model);
    }
    tally.held.extend(model.state.keys().map(kind_of));
}

/// Runs of a test: what PROPTEST_CASES says, else `normal`, divided by what a run costs more than those of others.
pub fn cases(normal: u32, cost: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(normal);
    ProptestConfig { cases: (asked / cost).max(1), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(CASES, 1))]

    #[test]
    fn the_server_holds_what_the_model_holds_whatever_happens(
        seeds in prop::collection::vec(any::<u64>(), 1..60),
    ) {
        session(&PROGRAMS[0], &seeds, &mut Tally::default());
    }
}

proptest! {
    // Our program takes long to load.
    #![proptest_config(cases(CASES, 12))]

    #[test]
    fn our_own_program_and_the_router_agree_with_the_model_whatever_happens(
        seeds in prop::collection::vec(any::<u64>(), 1..12), router: bool,
    ) {
        session(&PROGRAMS[if router { 2 } else { 1 }], &seeds, &mut Tally::default());
    }
}

/// A mutation that never fits, or a code that never comes, would prove nothing.
#[test]
fn every_mutation_is_sent_and_every_code_comes_back() {
    let mut tally = Tally::default();
    for round in 0..16_u64 {
        let seeds: Vec<u64> =
            (0..60).map(|n| (round * 60 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        session(&PROGRAMS[0], &seeds, &mut tally);
    }
    let never = mutate::MUTATIONS.iter().filter(|(name, _)| !tally.sent.contains_key(name));
    let never: Vec<_> = never.map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "{never:?}");
    for code in [
        Code::Ok,
        Code::AlreadyExists,
        Code::NotFound,
        Code::FailedPrecondition,
        Code::ResourceExhausted,
        Code::InvalidArgument,
        Code::OutOfRange,
        Code::PermissionDenied,
        Code::Aborted,
    ] {
        assert!(tally.codes.get(&code).is_some_and(|n| *n >= 3), "{code}: {:?}", tally.codes);
    }
    // Most of what is well-formed must take effect, or the state stays empty.
    assert!(tally.codes[&Code::Ok] > 500, "{:?}", tally.codes);
    for kind in 0..11 {
        assert!(
            tally.held.contains(&kind),
            "nothing of kind {kind} was ever held: {:?}",
            tally.held
        );
    }
}
