//! Write amplification against the closed forms of ssd.md 3.1, within 1 %.
//!
//! `cargo run --release -p onefold-sim --example closed_forms` prints the same table for the whole
//! of `s1`.

mod cases;

use cases::{CASES, RHOS, Scale};

/// A sixteenth of `s1`, with as many blocks in a pool as the closed forms need.
const SMALL: Scale =
    Scale { channels: 2, ways: 1, pages_per_die: 32_768, requests: 400_000, warmup: 6.0 };

/// Runs the cases whose name begins with `name` at every rho.
fn check(name: &str) {
    let chosen = CASES.iter().filter(|case| case.name.starts_with(name));
    let mut checked = 0;
    for case in chosen {
        for rho in RHOS {
            let run = case.measure(rho, &SMALL);
            assert!(
                run.deviation().abs() < 0.01,
                "{} at rho {:.4}: WAF {:.4}, closed form {:.4} ({:+.2} %)",
                case.name,
                run.rho,
                run.found,
                run.expected,
                100.0 * run.deviation(),
            );
            checked += 1;
        }
    }
    assert!(checked > 0, "no case is called {name}");
}

#[test]
fn random_victims() {
    check("random");
}

#[test]
fn victims_in_order() {
    check("FIFO");
}

#[test]
fn greedy_victims() {
    check("greedy");
}

#[test]
fn the_best_of_ten_random_victims() {
    check("d-choices");
}
