//! `ringpath import lingjun` and `import coflow`: what they print is a scenario that can be read back.

use assert_cmd::Command;
use std::path::Path;

fn import(args: &[&str]) -> (bool, String) {
    let output =
        Command::new(env!("CARGO_BIN_EXE_ringpath")).arg("import").args(args).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn put(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Three hosts in two racks, in the format of the dataset.
const TOPO: &str = "ip,DSW,PSW,ASW\naaaaaaaaaaaa01,G6,P10,S1\nbbbbbbbbbbbb02,G6,P10,S1\ncccccccccccc03,G6,P12,S1\n";
const JOBS: &str = "job_name,model,status,gmt_job_submitted,gmt_job_running,gmt_job_stopped,gmt_job_finished\n\
    j1,resnet,Succeeded,2023/8/1 00:00,2023/8/1 00:05,,2023/8/1 00:06\n\
    j2,unknown,Succeeded,2023/8/1 00:00,2023/8/1 00:07,,2023/8/1 00:09\n\
    j3,unknown,Succeeded,2023/8/2 00:00,2023/8/2 00:07,,2023/8/2 00:09\n";
const WORKERS: &str = "job_name,host_ip,RES\n\
    j1,aaaaaaaaaaaa01,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j1,cccccccccccc03,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j2,aaaaaaaaaaaa01,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j2,bbbbbbbbbbbb02,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j2,nowhere,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j3,aaaaaaaaaaaa01,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n\
    j3,bbbbbbbbbbbb02,\"{\"\"nvidia.com/gpu\"\":\"\"8\"\"}\"\n";

#[test]
fn a_window_of_the_lingjun_trace_becomes_a_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let topology = put(dir.path(), "topo.csv", TOPO);
    let jobs = put(dir.path(), "job.csv", JOBS);
    let workers = put(dir.path(), "worker.csv", WORKERS);
    let files = ["lingjun", "--jobs", &jobs, "--workers", &workers, "--topology", &topology];
    let (fine, text) = import(&files);
    assert!(fine, "{text}");
    assert!(text.contains("2 of 3 jobs") && text.contains("1 hosts of these"), "{text}");
    let scenario = ringpath::workload::scenario::parse(&text, "lingjun.toml", dir.path(), None);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(scenario.jobs.len(), 2);
    assert_eq!(scenario.jobs[0].model, "resnet-50");
    assert_eq!(scenario.jobs[1].start.as_secs_f64(), 120.0);
    assert_eq!((scenario.jobs[1].ranks.len(), scenario.jobs[1].gpus_per_rank), (2, 8));
    // 60 s of ResNet-50: 104 ms of compute and 51 MB at 100 Gb/s.
    assert!((500..580).contains(&scenario.jobs[0].iterations), "{}", scenario.jobs[0].iterations);

    let (fine, text) = import(&[&files[..], &["--from", "2023/8/2 00:00"]].concat());
    assert!(fine && text.contains("name = \"j3\"") && !text.contains("name = \"j1\""), "{text}");
    let (fine, text) = import(&[&files[..], &["--from", "tomorrow"]].concat());
    assert!(!fine && text.contains("2023/8/1 00:00"), "{text}");
    let broken = put(dir.path(), "broken.csv", &JOBS.replace("2023/8/1 00:06", "soon"));
    let (fine, text) =
        import(&["lingjun", "--jobs", &broken, "--workers", &workers, "--topology", &topology]);
    assert!(!fine && text.contains("broken.csv:2:7: gmt_job_finished: 'soon'"), "{text}");
}

#[test]
fn a_coflow_trace_becomes_rings_that_move_as_many_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let trace = put(
        dir.path(),
        "fb.txt",
        "20 3\n1 0 1 3 2 4:6.0 9:10.0\n2 1500 1 7 1 7:0.5\n3 9 1 0 1 20:1\n",
    );
    let (fine, text) = import(&["coflow", &trace]);
    assert!(fine, "{text}");
    let scenario = ringpath::workload::scenario::parse(&text, "coflow.toml", dir.path(), None);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(scenario.jobs.len(), 2, "one coflow stays in its rack");
    let flows = ringpath::workload::flows(&scenario.topology, &scenario.jobs[..1]).unwrap();
    // Each of the three edges is rounded up to a byte.
    let moved: u64 = flows.iter().map(|flow| flow.bytes).sum();
    assert!((16_000_000..=16_000_003).contains(&moved), "{moved}");
    let broken = put(dir.path(), "broken.txt", "20 1\n1 0 1 3 1 4-6.0\n");
    let (fine, text) = import(&["coflow", &broken]);
    assert!(!fine && text.contains("broken.txt:2:11: '4-6.0'"), "{text}");
}

#[test]
fn what_is_imported_at_the_limits_is_read_by_our_reader_and_beyond_them_refused() {
    let dir = tempfile::tempdir().unwrap();
    let parse = |text: &str| {
        ringpath::workload::scenario::parse(text, "limits.toml", dir.path(), None)
            .unwrap_or_else(|error| panic!("{error}\n{:.2000}", text))
    };
    // Ten years of one job, at the last minute of a day, with a model whose name runs over lines; 1,024 GPUs per host.
    let topology = put(dir.path(), "topo.csv", TOPO);
    let jobs = JOBS
        .replace("2023/8/1 00:07,,2023/8/1 00:09", "2023/8/2 00:04,,2033/8/1 00:09")
        .replace("j2,unknown", "j2,\"two\nname = 7\"");
    let jobs = put(dir.path(), "job.csv", &jobs);
    let table = WORKERS.replace("\"\"8\"\"", "\"\"1024\"\"");
    let workers = put(dir.path(), "worker.csv", &table);
    let files = [
        "lingjun",
        "--jobs",
        &jobs,
        "--workers",
        &workers,
        "--topology",
        &topology,
        "--for",
        "86400s",
    ];
    let (fine, text) = import(&files);
    assert!(fine, "{text}");
    let scenario = parse(&text);
    assert_eq!(scenario.jobs[1].iterations, 1_000_000, "{text}");
    assert!(text.contains("# the most that a scenario may have"), "{text}");
    assert!(text.contains("in the trace: \"two\\nname = 7\""), "{text}");
    assert_eq!(scenario.jobs[1].start.as_secs_f64(), 86_340.0);
    put(dir.path(), "worker.csv", &table.replacen("1024", "1025", 1));
    let (fine, text) = import(&files);
    assert!(!fine && text.contains("worker.csv:2:3: nvidia.com/gpu 1025 is above 1024"), "{text}");

    // As many ports as a fabric of ten to a leaf has room for, the last arrival, the most bytes.
    let trace = put(dir.path(), "fb.txt", "5089 1\n1 86400000 1 1 1 5089:1e9\n");
    let (fine, text) = import(&["coflow", &trace]);
    assert!(fine, "{text}");
    assert_eq!(parse(&text).jobs[0].start.as_secs_f64(), 86_400.0);
    let line = |id: usize| format!("{id} 0 1 1 1 2:1\n");
    let many: String = (0..10_001).map(line).collect();
    let trace = put(dir.path(), "many.txt", &format!("9 10001\n{many}"));
    let (fine, text) = import(&["coflow", &trace]);
    assert!(!fine && text.contains("10001 jobs") && text.contains("--first"), "{text}");
    let (fine, text) = import(&["coflow", &trace, "--first", "10000"]);
    assert!(fine, "{text}");
    assert_eq!(parse(&text).jobs.len(), 10_000);
}
