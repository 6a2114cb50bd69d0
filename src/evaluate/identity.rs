//! What results are of, beside settings and cells: the constants of a preset that its cells do not hold.
//!
//! In: a preset's name. Out: JSON that is hashed into the header of its results. Must not know: files.

use super::{Name, ablation, draw, fidelity, judge, scale};
use serde_json::{Value, json};

/// To be raised whenever cases are drawn, plans made or judged in another way than before, so that old results are refused. Nothing
/// else tells a changed algorithm from an unchanged one.
const RESULTS: u32 = 2;

/// Everything that matters to the results of a preset and stands in none of its cells.
pub(super) fn constants(preset: Name) -> Value {
    let draw = json!([draw::GPUS, draw::SPREAD, draw::JITTER, draw::LASTING_PERIODS]);
    let judge = json!([judge::WARM_UP, judge::WINDOW, judge::JUDGING_DRAWS]);
    let own = match preset {
        Name::Ablation => json!(ablation::SEARCH),
        Name::Fidelity => json!([fidelity::PHASES, fidelity::PERIODS]),
        Name::Scale => {
            json!([scale::JUDGED_FLOWS, scale::PAPER_FLOWS, scale::SEARCHED_FLOWS, scale::PROTOCOL])
        }
        Name::Paper | Name::Load | Name::Optimality | Name::Rho | Name::Detection => Value::Null,
    };
    json!({ "results": RESULTS, "draw": draw, "judge": judge, "own": own })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cells_do_not_hold_is_in_the_identity_of_their_results() {
        let text = |name| constants(name).to_string();
        for part in ["\"results\":", "judging-phases", "480.0", "0.03"] {
            assert!(text(Name::Paper).contains(part), "{part} in {}", text(Name::Paper));
        }
        assert!(text(Name::Ablation).contains("joint, a fifth of the search"));
        assert_eq!(constants(Name::Fidelity)["own"], json!([4, 10.0]));
        assert!(text(Name::Scale).contains("judging_draws"));
    }
}
