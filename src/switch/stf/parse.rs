//! The text of a case → commands. In: text. Out: commands with line numbers, or the first error. Must not know programs.

use crate::switch::stf::StfError;
use crate::switch::traffic::PORT_MAX;

/// `name:value`.
pub type Named = (String, String);

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A table entry.
    Add {
        /// Table, possibly a suffix of its name.
        table: String,
        /// Larger wins.
        priority: Option<i32>,
        /// Match fields; the rest is "any".
        keys: Vec<Named>,
        /// Action, possibly a suffix of its name.
        action: String,
        /// Its arguments.
        args: Vec<Named>,
        /// What `remove` and `check_counter` call the entry.
        label: Option<String>,
    },
    /// Delete all entries of all tables, or the one with this label.
    Remove(Option<String>),
    /// The action of a miss.
    SetDefault {
        /// Table.
        table: String,
        /// Action.
        action: String,
        /// Its arguments.
        args: Vec<Named>,
    },
    /// Send a packet into a port.
    Packet {
        /// The port.
        port: u16,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A packet must come out of a port.
    Expect {
        /// The port.
        port: u16,
        /// What it looks like; `None` is anything, any number of times.
        pattern: Option<Pattern>,
    },
    /// Since the last `packet` nothing may have left by any port.
    NoPacket,
    /// Clone session to a port.
    MirrorPort(u32, u16),
    /// Clone session to a multicast group.
    MirrorGroup(u32, u32),
    /// Forget a clone session.
    MirrorDelete(u32),
    /// A multicast group without members.
    Group(u32),
    /// A node: replication id and ports. Nodes are numbered from 0.
    Node(u16, Vec<u16>),
    /// Give a node other ports.
    NodeUpdate(usize, Vec<u16>),
    /// Put a node into a group.
    Associate(u32, usize),
    /// Set a register cell.
    RegisterWrite(String, i64, String),
    /// Set all cells of a register to 0.
    RegisterReset(String),
    /// Set a counter cell: index, packets, bytes.
    CounterWrite(String, i64, i64, i64),
    /// Rates of one meter cell (or all: `None`): pairs of units per microsecond and burst.
    MeterRates(String, Option<i64>, Vec<(f64, i64)>),
    /// Compare a counter: name, cell, compare bytes (else packets), operator, value.
    CheckCounter(String, Cell, Option<(bool, String, i64)>),
    /// Put a value into the report.
    Read(Reading),
    /// Let a second pass.
    Wait,
}

/// A cell of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// By number.
    Index(i64),
    /// Of the entry that `add … = LABEL` named.
    Label(String),
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Label(label) => write!(f, "${label}"),
        }
    }
}

/// What a case wants to see; nothing is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// `mirroring_get SESSION`.
    Mirror(u32),
    /// `counter_read COUNTER INDEX`.
    Counter(String, i64),
    /// `register_read REGISTER [INDEX]`; without an index all cells.
    Register(String, Option<i64>),
    /// `meter_get_rates METER INDEX`.
    Meter(String, i64),
}

/// What a packet should look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// One per half byte; `None` is any.
    pub nibbles: Vec<Option<u8>>,
    /// Nothing may follow.
    pub exact: bool,
}

impl Pattern {
    /// One character per half byte, `*` for any.
    #[must_use]
    pub fn digits(&self) -> Vec<char> {
        let digit = |n: &Option<u8>| n.and_then(|n| char::from_digit(n.into(), 16)).unwrap_or('*');
        self.nibbles.iter().map(digit).collect()
    }

    /// Why the bytes do not fit; `None` if they do.
    #[must_use]
    pub fn mismatch(&self, bytes: &[u8]) -> Option<String> {
        if bytes.len() * 2 < self.nibbles.len() {
            return Some(format!(
                "{} bytes are too few, {} are expected",
                bytes.len(),
                self.nibbles.len() / 2
            ));
        }
        if self.exact && bytes.len() * 2 > self.nibbles.len() {
            return Some(format!(
                "{} bytes are too many, {} are expected",
                bytes.len(),
                self.nibbles.len() / 2
            ));
        }
        let nibble = |i: usize| (bytes[i / 2] >> (4 * (1 - i % 2))) & 0xf;
        let differs = |i: &usize| self.nibbles[*i].is_some_and(|wanted| wanted != nibble(*i));
        let at = (0..self.nibbles.len()).find(differs)? / 2;
        let digits = self.digits();
        let wanted: String = digits[2 * at..digits.len().min(2 * at + 2)].iter().collect();
        Some(format!("byte {at} is {:02x}, not {wanted}", bytes[at]))
    }
}

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.digits().into_iter().collect::<String>())?;
        f.write_str(if self.exact { " $" } else { "" })
    }
}

/// A command and its line, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The line.
    pub number: usize,
    /// The command.
    pub command: Command,
}

/// Reads a case.
///
/// # Errors
/// The first line that is not STF.
pub fn parse(text: &str) -> Result<Vec<Line>, StfError> {
    let mut lines = Vec::new();
    for (i, raw) in text.lines().enumerate() {
        let line = raw.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let number = i + 1;
        let command = command(line).map_err(|wrong| {
            let message = match form(line) {
                Some(form) => format!("{wrong}; write {form}"),
                None => wrong,
            };
            StfError::Line { line: number, message }
        })?;
        lines.push(Line { number, command });
    }
    Ok(lines)
}

/// How the command that a line starts with is written; `None` for an unknown one.
fn form(line: &str) -> Option<&'static str> {
    let word = line.split_whitespace().next().unwrap_or_default().to_lowercase();
    Some(match word.as_str() {
        "add" => "add TABLE [PRIORITY] FIELD:VALUE... ACTION(PARAM:VALUE, ...) [= LABEL]",
        "remove" => "remove all, or remove LABEL for an entry that `add ... = LABEL` named",
        "setdefault" => "setdefault TABLE ACTION(PARAM:VALUE, ...)",
        "packet" => "packet PORT HEX... (ports are 0 to 511)",
        "expect" => "expect PORT [HEX with * for any digit [$]] (ports are 0 to 511)",
        "mirroring_add" => "mirroring_add SESSION PORT",
        "mirroring_add_mc" => "mirroring_add_mc SESSION GROUP",
        "mirroring_delete" => "mirroring_delete SESSION",
        "mc_mgrp_create" => "mc_mgrp_create GROUP",
        "mc_node_create" => "mc_node_create RID PORT...",
        "mc_node_update" => "mc_node_update NODE PORT...",
        "mc_node_associate" => "mc_node_associate GROUP NODE",
        "mirroring_get" => "mirroring_get SESSION",
        "counter_read" => "counter_read COUNTER INDEX",
        "register_read" => "register_read REGISTER [INDEX]",
        "meter_get_rates" => "meter_get_rates METER INDEX",
        "register_write" => "register_write REGISTER INDEX VALUE",
        "register_reset" => "register_reset REGISTER",
        "counter_write" => "counter_write COUNTER INDEX PACKETS BYTES",
        "meter_set_rates" => "meter_set_rates METER INDEX RATE:BURST RATE:BURST",
        "meter_array_set_rates" => "meter_array_set_rates METER RATE:BURST RATE:BURST",
        "check_counter" => {
            "check_counter COUNTER(INDEX or $LABEL) [bytes|packets ==|!=|<|<=|>|>= N]"
        }
        _ => return None,
    })
}

fn port(text: &str) -> Result<u16, String> {
    let port = number(text)?;
    if port > PORT_MAX { Err(format!("port {port} does not exist")) } else { Ok(port) }
}

fn word_at<'a>(word: &str, words: &[&'a str], i: usize) -> Result<&'a str, String> {
    words
        .get(i)
        .copied()
        .ok_or_else(|| format!("`{word}` has {} words after it, that is too few", words.len()))
}

fn command(line: &str) -> Result<Command, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let word_at = |i: usize| word_at(word, &words, i);
    match word.to_lowercase().as_str() {
        "add" => add(rest),
        "setdefault" => {
            let (table, call) = rest.split_once(char::is_whitespace).ok_or("there is no action")?;
            let (action, args) = call_of(call)?;
            Ok(Command::SetDefault { table: table.into(), action, args })
        }
        "packet" => {
            let port = port(word_at(0)?)?;
            Ok(Command::Packet { port, bytes: bytes_of(&words[1..].concat())? })
        }
        "expect" => {
            let port = port(word_at(0)?)?;
            let text = words[1..].concat();
            let pattern = if text.is_empty() { None } else { Some(pattern(&text)?) };
            Ok(Command::Expect { port, pattern })
        }
        "check_counter" => check_counter(rest),
        "wait" => Ok(Command::Wait),
        "no_packet" => Ok(Command::NoPacket),
        "remove" => Ok(Command::Remove(match word_at(0)? {
            "all" | "ALL" => None,
            label => Some(label_of(label)),
        })),
        _ => target(word, &words),
    }
}

/// Commands that set up or read what is not a table.
fn target(word: &str, words: &[&str]) -> Result<Command, String> {
    let word_at = |i: usize| word_at(word, words, i);
    match word.to_lowercase().as_str() {
        "mirroring_add" => Ok(Command::MirrorPort(number(word_at(0)?)?, number(word_at(1)?)?)),
        "mirroring_add_mc" => Ok(Command::MirrorGroup(number(word_at(0)?)?, number(word_at(1)?)?)),
        "mirroring_delete" => Ok(Command::MirrorDelete(number(word_at(0)?)?)),
        "mc_mgrp_create" => Ok(Command::Group(number(word_at(0)?)?)),
        "mc_node_create" => {
            let ports = words.iter().skip(1).map(|w| number(w)).collect::<Result<_, _>>()?;
            Ok(Command::Node(number(word_at(0)?)?, ports))
        }
        "mc_node_associate" => Ok(Command::Associate(number(word_at(0)?)?, number(word_at(1)?)?)),
        "register_write" => {
            Ok(Command::RegisterWrite(word_at(0)?.into(), number(word_at(1)?)?, word_at(2)?.into()))
        }
        "register_reset" => Ok(Command::RegisterReset(word_at(0)?.into())),
        "counter_write" => Ok(Command::CounterWrite(
            word_at(0)?.into(),
            number(word_at(1)?)?,
            number(word_at(2)?)?,
            number(word_at(3)?)?,
        )),
        "meter_set_rates" => Ok(Command::MeterRates(
            word_at(0)?.into(),
            Some(number(word_at(1)?)?),
            rates(&words[2..])?,
        )),
        "meter_array_set_rates" => {
            Ok(Command::MeterRates(word_at(0)?.into(), None, rates(&words[1..])?))
        }
        "mc_node_update" => {
            let ports = words.iter().skip(1).map(|w| number(w)).collect::<Result<_, _>>()?;
            Ok(Command::NodeUpdate(number(word_at(0)?)?, ports))
        }
        "mirroring_get" => Ok(Command::Read(Reading::Mirror(number(word_at(0)?)?))),
        "counter_read" => {
            Ok(Command::Read(Reading::Counter(word_at(0)?.into(), number(word_at(1)?)?)))
        }
        "register_read" => {
            let index = words.get(1).map(|word| number(word)).transpose()?;
            Ok(Command::Read(Reading::Register(word_at(0)?.into(), index)))
        }
        "meter_get_rates" => {
            Ok(Command::Read(Reading::Meter(word_at(0)?.into(), number(word_at(1)?)?)))
        }
        other => Err(format!(
            "`{other}` is no STF command; known are add, setdefault, packet, expect, mirroring_*, mc_*, register_*, counter_*, meter_*, check_counter, remove, no_packet, wait"
        )),
    }
}

/// A decimal, 0x or 0b number.
fn number<T: TryFrom<i64>>(text: &str) -> Result<T, String> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        _ => (text, 10),
    };
    let value = i64::from_str_radix(digits, radix).ok().and_then(|n| T::try_from(n).ok());
    value.ok_or_else(|| format!("`{text}` is not a number that fits here"))
}

fn nibble(c: char) -> Result<u8, String> {
    let digit = c.to_digit(16).map(|d| d as u8);
    digit.ok_or_else(|| format!("`{c}` is not a hexadecimal digit"))
}

fn bytes_of(text: &str) -> Result<Vec<u8>, String> {
    let digits: Vec<u8> = text.chars().map(nibble).collect::<Result<_, _>>()?;
    if digits.len() % 2 == 1 {
        return Err(format!("{} hexadecimal digits are not whole bytes", digits.len()));
    }
    Ok(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let (digits, exact) = match text.strip_suffix('$') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let digit = |c: char| if c == '*' { Ok(None) } else { nibble(c).map(Some) };
    Ok(Pattern { nibbles: digits.chars().map(digit).collect::<Result<_, _>>()?, exact })
}

/// `name(a:1, b:2)`.
fn call_of(text: &str) -> Result<(String, Vec<Named>), String> {
    let (name, rest) = text.split_once('(').ok_or_else(|| format!("`{text}` has no ( )"))?;
    let args =
        rest.trim().strip_suffix(')').ok_or_else(|| format!("`{text}` does not end with )"))?;
    let args = args.split(',').map(str::trim).filter(|a| !a.is_empty()).map(named);
    Ok((name.trim().into(), args.collect::<Result<_, _>>()?))
}

fn named(text: &str) -> Result<Named, String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("`{text}` is not name:value"))?;
    Ok((name.trim().into(), value.trim().into()))
}

fn add(rest: &str) -> Result<Command, String> {
    // "= LABEL" at the end names the entry.
    let (rest, label) = match rest.rsplit_once('=') {
        Some((call, label)) => (call.trim(), Some(label_of(label.trim()))),
        None => (rest, None),
    };
    let open = rest.find('(').ok_or("there is no action with ( )")?;
    let head: Vec<&str> = rest[..open].split_whitespace().collect();
    let [table, middle @ .., action] = head.as_slice() else {
        return Err("there is no table or no action".into());
    };
    let (_, args) = call_of(&format!("{action}{}", &rest[open..]))?;
    let (priority, keys) = match middle {
        [first, keys @ ..] if !first.contains(':') => (Some(number(first)?), keys),
        keys => (None, keys),
    };
    Ok(Command::Add {
        table: (*table).into(),
        priority,
        keys: keys.iter().map(|k| named(k)).collect::<Result<_, _>>()?,
        action: (*action).into(),
        args,
        label,
    })
}

/// A label is used as `$A` and defined as `A` or `$A`.
fn label_of(text: &str) -> String {
    text.trim_start_matches('$').to_owned()
}

/// `1.5:10 2:20`.
fn rates(words: &[&str]) -> Result<Vec<(f64, i64)>, String> {
    let rate = |word: &&str| {
        let (rate, burst) = word.split_once(':')?;
        Some((rate.parse().ok()?, burst.parse().ok()?))
    };
    words.iter().map(|w| rate(w).ok_or_else(|| format!("`{w}` is not rate:burst"))).collect()
}

/// `name(index) [bytes|packets op n]`.
fn check_counter(rest: &str) -> Result<Command, String> {
    let (name, after) = rest.split_once('(').ok_or("the counter has no (index)")?;
    let (index, condition) = after.split_once(')').ok_or("the counter has no (index)")?;
    let words: Vec<&str> = condition.split_whitespace().collect();
    let condition = match words.as_slice() {
        [] => None,
        [unit @ ("bytes" | "packets"), op @ ("==" | "!=" | "<" | "<=" | ">" | ">="), n] => {
            Some((*unit == "bytes", (*op).to_owned(), number(n)?))
        }
        _ => return Err(format!("`{}` is no condition", condition.trim())),
    };
    let index = index.trim();
    let cell = match index.bytes().next() {
        None => return Err("the counter has no index".into()),
        Some(b'0'..=b'9' | b'-') => Cell::Index(number(index)?),
        Some(_) => Cell::Label(label_of(index)),
    };
    Ok(Command::CheckCounter(name.trim().into(), cell, condition))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Command {
        parse(text).unwrap().remove(0).command
    }

    #[test]
    fn entries_packets_and_expectations_are_read() {
        let text = "add c.t 10 a.b:0x1* e:4/8 act(x:1, y:0x2) = $7";
        let named = |pairs: &[(&str, &str)]| -> Vec<Named> {
            pairs.iter().map(|(a, b)| ((*a).into(), (*b).into())).collect()
        };
        assert_eq!(
            one(text),
            Command::Add {
                table: "c.t".into(),
                priority: Some(10),
                keys: named(&[("a.b", "0x1*"), ("e", "4/8")]),
                action: "act".into(),
                args: named(&[("x", "1"), ("y", "0x2")]),
                label: Some("7".into()),
            }
        );
        assert_eq!(one("remove $7"), Command::Remove(Some("7".into())));
        assert_eq!(one("remove all"), Command::Remove(None));
        let cell = Cell::Label("A".into());
        assert_eq!(one("check_counter c($A)"), Command::CheckCounter("c".into(), cell, None));
        assert_eq!(one("packet 3 01 0A"), Command::Packet { port: 3, bytes: vec![1, 10] });
        assert_eq!(one("expect 3 # any"), Command::Expect { port: 3, pattern: None });
        let pattern = Pattern { nibbles: vec![Some(1), None], exact: true };
        assert_eq!(one("expect 3 1* $"), Command::Expect { port: 3, pattern: Some(pattern) });
    }

    #[test]
    fn a_pattern_is_a_prefix_unless_it_ends_with_a_dollar() {
        let pattern = |text: &str| match one(&format!("expect 1 {text}")) {
            Command::Expect { pattern: Some(p), .. } => p,
            other => panic!("{other:?}"),
        };
        assert_eq!(pattern("0102").mismatch(&[1, 2, 3]), None);
        assert!(pattern("0102$").mismatch(&[1, 2, 3]).is_some());
        assert!(pattern("0102").mismatch(&[1]).is_some());
        assert_eq!(pattern("0*02$").mismatch(&[0x0f, 2]), None);
        assert!(pattern("0*02$").mismatch(&[0x1f, 2]).is_some());
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("\nfoo 1", 2),
            ("packet 1 0", 1),
            ("packet x 00", 1),
            ("packet 1 0g", 1),
            ("packet", 1),
            ("expect 1 0?", 1),
            ("add t", 1),
            ("add t a:1 act(", 1),
            ("add t k=1 act()", 1),
            ("setdefault t", 1),
            ("meter_set_rates m 1 5", 1),
            ("check_counter c", 1),
            ("check_counter c()", 1),
            ("remove", 1),
            ("register_read", 1),
            ("mc_node_update x 1", 1),
        ] {
            match parse(text) {
                Err(StfError::Line { line: found, .. }) => assert_eq!(found, line, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
