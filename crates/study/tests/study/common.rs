//! A small study and its runs.

use std::path::Path;

use onefold_study::{Control, Options, Program, Row, Study, Summary, run};

/// Two workloads, two sizes, a policy and a bound: 8 points.
pub(crate) const SMALL: &str = r#"
schema = "onefold.study/1"
name = "small"
device = "64MiB"
sizes = ["256KiB", "1MiB"]
policies = ["lru"]
bounds = ["alone"]
seed = 3

[[workload]]
name = "A"
[[workload.source]]
name = "stream"
workload = "write,bs=64KiB,bytes=64MiB"
size = "32MiB"
share = 9
[[workload.source]]
name = "hot"
workload = "randrw,bs=4KiB,dist=zipf:1.0,requests=10k"
offset = "32MiB"
size = "16MiB"
share = 1
role = "target"

[[workload]]
name = "B"
label = "mixed requests"
[[workload.source]]
name = "mix"
workload = "mix,bs=4KiB:70/16KiB:30,requests=100k,flush_every=100"
role = "target"
"#;

pub(crate) fn options(folder: &Path, threads: usize) -> Options {
    let program = Program { version: "0.0.1".to_owned(), commit: "abc".to_owned() };
    Options {
        threads,
        only: Vec::new(),
        policies: Vec::new(),
        scale: 1.0,
        memory_bytes: 1 << 30,
        folder: folder.to_path_buf(),
        program,
    }
}

pub(crate) fn study(text: &str) -> Study {
    Study::parse(Path::new("small.toml"), text).unwrap()
}

pub(crate) fn run_in(folder: &Path, text: &str, threads: usize) -> Summary {
    run(&study(text), &options(folder, threads), &Control::default()).unwrap()
}

/// Without what depends on the machine.
pub(crate) fn timeless(rows: &[Row]) -> Vec<Row> {
    rows.iter().map(|row| Row { cpu_s: 0.0, ..row.clone() }).collect()
}

pub(crate) fn row<'a>(rows: &'a [Row], workload: &str, policy: &str, size: u64) -> &'a Row {
    rows.iter()
        .find(|row| row.workload == workload && row.policy == policy && row.size_bytes == size)
        .unwrap()
}
