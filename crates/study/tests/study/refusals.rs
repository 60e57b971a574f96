//! Studies that cannot run: each error says where, what was found, and the limit.

use std::path::Path;

use crate::common::{SMALL, options, study};
use onefold_study::{Control, Fault, Study, run};

fn parse_error(text: &str) -> (String, Option<String>) {
    let error = Study::parse(Path::new("s.toml"), text).unwrap_err();
    assert_eq!(error.fault(), Fault::Study);
    (error.to_string(), error.help())
}

#[test]
fn the_file_is_refused_with_line_and_limit() {
    let cases: &[(&str, &str, &str)] = &[
        ("seed = 3", "seed = ", "s.toml, line 8: not valid TOML"),
        ("seed = 3", "sede = 3", "s.toml, line 8: `sede` is no key of the study"),
        ("share = 9", "shar = 9", "`shar` is no key of [[workload.source]]"),
        (
            "schema = \"onefold.study/1\"",
            "schema = \"onefold.study/2\"",
            "expected \"onefold.study/1\"",
        ),
        ("device = \"64MiB\"", "", "the study has no `device`, expected a size"),
        ("device = \"64MiB\"", "device = \"64\"", "a number without a unit"),
        ("device = \"64MiB\"", "device = \"4097B\"", "expected a multiple of the entry of 4096 B"),
        ("[\"256KiB\", \"1MiB\"]", "[]", "sizes is a list of 0, expected at least one item"),
        ("[\"256KiB\", \"1MiB\"]", "[\"1MiB\", \"1MiB\"]", "expected every size once"),
        ("[\"lru\"]", "[\"lruu\"]", "`lruu` is no buffer policy; use one of: lru"),
        ("[\"lru\"]", "[\"pt-lru:p=2\"]", "expected a ratio from 0 to 1"),
        ("[\"lru\"]", "[\"pt-lru:q=2\"]", "has no parameter `q`"),
        ("[\"lru\"]", "[\"lru\", {policy = \"lru\", label = \"x\"}]", "expected every policy"),
        ("[\"alone\"]", "[\"alon\"]", "did you mean `alone`?"),
        ("share = 9", "share = 0", "share is 0, expected a number from 0.000001"),
        ("share = 9", "", "[[workload.source]] has no `share`"),
        ("role = \"target\"\n\n", "\n", "which the bound alone needs"),
        ("offset = \"32MiB\"", "offset = \"1B\"", "expected a multiple of the entry of 4096 B"),
        ("offset = \"32MiB\"", "offset = \"65MiB\"", "expected 0 to 64MiB"),
        ("name = \"B\"", "name = \"A\"", "expected a name that no other workload has"),
        ("\"write,bs=64KiB,bytes=64MiB\"", "\"wrte\"", "wrte"),
        ("size = \"32MiB\"", "trace = \"x\"", "expected either workload or trace"),
        // Longer ones were let in, and the latency of a request left 64 bits.
        ("seed = 3", "look_up = \"1.1s\"", "look_up is \"1.1s\", expected 0 to 1s"),
        ("seed = 3", "seed = 3\n[[figure]]\nmetric = \"hits\"", "expected one of target_hit_ratio"),
        (
            "seed = 3",
            "seed = 3\n[[figure]]\nmetric = \"absorption\"\nbaseline = \"x\"",
            "expected one of lru, alone",
        ),
    ];
    for (old, new, expected) in cases {
        let text = SMALL.replacen(old, new, 1);
        assert_ne!(text, SMALL, "{old}");
        let (error, _) = parse_error(&text);
        assert!(error.starts_with("s.toml, line ") && error.contains(expected), "{error}");
    }
    let without = SMALL.split("[[workload]]").next().unwrap();
    assert!(parse_error(without).0.contains("at least one [[workload]] table"));
    let (_, help) = parse_error(&SMALL.replace("seed =", "sede ="));
    assert_eq!(help.as_deref(), Some("did you mean `seed`?"));
}

#[test]
fn published_numbers_are_refused_with_line_and_limit() {
    let cases = [
        ("workloads = [\"A\", \"x\"]\nvalue = 1", "workloads is \"x\", expected one of A, B"),
        ("policies = [\"alone\"]\nvalue = 1", "policies is \"alone\", expected one of lru"),
        ("sizes = [\"2MiB\"]\nvalue = 1", "expected one of the sizes of the figure"),
        ("note = \"x\"", "[[figure.published]] has no `value`, expected the published number"),
        ("value = 1\nto = 2", "expected either value, or from and to"),
        ("from = 2\nto = 1", "to is 1, expected at least what `from` is"),
        ("value = -1", "expected a number of at least 0"),
        ("values = 1", "`values` is no key of [[figure.published]]"),
        (
            "value = 1\n[[figure.published]]\nworkloads = [\"B\"]\nto = 2",
            "expected one for each point: lru on B has a published number already",
        ),
    ];
    for (published, expected) in cases {
        let figure =
            format!("\n[[figure]]\nmetric = \"absorption\"\n[[figure.published]]\n{published}");
        let (error, _) = parse_error(&(SMALL.to_owned() + &figure));
        assert!(error.starts_with("s.toml, line ") && error.contains(expected), "{error}");
    }
    let whole = format!("{SMALL}\n[[figure]]\nmetric = \"absorption\"\nworkloads = [\"A\"]\n");
    let outside = whole + "[[figure.published]]\nworkloads = [\"B\"]\nvalue = 1";
    assert!(parse_error(&outside).0.contains("workloads is \"B\", expected one of A"));
}

#[test]
fn a_run_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cases: &[(&str, &str, &str, Fault)] = &[
        (
            "offset = \"32MiB\"",
            "offset = \"16MiB\"",
            "start at 16MiB, expected at least 32MiB",
            Fault::Study,
        ),
        (
            "size = \"16MiB\"",
            "size = \"48MiB\"",
            "end at offset + size = 80MiB, expected at most the device of 64MiB",
            Fault::Study,
        ),
        ("size = \"16MiB\"", "size = \"0\"", "(its addresses have 0)", Fault::Study),
        ("seed = 3", "preset = \"s2\"", "there is no preset `s2`", Fault::Study),
        (
            "workload = \"write,bs=64KiB,bytes=64MiB\"",
            "trace = \"missing.csv\"",
            "missing.csv",
            Fault::Trace,
        ),
        ("share = 9", "share = 9\nwarm_up = \"load\"", "has no load phase", Fault::Study),
    ];
    for (old, new, expected, fault) in cases {
        let text = SMALL.replacen(old, new, 1);
        let results = folder.path().join("results");
        let error = run(&study(&text), &options(&results, 1), &Control::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(error.fault(), *fault);
        assert!(!results.exists());
    }
    let mut options = options(folder.path(), 1);
    options.scale = 0.0;
    let error = run(&study(SMALL), &options, &Control::default()).unwrap_err();
    assert!(error.to_string().contains("--scale is 0, expected a number above 0"));
    (options.scale, options.only) = (1.0, vec!["C".to_owned()]);
    let error = run(&study(SMALL), &options, &Control::default()).unwrap_err();
    assert!(error.to_string().contains("expected a workload of the study: A, B"));
}
