//! Text that came from elsewhere, and numbers, as HTML.
//!
//! In: names from scenario files, details from switches, measured numbers. Out: something that formats itself safely: no name can end a
//! tag or an attribute. Must not know what it shows.

use std::fmt::{self, Display, Write as _};

/// Text, escaped for element content and for attribute values in double or single quotes.
pub(super) struct Esc<'a>(pub(super) &'a str);

impl Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(' ')?,
                // Neither control characters nor direction overrides have a place in a name.
                c if c.is_control()
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                {
                    f.write_char('\u{fffd}')?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A coordinate, to a tenth.
#[derive(Clone, Copy)]
pub(super) struct C(pub(super) f64);

impl C {
    /// The place that is written: differences of these join without gaps.
    pub(super) fn rounded(self) -> f64 {
        (self.0 * 10.0).round() / 10.0
    }
}

impl Display for C {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = if self.0.is_finite() { (self.0 * 10.0).round() as i64 } else { 0 };
        let sign = if tenths < 0 { "-" } else { "" };
        let (whole, rest) = (tenths.abs() / 10, tenths.abs() % 10);
        match rest {
            0 => write!(f, "{sign}{whole}"),
            rest => write!(f, "{sign}{whole}.{rest}"),
        }
    }
}

/// A number with three significant digits or, above 100, none behind the point.
pub(super) struct Short(pub(super) f64);

impl Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0 => f.write_str("0"),
            size if size < 1.0 => write!(f, "{:.2}", self.0),
            size if size < 100.0 => write!(f, "{:.1}", self.0),
            _ => write!(f, "{:.0}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_place() {
        let text = "<b>&\"'\u{202e}\0x\n</script>";
        let escaped = Esc(text).to_string();
        assert_eq!(escaped, "&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}x &lt;/script&gt;");
    }

    #[test]
    fn coordinates_are_short_and_never_minus_nothing() {
        let shown: Vec<String> =
            [0.0, -0.04, 12.0, 12.34, -7.25, f64::NAN].iter().map(|v| C(*v).to_string()).collect();
        assert_eq!(shown, ["0", "0", "12", "12.3", "-7.3", "0"]);
        assert_eq!(
            [0.0, 0.128, 12.34, 1234.5].map(|v| Short(v).to_string()),
            ["0", "0.13", "12.3", "1234"]
        );
    }
}
