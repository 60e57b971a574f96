//! Which seeds a random test runs, and how a failure is repeated.

/// The one seed to run, from `ONEFOLD_SEED`.
#[must_use]
pub fn chosen_seed() -> Option<u64> {
    std::env::var("ONEFOLD_SEED").ok()?.parse().ok()
}

/// How many seeds to run: `ONEFOLD_SEEDS`, which is a number or, as `40%`, a share of the default, or `default`.
#[must_use]
pub fn budget(default: u64) -> u64 {
    let wanted = std::env::var("ONEFOLD_SEEDS").unwrap_or_default();
    match wanted.strip_suffix('%').map(str::parse::<u64>) {
        Some(Ok(share)) => (default * share).div_ceil(100),
        _ => wanted.parse().unwrap_or(default),
    }
}

/// The first of them, from `ONEFOLD_FROM`: a campaign goes on where another one ended.
fn first_seed() -> u64 {
    std::env::var("ONEFOLD_FROM").ok().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// In place of the name of a test file: tests that are inside their crate.
pub const LIB: &str = "lib";

/// Prints how to repeat a run if the test panics in it.
#[derive(Debug)]
pub struct Reproduce {
    seed: u64,
    package: &'static str,
    test: &'static str,
    case: &'static str,
}

impl Reproduce {
    /// Guards the run of `seed` in test function `case` of the test file `test`, or of the crate
    /// itself ([`LIB`]).
    #[must_use]
    pub const fn new(
        seed: u64,
        package: &'static str,
        test: &'static str,
        case: &'static str,
    ) -> Self {
        Self { seed, package, test, case }
    }
}

impl Drop for Reproduce {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { seed, package, test, case } = self;
            let target = if *test == LIB { "--lib".into() } else { format!("--test {test}") };
            eprintln!("reproduce: ONEFOLD_SEED={seed} cargo test -p {package} {target} {case}");
        }
    }
}

/// Runs `run` for the chosen seed, or for as many as the budget says, from the first one on.
pub fn for_each_seed(
    (package, test, case): (&'static str, &'static str, &'static str),
    default: u64,
    mut run: impl FnMut(u64),
) {
    let seeds = chosen_seed()
        .map_or_else(|| first_seed()..first_seed() + budget(default), |seed| seed..seed + 1);
    for seed in seeds {
        let _guard = Reproduce::new(seed, package, test, case);
        run(seed);
    }
}
