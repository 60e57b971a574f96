//! Look-alikes: what each was asked to show and what it shows, and the search for its parameters.
//!
//! ```text
//! cargo run --release -p onefold-trace --example lookalikes                  the table
//! cargo run --release -p onefold-trace --example lookalikes -- search NAME.. better parameters
//! cargo run --release -p onefold-trace --example lookalikes -- show NAME..   all digits, to store
//! ```
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use onefold_trace::workload::Request;
use onefold_trace::workload::like::{Figures, Knobs, LikeGenerator, LikeWorkload};
use onefold_trace::{Info, Record, TraceOp};
use onefold_units::{Nanos, Op, Rng};

/// Seed of the table and of the search.
const SEED: u64 = 0;

fn main() {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("search") => words.for_each(|name| search(&name)),
        Some("show") => words.for_each(|name| show(&name)),
        _ => table(),
    }
}

fn measure(workload: &LikeWorkload) -> Figures {
    let generator: LikeGenerator =
        workload.instantiate(u64::MAX, SEED).unwrap_or_else(|error| panic!("{workload}: {error}"));
    figures(generator)
}

fn figures(mut generator: LikeGenerator) -> Figures {
    let mut info = Info::new();
    let mut batch = vec![Request::EMPTY; 4096];
    loop {
        let filled = generator.fill(&mut batch);
        for request in &batch[..filled] {
            let op = if request.op == Op::Read { TraceOp::Read } else { TraceOp::Write };
            let at = request.at.map_or(0, Nanos::get);
            info.add(&Record::new(at, op, request.offset, u64::from(request.len)));
        }
        if filled < batch.len() {
            return Figures::of(&info);
        }
    }
}

fn table() {
    println!("wanted/reached with a million requests and seed {SEED}; -: not known");
    let heads = [
        "writes %",
        "blocks w. %",
        "mean B",
        "rewrite",
        "top 1 %",
        "gap p50 s",
        "gap p90 s",
        "unaligned %",
        "multi %",
    ];
    let cells = heads.map(|head| format!("{head:>13}")).join(" ");
    println!("{:15} {cells}  outside", "name");
    for workload in LikeWorkload::names().filter_map(LikeWorkload::named) {
        let reached = measure(&workload);
        let name = workload.to_string();
        let name = name.split(',').next().unwrap_or_default();
        let row = cells_of(&workload, &reached).map(|cell| format!("{cell:>13}")).join(" ");
        println!("{name:15} {row}  {}", misses(&workload, &reached));
    }
}

/// One cell per figure.
fn cells_of(workload: &LikeWorkload, reached: &Figures) -> [String; 9] {
    let wanted = workload.wanted();
    let counted = workload.is_counted();
    let cell = |known: bool, value: fn(&Figures) -> f64, digits: usize| {
        let (wanted, reached) = (value(&wanted), value(reached));
        if known {
            format!("{wanted:.digits$}/{reached:.digits$}")
        } else {
            format!("-/{reached:.digits$}")
        }
    };
    [
        cell(true, |f| f.write_requests * 100.0, 1),
        cell(counted, |f| f.write_blocks * 100.0, 1),
        cell(true, |f| f.mean_bytes, 0),
        cell(counted, |f| f.rewrite_share, 3),
        cell(counted, |f| f.top1_share, 3),
        cell(counted, |f| f.gap_p50_s, 1),
        cell(counted, |f| f.gap_p90_s, 0),
        cell(counted, |f| f.unaligned_share * 100.0, 1),
        cell(counted, |f| f.multi_share * 100.0, 1),
    ]
}

/// What lies outside its tolerance.
fn misses(workload: &LikeWorkload, figures: &Figures) -> String {
    let all = workload.misses(figures);
    let outside: Vec<_> = all
        .iter()
        .filter(|(_, miss)| *miss > 1.0)
        .map(|(name, miss)| format!("{name} x{miss:.1}"))
        .collect();
    if outside.is_empty() { "-".to_owned() } else { outside.join(", ") }
}

/// Smaller is better. Squares of the misses, those near the edge of the tolerance or outside ten
/// times. Two figures of which nothing is demanded count as well: the distinct blocks written, which
/// the rewrite share hardly shows, and the 90th percentile.
fn loss(workload: &LikeWorkload, figures: &Figures) -> f64 {
    let misses = workload.misses(figures).into_iter().map(|(_, miss)| miss);
    let demanded: f64 =
        misses.map(|miss| if miss > 0.6 { 10.0 * miss * miss } else { miss * miss }).sum();
    let wanted = workload.wanted();
    let octaves = |found: f64, wanted: f64| (found.max(1e-9) / wanted).log2().abs().min(10.0);
    let new = octaves(1.0 - figures.rewrite_share, 1.0 - wanted.rewrite_share);
    demanded + 10.0 * new * new + 0.4 * octaves(figures.gap_p90_s, wanted.gap_p90_s)
}

/// The best of several walks from around the present parameters, the last ones from far away.
fn search(name: &str) {
    let workload = named(name);
    let mut rng = Rng::new(1);
    let mut best = Found::new(&workload, workload.knobs());
    for walk in 0..WALKS {
        let start = changed(workload.knobs(), 0.2 * f64::from(walk), 8, &mut rng);
        let found = Found::new(&workload, start).walk(&workload, WALK_STEPS, &mut rng);
        if found.loss < best.loss {
            best = found;
        }
    }
    best = best.walk(&workload, 2 * WALK_STEPS, &mut rng);
    best.print(&workload, name);
}

/// The parameters in use and what they give.
fn show(name: &str) {
    let workload = named(name);
    Found::new(&workload, workload.knobs()).print(&workload, name);
}

fn named(name: &str) -> LikeWorkload {
    LikeWorkload::named(name).unwrap_or_else(|| panic!("`{name}` is unknown"))
}

const WALKS: u32 = 4;
const WALK_STEPS: u32 = 80;

/// Parameters with what they give.
struct Found {
    knobs: Knobs,
    figures: Figures,
    loss: f64,
}

impl Found {
    fn new(workload: &LikeWorkload, knobs: Knobs) -> Self {
        let figures = measure(&workload.clone().with_knobs(knobs));
        Self { knobs, figures, loss: loss(workload, &figures) }
    }

    fn print(&self, workload: &LikeWorkload, name: &str) {
        println!("{name}: loss {:.3}, outside: {}", self.loss, misses(workload, &self.figures));
        println!("{:#?}\n{:#?}", self.knobs, self.figures);
    }

    /// Random steps from the best so far, smaller when they do not help.
    fn walk(mut self, workload: &LikeWorkload, steps: u32, rng: &mut Rng) -> Self {
        let mut step = 0.4;
        for _ in 0..steps {
            let moves = 1 + rng.below(3);
            let next = Self::new(workload, changed(self.knobs, step, moves, rng));
            if next.loss < self.loss {
                self = next;
                step = f64::min(step * 1.5, 0.6);
            } else {
                step = f64::max(step * 0.96, 0.03);
            }
        }
        self
    }
}

/// Some parameters moved, by at most `step` of their range.
fn changed(mut knobs: Knobs, step: f64, moves: u64, rng: &mut Rng) -> Knobs {
    for _ in 0..moves {
        let by = (rng.unit() * 2.0 - 1.0) * step;
        let near = |value: f64, low: f64, high: f64| (value + by * (high - low)).clamp(low, high);
        let times = |value: f64, low: f64, high: f64| (value * (3.0 * by).exp()).clamp(low, high);
        match rng.below(8) {
            0 => knobs.hot = near(knobs.hot, 0.01, 0.95),
            1 => knobs.core = near(knobs.core, 0.05, 1.0),
            2 => knobs.body = times(knobs.body, 0.05, 4.0),
            3 => knobs.theta = near(knobs.theta, 0.0, 1.5),
            4 => knobs.reuse = near(knobs.reuse, 0.0, 0.99),
            5 => knobs.distance = times(knobs.distance, 16.0, 65_536.0).round(),
            6 => knobs.near = near(knobs.near, 0.0, 0.95),
            _ => knobs.cold = near(knobs.cold, 0.02, 0.9),
        }
    }
    // Three digits are enough.
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    Knobs {
        hot: round(knobs.hot),
        core: round(knobs.core),
        body: round(knobs.body),
        theta: round(knobs.theta),
        reuse: round(knobs.reuse),
        distance: knobs.distance,
        near: round(knobs.near),
        cold: round(knobs.cold),
    }
}
