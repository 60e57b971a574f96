//! Hit ratios by area: every policy, all of its areas.

use std::collections::BTreeMap;
use std::path::Path;

use onefold_config::Policies;
use onefold_study::report::{Data, Point, Report};
use onefold_study::{Control, Options, Row, Study, run};

const RATIOS: [&str; 4] =
    ["target_hit_ratio", "target_read_hit_ratio", "target_write_hit_ratio", "total_hit_ratio"];

/// All policies, with a tenant beside the target; figures of these metrics.
fn study(metrics: &[String]) -> Study {
    let policies = Policies::builtin().buffer;
    let names: Vec<String> = policies.iter().map(|info| format!("\"{}\"", info.name)).collect();
    let figure = |metric: &String| format!("[[figure]]\nmetric = \"{metric}\"\n");
    let text = format!(
        r#"
        schema = "onefold.study/1"
        name = "areas"
        device = "64MiB"
        sizes = ["1MiB"]
        policies = [{}]
        bounds = ["alone", "min"]
        [[workload]]
        name = "A"
        source = [
            {{ workload = "randrw,bs=64KiB,requests=2k", share = 9, size = "32MiB" }},
            {{ workload = "randrw,dist=zipf:1.0,requests=5k", share = 1, offset = "32MiB", role = "target" }},
        ]
        {}"#,
        names.join(", "),
        metrics.iter().map(figure).collect::<String>()
    );
    Study::parse(Path::new("areas.toml"), &text).unwrap()
}

/// Names of the areas of a point, if it has several.
fn areas(row: &Row) -> Vec<&str> {
    let names = row.tenants[0].area_hits.iter().map(|area| area.name.as_str());
    names.filter(|name| *name != "all").collect()
}

/// The number of each policy in a figure.
fn numbers(data: &Data) -> BTreeMap<&str, Option<f64>> {
    let values = data.groups.iter().flat_map(|group| &group.policies);
    data.policies.iter().map(String::as_str).zip(values.map(Point::value)).collect()
}

/// Every hit is in one area, and every area of every policy has its metric.
#[test]
fn hit_ratios_of_areas_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let rows = run(&study(&[]), &Options::new(folder.path()), &Control::default()).unwrap().rows;
    let failed = rows.iter().find_map(|row| row.error.as_ref());
    assert_eq!(failed, None);
    let mut all: Vec<&str> = rows.iter().flat_map(areas).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 21, "{all:?}");
    for ratio in RATIOS {
        let parts = all.iter().map(|area| format!("{ratio}.{area}"));
        let metrics: Vec<String> = std::iter::once(ratio.to_owned()).chain(parts).collect();
        let study = study(&metrics);
        let report = Report::new(&study, &rows);
        let [whole, parts @ ..] = report.figures.as_slice() else { panic!("a figure for each") };
        let whole = numbers(whole);
        for row in rows.iter().filter(|row| !row.bound) {
            let label = row.label.as_str();
            let mut sum = 0.0;
            for (area, data) in all.iter().zip(parts) {
                let found = numbers(data).get(label).copied().flatten();
                // A policy without the area has no number, not a 0.
                assert_eq!(found.is_some(), areas(row).contains(area), "{label} {area}");
                assert!(data.bounds.is_empty(), "a bound has other areas");
                sum += found.unwrap_or(0.0);
            }
            let whole = whole[label].unwrap();
            assert!(whole > 0.0, "{label} {ratio}");
            let expected = if areas(row).is_empty() { 0.0 } else { whole };
            assert!((sum - expected).abs() < 1e-12, "{label} {ratio}: {sum}, {expected}");
        }
    }
}
