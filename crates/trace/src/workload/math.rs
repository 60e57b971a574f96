//! Logarithm and exponential that give the same bits on every machine.
//!
//! `f64::ln` and `f64::exp` call the C library, whose results differ in the last bit between
//! versions and between processors with and without fused multiply-add. Workloads promise the same
//! requests everywhere, so these use only operations that IEEE 754 rounds exactly. The error is
//! below 2 units in the last place over the ranges the samplers use.

use onefold_units::convert::{float, floor_u64};

const MANTISSA_BITS: u32 = 52;
const MANTISSA: u64 = (1 << MANTISSA_BITS) - 1;
const EXPONENT_BIAS: f64 = 1023.0;
/// ln 2, cut after 32 bits so that its product with any exponent is exact, and the rest.
const LN_2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
const LN_2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);

/// 1/3 + x/5 + x^2/7 + .., the even and the odd powers, highest first.
const ARTANH_EVEN: [f64; 6] =
    [1.0 / 23.0, 1.0 / 19.0, 1.0 / 15.0, 1.0 / 11.0, 1.0 / 7.0, 1.0 / 3.0];
const ARTANH_ODD: [f64; 6] = [1.0 / 25.0, 1.0 / 21.0, 1.0 / 17.0, 1.0 / 13.0, 1.0 / 9.0, 1.0 / 5.0];
/// 1 + x + x^2/2! + .., likewise: 14!, 12! .. and 13!, 11! ...
const EXP_EVEN: [f64; 8] = [
    1.0 / 87_178_291_200.0,
    1.0 / 479_001_600.0,
    1.0 / 3_628_800.0,
    1.0 / 40_320.0,
    1.0 / 720.0,
    1.0 / 24.0,
    1.0 / 2.0,
    1.0,
];
const EXP_ODD: [f64; 7] = [
    1.0 / 6_227_020_800.0,
    1.0 / 39_916_800.0,
    1.0 / 362_880.0,
    1.0 / 5_040.0,
    1.0 / 120.0,
    1.0 / 6.0,
    1.0,
];

/// A polynomial as even(x^2) + x odd(x^2): two chains of dependent operations, half as long each.
fn interleaved(x: f64, even: &[f64], odd: &[f64]) -> f64 {
    let square = x * x;
    let horner = |terms: &[f64]| terms.iter().fold(0.0, |sum, term| sum * square + term);
    horner(even) + x * horner(odd)
}

/// Natural logarithm of a positive, normal number.
pub(super) fn ln(x: f64) -> f64 {
    // x = mantissa * 2^exponent with the mantissa in [1/sqrt 2, sqrt 2].
    let bits = x.to_bits();
    let mut mantissa = f64::from_bits((bits & MANTISSA) | 1.0_f64.to_bits());
    let mut exponent = float(bits >> MANTISSA_BITS) - EXPONENT_BIAS;
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1.0;
    }
    // ln m = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ..); |s| < 0.172, so 12 terms leave 1e-19.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = interleaved(square, &ARTANH_EVEN, &ARTANH_ODD);
    exponent * LN_2_HIGH + (2.0 * s + (2.0 * s * square * series + exponent * LN_2_LOW))
}

/// e^x; 0 below -700, where the samplers no longer care, and e^700 above 700.
pub(super) fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    let x = x.min(700.0);
    // x = k ln 2 + r with |r| <= 0.35; the Taylor series to r^14 leaves 1e-19.
    let k = (x * std::f64::consts::LOG2_E + 0.5).floor();
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let series = interleaved(r, &EXP_EVEN, &EXP_ODD);
    series * f64::from_bits(floor_u64(k + EXPONENT_BIAS) << MANTISSA_BITS)
}

/// x^y for a positive, normal x.
pub(super) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    use super::{exp, ln, pow};
    use onefold_units::Rng;

    #[test]
    fn agrees_with_the_c_library() {
        let mut rng = Rng::new(3);
        for _ in 0..200_000 {
            let x = (rng.unit() - 0.5) * 80.0;
            let y = exp(x);
            assert!((y / x.exp() - 1.0).abs() < 1e-15, "exp({x}) = {y}");
            let log = ln(y);
            assert!((log - y.ln()).abs() <= 4e-16 * log.abs().max(1e-3), "ln({y}) = {log}");
        }
        assert_eq!((ln(1.0), exp(0.0), exp(-701.0)), (0.0, 1.0, 0.0));
        assert!((pow(2.0, 0.5) - std::f64::consts::SQRT_2).abs() < 1e-15);
    }
}
