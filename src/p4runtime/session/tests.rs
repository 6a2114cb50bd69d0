//! Every event in every state against a table, and random sequences against invariants.

use super::*;
use crate::p4runtime::proto::google::rpc::Status;
use crate::p4runtime::proto::p4::v1::PacketIn;
use proptest::prelude::*;
use std::fmt::Write as _;

/// Rewritten by RINGPATH_BLESS=1; read the difference before committing it.
const TABLE: &str = "tests/data/session/transitions.txt";

fn answer(code: Code, epoch: Option<u64>) -> Event {
    let status = Status { code: code.number(), ..Status::default() };
    let update = MasterArbitrationUpdate {
        device_id: 1,
        election_id: epoch.map(id),
        status: Some(status),
        role: None,
    };
    Event::Message(StreamMessageResponse { update: Some(Response::Arbitration(update)) })
}

fn packet() -> Event {
    let packet = PacketIn { payload: vec![1], ..PacketIn::default() };
    Event::Message(StreamMessageResponse { update: Some(Response::Packet(packet)) })
}

fn ended(code: Code) -> Event {
    Event::Ended(StreamEnd { code, message: "gone".to_owned() })
}

fn start(takeover: bool) -> Event {
    Event::Start { takeover }
}

const LATE: Time = Time(60_000_000_000);

/// How to get into every state, with the stream closed or open. Epoch 100 is in use, 200 is reported by others.
fn states() -> Vec<(&'static str, Vec<Event>)> {
    let arbitrating = || vec![start(false), Event::Epoch(100)];
    let and = |mut events: Vec<Event>, more: Vec<Event>| {
        events.extend(more);
        events
    };
    vec![
        ("Idle", vec![]),
        ("AwaitEpoch, closed", vec![start(false)]),
        ("AwaitEpoch, open", and(arbitrating(), vec![answer(Code::NotFound, Some(200))])),
        ("Arbitrating", arbitrating()),
        ("Primary", and(arbitrating(), vec![answer(Code::Ok, Some(100))])),
        ("Foreign", and(arbitrating(), vec![answer(Code::AlreadyExists, Some(200))])),
        ("Backoff, closed", and(arbitrating(), vec![ended(Code::Unavailable)])),
        (
            "Backoff, open",
            vec![start(true), Event::Epoch(100), answer(Code::AlreadyExists, Some(200))],
        ),
    ]
}

fn events() -> Vec<(&'static str, Time, Event)> {
    let now = Time(0);
    vec![
        ("Start", now, start(false)),
        ("Start to take over", now, start(true)),
        ("Stop", now, Event::Stop),
        ("Epoch 100", now, Event::Epoch(100)),
        ("Epoch 300", now, Event::Epoch(300)),
        ("OK", now, answer(Code::Ok, Some(100))),
        ("ALREADY_EXISTS 200", now, answer(Code::AlreadyExists, Some(200))),
        ("ALREADY_EXISTS 50", now, answer(Code::AlreadyExists, Some(50))),
        ("NOT_FOUND 200", now, answer(Code::NotFound, Some(200))),
        ("NOT_FOUND 50", now, answer(Code::NotFound, Some(50))),
        ("NOT_FOUND without id", now, answer(Code::NotFound, None)),
        ("packet", now, packet()),
        ("ended INVALID_ARGUMENT", now, ended(Code::InvalidArgument)),
        ("ended UNAVAILABLE", now, ended(Code::Unavailable)),
        ("write denied", now, Event::Denied),
        ("timer, early", now, Event::Timer),
        ("timer, due", LATE, Event::Timer),
    ]
}

fn show(action: &Action) -> String {
    match action {
        Action::NeedEpoch { least } => format!("need epoch >= {least}"),
        Action::OpenStream => "open".to_owned(),
        Action::Send(message) => match &message.update {
            Some(Request::Arbitration(update)) => {
                format!("arbitrate {}", update.election_id.unwrap().high)
            }
            other => panic!("{other:?}"),
        },
        Action::CloseStream => "close".to_owned(),
        Action::Timer(at) => format!("timer {} ms", at.0 / 1_000_000),
        Action::Primary(id) => format!("PRIMARY {}", id.high),
        Action::Demoted => "DEMOTED".to_owned(),
        Action::Foreign(id) => format!("FOREIGN {}", id.high),
        Action::Failed(end) => format!("failed {}", end.code),
        Action::Deliver(_) => "deliver".to_owned(),
    }
}

fn name(session: &Session) -> String {
    let state = match session.state() {
        State::Idle => "Idle",
        State::AwaitEpoch => "AwaitEpoch",
        State::Arbitrating { .. } => "Arbitrating",
        State::Primary => "Primary",
        State::Foreign => "Foreign",
        State::Backoff { .. } => "Backoff",
    };
    format!("{state}{}", if session.open { ", open" } else { "" })
}

fn reach(events: Vec<Event>) -> Session {
    let mut session = Session::new(Config { device_id: 1, role: None });
    for event in events {
        let _ = session.step(Time(0), event);
    }
    session
}

#[test]
fn every_event_in_every_state_does_what_the_table_says() {
    let mut table = String::new();
    for (state, way) in states() {
        let _ = writeln!(table, "{state}");
        let session = reach(way);
        assert!(name(&session).starts_with(state.split(',').next().unwrap()));
        for (event, now, value) in events() {
            let mut session = session.clone();
            let actions: Vec<_> = session.step(now, value).iter().map(show).collect();
            let line = format!("  {event:24} -> {:18} {}", name(&session), actions.join(" | "));
            let _ = writeln!(table, "{}", line.trim_end());
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if std::env::var_os("RINGPATH_BLESS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    for (got, wanted) in table.lines().zip(wanted.lines()) {
        assert_eq!(got, wanted);
    }
    assert_eq!(table.lines().count(), wanted.lines().count());
}

#[test]
fn each_leadership_asks_for_an_epoch_of_its_own() {
    let mut session = reach(vec![start(false), Event::Epoch(100), Event::Stop]);
    assert_eq!(session.step(Time(0), start(false)), [Action::NeedEpoch { least: 100 }]);
}

#[test]
fn waits_double_up_to_the_longest_and_start_over_after_success() {
    let mut session = reach(vec![start(false), Event::Epoch(1)]);
    let mut now = Time(0);
    let mut waits = Vec::new();
    for _ in 0..7 {
        let _ = session.step(now, ended(Code::Unavailable));
        let State::Backoff { until } = session.state() else { panic!("no back-off") };
        waits.push((until - now).0 / 1_000_000);
        now = until;
        let _ = session.step(now, Event::Timer);
    }
    assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
    let _ = session.step(now, answer(Code::Ok, Some(1)));
    let _ = session.step(now, ended(Code::Unavailable));
    assert_eq!(session.state(), State::Backoff { until: now + BACKOFF_MIN });
}

#[test]
fn a_reported_id_that_cannot_be_beaten_does_not_loop() {
    let mut session = reach(vec![start(false), Event::Epoch(u64::MAX)]);
    let highest = Uint128 { high: u64::MAX, low: u64::MAX };
    let status = Status { code: Code::NotFound.number(), ..Status::default() };
    let update = MasterArbitrationUpdate {
        election_id: Some(highest),
        status: Some(status),
        ..MasterArbitrationUpdate::default()
    };
    let message = StreamMessageResponse { update: Some(Response::Arbitration(update)) };
    let _ = session.step(Time(0), Event::Message(message));
    assert!(matches!(session.state(), State::Backoff { .. }));
}

fn any_event() -> impl Strategy<Value = Event> {
    let code = prop_oneof![
        Just(Code::Ok),
        Just(Code::AlreadyExists),
        Just(Code::NotFound),
        Just(Code::InvalidArgument)
    ];
    prop_oneof![
        any::<bool>().prop_map(start),
        Just(Event::Stop),
        (0_u64..9).prop_map(Event::Epoch),
        (code, proptest::option::of(0_u64..9)).prop_map(|(code, epoch)| answer(code, epoch)),
        Just(packet()),
        Just(ended(Code::InvalidArgument)),
        Just(ended(Code::Unavailable)),
        Just(Event::Denied),
        Just(Event::Timer),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold(events in proptest::collection::vec((0_u64..3_000, any_event()), 1..60)) {
        let mut session = Session::new(Config { device_id: 1, role: None });
        let (mut now, mut open, mut primary, mut sent) = (Time(0), false, false, 0);
        let mut timer = None;
        for (wait, event) in events {
            now += Span::from_millis(wait);
            if matches!(event, Event::Ended(_)) {
                open = false;
            }
            let ok = matches!(&event, Event::Message(m) if matches!(&m.update, Some(Response::Arbitration(u)) if u.status.as_ref().unwrap().code == 0));
            for action in session.step(now, event.clone()) {
                match action {
                    Action::OpenStream => prop_assert!(!std::mem::replace(&mut open, true), "opened twice"),
                    Action::CloseStream => prop_assert!(std::mem::replace(&mut open, false), "closed twice"),
                    Action::Send(message) => {
                        prop_assert!(open, "sent on a closed stream");
                        let Some(Request::Arbitration(update)) = message.update else { panic!() };
                        let epoch = update.election_id.unwrap().high;
                        prop_assert!(epoch >= sent, "election ids never fall");
                        sent = epoch;
                    }
                    Action::Primary(id) => {
                        prop_assert!(ok && open && !primary, "primary only by an OK");
                        prop_assert_eq!(id.high, sent, "writes carry the id that was sent");
                        primary = true;
                    }
                    Action::Demoted => prop_assert!(std::mem::replace(&mut primary, false), "demoted twice"),
                    Action::Timer(at) => timer = Some(at),
                    _ => {}
                }
            }
            prop_assert_eq!(primary, session.is_primary());
            prop_assert_eq!(session.election_id().is_some(), primary);
            match session.state() {
                State::Arbitrating { until } | State::Backoff { until } => {
                    prop_assert_eq!(timer, Some(until), "waits only with a timer");
                }
                State::AwaitEpoch => prop_assert!(session.asked, "waits only for what was asked"),
                State::Primary | State::Foreign => prop_assert!(open),
                State::Idle => prop_assert!(!open),
            }
        }
    }
}
