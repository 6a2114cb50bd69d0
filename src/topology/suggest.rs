//! "Did you mean": the nearest known name. In: what was written and the names that exist. Out: a hint or nothing.
//! Must not know: what the names are for.

/// Longest name that is compared; longer ones are no typing errors, and the comparison is quadratic.
const MAX_COMPARED: usize = 64;

/// The known name nearest to what was written, when at most a third of it was mistyped.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if written.len() > MAX_COMPARED {
        return None;
    }
    let limit = (written.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|name| name.len() <= MAX_COMPARED)
        .map(|name| (distance(written, name), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// `; did you mean 'x'?`, or nothing.
#[must_use]
pub fn hint<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or_else(String::new, |name| format!("; did you mean '{name}'?"))
}

/// Edit distance without regard to case, a swap of two neighbours counting as one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_name_and_other_words_do_not() {
        let known = ["leaves", "spines", "hosts_per_leaf", "host_link"];
        assert_eq!(nearest("leafs", known), None);
        assert_eq!(nearest("leavs", known), Some("leaves"));
        assert_eq!(nearest("sipnes", known), Some("spines"));
        assert_eq!(nearest("host_per_leaf", known), Some("hosts_per_leaf"));
        assert_eq!(nearest("HOST-LINK", known), Some("host_link"));
        assert_eq!(nearest("colour", known), None);
        // A swap is one mistake, not two: two would be too many for so short a name.
        assert_eq!(nearest("1h", ["h1", "h2"]), Some("h1"));
        assert_eq!(hint("host_lnik", known), "; did you mean 'host_link'?");
        assert_eq!(hint(&"x".repeat(100_000), known), "");
    }
}
