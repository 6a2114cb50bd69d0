//! What the grid came to, configuration by configuration.
//!
//! In: cases with their comparisons. Out: rows and tables. Must not know: how plans are made. Configurations in which ours loses are
//! shown like the others.

use crate::evaluate::compare::{Comparison, Means, Protocol, versus};
use crate::evaluate::draw::Case;
use crate::evaluate::judge::{Figures, WINDOW};
use crate::evaluate::{EvaluateError, Summary};
use crate::report::evaluation::{Chart, Entry, Mark, Page, Table};
use serde::Serialize;

/// Ours.
const OURS: &str = "joint";
/// Policies that are no baseline: ours in its variants, and the published method that it grew from.
fn is_baseline(policy: &str) -> bool {
    !policy.starts_with(OURS) && policy != "paper"
}

/// Changes that the method's paper publishes, as shares: communication, utilisation.
const AGAINST_CRUX: (f64, f64) = (-0.184, 0.104);
/// The same against Gsched, whose text is closed: ours are the two readings of it.
const AGAINST_GSCHED: (f64, f64) = (-0.135, 0.063);
/// One iteration of the slowest job: by so much can the utilisation of a window pass the bound of the long run.
const WINDOW_EDGE: f64 = 1.0 / WINDOW;

/// Whether a published change is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// Ours changes by at least as much.
    Reached,
    /// It does not, and no bound forbids it.
    NotReached,
    /// No plan can: the bound is nearer than that.
    Impossible,
}

impl Verdict {
    fn of(own: f64, wanted: f64, limit: f64) -> Self {
        let less = wanted < 0.0;
        let reaches = |value: f64| if less { value <= wanted } else { value >= wanted };
        match (reaches(own), reaches(limit)) {
            (true, _) => Self::Reached,
            (false, true) => Self::NotReached,
            (false, false) => Self::Impossible,
        }
    }

    fn entry(self) -> Entry {
        match self {
            Self::Reached => Entry::text("reached").marked(Mark::Good),
            Self::NotReached => Entry::text("not reached").marked(Mark::Bad),
            Self::Impossible => Entry::text("impossible (bound)"),
        }
    }
}

/// Ours against one other policy in one configuration.
#[derive(Clone, Copy, Debug, Serialize)]
struct Against {
    /// Change of the mean communication time.
    comm: f64,
    /// The same in milliseconds.
    comm_ms: f64,
    /// Change of GPU utilisation.
    utilisation: f64,
    /// The same in percentage points.
    utilisation_points: f64,
    /// What the bound would change.
    comm_bound: f64,
    /// What the bound would change.
    utilisation_bound: f64,
}

/// One configuration: all its seeds.
#[derive(Serialize)]
struct Row {
    configuration: String,
    seeds: usize,
    jobs: f64,
    flows: f64,
    /// Means over seeds and draws, by policy.
    policies: Vec<(String, Figures)>,
    alone_comm_ms: f64,
    alone_utilisation: f64,
    utilisation_bound: f64,
    against: Vec<(String, Against)>,
    published: Vec<(String, Verdict)>,
    /// Draws in which the best baseline of that draw communicates for less time, and uses GPUs more.
    lost_comm: usize,
    lost_utilisation: usize,
    draws: usize,
    worst: Worst,
}

/// The draw in which ours is worst against the best baseline of that draw.
#[derive(Clone, Default, Serialize)]
struct Worst {
    comm: f64,
    comm_seed: u64,
    comm_baseline: String,
    utilisation: f64,
    utilisation_seed: u64,
    utilisation_baseline: String,
}

pub(super) fn summary(
    results: &[(Case, Comparison)],
    protocol: &Protocol,
    seeds: u64,
) -> Result<Summary, EvaluateError> {
    let rows: Vec<Row> = groups(results).iter().map(|group| row(group)).collect();
    let page = Page {
        title: "Ringpath evaluation: paper".to_owned(),
        question: vec![
            "How does every policy do on a grid of fabrics and loads that was fixed before any result was seen? Judged by the fluid \
             simulation over draws that no planner saw; every configuration is shown, none is averaged away."
                .to_owned(),
            "Changes are relative, of means over seeds; points are percentage points. 'alone' is every job with the fabric for itself, \
             which no plan beats. Published: the changes that the method's paper reports; 'impossible' means that even the bound does \
             not reach them."
                .to_owned(),
        ],
        facts: facts(&rows, protocol),
        charts: vec![
            chart(&rows, "Communication time against crux", |f| f.comm_ms),
            chart(&rows, "GPU utilisation against crux", |f| f.utilisation),
        ],
        tables: vec![
            published(&rows),
            against(&rows),
            losses(&rows),
            figures(&rows),
            cases(results, "cases-communication", "Every case: communication ms", 1, |f| f.comm_ms, |l| l.alone_comm_ms),
            cases(results, "cases-utilisation", "Every case: GPU utilisation", 4, |f| f.utilisation, |l| l.utilisation_bound),
        ],
        shown: 3,
    };
    Ok(Summary { source: "fluid", seeds, rows: serde_json::to_value(&rows)?, page })
}

/// Neighbouring results of one configuration.
fn groups(results: &[(Case, Comparison)]) -> Vec<&[(Case, Comparison)]> {
    results.chunk_by(|a, b| a.0.name() == b.0.name()).collect()
}

fn row(group: &[(Case, Comparison)]) -> Row {
    let means = Means(group);
    let names = group.first().map(|(_, result)| result.standings.iter()).into_iter().flatten();
    let policies: Vec<(String, Figures)> =
        names.map(|standing| (standing.policy.clone(), means.of(&standing.policy))).collect();
    let alone_comm_ms = means.over(|result| result.limits.alone_comm_ms);
    let utilisation_bound = means.over(|result| result.limits.utilisation_bound);
    let find = |name: &str| {
        policies.iter().find(|(policy, _)| policy == name).map(|found| found.1).unwrap_or_default()
    };
    let own = find(OURS);
    let versus = |other: Figures| Against {
        comm: own.comm_ms / other.comm_ms - 1.0,
        comm_ms: own.comm_ms - other.comm_ms,
        utilisation: own.utilisation / other.utilisation - 1.0,
        utilisation_points: (own.utilisation - other.utilisation) * 100.0,
        comm_bound: alone_comm_ms / other.comm_ms - 1.0,
        utilisation_bound: utilisation_bound * (1.0 + WINDOW_EDGE) / other.utilisation - 1.0,
    };
    // The better of the two readings, figure by figure: the harder comparison.
    let (g1, g2) = (find("gsched-g1"), find("gsched-g2"));
    let gsched = Figures {
        comm_ms: g1.comm_ms.min(g2.comm_ms),
        utilisation: g1.utilisation.max(g2.utilisation),
        ..g1
    };
    let against: Vec<(String, Against)> =
        [("crux", find("crux")), ("least-loaded", find("least-loaded")), ("gsched", gsched)]
            .map(|(name, other)| (name.to_owned(), versus(other)))
            .into();
    let verdicts = |name: &str, against: &Against, wanted: (f64, f64)| {
        let comm = Verdict::of(against.comm, wanted.0, against.comm_bound);
        let utilisation = Verdict::of(against.utilisation, wanted.1, against.utilisation_bound);
        [(format!("{name} communication"), comm), (format!("{name} utilisation"), utilisation)]
    };
    let published = [
        verdicts("crux", &against[0].1, AGAINST_CRUX),
        verdicts("gsched", &against[2].1, AGAINST_GSCHED),
    ];
    let (worst, lost_comm, lost_utilisation, draws) = worst(group);
    Row {
        configuration: group.first().map(|(case, _)| case.name()).unwrap_or_default(),
        seeds: group.len(),
        jobs: means.over(|result| result.jobs as f64),
        flows: means.over(|result| result.flows as f64),
        policies,
        alone_comm_ms,
        alone_utilisation: means.over(|result| result.limits.alone_utilisation),
        utilisation_bound,
        against,
        published: published.concat(),
        lost_comm,
        lost_utilisation,
        draws,
        worst,
    }
}

/// Ours against the best baseline of each single draw.
fn worst(group: &[(Case, Comparison)]) -> (Worst, usize, usize, usize) {
    let mut worst =
        Worst { comm: f64::NEG_INFINITY, utilisation: f64::INFINITY, ..Worst::default() };
    let (mut lost_comm, mut lost_utilisation, mut draws) = (0, 0, 0);
    for (case, result) in group {
        let own = result.standings.iter().find(|standing| standing.policy == OURS);
        for (number, own) in own.iter().flat_map(|standing| standing.draws.iter()).enumerate() {
            let baselines = || {
                let all = result.standings.iter().filter(|standing| is_baseline(&standing.policy));
                all.filter_map(|standing| Some((&standing.policy, standing.draws.get(number)?)))
            };
            let fastest = baselines().min_by(|a, b| a.1.comm_ms.total_cmp(&b.1.comm_ms));
            let fullest = baselines().max_by(|a, b| a.1.utilisation.total_cmp(&b.1.utilisation));
            let (Some(fastest), Some(fullest)) = (fastest, fullest) else { continue };
            draws += 1;
            let comm = own.comm_ms / fastest.1.comm_ms - 1.0;
            let utilisation = own.utilisation / fullest.1.utilisation - 1.0;
            lost_comm += usize::from(comm > 0.0);
            lost_utilisation += usize::from(utilisation < 0.0);
            if comm > worst.comm {
                (worst.comm, worst.comm_seed) = (comm, case.seed);
                worst.comm_baseline.clone_from(fastest.0);
            }
            if utilisation < worst.utilisation {
                (worst.utilisation, worst.utilisation_seed) = (utilisation, case.seed);
                worst.utilisation_baseline.clone_from(fullest.0);
            }
        }
    }
    (worst, lost_comm, lost_utilisation, draws)
}

fn facts(rows: &[Row], protocol: &Protocol) -> Vec<(String, String)> {
    let fact = |name: &str, value: String| (name.to_owned(), value);
    let count = |verdict| {
        let all = || rows.iter().flat_map(|row| &row.published);
        format!("{} of {}", all().filter(|found| found.1 == verdict).count(), all().count())
    };
    vec![
        fact("source", "fluid simulation".to_owned()),
        fact("configurations", rows.len().to_string()),
        fact("seeds", rows.first().map_or(0, |row| row.seeds).to_string()),
        fact("evaluations of joint", protocol.evaluations.to_string()),
        fact("published changes reached", count(Verdict::Reached)),
        fact("not reached", count(Verdict::NotReached)),
        fact("impossible by a bound", count(Verdict::Impossible)),
    ]
}

fn chart(rows: &[Row], title: &str, of: fn(&Figures) -> f64) -> Chart {
    let series = ["ecmp", "least-loaded", "sebf", "gsched-g1", "paper", "joint"];
    let points = |row: &Row| {
        let value = |name: &str| {
            row.policies.iter().find(|(policy, _)| policy == name).map(|found| of(&found.1))
        };
        let base = value("crux").unwrap_or(f64::NAN);
        let ratio = |(place, name): (usize, &&str)| value(name).map(|own| (place, own / base));
        (row.configuration.clone(), series.iter().enumerate().filter_map(ratio).collect())
    };
    Chart::new(title, "times crux", &series, rows.iter().map(points).collect())
}

fn published(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "published",
        "Published changes, configuration by configuration",
        "joint against crux and against the better of the two readings of Gsched (figure by figure). Published: communication -18.4 % \
         and utilisation +10.4 % against Crux, -13.5 % and +6.3 % against Gsched. Utilisation is relative; percentage points stand beside.",
        &[
            "configuration",
            "comm vs crux",
            "-18.4 %",
            "utilisation vs crux",
            "points",
            "+10.4 %",
            "comm vs gsched",
            "-13.5 %",
            "utilisation vs gsched",
            "points ",
            "+6.3 %",
        ],
    );
    for row in rows {
        let mut entries = vec![Entry::text(&row.configuration)];
        for (place, (_, against)) in
            row.against.iter().filter(|(name, _)| name != "least-loaded").enumerate()
        {
            entries.push(Entry::change(against.comm, true));
            entries.push(row.published[2 * place].1.entry());
            entries.push(Entry::change(against.utilisation, false));
            entries.push(Entry::number(against.utilisation_points, 1));
            entries.push(row.published[2 * place + 1].1.entry());
        }
        table.rows.push(entries);
    }
    table
}

fn against(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "against",
        "joint against crux and least-loaded, beside the bounds",
        "Bounds: communication of every job alone on the fabric; utilisation in the long run by a linear program over host links and cuts.",
        &[
            "configuration",
            "jobs",
            "joint comm ms",
            "vs crux",
            "vs least-loaded",
            "alone ms",
            "alone vs crux",
            "joint utilisation",
            "vs crux ",
            "points",
            "vs least-loaded ",
            "points ",
            "bound",
            "bound vs crux",
        ],
    );
    for row in rows {
        let find = |name: &str| row.policies.iter().find(|found| found.0 == name);
        let (Some((_, own)), Some((_, crux))) = (find(OURS), find("crux")) else { continue };
        let (on_crux, on_ll) = (&row.against[0].1, &row.against[1].1);
        table.rows.push(vec![
            Entry::text(&row.configuration),
            Entry::number(row.jobs, 1),
            Entry::number(own.comm_ms, 1),
            Entry::change(on_crux.comm, true),
            Entry::change(on_ll.comm, true),
            Entry::number(row.alone_comm_ms, 1),
            Entry::change(on_crux.comm_bound, true).marked(Mark::Plain),
            Entry::number(own.utilisation, 4),
            Entry::change(on_crux.utilisation, false),
            Entry::number(on_crux.utilisation_points, 1),
            Entry::change(on_ll.utilisation, false),
            Entry::number(on_ll.utilisation_points, 1),
            Entry::number(row.utilisation_bound, 4),
            Entry::change(row.utilisation_bound / crux.utilisation - 1.0, false)
                .marked(Mark::Plain),
        ]);
    }
    table
}

fn losses(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "losses",
        "Where ours loses against the best baseline of each single draw",
        "The best baseline is chosen anew for every draw and for every figure, so no one baseline does all of this. Worst: the held-out \
         draw in which joint is furthest behind (or least ahead).",
        &[
            "configuration",
            "draws",
            "lost on comm",
            "worst comm",
            "seed",
            "baseline",
            "lost on utilisation",
            "worst utilisation",
            "seed ",
            "baseline ",
        ],
    );
    for row in rows {
        let worst = &row.worst;
        let lost = |count: usize| {
            let mark = if count > 0 { Mark::Bad } else { Mark::Good };
            Entry::count(count as u64).marked(mark)
        };
        table.rows.push(vec![
            Entry::text(&row.configuration),
            Entry::count(row.draws as u64),
            lost(row.lost_comm),
            Entry::change(worst.comm, true),
            Entry::count(worst.comm_seed),
            Entry::text(&worst.comm_baseline),
            lost(row.lost_utilisation),
            Entry::change(worst.utilisation, false),
            Entry::count(worst.utilisation_seed),
            Entry::text(&worst.utilisation_baseline),
        ]);
    }
    table
}

fn figures(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "figures",
        "Every policy in every configuration",
        "Means over seeds and draws. Slowdown: communication time against the job alone, mean over jobs and largest. Starved: jobs of \
         which no iteration ended within the window, all seeds and draws together.",
        &[
            "configuration",
            "policy",
            "communication ms",
            "vs crux",
            "vs least-loaded",
            "utilisation",
            "vs crux ",
            "vs least-loaded ",
            "slowdown",
            "largest",
            "starved",
        ],
    );
    for row in rows {
        let find =
            |name: &str| row.policies.iter().find(|found| found.0 == name).map(|found| found.1);
        let (Some(crux), Some(least)) = (find("crux"), find("least-loaded")) else { continue };
        for (name, own) in &row.policies {
            table.rows.push(vec![Entry::text(&row.configuration), Entry::text(name)]);
            table.extend(versus((Some(own.comm_ms), own.utilisation), &[crux, least]));
            table.extend([
                Entry::number(own.slowdown, 2),
                Entry::number(own.slowdown_max, 2),
                Entry::count(u64::from(own.starved)),
            ]);
        }
        let limit = |name: &str, comm: Option<f64>, utilisation: f64| {
            let mut entries = vec![Entry::text(&row.configuration), Entry::text(name)];
            let bound = versus((comm, utilisation), &[crux, least]);
            entries.extend(bound.into_iter().map(|entry| entry.marked(Mark::Plain)));
            entries.extend([Entry::nothing(), Entry::nothing(), Entry::nothing()]);
            entries
        };
        table.rows.push(limit("(alone)", Some(row.alone_comm_ms), row.alone_utilisation));
        table.rows.push(limit("(bound)", None, row.utilisation_bound));
    }
    table
}

/// Every case with every policy.
fn cases(
    results: &[(Case, Comparison)],
    name: &str,
    title: &str,
    digits: usize,
    of: fn(&Figures) -> f64,
    limit: fn(&crate::evaluate::judge::Limits) -> f64,
) -> Table {
    let policies: Vec<&str> = results
        .first()
        .map(|(_, result)| result.standings.iter().map(|s| s.policy.as_str()).collect())
        .unwrap_or_default();
    let columns = [&["configuration", "seed"][..], &policies, &["(bound)"]].concat();
    let mut table = Table::new(name, title, "Means over the judging draws of the case.", &columns);
    for (case, result) in results {
        let mut entries = vec![Entry::text(case.name()), Entry::count(case.seed)];
        for policy in &policies {
            entries.push(Entry::maybe(result.mean(policy).map(|figures| of(&figures)), digits));
        }
        entries.push(Entry::number(limit(&result.limits), digits));
        table.rows.push(entries);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_beyond_the_bound_is_impossible_and_not_merely_missed() {
        assert_eq!(Verdict::of(-0.20, -0.184, -0.3), Verdict::Reached);
        assert_eq!(Verdict::of(-0.10, -0.184, -0.3), Verdict::NotReached);
        assert_eq!(Verdict::of(-0.10, -0.184, -0.15), Verdict::Impossible);
        assert_eq!(Verdict::of(0.05, 0.104, 0.10), Verdict::Impossible);
        assert_eq!(Verdict::of(0.05, 0.104, 0.20), Verdict::NotReached);
        assert_eq!(Verdict::of(0.2, 0.104, 0.20), Verdict::Reached);
    }
}
