//! Sections 5 and 16: arbitration, packet-outs, acknowledgements, errors on the stream.

use super::{Row, Sent};

fn id(id: u64) -> String {
    format!("device_id: 1 election_id {{ low: {id} }}")
}

fn role(name: &str, id: u64) -> String {
    format!("device_id: 1 role {{ name: '{name}' }} election_id {{ low: {id} }}")
}

#[rustfmt::skip] // one row a line reads as a table
pub fn rows() -> Vec<Row> {
    let row = |section, what, steps: Vec<(usize, String)>, want: &str| Row::new(section, what, Sent::Arbitration(steps), want);
    let none = || "device_id: 1".to_owned();
    let close = || "close".to_owned();
    let bad = || "device_id: 1 role { config { type_url: 'x/y' } } election_id { low: 7 }".to_owned();
    let mut rows = vec![
        row("5.3", "the first with an id is primary", vec![(1, id(5))], "1: OK, id 5"),
        row("5.3", "a lower id is a backup, and only it is told", vec![(1, id(5)), (2, id(3))], "2: ALREADY_EXISTS, id 5"),
        row("5.3", "a higher id takes over, the others are told first", vec![(1, id(5)), (2, id(3)), (3, id(9))], "1: ALREADY_EXISTS, id 9; 2: ALREADY_EXISTS, id 9; 3: OK, id 9"),
        row("5.3", "a backup raises its id", vec![(1, id(5)), (2, id(3)), (2, id(6))], "1: ALREADY_EXISTS, id 6; 2: OK, id 6"),
        row("5.3", "a primary steps down", vec![(1, id(5)), (2, id(3)), (1, id(4))], "1: NOT_FOUND, id 5; 2: NOT_FOUND, id 5").pi("1: OK, id 4"),
        row("5.3", "an id lower than the highest ever is not enough", vec![(1, id(5)), (1, close()), (2, id(4))], "2: NOT_FOUND, id 5").pi("2: OK, id 4"),
        row("5.3", "the highest id ever is enough", vec![(1, id(5)), (1, close()), (2, id(5))], "2: OK, id 5"),
        row("5", "when the primary leaves, nobody is primary", vec![(1, id(5)), (2, id(3)), (1, close())], "2: NOT_FOUND, id 5").pi("2: OK, id 3"),
        row("5", "a backup that leaves concerns nobody", vec![(1, id(5)), (2, id(3)), (2, close())], "nothing is said"),
        row("5.3", "an unknown device", vec![(1, "device_id: 2 election_id { low: 9 }".into())], "1: ended NOT_FOUND"),
        row("5.3", "an id that another has", vec![(1, id(5)), (2, id(5))], "2: ended INVALID_ARGUMENT"),
        row("5.3", "an id that another has, from a live client", vec![(1, id(5)), (2, id(3)), (2, id(5))], "2: ended INVALID_ARGUMENT"),
        row("5.3", "another device on a live stream", vec![(1, id(5)), (1, "device_id: 2 election_id { low: 5 }".into())], "1: ended FAILED_PRECONDITION"),
        row("5.3", "another role on a live stream", vec![(1, id(5)), (1, role("b", 5))], "1: ended FAILED_PRECONDITION").pi("nothing is said"),
        row("5.2", "a role config that is not understood", vec![(1, bad())], "1: ended INVALID_ARGUMENT").pi("1: OK, id 7"),
        row("5.2", "a role config that is not understood, from a live client", vec![(1, "device_id: 1 election_id { low: 7 }".into()), (1, bad())], "1: ended INVALID_ARGUMENT").pi("nothing is said"),
        row("5", "each role has its own primary", vec![(1, id(5)), (2, role("b", 2))], "2: OK, id 2").pi("2: ALREADY_EXISTS, id 5"),
        row("5", "one id in two roles", vec![(1, id(5)), (2, role("b", 5))], "2: OK, id 5").pi("2: ended INVALID_ARGUMENT"),
        row("5.4", "before there ever was a primary there is no id", vec![(1, none())], "1: NOT_FOUND, no id").pi("1: OK, id 0"),
        row("5.4", "the primary may repeat itself, and all are told", vec![(1, id(5)), (2, id(3)), (1, id(5))], "2: ALREADY_EXISTS, id 5; 1: OK, id 5").pi("nothing is said"),
        row("16.2.1", "without an id one never becomes primary", vec![(1, none()), (2, none())], "2: NOT_FOUND, no id").pi("2: ended INVALID_ARGUMENT"),
        row("16.2.1", "id 0 is an id", vec![(1, none()), (2, id(0))], "1: ALREADY_EXISTS, id 0; 2: OK, id 0").pi("2: ended INVALID_ARGUMENT"),
        row("16.2.1", "a primary that drops its id steps down", vec![(1, id(5)), (1, none())], "1: NOT_FOUND, id 5").pi("1: OK, id 0"),
        row("5.3", "more streams than a role may have", (1..=17).map(|n| (n, id(100 - n as u64))).collect(), "17: ended RESOURCE_EXHAUSTED"),
    ];
    let message = |section, what, text: &str, want: &str| Row::new(section, what, Sent::Message(text.to_owned()), want).pi("nothing is said");
    let one = "metadata { metadata_id: 1 value: '\\x1' }";
    let two = "metadata { metadata_id: 2 value: '\\0' }";
    rows.extend([
        message("16.1", "a packet-out with all its metadata", &format!("packet {{ payload: 'x' {one} {two} }}"), "nothing is said"),
        message("16.1", "metadata in another order", &format!("packet {{ payload: 'x' {two} {one} }}"), "nothing is said"),
        message("16.1", "metadata with leading zeros", &format!("packet {{ payload: 'x' {two} metadata {{ metadata_id: 1 value: '\\0\\0\\x1' }} }}"), "nothing is said"),
        message("16.1", "metadata left out", &format!("packet {{ payload: 'x' {one} }}"), "StreamError INVALID_ARGUMENT"),
        message("16.1", "metadata given twice", &format!("packet {{ payload: 'x' {one} {two} {two} }}"), "StreamError INVALID_ARGUMENT"),
        message("16.1", "metadata that the program does not have", &format!("packet {{ payload: 'x' {one} {two} metadata {{ metadata_id: 7 value: '\\x1' }} }}"), "StreamError INVALID_ARGUMENT"),
        message("16.1", "metadata too wide", &format!("packet {{ payload: 'x' {two} metadata {{ metadata_id: 1 value: '\\x02\\0' }} }}"), "StreamError INVALID_ARGUMENT"),
        message("16.1", "empty metadata", &format!("packet {{ payload: 'x' {two} metadata {{ metadata_id: 1 }} }}"), "StreamError INVALID_ARGUMENT"),
        message("16.6", "an acknowledgement of a digest that does not exist", "digest_ack { digest_id: 5 }", "StreamError INVALID_ARGUMENT"),
        message("16.6", "an acknowledgement of a list that was never sent", "digest_ack { digest_id: 385960041 list_id: 99 }", "nothing is said"),
        message("16.5", "a message of another architecture", "other { type_url: 'x/y' }", "StreamError UNIMPLEMENTED"),
        message("16.6", "an empty message", "", "StreamError INVALID_ARGUMENT"),
    ]);
    rows
}
