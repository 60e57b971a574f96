//! Latency models of a study: what is written, what they measure, and what they leave as it was.

use std::path::Path;

use crate::common::{SMALL, options, row, run_in, study, timeless};
use onefold_study::report::{Point, Report};
use onefold_study::{Metric, Row, Study, status};

const SERIAL: &str =
    "{ model = \"service\", reads = \"die\", programs = \"die\", label = \"serial\" }";

/// The small study with latency models.
fn with(models: &str) -> String {
    SMALL.replace("seed = 3", &format!("seed = 3\nlatency = [{models}]"))
}

fn latency_figure(model: &str) -> String {
    format!("\n[[figure]]\nmetric = \"target_latency\"\nlatency = \"{model}\"\nworkloads = [\"A\"]")
}

#[test]
fn further_models_change_nothing_but_add_their_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run_in(&folder.path().join("plain"), SMALL, 1).rows;
    let models = format!("\"service\", {SERIAL}, \"queued\"");
    let more = run_in(&folder.path().join("more"), &with(&models), 1).rows;
    let without = |row: &Row| {
        let mut row = Row { key: String::new(), ..row.clone() };
        row.tenants.iter_mut().for_each(|tenant| tenant.other_latencies_ns.clear());
        row
    };
    let [plain_rows, more_rows] =
        [&plain, &more].map(|rows| timeless(&rows.iter().map(without).collect::<Vec<Row>>()));
    assert_eq!(plain_rows, more_rows);
    let target = &row(&more, "A", "lru", 1 << 20).tenants[1];
    let [serial, queued] = target.other_latencies_ns.as_slice() else { panic!("two more") };
    // One page each: alone on the device it is the same where its flash pages are; among the stream
    // it waits.
    assert_eq!(*serial, target.latency_ns);
    assert_eq!(queued.write.requests, target.latency_ns.write.requests);
    assert!(queued.write.sum > target.latency_ns.write.sum);
    let stream = &row(&more, "A", "lru", 1 << 20).tenants[0];
    assert!(stream.other_latencies_ns[0].write.sum > stream.latency_ns.write.sum);
}

#[test]
fn the_default_is_part_of_no_identity_and_every_other_model_is() {
    let folder = tempfile::tempdir().unwrap();
    let computed = |text: &str| run_in(folder.path(), text, 1).computed;
    assert_eq!(computed(SMALL), 8);
    assert_eq!(computed(&with("\"service\"")), 0);
    assert_eq!(computed(&with("{ model = \"service\", wb_slots = 0, label = \"alone\" }")), 0);
    for other in ["\"queued\"", SERIAL, "{ model = \"service\", wb_slots = 1 }"] {
        assert_eq!(computed(&with(other)), 8, "{other}");
    }
    // Names may change at any time.
    assert_eq!(computed(&with(&SERIAL.replace("serial", "sum"))), 0);
    let old = status(&study(SMALL), &options(folder.path(), 1)).unwrap();
    assert!(old.workloads.iter().all(|workload| workload.left == 0));
}

#[test]
fn counted_latencies_are_the_counters_of_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = "bounds = [\"alone\", \"min\", \"min-bypass\", \"min-alone\"]";
    let text = with("\"counted\"").replace("bounds = [\"alone\"]", bounds);
    let rows = run_in(folder.path(), &text, 1).rows;
    assert!(rows.iter().any(|row| row.policy == "min"));
    for row in &rows {
        for tenant in &row.tenants {
            // 40 us and 10240 ns for the transfer of 4 KiB, 200 us and as much.
            let flash = 50_240 * tenant.flash_reads + 210_240 * tenant.programs;
            let sum = tenant.latency_ns.read.sum + tenant.latency_ns.write.sum;
            assert_eq!(sum, 1000 * (tenant.reads.pages + tenant.writes.pages) + flash);
            assert!(tenant.latency_ns.read.requests == tenant.reads.requests);
        }
    }
    assert!(row(&rows, "A", "lru", 1 << 18).tenants[1].programs > 0);
}

/// Where everything fits there is nothing to foresee.
#[test]
fn min_takes_as_long_as_lru_in_a_large_buffer_and_less_in_a_small_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = SMALL.replace("\"alone\"", "\"min\"").replace("256KiB", "1GiB");
    let rows = run_in(folder.path(), &text, 1).rows;
    let latency = |policy, size| {
        let tenants = row(&rows, "A", policy, size).tenants.iter();
        tenants.map(|tenant| tenant.latency_ns).collect::<Vec<_>>()
    };
    assert_eq!(latency("min", 1 << 30), latency("lru", 1 << 30));
    let sum = |policy| {
        let all = latency(policy, 1 << 20);
        all.iter().map(|latency| latency.read.sum + latency.write.sum).sum::<u64>()
    };
    assert!(0 < sum("min") && sum("min") < sum("lru"));
}

#[test]
fn figures_headlines_and_checks_name_a_model() {
    let models = format!("\"service\", {SERIAL}, \"queued\"");
    let text = with(&models).replace("[\"lru\"]", "[\"lru\", \"fifo\"]")
        + &latency_figure("service")
        + &latency_figure("queued")
        + "\n[[headline]]\nmetric = \"total_latency\"\nlatency = \"serial\"\npolicy = \"lru\"\n\
           baselines = [\"fifo\"]\n[[check]]\nid = \"L\"\ntext = \"Words.\"\n\
           metric = \"total_latency\"\nlatency = \"serial\"\nworkloads = [\"A\"]\n\
           claims = [\"lru > 0\"]";
    let folder = tempfile::tempdir().unwrap();
    let rows = run_in(folder.path(), &text, 2).rows;
    let report = Report::new(&study(&text), &rows);
    let means = |row: &Row, at: Option<usize>| {
        let target = &row.tenants[1];
        at.map_or(target.latency_ns, |at| target.other_latencies_ns[at])
    };
    for (figure, at) in report.figures.iter().zip([None, Some(1)]) {
        assert_eq!(figure.figure.metric, Metric::TargetLatency);
        let latency = means(row(&rows, "A", "lru", 1 << 18), at);
        let requests = latency.read.requests + latency.write.requests;
        let mean = onefold_units::convert::float(latency.read.sum + latency.write.sum)
            / onefold_units::convert::float(requests);
        assert_eq!(figure.groups[0].policies[0], Point::Value(mean));
    }
    assert_eq!(report.figures[1].title(), "Mean latency of the target (queued)");
    assert!(report.headlines[0].title().contains("mean latency of all tenants (serial)"));
    assert_eq!(report.checks[0].title(), "mean latency of all tenants (serial)");
}

#[test]
fn a_model_is_refused_with_line_and_limit() {
    let cases: &[(&str, &str)] = &[
        ("", "latency is a list of 0, expected at least one item"),
        ("\"queue\"", "expected one of service, queued, counted; did you mean `queued`?"),
        ("{ label = \"x\" }", "a latency model has no `model`, expected \"service\", \"queued\""),
        ("{ model = \"service\", slots = 1 }", "`slots` is no key of a latency model"),
        ("{ model = \"service\", reads = \"dye\" }", "expected one of striped, channel, die"),
        ("{ model = \"queued\", wb_slots = 65537 }", "wb_slots is 65537, expected 0 to 65536"),
        ("{ model = \"counted\", reads = \"die\" }", "only with service or queued"),
        ("\"queued\", { model = \"queued\", label = \"q\" }", "expected every model and every"),
        ("\"queued\", { model = \"service\", label = \"queued\" }", "expected every model and"),
    ];
    for (models, expected) in cases {
        let error = Study::parse(Path::new("s.toml"), &with(models)).unwrap_err().to_string();
        assert!(error.starts_with("s.toml, line ") && error.contains(expected), "{error}");
    }
    let figure = |metric: &str, model: &str| {
        let text = latency_figure(model).replace("target_latency", metric);
        Study::parse(Path::new("s.toml"), &(with("\"queued\"") + &text)).unwrap_err().to_string()
    };
    assert!(figure("target_latency", "service").contains("expected one of queued"));
    assert!(figure("absorption", "queued").contains("only with a latency, not absorption"));
}
