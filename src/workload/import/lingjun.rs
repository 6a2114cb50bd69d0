//! `job.csv` and `worker.csv` of the Alibaba Lingjun dataset 2023: which jobs ran when, on which hosts.
//!
//! In: both files. Out: a [`Trace`] of the jobs that ran on two hosts or more. Must not know: what the jobs computed or sent (the trace
//! does not say), fabrics.
//!
//! Columns are found by name, in any order, and others are passed over. Of `job.csv`: `job_name, model, status, gmt_job_submitted,
//! gmt_job_running, gmt_job_finished, gmt_job_stopped`; of `worker.csv`: `job_name, host_ip, RES`, where `RES` is JSON with
//! `nvidia.com/gpu`. Times are `2023/7/15 02:19`, to the minute. Jobs that never ran, still ran at the end, ended before they began or
//! began before they were submitted are left out and counted.

use super::{ImportError, ImportProblem, MAX_GPUS};
use std::collections::BTreeMap;

/// Most rows of a file: a hundred times the published ones.
const MAX_ROWS: usize = 3_000_000;

/// One job that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// Its name in the trace.
    pub name: String,
    /// What the trace calls its model; often nothing or `unknown`.
    pub model: String,
    /// When it began to run, minutes since 1970.
    pub begin: i64,
    /// When it ended.
    pub end: i64,
    /// Hosts by name, each once, sorted, with the GPUs of the job on it.
    pub hosts: Vec<(String, u32)>,
}

/// Jobs of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// By begin, then by name.
    pub jobs: Vec<TraceJob>,
    /// What was left out, one sentence each.
    pub notes: Vec<String>,
}

/// A file: its name for messages, and its bytes.
pub type Named<'a> = (&'a str, &'a [u8]);

/// A job as `job.csv` has it.
struct Row {
    model: String,
    begin: i64,
    end: i64,
}

/// Why jobs are left out, in the order of the notes.
const REASONS: [&str; 6] = [
    "never ran",
    "still ran when the trace was taken",
    "have no end",
    "ended before they began",
    "ran before they were submitted",
    "ran on fewer than two hosts",
];

/// Reads a trace.
///
/// # Errors
/// [`ImportError`] with file, line and column (number of the field).
pub fn lingjun(jobs: Named<'_>, workers: Named<'_>) -> Result<Trace, ImportError> {
    let mut left_out = [0_u64; REASONS.len()];
    let rows = job_rows(jobs, &mut left_out)?;
    let (mut hosts, strangers) = worker_rows(workers, &rows)?;
    let mut trace = Trace::default();
    for (name, row) in rows {
        let hosts: Vec<(String, u32)> =
            hosts.remove(&name).unwrap_or_default().into_iter().collect();
        if hosts.len() < 2 {
            left_out[5] += 1;
            continue;
        }
        let Row { model, begin, end } = row;
        trace.jobs.push(TraceJob { name, model, begin, end, hosts });
    }
    if trace.jobs.is_empty() {
        return Err(super::whole(jobs.0, ImportProblem::NoJobs));
    }
    trace.jobs.sort_by(|a, b| (a.begin, &a.name).cmp(&(b.begin, &b.name)));
    for (count, reason) in left_out.iter().zip(REASONS).filter(|(count, _)| **count > 0) {
        trace.notes.push(format!("{count} jobs are left out because they {reason}"));
    }
    if strangers > 0 {
        trace.notes.push(format!(
            "{strangers} workers belong to no job that is used, or have no host or no GPU"
        ));
    }
    Ok(trace)
}

/// Jobs that ran from a minute to another, by name.
fn job_rows(
    file: Named<'_>,
    left_out: &mut [u64; REASONS.len()],
) -> Result<BTreeMap<String, Row>, ImportError> {
    const COLUMNS: [&str; 7] = [
        "job_name",
        "model",
        "status",
        "gmt_job_submitted",
        "gmt_job_running",
        "gmt_job_finished",
        "gmt_job_stopped",
    ];
    let mut rows = BTreeMap::new();
    let mut first_seen: BTreeMap<String, u64> = BTreeMap::new();
    read(file, &COLUMNS, |row| {
        let name = row.text(0)?.to_owned();
        if let Some(&first) = first_seen.get(&name) {
            return Err(row.fail(0, ImportProblem::Twice { what: "job", name, first }));
        }
        first_seen.insert(name.clone(), row.line);
        let (submitted, begin) = (row.minute(3)?, row.minute(4)?);
        let end = match row.minute(5)? {
            Some(finished) => Some(finished),
            None => row.minute(6)?,
        };
        let running = row.get(2).eq_ignore_ascii_case("running");
        let reason = match (begin, end) {
            (None, _) => 0,
            _ if running => 1,
            (_, None) => 2,
            (Some(begin), Some(end)) if end < begin => 3,
            (Some(begin), _) if submitted.is_some_and(|submitted| begin < submitted) => 4,
            (Some(begin), Some(end)) => {
                rows.insert(name, Row { model: row.get(1).to_owned(), begin, end });
                return Ok(());
            }
        };
        left_out[reason] += 1;
        Ok(())
    })?;
    Ok(rows)
}

type Hosts = BTreeMap<String, BTreeMap<String, u32>>;

/// GPUs by job and host, and how many workers are of no use.
fn worker_rows(file: Named<'_>, jobs: &BTreeMap<String, Row>) -> Result<(Hosts, u64), ImportError> {
    let mut hosts = Hosts::new();
    let mut strangers = 0;
    read(file, &["job_name", "host_ip", "RES"], |row| {
        let (job, host) = (row.text(0)?, row.get(1));
        let gpus = row.gpus(2)?;
        if !jobs.contains_key(job) || host.is_empty() || gpus == 0 {
            strangers += 1;
            return Ok(());
        }
        let of_job = hosts.entry(job.to_owned()).or_default();
        // A worker that was started again on its host has a row for every start: the most at once is not in the file.
        let known = of_job.entry(host.to_owned()).or_default();
        *known = (*known).max(gpus);
        Ok(())
    })?;
    Ok((hosts, strangers))
}

/// A row with the places of the wanted columns.
struct Fields<'a> {
    file: &'a str,
    line: u64,
    record: &'a csv::StringRecord,
    index: &'a [usize],
    columns: &'a [&'static str],
}

impl<'a> Fields<'a> {
    fn get(&self, column: usize) -> &'a str {
        self.record.get(self.index[column]).unwrap_or("")
    }

    fn fail(&self, column: usize, problem: ImportProblem) -> ImportError {
        let column = self.index[column] as u64 + 1;
        ImportError { file: self.file.to_owned(), line: self.line, column, problem }
    }

    /// A field that must not be empty.
    fn text(&self, column: usize) -> Result<&'a str, ImportError> {
        let text = self.get(column);
        if text.is_empty() {
            let column_name = self.columns[column];
            return Err(self.fail(column, ImportProblem::Empty { column: column_name }));
        }
        Ok(text)
    }

    /// Minutes since 1970 of `2023/7/15 02:19`; `None` for nothing.
    fn minute(&self, column: usize) -> Result<Option<i64>, ImportError> {
        let text = self.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let bad = || {
            let text = text.chars().take(40).collect();
            self.fail(column, ImportProblem::BadTime { column: self.columns[column], text })
        };
        minute(text).map(Some).ok_or_else(bad)
    }

    /// `nvidia.com/gpu` of a JSON object with values in quotes or without; 0 if there is none.
    fn gpus(&self, column: usize) -> Result<u32, ImportError> {
        let text = self.get(column);
        if text.is_empty() {
            return Ok(0);
        }
        let bad = |message: String| self.fail(column, ImportProblem::BadResources { message });
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        let gpus: u32 = match value.get("nvidia.com/gpu") {
            None => 0,
            Some(serde_json::Value::String(gpus)) => gpus
                .parse()
                .map_err(|_| bad(format!("nvidia.com/gpu is '{gpus}', not a number")))?,
            Some(gpus) => gpus
                .as_u64()
                .and_then(|gpus| u32::try_from(gpus).ok())
                .ok_or_else(|| bad(format!("nvidia.com/gpu is {gpus}, not a number")))?,
        };
        if gpus > MAX_GPUS {
            let (what, value, max) = ("nvidia.com/gpu", gpus.into(), MAX_GPUS.into());
            return Err(self.fail(column, ImportProblem::TooMuch { what, value, max }));
        }
        Ok(gpus)
    }
}

/// Minutes since 1970 of `2023/7/15 02:19` in the proleptic Gregorian calendar; `None` for anything else.
#[must_use]
pub fn minute(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let mut parts = date.split('/').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (hour, minutes) = time.split_once(':')?;
    let (hour, minutes) = (hour.parse::<i64>().ok()?, minutes.parse::<i64>().ok()?);
    let fine = parts.next().is_none()
        && (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days(year, month)).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minutes);
    if !fine {
        return None;
    }
    let before_year: i64 = (1970..year).map(|year| 365 + i64::from(leap(year))).sum();
    let before_month: i64 = (1..month).map(|month| days(year, month)).sum();
    Some((((before_year + before_month + day - 1) * 24) + hour) * 60 + minutes)
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Hands every row to `take`, with the columns of these names.
fn read<'a>(
    (file, bytes): Named<'a>,
    columns: &[&'static str],
    mut take: impl FnMut(&Fields<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let at = |line, problem| ImportError { file: file.to_owned(), line, column: 0, problem };
    let text = super::text(bytes, file)?.trim_start_matches('\u{feff}');
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let csv = |error: csv::Error| {
        let line = error.position().map_or(0, csv::Position::line);
        at(line, ImportProblem::Csv { message: error.to_string() })
    };
    let header = reader.headers().map_err(csv)?.clone();
    let mut index = Vec::with_capacity(columns.len());
    for &column in columns {
        let place = header.iter().position(|name| name == column).ok_or_else(|| {
            let header = header.iter().collect::<Vec<_>>().join(",").chars().take(200).collect();
            at(1, ImportProblem::MissingColumn { column, header })
        })?;
        index.push(place);
    }
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(csv)? {
        let line = record.position().map_or(0, csv::Position::line);
        let (found, wanted) = (record.len(), header.len());
        if found != wanted {
            return Err(at(line, ImportProblem::Fields { found, wanted }));
        }
        rows += 1;
        if rows > MAX_ROWS {
            return Err(at(line, ImportProblem::TooManyRows { max: MAX_ROWS }));
        }
        take(&Fields { file, line, record: &record, index: &index, columns })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: &str = "id,job_name,kind,model,status,gmt_job_submitted,gmt_job_running,gmt_job_stopped,gmt_job_finished,Unnamed\n\
        1,a,PyTorchJob,llama,Succeeded,2023/8/1 00:00,2023/8/1 00:05,,2023/8/1 02:05,\n\
        2,b,PyTorchJob,unknown,Stopped,2023/8/1 00:01,2023/8/1 00:02,2023/8/1 00:09,,\n\
        3,c,PyTorchJob,resnet,Succeeded,2023/8/1 00:01,2023/8/1 00:02,,2023/8/1 00:09,\n\
        4,never,TFJob,rl,Failed,2023/8/1 00:01,,,2023/8/1 00:09,\n\
        5,running,TFJob,rl,Running,2023/8/1 00:01,2023/8/1 00:01,,,\n\
        6,early,TFJob,rl,Succeeded,2023/8/12 00:01,2023/8/1 00:01,,2023/8/13 00:09,\n";
    const WORKERS: &str = "job_name,worker_name,replica_type,host_ip,RES\n\
        a,a-master-0,Master,h2,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\",\"\"cpu\"\":\"\"90\"\"}\"\n\
        a,a-worker-0,worker,h1,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
        a,a-worker-0,worker,h1,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
        b,b-worker-0,worker,h1,\"{\"\"nvidia.com/gpu\"\": 4}\"\n\
        b,b-worker-1,worker,h3,\"{\"\"nvidia.com/gpu\"\": 4}\"\n\
        c,c-worker-0,worker,h3,\"{\"\"cpu\"\": \"\"4\"\"}\"\n";

    fn both(jobs: &str, workers: &str) -> Result<Trace, ImportError> {
        lingjun(("job.csv", jobs.as_bytes()), ("worker.csv", workers.as_bytes()))
    }

    #[test]
    fn jobs_that_ran_on_several_hosts_are_read_in_the_order_in_which_they_began() {
        let trace = both(JOBS, WORKERS).unwrap();
        let names: Vec<&str> = trace.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["b", "a"]);
        let (b, a) = (&trace.jobs[0], &trace.jobs[1]);
        assert_eq!(a.hosts, [("h1".to_owned(), 8), ("h2".to_owned(), 8)]);
        assert_eq!((a.begin - b.begin, a.end - a.begin, b.end - b.begin), (3, 120, 7));
        assert_eq!(a.model, "llama");
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_counted() {
        let notes = both(JOBS, WORKERS).unwrap().notes.join("; ");
        for reason in [
            "1 jobs are left out because they never ran",
            "still ran",
            "before they were submitted",
            "fewer than two hosts",
        ] {
            assert!(notes.contains(reason), "{reason} is missing in {notes}");
        }
        assert!(notes.contains("1 workers belong to no job"), "{notes}");
    }

    #[test]
    fn minutes_count_leap_days() {
        assert_eq!(minute("1970/1/1 00:00"), Some(0));
        assert_eq!(minute("2023/7/15 02:19"), Some(28_156_459));
        let (before, after) =
            (minute("2024/2/29 23:59").unwrap(), minute("2024/3/1 0:00").unwrap());
        assert_eq!(after - before, 1);
        for wrong in [
            "2023/2/29 00:00",
            "2023/7/15",
            "15.7.2023 02:19",
            "2023/7/15 24:00",
            "2023/7/15 02:19:00",
            "",
        ] {
            assert_eq!(minute(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_by_line_and_column() {
        let cases = [
            (JOBS.replace("2023/8/1 02:05", "yesterday"), WORKERS.to_owned(), "job.csv:2:9: "),
            (JOBS.replace("2,b,", "2,a,"), WORKERS.to_owned(), "job.csv:3:2: "),
            (JOBS.replace("2,b,", "2,,"), WORKERS.to_owned(), "job.csv:3:2: "),
            (JOBS.replace("gmt_job_running", "begin"), WORKERS.to_owned(), "job.csv:1: "),
            (JOBS.replace("3,c,PyTorchJob,", "3,c,"), WORKERS.to_owned(), "job.csv:4: "),
            (JOBS.to_owned(), WORKERS.replace("4}", "four}"), "worker.csv:5:5: "),
            (JOBS.to_owned(), WORKERS.replace("\"\"8\"\",", "\"\"eight\"\","), "worker.csv:2:5: "),
            (JOBS.to_owned(), WORKERS.lines().take(1).collect(), "job.csv: "),
        ];
        for (jobs, workers, wanted) in cases {
            let error = both(&jobs, &workers).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{wanted} against {error}");
        }
        let error = lingjun(("job.csv", b"a\n\xff"), ("worker.csv", b"")).unwrap_err().to_string();
        assert!(error.starts_with("job.csv:2: "), "{error}");
    }
}
