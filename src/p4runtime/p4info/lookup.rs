//! Finding objects by what people call them.
//! In: a name and a list. Out: the one object meant, or an error that names the nearest. Must not know kinds.

use super::{Kind, Names};

/// Names listed in a message at most, so that it stays readable.
const LISTED_MAX: usize = 5;

/// Why a name means nothing, or too much.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// Nothing is called that.
    #[error("no {kind} is called '{name}'{}{}", .inside, suggest(.near, .known))]
    Unknown {
        /// What was looked for, in words.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// " in table 'x'", or empty.
        inside: String,
        /// The names most like it, nearest first; may be empty.
        near: Vec<String>,
        /// Some of the names that exist.
        known: Vec<String>,
    },
    /// A suffix that several names have.
    #[error("'{name}' could be any of the {kind}s {}; write more of the name", .candidates.join(", "))]
    Ambiguous {
        /// What was looked for, in words.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// Full names that end so.
        candidates: Vec<String>,
    },
}

fn suggest(near: &[String], known: &[String]) -> String {
    match (near, known) {
        ([], []) => "; there is none".to_owned(),
        ([], known) => format!("; known are {}", known.join(", ")),
        (near, _) => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// The first few of the names, and whether there are more.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names = names.map(|name| format!("'{name}'"));
    let mut listed: Vec<String> = names.by_ref().take(LISTED_MAX).collect();
    if names.next().is_some() {
        listed.push("...".to_owned());
    }
    listed
}

/// Finds an object by full name, else alias, else suffix of the full name that starts after a dot.
pub(super) fn object<'a, T>(
    kind: Kind,
    name: &str,
    list: &'a [T],
    names: impl Fn(&T) -> &Names,
) -> Result<&'a T, LookupError> {
    if let Some(found) = list.iter().find(|object| names(object).name == name) {
        return Ok(found);
    }
    if let Some(found) = list.iter().find(|object| names(object).alias == name) {
        return Ok(found);
    }
    let ends = |full: &str| {
        full.strip_suffix(name).is_some_and(|front| front.ends_with('.')) && !name.is_empty()
    };
    let hits: Vec<&T> = list.iter().filter(|object| ends(&names(object).name)).collect();
    match hits.as_slice() {
        [one] => Ok(one),
        // The short form is what a person would type.
        [] => Err(LookupError::Unknown {
            kind: kind.words(),
            name: name.to_owned(),
            inside: String::new(),
            near: nearest(name, list.iter().map(|object| names(object).short())),
            known: listed(list.iter().map(|object| names(object).short())),
        }),
        many => Err(LookupError::Ambiguous {
            kind: kind.words(),
            name: name.to_owned(),
            candidates: many.iter().map(|object| names(object).name.clone()).collect(),
        }),
    }
}

/// Brings the answers of all kinds together.
pub(super) fn any(
    name: &str,
    found: impl Iterator<Item = Result<u32, LookupError>>,
) -> Result<Vec<u32>, LookupError> {
    let (mut ids, mut all) = (Vec::new(), Vec::new());
    for answer in found {
        match answer {
            Ok(id) => ids.push(id),
            Err(LookupError::Unknown { near, .. }) => all.extend(near),
            Err(ambiguous) => return Err(ambiguous),
        }
    }
    if !ids.is_empty() {
        return Ok(ids);
    }
    // Kinds share names (an action and its counter); one mention of each is enough.
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all.truncate(LISTED_MAX);
    let (name, inside) = (name.to_owned(), String::new());
    let known = vec!["the names of `p4info ls`".to_owned()];
    Err(LookupError::Unknown { kind: "object", name, inside, near: all, known })
}

/// Finds a field or parameter of `owner` by its exact name.
pub(super) fn member<'a, T>(
    kind: &'static str,
    owner: &str,
    name: &str,
    list: &'a [T],
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, LookupError> {
    list.iter().find(|member| name_of(member) == name).ok_or_else(|| LookupError::Unknown {
        kind,
        name: name.to_owned(),
        inside: format!(" in '{owner}'"),
        near: nearest(name, list.iter().map(|member| name_of(member).as_str())),
        known: listed(list.iter().map(|member| name_of(member).as_str())),
    })
}

/// Finds a field or parameter of `owner` by its name or by a suffix of it that starts after a dot.
pub(super) fn suffix<'a, T>(
    kind: &'static str,
    owner: &str,
    name: &str,
    list: &'a [T],
    name_of: impl Fn(&T) -> &String,
) -> Result<&'a T, LookupError> {
    let ends = |member: &&T| {
        let front = name_of(member).strip_suffix(name).filter(|_| !name.is_empty());
        front.is_some_and(|front| front.ends_with('.'))
    };
    let exact = list.iter().any(|member| name_of(member) == name);
    let hits: Vec<&T> = if exact { Vec::new() } else { list.iter().filter(ends).collect() };
    match hits.as_slice() {
        [one] => Ok(one),
        [] => member(kind, owner, name, list, name_of),
        many => Err(LookupError::Ambiguous {
            kind,
            name: name.to_owned(),
            candidates: many.iter().map(|member| name_of(member).clone()).collect(),
        }),
    }
}

/// The names within a third of the length of `name` in edits, nearest first, or those that contain it.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.rsplit('.').next().unwrap_or(name).to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    let mut scored: Vec<(usize, &str)> = names
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let edits = edits(&wanted, &lower);
            let contains = wanted.len() >= 3
                && (lower.contains(&wanted) || lower.len() >= 3 && wanted.contains(&lower));
            (edits <= limit || contains).then_some((edits, candidate))
        })
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().take(LISTED_MAX).map(|(_, name)| format!("'{name}'")).collect()
}

/// Least number of insertions, deletions and replacements between two words.
fn edits(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
