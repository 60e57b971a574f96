//! Look-alikes: what each was asked to show and what it shows, and the search for its parameters.
//!
//! ```text
//! cargo run --release -p onefold-trace --example lookalikes                  the table
//! cargo run --release -p onefold-trace --example lookalikes -- search NAME.. better parameters
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
    println!("wanted / reached with a million requests and seed {SEED}");
    println!(
        "{:15} {:>11} {:>11} {:>13} {:>11} {:>11} {:>15} {:>17} {:>11} {:>11}  misses",
        "name",
        "W req %",
        "W blk %",
        "mean B",
        "rewrite",
        "top 1 %",
        "p50 s",
        "p90 s",
        "unal. %",
        "multi %"
    );
    for workload in LikeWorkload::names().filter_map(LikeWorkload::named) {
        let (w, r) = (workload.wanted(), measure(&workload));
        let pair = |w: f64, r: f64, digits: usize| format!("{w:.digits$}/{r:.digits$}");
        let name = workload.to_string();
        let name = name.split(',').next().unwrap_or_default();
        let percent = |w: f64, r: f64| pair(w * 100.0, r * 100.0, 1);
        print!(
            "{name:15} {:>11} {:>11} {:>13} {:>11} {:>11} ",
            percent(w.write_requests, r.write_requests),
            percent(w.write_blocks, r.write_blocks),
            pair(w.mean_bytes, r.mean_bytes, 0),
            pair(w.rewrite_share, r.rewrite_share, 3),
            pair(w.top1_share, r.top1_share, 3),
        );
        println!(
            "{:>15} {:>17} {:>11} {:>11}  {}",
            pair(w.gap_p50_s, r.gap_p50_s, 1),
            pair(w.gap_p90_s, r.gap_p90_s, 0),
            percent(w.unaligned_share, r.unaligned_share),
            percent(w.multi_share, r.multi_share),
            misses(&workload, &r),
        );
    }
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

/// Smaller is better. Squares of the misses, those outside the tolerance ten times; the 90th
/// percentile counts a little, although nothing is demanded of it.
fn loss(workload: &LikeWorkload, figures: &Figures) -> f64 {
    let misses = workload.misses(figures).into_iter().map(|(_, miss)| miss);
    let demanded: f64 =
        misses.map(|miss| if miss > 0.9 { 10.0 * miss * miss } else { miss * miss }).sum();
    let wanted = workload.wanted();
    let tail = (figures.gap_p90_s.max(1e-9) / wanted.gap_p90_s).ln() / 2.0_f64.ln();
    demanded + 0.2 * tail.abs().min(10.0)
}

/// Random steps from the best parameters so far, smaller when they stop helping.
fn search(name: &str) {
    let Some(workload) = LikeWorkload::named(name) else { panic!("`{name}` is unknown") };
    let mut rng = Rng::new(1);
    let mut best = (workload.knobs(), measure(&workload));
    let mut best_loss = loss(&workload, &best.1);
    let mut step = 0.5;
    for _ in 0..ROUNDS {
        let knobs = changed(best.0, step, &mut rng);
        let found = measure(&workload.clone().with_knobs(knobs));
        let found_loss = loss(&workload, &found);
        if found_loss < best_loss {
            (best, best_loss) = ((knobs, found), found_loss);
            step = f64::min(step * 1.5, 0.6);
        } else {
            step = f64::max(step * 0.96, 0.03);
        }
    }
    println!("{name}: loss {best_loss:.3}, outside: {}", misses(&workload, &best.1));
    println!("{:#?}\n{:#?}", best.0, best.1);
}

const ROUNDS: u32 = 120;

/// One to three parameters moved.
fn changed(mut knobs: Knobs, step: f64, rng: &mut Rng) -> Knobs {
    for _ in 0..=rng.below(3) {
        let by = (rng.unit() * 2.0 - 1.0) * step;
        let near = |value: f64, low: f64, high: f64| (value + by * (high - low)).clamp(low, high);
        let times = |value: f64, low: f64, high: f64| (value * (3.0 * by).exp()).clamp(low, high);
        match rng.below(7) {
            0 => knobs.hot = near(knobs.hot, 0.001, 0.95),
            1 => knobs.core = near(knobs.core, 0.05, 1.0),
            2 => knobs.body = times(knobs.body, 0.05, 4.0),
            3 => knobs.theta = near(knobs.theta, 0.0, 1.5),
            4 => knobs.reuse = near(knobs.reuse, 0.0, 0.99),
            5 => knobs.distance = times(knobs.distance, 16.0, 65_536.0).round(),
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
        cold: round(knobs.cold),
    }
}
