//! How values look to people: numbers, Ethernet and IP addresses, strings.
//! In: byte strings with a width, or text that a person wrote. Out: the other. Must not know tables or messages.
//!
//! What is printed can be written again: [`parse`] accepts every form that [`print`] gives, whatever the field's look.

use crate::p4runtime::value;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Plain numbers up to this many bits are printed in decimal, wider ones in hexadecimal.
const DECIMAL_BITS_MAX: u32 = 64;

/// The form in which a value is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Look {
    /// A number: decimal up to 64 bits, hexadecimal above.
    #[default]
    Number,
    /// `0x1f`.
    Hex,
    /// `02:00:00:00:00:01`, 48 bits.
    Mac,
    /// `10.0.0.1`, 32 bits.
    Ipv4,
    /// `2001:db8::1`, 128 bits.
    Ipv6,
    /// Text as it is (a translated string, width 0).
    Text,
}

impl Look {
    /// The look of a field: from `@format(...)` among its annotations (as in `@format(IPV4_ADDRESS)`), else from its
    /// width and name: an address of 32, 48 or 128 bits is nearly always called so.
    #[must_use]
    pub fn of(name: &str, width: u32, annotations: &[String]) -> Self {
        if width == 0 {
            return Self::Text;
        }
        let format = annotations.iter().find_map(|annotation| {
            let inside = annotation.trim().strip_prefix("@format(")?.strip_suffix(')')?;
            Some(inside.trim_matches(|c: char| c == '"' || c.is_whitespace()).to_uppercase())
        });
        match (format.as_deref(), width) {
            (Some("MAC_ADDRESS"), 48) => Self::Mac,
            (Some("IPV4_ADDRESS"), 32) => Self::Ipv4,
            (Some("IPV6_ADDRESS"), 128) => Self::Ipv6,
            (Some("HEX_STR"), _) => Self::Hex,
            (Some("STRING"), _) => Self::Text,
            (Some(_), _) => Self::Number,
            (None, _) if !says_address(name) => Self::Number,
            (None, 48) => Self::Mac,
            (None, 32) => Self::Ipv4,
            (None, 128) => Self::Ipv6,
            (None, _) => Self::Number,
        }
    }
}

/// Whether the last part of a name (`hdr.ipv4.dstAddr`, `src_addr`, `dmac`) speaks of an address.
fn says_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let ends = ["addr", "address", "mac", "ip", "ipv4", "ipv6"];
    ends.iter().any(|end| last.ends_with(end))
}

/// A value in its look. Bytes that do not fit the look (an address with too many bits, a string that is no text) are
/// printed in hexadecimal.
#[must_use]
pub fn print(look: Look, width: u32, bytes: &[u8]) -> String {
    let padded = |bits: usize| value::padded(bytes, bits);
    let shown = match look {
        Look::Text => std::str::from_utf8(bytes)
            .ok()
            .filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
            .map(str::to_owned),
        Look::Mac => padded(48).map(|bytes| mac(&bytes)),
        Look::Ipv4 => padded(32)
            .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
            .map(|bytes| Ipv4Addr::from(bytes).to_string()),
        Look::Ipv6 => padded(128)
            .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok())
            .map(|bytes| Ipv6Addr::from(bytes).to_string()),
        Look::Number if width <= DECIMAL_BITS_MAX => {
            value::decode_u64(bytes).map(|number| number.to_string())
        }
        Look::Number | Look::Hex => None,
    };
    shown.unwrap_or_else(|| hex(bytes))
}

/// `0x` and the digits without leading zeros; `0x` alone for no bytes at all.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for (place, byte) in value::canonical(bytes).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = if place == 0 { write!(text, "{byte:x}") } else { write!(text, "{byte:02x}") };
    }
    text
}

fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Why a text is no value of a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueError {
    /// Nothing was written.
    #[error("the value is empty; write for example 7, 0x1f, 10.0.0.1 or 02:00:00:00:00:01")]
    Empty,
    /// Neither number nor address.
    #[error(
        "'{0}' is no value; write a decimal number, 0x1f, 0b101, an IPv4 or IPv6 address or 02:00:00:00:00:01"
    )]
    NoValue(String),
    /// A digit that the base does not have.
    #[error("'{text}': '{digit}' is no {base} digit; write for example 31, 0x1f or 0b11111")]
    Digit {
        /// As written.
        text: String,
        /// The first wrong character.
        digit: char,
        /// In words.
        base: &'static str,
    },
    /// A minus sign.
    #[error("'{0}' is negative; values on the wire are not, write the bits as 0x...")]
    Negative(String),
    /// A decimal number beyond 128 bits.
    #[error("'{0}' is longer than decimal numbers may be (128 bits); write it as 0x...")]
    LongDecimal(String),
    /// Something with the dots or colons of an address that is none.
    #[error(
        "'{text}' is no {kind} address; write for example 10.0.0.1, 2001:db8::1 or 02:00:00:00:00:01"
    )]
    Address {
        /// As written.
        text: String,
        /// In words.
        kind: &'static str,
    },
    /// More bits than the field has.
    #[error("'{text}' needs {bits} bits and the field has {width}; write a smaller value")]
    TooWide {
        /// As written.
        text: String,
        /// Bits that it needs.
        bits: usize,
        /// Bits that there are.
        width: u32,
    },
}

/// A person's text as exactly `width.div_ceil(8)` bytes; width 0 takes any text as it is.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse(text: &str, width: u32) -> Result<Vec<u8>, ValueError> {
    if text.is_empty() {
        return Err(ValueError::Empty);
    }
    if width == 0 {
        return Ok(text.as_bytes().to_vec());
    }
    let bytes = number(text)?;
    value::padded(&bytes, width as usize).ok_or_else(|| {
        let bits = value::bit_length(&bytes);
        ValueError::TooWide { text: text.to_owned(), bits, width }
    })
}

/// The bytes of a number or address.
fn number(text: &str) -> Result<Vec<u8>, ValueError> {
    let lower = text.to_lowercase();
    if text.starts_with('-') {
        return Err(ValueError::Negative(text.to_owned()));
    }
    // Before the prefixes: an Ethernet address may begin with 0b.
    let pairs: Vec<&str> = lower.split([':', '-']).collect();
    if pairs.len() == 6 && !lower.contains("::") {
        return ethernet(text, &pairs);
    }
    if let Some(digits) = lower.strip_prefix("0x") {
        return digits_of(text, digits, 4, "hexadecimal");
    }
    if let Some(digits) = lower.strip_prefix("0b") {
        return digits_of(text, digits, 1, "binary");
    }
    if text.contains(':') {
        let parsed = lower.parse::<Ipv6Addr>();
        let wrong = |_| ValueError::Address { text: text.to_owned(), kind: "IPv6 or Ethernet" };
        return Ok(parsed.map_err(wrong)?.octets().to_vec());
    }
    if text.contains('.') {
        let parsed = lower.parse::<Ipv4Addr>();
        let wrong = |_| ValueError::Address { text: text.to_owned(), kind: "IPv4" };
        return Ok(parsed.map_err(wrong)?.octets().to_vec());
    }
    if !lower.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ValueError::NoValue(text.to_owned()));
    }
    let digits: String = lower.chars().filter(|c| *c != '_').collect();
    if let Some(digit) = digits.chars().find(|c| !c.is_ascii_digit()) {
        return Err(ValueError::Digit { text: text.to_owned(), digit, base: "decimal" });
    }
    let number: u128 = digits.parse().map_err(|_| ValueError::LongDecimal(text.to_owned()))?;
    Ok(value::encode(number))
}

/// Digits of `bits` bits each, of any length.
fn digits_of(
    text: &str,
    digits: &str,
    bits: u32,
    base: &'static str,
) -> Result<Vec<u8>, ValueError> {
    let digits: Vec<char> = digits.chars().filter(|c| *c != '_').collect();
    if digits.is_empty() {
        return Err(ValueError::NoValue(text.to_owned()));
    }
    let per_byte = (8 / bits) as usize;
    let mut bytes = Vec::with_capacity(digits.len() / per_byte + 1);
    for chunk in digits.rchunks(per_byte) {
        let mut byte = 0;
        for digit in chunk {
            let value = digit.to_digit(1 << bits).ok_or_else(|| ValueError::Digit {
                text: text.to_owned(),
                digit: *digit,
                base,
            })?;
            byte = byte << bits | value;
        }
        // Eight bits at most by construction.
        bytes.push(byte as u8);
    }
    bytes.reverse();
    Ok(bytes)
}

fn ethernet(text: &str, pairs: &[&str]) -> Result<Vec<u8>, ValueError> {
    let wrong = || ValueError::Address { text: text.to_owned(), kind: "Ethernet" };
    pairs
        .iter()
        .map(|pair| {
            let fine = (1..=2).contains(&pair.len()) && pair.chars().all(|c| c.is_ascii_hexdigit());
            let byte = u8::from_str_radix(pair, 16).ok().filter(|_| fine);
            byte.ok_or_else(wrong)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn annotated(text: &str) -> Vec<String> {
        vec!["@name(\"x\")".to_owned(), text.to_owned()]
    }

    #[test]
    fn looks_come_from_annotations_first_and_from_names_of_addresses_else() {
        let cases = [
            ("x", 32, "@format(IPV4_ADDRESS)", Look::Ipv4),
            ("x", 48, "@format(MAC_ADDRESS)", Look::Mac),
            ("x", 128, "@format( \"IPV6_ADDRESS\" )", Look::Ipv6),
            ("x", 16, "@format(HEX_STR)", Look::Hex),
            ("x", 16, "@format(STRING)", Look::Text),
            ("dst_addr", 32, "@format(SOMETHING)", Look::Number),
            ("x", 48, "@format(IPV4_ADDRESS)", Look::Number),
            ("x", 0, "@p4runtime_translation(\"\", string)", Look::Text),
            ("hdr.ipv4.dstAddr", 32, "", Look::Ipv4),
            ("hdr.ethernet.srcAddr", 48, "", Look::Mac),
            ("dst_mac", 48, "", Look::Mac),
            ("ipv6_address", 128, "", Look::Ipv6),
            ("src_addr", 64, "", Look::Number),
            ("timestamp", 48, "", Look::Number),
            ("mac.timestamp", 48, "", Look::Number),
        ];
        for (name, width, annotation, look) in cases {
            assert_eq!(Look::of(name, width, &annotated(annotation)), look, "{name} {annotation}");
        }
    }

    #[test]
    fn values_print_in_their_look_or_in_hexadecimal_when_they_do_not_fit_it() {
        let cases: [(Look, u32, &[u8], &str); 11] = [
            (Look::Number, 16, &[1, 0], "256"),
            (Look::Number, 64, &[0xff; 8], "18446744073709551615"),
            (Look::Number, 72, &[1, 0, 0], "0x10000"),
            (Look::Hex, 16, &[0, 0x1f], "0x1f"),
            (Look::Hex, 16, &[0], "0x0"),
            (Look::Mac, 48, &[2, 0, 0, 0, 1], "00:02:00:00:00:01"),
            (Look::Ipv4, 32, &[10, 0, 0, 1], "10.0.0.1"),
            (Look::Ipv4, 32, &[1; 5], "0x101010101"),
            (Look::Ipv6, 128, &[1], "::1"),
            (Look::Text, 0, b"eth0", "eth0"),
            (Look::Text, 0, &[7], "0x7"),
        ];
        for (look, width, bytes, text) in cases {
            assert_eq!(print(look, width, bytes), text);
        }
    }

    #[test]
    fn people_may_write_numbers_and_addresses_in_many_ways() {
        let cases: [(&str, u32, &[u8]); 12] = [
            ("300", 16, &[1, 44]),
            ("0x1F", 9, &[0, 0x1f]),
            ("0x1_0000", 24, &[1, 0, 0]),
            ("0b1_0000_0001", 9, &[1, 1]),
            ("10.0.0.1", 32, &[10, 0, 0, 1]),
            ("::1", 128, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            ("02:00:00:00:00:0a", 48, &[2, 0, 0, 0, 0, 10]),
            ("2-0-0-0-0-A", 48, &[2, 0, 0, 0, 0, 10]),
            ("0b:00:00:00:00:01", 48, &[11, 0, 0, 0, 0, 1]),
            ("0.0.1.0", 16, &[1, 0]),
            ("eth0", 0, b"eth0"),
            ("1_000", 16, &[3, 232]),
        ];
        for (text, width, bytes) in cases {
            assert_eq!(parse(text, width).as_deref(), Ok(bytes), "{text}");
        }
        let wide = format!("0x{}", "f".repeat(64));
        assert_eq!(parse(&wide, 256), Ok(vec![0xff; 32]));
    }

    proptest! {
        #[test]
        fn what_is_printed_can_be_written_again(value: u128, cut in 0_u32..128) {
            let value = value >> cut;
            let width = 128 - cut;
            let bytes = value::encode(value);
            for look in [Look::Number, Look::Hex, Look::Ipv6, Look::Mac, Look::Ipv4] {
                let text = print(look, width, &bytes);
                let back = parse(&text, width);
                prop_assert_eq!(back.ok(), value::padded(&bytes, width as usize), "{}", text);
            }
        }
    }
}
