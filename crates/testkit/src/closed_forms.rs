//! Write amplification in closed form: what a correct simulation has to reproduce.
//!
//! Terms: `rho` is the share of the usable physical pages that hold logical pages, reserved blocks
//! excluded (over-provisioning is 1/rho - 1). `b` is the pages per unit of erasure. Write
//! amplification A is physical writes per host write. All forms assume one write frontier shared by
//! host and GC, one-page writes, a steady state, and infinitely many blocks.
//!
//! Sources: Robinson, "Analysis of steady-state segment storage utilizations in a log-structured
//! file system with least-utilized segment cleaning", 1996; Menon, "A performance comparison of
//! RAID-5 and log-structured arrays", 1995; Desnoyers, "Analytic modeling of SSD write
//! performance", 2012, and "Analytic models of SSD write performance", 2014; Van Houdt, "A mean
//! field model for a class of garbage collection algorithms in flash-based solid state drives",
//! 2013; Frankie, Hughes, Kreutz-Delgado, "A mathematical model of the TRIM command in NAND-flash
//! SSDs", 2012.

/// A part of the logical space that is written at its own rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// Share of the logical pages.
    pub addresses: f64,
    /// Share of the writes.
    pub writes: f64,
}

/// Victims at random, uniform writes: a victim is as full as the device, A = 1/(1 - rho).
#[must_use]
pub fn random(rho: f64) -> f64 {
    check_rho(rho);
    1.0 / (1.0 - rho)
}

/// Victims in the order they were written, uniform writes.
///
/// A share X of a block survives one turn of the log: X = exp(-(1 - X)/rho), A = 1/(1 - X). The
/// same as A = a/(a + W(-a e^-a)) with a = 1/rho and Lambert's W. Source: Menon 1995; Robinson
/// 1996; Desnoyers 2012.
#[must_use]
pub fn fifo(rho: f64) -> f64 {
    hot_cold_fifo(rho, &[Group { addresses: 1.0, writes: 1.0 }])
}

/// Victims in the order they were written; groups of addresses with different write rates share the
/// log. Solves `sum_i w_i (1 - X) / (1 - exp(-(1 - X) w_i / (rho a_i))) = 1`; A = 1/(1 - X).
///
/// A page of group i survives a turn of the log with probability
/// `e_i = exp(-(1 - X) w_i/(rho a_i))`, so each host write to it puts `1/(1 - e_i)` copies into the
/// log. Source: Desnoyers 2012, 2014.
#[must_use]
pub fn hot_cold_fifo(rho: f64, groups: &[Group]) -> f64 {
    check_rho(rho);
    let total = |of: fn(&Group) -> f64| groups.iter().map(of).sum::<f64>();
    assert!((total(|group| group.addresses) - 1.0).abs() < 1e-9, "address shares have to sum to 1");
    assert!((total(|group| group.writes) - 1.0).abs() < 1e-9, "write shares have to sum to 1");
    // In terms of the host's share y = 1 - X, which keeps its digits as A grows.
    let log_writes = |y: f64| -> f64 {
        let of = |group: &Group| {
            // exp_m1: e^-t - 1, exact for small t. A group nobody writes is copied every turn.
            let turns = y * group.writes / (rho * group.addresses);
            if turns > 0.0 { group.writes * y / -(-turns).exp_m1() } else { rho * group.addresses }
        };
        groups.iter().map(of).sum()
    };
    1.0 / bisect(1e-12, 1.0, |y| log_writes(y) < 1.0)
}

/// Victims with the fewest valid pages, uniform writes, `b` pages per block.
///
/// With H the harmonic numbers, find the integer k and q in 0..=1 with
/// `H_b - H_{k+1} + q/(k+1) = (b - k - 1 + q)/(b rho)`; the victim holds k + 1 - q valid pages and
/// `A = b/(b - (k + 1 - q))`. Source: Desnoyers 2012, 2014 (finite blocks); Robinson 1996.
#[must_use]
pub fn greedy(rho: f64, b: u32) -> f64 {
    check_rho(rho);
    assert!(b > 0, "a block has at least one page");
    let pages = f64::from(b);
    let harmonic: f64 = (1..=b).map(|n| 1.0 / f64::from(n)).sum();
    // Left side minus right side when the victim holds `valid` pages; `tail` is H_b - H_valid. It
    // is linear in q between two integers and negative from its first root to valid = b, where
    // both sides vanish, which means nothing.
    let excess = |tail: f64, valid: f64| tail - (pages - valid) / (pages * rho);
    let (mut tail, mut valid) = (harmonic, 0.0);
    let mut before = excess(tail, valid);
    if before <= 0.0 {
        return 1.0; // so much spare space that victims are empty
    }
    loop {
        tail -= 1.0 / (valid + 1.0);
        let after = excess(tail, valid + 1.0);
        if after <= 0.0 {
            let victim = valid + before / (before - after);
            return pages / (pages - victim);
        }
        before = after;
        valid += 1.0;
    }
}

/// The emptiest of `d` random victims, uniform writes, `b` pages per block.
///
/// The mean-field model: with `m_i` the share of blocks that hold i valid pages, `t_i` that of
/// those that hold i or more, and `p_i = t_i^d - t_{i+1}^d` the chance that the victim holds i,
/// `dm_i/dt = (b - J)/(b rho) ((i+1) m_{i+1} - i m_i) - p_i + [i = b]`, `J = sum i p_i`. At rest
/// the flow through each level balances: `L i m_i = 1 - t_i^d` with `L = (b - J)/(b rho)`. Given L,
/// this yields `m_b`, then `m_{b-1}` and so on; L follows from `sum i m_i = b rho`, and
/// A = b/(b - J). Source: Van Houdt 2013. It is [`random`] for d = 1 and [`greedy`] for large d.
#[must_use]
pub fn d_choices(rho: f64, b: u32, d: u32) -> f64 {
    check_rho(rho);
    assert!(b > 0 && d > 0, "a block has at least one page, a choice at least one candidate");
    let pages = f64::from(b);
    let rate = bisect(1e-9, 1.0 / rho, |rate| mean_valid(rate, b, f64::from(d)) > pages * rho);
    1.0 / (rate * rho)
}

/// Mean valid pages per block at rest, if a valid page dies at `rate` per collected block.
fn mean_valid(rate: f64, b: u32, d: f64) -> f64 {
    let mut above = 0.0; // t_{i+1}
    let mut mean = 0.0;
    for i in (1..=b).rev() {
        let flow = rate * f64::from(i);
        let most = 1.0 - above;
        let m = bisect(0.0, most, |m| flow * m < 1.0 - f64::powf(above + m, d));
        above += m;
        mean += f64::from(i) * m;
    }
    mean
}

/// Share of the logical pages in use when a share `q` of the requests trims a random page in use
/// and the rest writes uniformly: writes revive what trims kill if (1 - q)(1 - s) = q, so
/// s = (1 - 2q)/(1 - q). Source: Frankie et al. 2012.
#[must_use]
pub fn trim_in_use_share(q: f64) -> f64 {
    assert!((0.0..0.5).contains(&q), "trim share {q} leaves nothing in use, expected 0 to 0.5");
    (1.0 - 2.0 * q) / (1.0 - q)
}

/// The `rho` to use in the other forms when a share `q` of the requests are trims.
#[must_use]
pub fn trim_effective_rho(rho: f64, q: f64) -> f64 {
    check_rho(rho);
    trim_in_use_share(q) * rho
}

fn check_rho(rho: f64) {
    assert!(rho > 0.0 && rho < 1.0, "rho is {rho}, expected a share between 0 and 1");
}

/// The border between a lower part where `low` holds and an upper part where it does not.
fn bisect(mut from: f64, mut to: f64, low: impl Fn(f64) -> bool) -> f64 {
    // 60 halvings exhaust the bits of a double in ranges of the size used here.
    for _ in 0..60 {
        let middle = f64::midpoint(from, to);
        if low(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    f64::midpoint(from, to)
}

#[cfg(test)]
mod tests {
    use super::{
        Group, d_choices, fifo, greedy, hot_cold_fifo, random, trim_effective_rho,
        trim_in_use_share,
    };

    #[track_caller]
    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
    }

    /// rho, FIFO, greedy with 32, 64 and 256 pages per block, random.
    const TABLE: [[f64; 6]; 5] = [
        [0.70, 1.8762, 1.7930, 1.8333, 1.8652, 3.3333],
        [0.80, 2.6927, 2.5136, 2.5993, 2.6684, 5.0],
        [0.875, 4.1820, 3.7498, 3.9485, 4.1204, 8.0],
        [0.90, 5.1787, 4.5082, 4.8213, 5.0832, 10.0],
        [0.95, 10.1724, 7.8233, 8.8501, 9.7979, 20.0],
    ];

    #[test]
    fn published_table() {
        for [rho, by_fifo, by_32, by_64, by_256, by_random] in TABLE {
            near(fifo(rho), by_fifo, 5e-5);
            near(greedy(rho, 32), by_32, 5e-5);
            near(greedy(rho, 64), by_64, 5e-5);
            near(greedy(rho, 256), by_256, 5e-5);
            near(random(rho), by_random, 5e-5);
        }
    }

    #[test]
    fn hot_and_cold() {
        let groups = [Group { addresses: 0.2, writes: 0.8 }, Group { addresses: 0.8, writes: 0.2 }];
        for (rho, expected) in [(0.8, 3.0345), (0.875, 4.5369), (0.9, 5.5378)] {
            near(hot_cold_fifo(rho, &groups), expected, 5e-5);
        }
        // Groups that differ in nothing are one group.
        let alike = [Group { addresses: 0.3, writes: 0.3 }, Group { addresses: 0.7, writes: 0.7 }];
        near(hot_cold_fifo(0.8, &alike), fifo(0.8), 1e-9);
        // Data nobody writes is copied once per turn of the log: it takes 0.4 of every turn, and
        // the other 0.6 behaves like a log of its own.
        let frozen = [Group { addresses: 0.5, writes: 1.0 }, Group { addresses: 0.5, writes: 0.0 }];
        let alone = fifo(0.4 / 0.6);
        near(hot_cold_fifo(0.8, &frozen), alone / 0.6, 1e-6);
    }

    #[test]
    fn limits_of_choice() {
        for rho in [0.7, 0.8, 0.9] {
            near(d_choices(rho, 32, 1), random(rho), 1e-6);
            near(d_choices(rho, 32, 100_000), greedy(rho, 32), 2e-3);
            let by_d: Vec<f64> = [1, 2, 5, 10, 100].map(|d| d_choices(rho, 64, d)).to_vec();
            assert!(by_d.is_sorted_by(|a, b| a > b), "more choice, less copying: {by_d:?}");
            assert!(by_d[4] > greedy(rho, 64));
        }
        near(greedy(0.8, 1_000_000), fifo(0.8), 1e-3);
        near(greedy(0.1, 4), 1.0, 0.0);
        near(greedy(0.8, 1), 1.0, 0.0);
        near(d_choices(0.05, 8, 50), 1.0, 1e-3);
    }

    /// The fixed point against the differential equation it is the rest of, integrated in time.
    #[test]
    fn choice_at_rest_is_where_the_differential_equation_settles() {
        let (rho, b, d) = (0.85, 8_usize, 3);
        let pages = 8.0;
        let mut m = vec![0.0; b + 1];
        m[b] = rho;
        m[0] = 1.0 - rho;
        let mut taken = 0.0;
        for _ in 0..200_000 {
            let tail = |from: usize| m[from..].iter().sum::<f64>();
            let p: Vec<f64> = (0..=b).map(|i| tail(i).powi(d) - tail(i + 1).powi(d)).collect();
            taken = (1..).zip(&p[1..]).map(|(i, p)| f64::from(i) * p).sum();
            let rate = (pages - taken) / (pages * rho);
            let mut change: Vec<f64> = p.iter().map(|p| -p).collect();
            change[b] += 1.0;
            for (i, valid) in (1..=b).zip(1..) {
                let flow = rate * f64::from(valid) * m[i];
                change[i] -= flow;
                change[i - 1] += flow;
            }
            for (m, change) in m.iter_mut().zip(change) {
                *m += 0.002 * change;
            }
        }
        near(d_choices(rho, 8, 3), pages / (pages - taken), 1e-6);
    }

    #[test]
    fn trims_lower_the_load() {
        near(trim_in_use_share(0.0), 1.0, 0.0);
        near(trim_in_use_share(0.2), 0.75, 1e-12);
        near(trim_effective_rho(0.8, 0.1), 0.8 * 0.8 / 0.9, 1e-12);
        let s = trim_in_use_share(0.3);
        near(0.7 * (1.0 - s), 0.3, 1e-12);
    }
}
