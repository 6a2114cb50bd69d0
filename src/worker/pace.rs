//! How fast a rank computes right now, as a file says. In: a path. Out: a share of the speed. Must not know why.

use std::path::PathBuf;

/// Slowest and fastest share that is believed; others are typing errors.
const RANGE: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

/// A file with one number, read before every iteration: 0.5 computes at half the speed, 1 as was asked for.
#[derive(Clone, Debug)]
pub struct Pace {
    file: Option<PathBuf>,
    last: f64,
    /// What was wrong with the file when it was last read, said once.
    told: Option<String>,
}

impl Pace {
    /// A pace of 1 until the file says otherwise.
    #[must_use]
    pub const fn new(file: Option<PathBuf>) -> Self {
        Self { file, last: 1.0, told: None }
    }

    /// The share from now on. A file that is not there means 1; one that is no number, or is being written, changes nothing.
    pub fn share(&mut self) -> f64 {
        let Some(file) = &self.file else { return 1.0 };
        let read = match std::fs::read_to_string(file) {
            Ok(text) => text
                .trim()
                .parse()
                .ok()
                .filter(|share| RANGE.contains(share))
                .ok_or_else(|| format!("'{}' is no share of the speed", text.trim())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(1.0),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(share) => (self.last, self.told) = (share, None),
            Err(what) if self.told.as_ref() != Some(&what) => {
                tracing::warn!(file = %file.display(), "{what}; the pace stays at {}", self.last);
                self.told = Some(what);
            }
            Err(_) => {}
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_follows_its_file_and_keeps_what_it_had_when_the_file_says_nonsense() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pace");
        let mut pace = Pace::new(Some(file.clone()));
        let mut after = |text: &str| {
            std::fs::write(&file, text).unwrap();
            pace.share()
        };
        assert_eq!(after("0.25\n"), 0.25);
        for nonsense in ["", "slow", "0", "-1", "NaN", "inf", "1e9"] {
            assert_eq!(after(nonsense), 0.25, "{nonsense}");
        }
        assert_eq!(after("1"), 1.0);
        assert_eq!(after("0.5"), 0.5);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(pace.share(), 1.0, "without the file nothing is slow");
        assert_eq!(Pace::new(None).share(), 1.0);
    }
}
