//! What a case found. In: expected patterns and received packets of each port. Out: [`Failure`]s, each with the place in the
//! case and, where two packets are compared, both of them with marks under the digits that differ. Must not know a switch.

use crate::switch::stf::parse::Pattern;

/// Most pairs of packets that are compared to line up a port's packets; beyond, the first is compared with the first.
const MAX_PAIRS: usize = 1 << 20;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet came that does not look as expected.
    Differs,
    /// An expected packet did not come.
    Missing,
    /// A packet came that nobody expected.
    Extra,
    /// A packet left before `no_packet`.
    NoPacket,
    /// A counter does not hold what `check_counter` says.
    Counter,
}

impl Kind {
    /// Its name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::NoPacket => "no_packet",
            Self::Counter => "counter",
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Line of the case that was not met, counted from 1: of the expectation, and for a packet that nobody expected of the
    /// `packet` after which it left.
    pub line: usize,
    /// The port, where one is to blame.
    pub port: Option<u16>,
    /// What is wrong.
    pub kind: Kind,
    /// The same in words.
    pub message: String,
    /// What should have come.
    pub expected: Option<Pattern>,
    /// What came.
    pub received: Option<Vec<u8>>,
}

impl Failure {
    /// The packets in hexadecimal: both, marked, where there are two. Empty without packets.
    #[must_use]
    pub fn diff(&self) -> String {
        match (&self.expected, &self.received) {
            (Some(expected), Some(received)) => diff(expected, received),
            (Some(expected), None) => rows("expected", &expected.digits()),
            (None, Some(received)) => rows("received", &digits(received)),
            (None, None) => String::new(),
        }
    }
}

/// A value that the case asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// Line of the case.
    pub line: usize,
    /// What was read.
    pub what: String,
    /// What it was.
    pub value: String,
}

/// What went wrong, and how much was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets sent.
    pub packets: usize,
    /// Packets expected.
    pub expected: usize,
    /// Counters compared, and `no_packet` lines.
    pub checks: usize,
    /// What was wrong, in the order of ports.
    pub failures: Vec<Failure>,
    /// What was read.
    pub values: Vec<Value>,
}

impl Report {
    /// Everything came as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// A packet that came: line of the `packet` before it, bytes.
pub(super) type Came = (usize, Vec<u8>);

/// Compares a port's packets, lined up so that one that is missing does not make all after it wrong.
pub(super) fn compare(port: u16, expected: &[(usize, Pattern)], got: &[Came]) -> Vec<Failure> {
    let mut failures = Vec::new();
    let (mut e, mut g) = (0, 0);
    let end = (expected.len(), got.len());
    for (next_e, next_g) in anchors(expected, got).into_iter().chain([end]) {
        while e < next_e && g < next_g {
            failures.push(differs(port, &expected[e], &got[g]));
            (e, g) = (e + 1, g + 1);
        }
        failures.extend(expected[e..next_e].iter().map(|one| missing(port, one)));
        failures.extend(got[g..next_g].iter().map(|one| extra(port, one)));
        (e, g) = (next_e + 1, next_g + 1);
    }
    failures
}

/// Positions of pairs that fit, increasing in both: a longest common subsequence.
fn anchors(expected: &[(usize, Pattern)], got: &[Came]) -> Vec<(usize, usize)> {
    let fits = |e: usize, g: usize| expected[e].1.mismatch(&got[g].1).is_none();
    let (n, m) = (expected.len(), got.len());
    if n.saturating_mul(m) > MAX_PAIRS {
        return (0..n.min(m)).filter(|i| fits(*i, *i)).map(|i| (i, i)).collect();
    }
    // best[e][g]: most pairs from there to the end.
    let mut best = vec![vec![0_u32; m + 1]; n + 1];
    for e in (0..n).rev() {
        for g in (0..m).rev() {
            let without = best[e + 1][g].max(best[e][g + 1]);
            best[e][g] = if fits(e, g) { without.max(best[e + 1][g + 1] + 1) } else { without };
        }
    }
    let (mut e, mut g, mut pairs) = (0, 0, Vec::new());
    while e < n && g < m {
        if fits(e, g) && best[e][g] == best[e + 1][g + 1] + 1 {
            pairs.push((e, g));
            (e, g) = (e + 1, g + 1);
        } else if best[e + 1][g] == best[e][g] {
            e += 1;
        } else {
            g += 1;
        }
    }
    pairs
}

fn differs(port: u16, (line, pattern): &(usize, Pattern), (_, bytes): &Came) -> Failure {
    let why = pattern.mismatch(bytes).unwrap_or_default();
    Failure {
        line: *line,
        port: Some(port),
        kind: Kind::Differs,
        message: format!("port {port}: the packet differs: {why}"),
        expected: Some(pattern.clone()),
        received: Some(bytes.clone()),
    }
}

fn missing(port: u16, (line, pattern): &(usize, Pattern)) -> Failure {
    Failure {
        line: *line,
        port: Some(port),
        kind: Kind::Missing,
        message: format!("port {port}: this packet did not come"),
        expected: Some(pattern.clone()),
        received: None,
    }
}

fn extra(port: u16, (line, bytes): &Came) -> Failure {
    Failure {
        line: *line,
        port: Some(port),
        kind: Kind::Extra,
        message: format!("port {port}: after this a packet left that nothing expects"),
        expected: None,
        received: Some(bytes.clone()),
    }
}

/// Bytes in a row of a diff.
const ROW: usize = 16;

/// Two characters per byte.
fn digits(bytes: &[u8]) -> Vec<char> {
    bytes.iter().flat_map(|byte| format!("{byte:02x}").chars().collect::<Vec<_>>()).collect()
}

/// `02 00 0a …`, with a wider gap in the middle.
fn spaced(digits: &[char]) -> String {
    let mut text = String::new();
    for (i, byte) in digits.chunks(2).enumerate() {
        text.push_str(match i {
            0 => "",
            8 => "  ",
            _ => " ",
        });
        text.extend(byte);
    }
    text
}

fn rows(name: &str, digits: &[char]) -> String {
    let row = |(i, row): (usize, &[char])| format!("  {:04x}  {name}  {}\n", i * ROW, spaced(row));
    digits.chunks(2 * ROW).enumerate().map(row).collect()
}

/// Rows in which something differs, with marks; the rest in few words.
fn diff(expected: &Pattern, received: &[u8]) -> String {
    let (wanted, got) = (expected.digits(), digits(received));
    // Without `$` what follows does not count.
    let length = if expected.exact { wanted.len().max(got.len()) } else { wanted.len() };
    let wrong = |i: usize| match (wanted.get(i), got.get(i)) {
        (Some('*'), Some(_)) => false,
        (a, b) => a != b,
    };
    let part = |digits: &[char], from: usize, to: usize| {
        spaced(digits.get(from.min(digits.len())..to.min(digits.len())).unwrap_or_default())
    };
    let (mut text, mut equal) = (String::new(), 0);
    let flush = |text: &mut String, equal: &mut usize| {
        if *equal > 0 {
            text.push_str(&format!("  ....  {equal} bytes agree\n"));
        }
        *equal = 0;
    };
    for from in (0..length).step_by(2 * ROW) {
        let to = (from + 2 * ROW).min(length);
        if !(from..to).any(wrong) {
            equal += (to - from) / 2;
            continue;
        }
        flush(&mut text, &mut equal);
        let marks: Vec<char> = (from..to).map(|i| if wrong(i) { '^' } else { ' ' }).collect();
        text.push_str(&format!("  {:04x}  expected  {}\n", from / 2, part(&wanted, from, to)));
        text.push_str(&format!("        received  {}\n", part(&got, from, to)));
        text.push_str(format!("                  {}", spaced(&marks)).trim_end());
        text.push('\n');
    }
    flush(&mut text, &mut equal);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        let (digits, exact) = (text.trim_end_matches('$'), text.ends_with('$'));
        let nibbles = digits.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
        Pattern { nibbles, exact }
    }

    fn failures(expected: &[&str], got: &[&[u8]]) -> Vec<(Kind, usize)> {
        let expected: Vec<_> =
            expected.iter().enumerate().map(|(i, text)| (i + 1, pattern(text))).collect();
        let got: Vec<_> =
            got.iter().enumerate().map(|(i, bytes)| (i + 100, bytes.to_vec())).collect();
        compare(1, &expected, &got).iter().map(|failure| (failure.kind, failure.line)).collect()
    }

    #[test]
    fn a_missing_packet_does_not_make_the_packets_after_it_wrong() {
        assert_eq!(failures(&["01", "02", "03"], &[&[1], &[2], &[3]]), []);
        assert_eq!(failures(&["01", "02", "03"], &[&[1], &[3]]), [(Kind::Missing, 2)]);
        assert_eq!(failures(&["01", "03"], &[&[1], &[2], &[3]]), [(Kind::Extra, 101)]);
        assert_eq!(failures(&["01", "02", "03"], &[&[1], &[9], &[3]]), [(Kind::Differs, 2)]);
        let all = [(Kind::Differs, 1), (Kind::Missing, 2)];
        assert_eq!(failures(&["01", "02"], &[&[9]]), all);
        assert_eq!(failures(&[], &[&[9]]), [(Kind::Extra, 100)]);
        assert_eq!(failures(&["01", "02"], &[&[2], &[1]]).len(), 2, "order counts");
    }

    #[test]
    fn the_diff_marks_each_digit_that_differs_and_skips_rows_that_agree() {
        let mut bytes = vec![0; 40];
        bytes[17] = 0x25;
        let wanted = pattern(&format!("{}$", format!("{}2*", "00".repeat(17)) + &"00".repeat(22)));
        assert_eq!(diff(&wanted, &bytes), "  ....  40 bytes agree\n");
        bytes[18] = 0x40;
        bytes.push(7);
        let text = "  ....  16 bytes agree
  0010  expected  00 2* 00 00 00 00 00 00  00 00 00 00 00 00 00 00
        received  00 25 40 00 00 00 00 00  00 00 00 00 00 00 00 00
                        ^
  0020  expected  00 00 00 00 00 00 00 00
        received  00 00 00 00 00 00 00 00  07
                                           ^^
";
        assert_eq!(diff(&wanted, &bytes), text);
    }

    #[test]
    fn the_diff_of_a_prefix_ends_with_the_prefix() {
        let text = "  0000  expected  01 02\n        received  01 12\n                     ^\n";
        assert_eq!(diff(&pattern("0102"), &[1, 0x12, 3]), text);
        let short = "  0000  expected  01 02\n        received  01\n                     ^^\n";
        assert_eq!(diff(&pattern("0102"), &[1]), short);
    }
}
