use std::collections::BTreeMap;

use onefold_units::Rng;
use onefold_units::convert::{float, floor_u64, index, narrow, u64_from};

use super::super::WorkloadError;
use super::{ContentModel, ContentSpec};

/// Pages with their contents.
struct Pages {
    content_of: Vec<Option<u128>>,
    refs: BTreeMap<u128, u64>,
    used: u64,
}

impl Pages {
    fn new(units: u32) -> Self {
        Self { content_of: vec![None; index(units)], refs: BTreeMap::new(), used: 0 }
    }

    /// Whether a page had the content already.
    fn write(&mut self, lpn: u32, content: u128) -> bool {
        let repeats = self.refs.contains_key(&content);
        self.trim(lpn);
        self.content_of[index(lpn)] = Some(content);
        *self.refs.entry(content).or_default() += 1;
        self.used += 1;
        repeats
    }

    fn trim(&mut self, lpn: u32) {
        let Some(content) = self.content_of[index(lpn)].take() else { return };
        self.used -= 1;
        let refs = self.refs.get_mut(&content).expect("the page had it");
        *refs -= 1;
        if *refs == 0 {
            self.refs.remove(&content);
        }
    }

    fn duplicates(&self) -> u64 {
        self.used - u64_from(self.refs.len())
    }

    fn duplicate_share(&self) -> f64 {
        float(self.duplicates()) / float(self.used)
    }
}

const UNITS: u32 = 50_000;

/// Fills the device and overwrites it twice at random: the share of the pages in use that repeat
/// another, and of the overwrites that repeat a page.
fn shares(spec: &str) -> (f64, f64) {
    let mut model = ContentSpec::parse(spec).unwrap().model(UNITS, 7);
    let mut pages = Pages::new(UNITS);
    for lpn in 0..UNITS {
        pages.write(lpn, model.of_write(lpn));
    }
    let mut rng = Rng::new(1);
    let mut repeats = 0_u32;
    for _ in 0..2 * UNITS {
        let lpn = narrow(rng.below(u64::from(UNITS)));
        repeats += u32::from(pages.write(lpn, model.of_write(lpn)));
    }
    (pages.duplicate_share(), f64::from(repeats) / f64::from(2 * UNITS))
}

#[test]
fn the_formula_of_wu_2022_is_not_ten_percent() {
    // Of `n` contents with weights p, m draws leave 1 - sum(1 - (1 - p)^m) / m duplicates, and the
    // next one repeats with 1 - sum(p (1 - p)^m): remap.md, section 11.
    let (m, n) = (f64::from(UNITS), UNITS / 10 * 9);
    let weights: Vec<f64> = (1..=n).map(|rank| f64::from(rank).powf(-0.2)).collect();
    let total: f64 = weights.iter().sum();
    let absent = |weight: f64| (1.0 - weight / total).powf(m);
    let live = 1.0 - weights.iter().map(|w| 1.0 - absent(*w)).sum::<f64>() / m;
    let next = 1.0 - weights.iter().map(|w| w / total * absent(*w)).sum::<f64>();
    assert!((live - 0.405).abs() < 5e-4 && (next - 0.677).abs() < 5e-4, "{live} {next}");

    let (duplicates, repeats) = shares("iid_zipf");
    assert!((duplicates - live).abs() < 0.005, "{duplicates} of the pages, expected {live}");
    assert!((repeats - next).abs() < 0.005, "{repeats} of the writes, expected {next}");
}

#[test]
fn unique_contents_never_repeat() {
    assert_eq!(shares("unique"), (0.0, 0.0));
    assert_eq!(shares("exact_dup_ratio:ratio=0"), (0.0, 0.0));
}

#[test]
fn recent_contents_repeat_as_often_as_asked() {
    // A little less than asked: an old content may be on no page any more.
    for (spec, wanted) in [("recent", 0.895..0.905), ("recent:ratio=0.5,theta=0.5", 0.47..0.5)] {
        let (_, repeats) = shares(spec);
        assert!(wanted.contains(&repeats), "{spec}: {repeats} of the overwrites");
    }
    // The newest content is repeated most: 1 of ln(5,000) + 0.58 repeats.
    let mut model = ContentSpec::parse("recent").unwrap().model(UNITS, 7);
    let contents: Vec<_> = (0..UNITS).map(|lpn| model.of_write(lpn)).collect();
    let mut newest = 0;
    let mut of_newest = 0_u32;
    for content in contents {
        of_newest += u32::from(content == newest);
        newest = newest.max(content);
    }
    let share = f64::from(of_newest) / f64::from(UNITS);
    assert!((share - 0.9 / 9.1).abs() < 0.01, "{share} of the writes");
    assert_eq!(shares("recent:ratio=0"), (0.0, 0.0));
}

/// At every moment of the fill and of overwrites.
#[test]
fn the_ratio_is_exact() {
    for (ratio, units) in [(0.1, 1_000), (0.5, 300), (0.9, 50)] {
        let mut model = ContentSpec::ExactDupRatio { ratio }.model(units, 3);
        let mut pages = Pages::new(units);
        let mut rng = Rng::new(2);
        for step in 0..5 * units {
            let lpn = if step < units { step } else { narrow(rng.below(u64::from(units))) };
            pages.write(lpn, model.of_write(lpn));
            let wanted = floor_u64(ratio * float(pages.used));
            assert_eq!(pages.duplicates(), wanted, "step {step}, {} pages", pages.used);
        }
    }
}

#[test]
fn the_ratio_comes_back_after_trims() {
    for (ratio, units) in [(0.1, 1_000), (0.5, 300), (1.0, 50)] {
        let mut model = ContentSpec::ExactDupRatio { ratio }.model(units, 3);
        let mut pages = Pages::new(units);
        let mut rng = Rng::new(2);
        for step in 0..20 * units {
            let lpn = if step < units { step } else { narrow(rng.below(u64::from(units))) };
            if rng.below(10) < 1 {
                model.trim(lpn);
                pages.trim(lpn);
                continue;
            }
            pages.write(lpn, model.of_write(lpn));
            // A trim may take a duplicate or leave one too many; writes make up for that.
            let off = float(pages.duplicates()) - ratio * float(pages.used);
            assert!(off.abs() < 4.0, "step {step}: {off} of {}, wanted {ratio}", pages.used);
        }
    }
}

#[test]
fn a_seed_gives_the_same_contents() {
    let first = |spec: &str, seed| {
        let mut model: ContentModel = ContentSpec::parse(spec).unwrap().model(1_000, seed);
        (0..1_000).map(|lpn| model.of_write(lpn)).collect::<Vec<_>>()
    };
    for spec in ["iid_zipf", "exact_dup_ratio:ratio=0.4", "recent"] {
        assert_eq!(first(spec, 1), first(spec, 1));
        assert_ne!(first(spec, 1), first(spec, 2), "{spec}");
        assert!(first(spec, 1).iter().all(|content| *content > 0), "{spec}: 0 means unknown");
    }
}

#[test]
fn specifications() {
    let canonical = |spec| ContentSpec::parse(spec).map(|spec| spec.to_string());
    for (spec, wanted) in [
        ("unique", "unique"),
        ("iid_zipf", "iid_zipf:theta=0.2,share=0.9"),
        ("iid_zipf: share=2, theta=0", "iid_zipf:theta=0,share=2"),
        ("exact_dup_ratio", "exact_dup_ratio:ratio=0.1"),
        ("exact_dup_ratio:ratio=25%", "exact_dup_ratio:ratio=0.25"),
        ("recent", "recent:ratio=0.9,theta=1,share=0.1"),
        ("recent:ratio=50%,share=1", "recent:ratio=0.5,theta=1,share=1"),
    ] {
        assert_eq!(canonical(spec).unwrap(), wanted);
        assert_eq!(canonical(wanted).unwrap(), wanted);
    }
    let error = |spec| ContentSpec::parse(spec).unwrap_err().to_string();
    assert_eq!(
        error("iid-zipf"),
        "`iid-zipf` is no content model, did you mean `iid_zipf`?; use unique, iid_zipf, \
         exact_dup_ratio or recent"
    );
    assert!(error("iid_zipf:theta=11").contains("an exponent from 0 to 10"));
    assert!(error("iid_zipf:share=0").contains("above 0"));
    assert!(error("exact_dup_ratio:ratio=1.5").contains("a share from 0 to 1"));
    assert!(matches!(
        ContentSpec::parse("unique:theta=1"),
        Err(WorkloadError::UnknownKey { known: [], .. })
    ));
    // The smallest device.
    for name in ContentSpec::NAMES {
        let mut model = ContentSpec::parse(name).unwrap().model(1, 0);
        assert!(model.of_write(0) > 0);
    }
}
