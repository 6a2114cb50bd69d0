//! What a trace does not say: models.
//!
//! In: what a trace calls a model. Out: a row of the model table, and whether the name says so. Must not know: traces.

use crate::workload::models::{self, MODELS, Model};

/// Words in names of models that a row of the table stands for.
const ALIASES: [(&str, &str); 5] = [
    ("resnet", "resnet-50"),
    ("bert", "bert-large"),
    ("vgg", "vgg-16"),
    ("gpt2", "gpt2-medium"),
    ("gpt-2", "gpt2-medium"),
];

/// The row that a name stands for, else the `turn`-th of the table, gone through again and again.
#[must_use]
pub fn assumed(name: &str, turn: usize) -> (&'static Model, bool) {
    let lower = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(word, _)| lower.contains(word));
    let exact = models::find(&lower);
    match exact.or_else(|| models::find(alias?.1)) {
        Some(model) => (model, true),
        None => (&MODELS[turn % MODELS.len()], false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_is_in_the_table_and_strangers_go_through_it_in_turn() {
        for (word, model) in ALIASES {
            assert_eq!(assumed(&word.to_uppercase(), 0), (models::find(model).unwrap(), true));
        }
        assert_eq!(assumed("vgg-19", 0).0.name, "vgg-19");
        let strangers: Vec<&str> =
            (0..=MODELS.len()).map(|turn| assumed("unknown", turn).0.name).collect();
        assert_eq!(strangers[0], strangers[MODELS.len()]);
        assert_ne!(strangers[0], strangers[1]);
    }
}
