//! Cells of an array as people name them: `7`, `0..15`.
//! In: words, the array's size. Out: ranges. Must not know registers or counters.

use std::ops::RangeInclusive;
use thiserror::Error;

/// Cells asked for one by one at most; more are read as a whole array. Keeps a Read below the limits of servers.
const SINGLE_MAX: i64 = 64;

/// Why a word names no cells.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectError {
    /// Neither number nor range.
    #[error("'{0}' is no index; write 7 or 0..15")]
    NoIndex(String),
    /// A range that ends before it starts.
    #[error("the range {0} is empty; write the smaller end first")]
    Empty(String),
    /// Beyond the array.
    #[error("{array} has the cells 0..{last}; '{word}' is beyond")]
    Beyond {
        /// Kind and name.
        array: String,
        /// As written.
        word: String,
        /// Largest index.
        last: i64,
    },
    /// No cell at all.
    #[error("{0} has no cells")]
    NoCells(String),
}

/// Cells of one array, in the order asked for; all if nothing was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    ranges: Vec<RangeInclusive<i64>>,
    all: bool,
}

impl Select {
    /// Reads words against an array of `size` cells; `array` is its kind and name for messages.
    ///
    /// # Errors
    /// Names the word.
    pub fn parse(array: &str, size: i64, words: &[String]) -> Result<Self, SelectError> {
        if size < 1 {
            return Err(SelectError::NoCells(array.to_owned()));
        }
        let number = |text: &str| {
            let fine = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            // A number with more digits than i64 has is beyond every array.
            fine.then(|| text.parse().unwrap_or(i64::MAX))
        };
        let mut ranges = Vec::new();
        for word in words {
            let (low, high) = word.split_once("..").unwrap_or((word, word));
            let (Some(low), Some(high)) = (number(low), number(high)) else {
                return Err(SelectError::NoIndex(word.clone()));
            };
            if low > high {
                return Err(SelectError::Empty(word.clone()));
            }
            if high >= size {
                let (array, word, last) = (array.to_owned(), word.clone(), size - 1);
                return Err(SelectError::Beyond { array, word, last });
            }
            ranges.push(low..=high);
        }
        Ok(Self { all: ranges.is_empty(), ranges })
    }

    /// The cells one by one if they are few; `None` = read the whole array.
    #[must_use]
    pub fn single(&self) -> Option<Vec<i64>> {
        let count: i64 = self.ranges.iter().map(|range| range.end() - range.start() + 1).sum();
        (!self.all && count <= SINGLE_MAX)
            .then(|| self.ranges.iter().flat_map(Clone::clone).collect())
    }

    /// Whether a cell was asked for.
    #[must_use]
    pub fn holds(&self, index: i64) -> bool {
        self.all || self.ranges.iter().any(|range| range.contains(&index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(words: &[&str]) -> Result<Select, SelectError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Select::parse("register 'r'", 100, &words)
    }

    #[test]
    fn few_cells_are_read_alone_and_many_as_an_array() {
        assert_eq!(select(&["7", "1..3"]).unwrap().single(), Some(vec![7, 1, 2, 3]));
        assert_eq!(select(&["0..99"]).unwrap().single(), None);
        let none = select(&[]).unwrap();
        assert!(none.single().is_none() && none.holds(99));
        let some = select(&["5..6", "99"]).unwrap();
        assert!(some.holds(6) && some.holds(99) && !some.holds(7));
    }

    #[test]
    fn wrong_words_are_named_with_what_to_write() {
        let cases = [
            ("x", "'x' is no index; write 7 or 0..15"),
            ("1..", "'1..' is no index"),
            ("-1", "'-1' is no index"),
            ("3..2", "the range 3..2 is empty"),
            ("100", "register 'r' has the cells 0..99; '100' is beyond"),
            ("5..99999999999999999999", "is beyond"),
        ];
        for (word, part) in cases {
            let error = select(&[word]).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(Select::parse("r", 0, &[]).is_err());
    }
}
