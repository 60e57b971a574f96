//! Golden trace G1L of the buffer specification, section 6.

use onefold_units::Rng;

use crate::zipf::Zipf;

/// Pages that G1L may touch.
const PAGES_LOG2: u32 = 22;
/// Requests of G1L.
pub(crate) const REQUESTS: u32 = 20_000_000;

/// The pages of 20 million single-page reads, Zipf 1.0 over 4,194,304 scattered pages.
pub(crate) fn g1l() -> impl Iterator<Item = u32> {
    let zipf = Zipf::new(1 << PAGES_LOG2);
    let mut rng = Rng::new(42);
    // An odd multiplier is a bijection of the pages.
    let scatter = |key: u32| key.wrapping_mul(0x9E37_79B1) & ((1 << PAGES_LOG2) - 1);
    (0..REQUESTS).map(move |_| scatter(zipf.key(&mut rng)))
}
