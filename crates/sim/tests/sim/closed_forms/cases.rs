//! The configurations that have a closed form of their write amplification (ssd.md 3.1): shared by
//! the test, on small devices, and the example, on `s1` itself.

use onefold_sim::{Control, simulate};
use onefold_testkit::closed_forms::{
    Group, d_choices, fifo, greedy, hot_cold_fifo, random, trim_effective_rho,
};

use crate::common::{sets, setup, workload};

/// The nominal shares that the specification lists.
pub(crate) const RHOS: [f64; 3] = [0.8, 0.875, 0.9];

/// A configuration with a closed form.
pub(crate) struct Case {
    /// Name in the table.
    pub(crate) name: &'static str,
    /// `ftl.victim`.
    victim: &'static str,
    /// Pages per block.
    pages: u32,
    /// Keys of the workload, with the comma before.
    keys: &'static str,
    /// Share of trims among the requests.
    trims: f64,
    /// The closed form, of rho.
    form: fn(f64) -> f64,
}

const FREQUENT: Group = Group { addresses: 0.2, writes: 0.8 };
const RARE: Group = Group { addresses: 0.8, writes: 0.2 };

/// All of them. FIFO and random victims do not depend on the pages per block.
pub(crate) const CASES: [Case; 8] = [
    Case { name: "random", victim: "random", pages: 64, keys: "", trims: 0.0, form: random },
    Case { name: "FIFO", victim: "fifo", pages: 64, keys: "", trims: 0.0, form: fifo },
    Case {
        name: "greedy, b = 64",
        victim: "greedy",
        pages: 64,
        keys: "",
        trims: 0.0,
        form: |rho| greedy(rho, 64),
    },
    Case {
        name: "greedy, b = 256",
        victim: "greedy",
        pages: 256,
        keys: "",
        trims: 0.0,
        form: |rho| greedy(rho, 256),
    },
    Case {
        name: "d-choices, d = 10, b = 64",
        victim: "d-choices",
        pages: 64,
        keys: "",
        trims: 0.0,
        form: |rho| d_choices(rho, 64, 10),
    },
    Case {
        name: "FIFO, hot/cold 20/80",
        victim: "fifo",
        pages: 64,
        keys: ",dist=hotcold:20/80",
        trims: 0.0,
        form: |rho| hot_cold_fifo(rho, &[FREQUENT, RARE]),
    },
    Case {
        name: "greedy, b = 64, 10 % trims",
        victim: "greedy",
        pages: 64,
        keys: ",trim_share=0.1",
        trims: 0.1,
        form: |rho| greedy(rho, 64),
    },
    Case {
        name: "greedy, b = 64, 20 % trims",
        victim: "greedy",
        pages: 64,
        keys: ",trim_share=0.2",
        trims: 0.2,
        form: |rho| greedy(rho, 64),
    },
];

/// Size of the device and of the run.
pub(crate) struct Scale {
    /// Channels; `s1` has 8.
    pub(crate) channels: u32,
    /// Dies per channel; `s1` has 2.
    pub(crate) ways: u32,
    /// Pages per die; `s1` has 65,536.
    pub(crate) pages_per_die: u32,
    /// Measured requests.
    pub(crate) requests: u64,
    /// Requests before, as multiples of the physical pages, where preconditioning, which writes
    /// uniformly, does not bring the state of the case: hot and cold data part, and the share in
    /// use settles, over drive writes.
    pub(crate) warmup: f64,
}

/// What a run showed.
pub(crate) struct Measured {
    /// `ftl.rho` of the result: the share the closed form is evaluated at.
    pub(crate) rho: f64,
    /// Write amplification by the closed form.
    pub(crate) expected: f64,
    /// Write amplification of the run.
    pub(crate) found: f64,
}

impl Measured {
    /// Relative deviation of the run from the closed form.
    pub(crate) fn deviation(&self) -> f64 {
        self.found / self.expected - 1.0
    }
}

impl Case {
    /// Runs the case at a nominal rho. The reserve of `s1` is 5 % of the blocks, so the logical
    /// space is rho * 0.95 of all pages; what rho that makes is read from the result.
    pub(crate) fn measure(&self, rho: f64, scale: &Scale) -> Measured {
        let dies = scale.channels * scale.ways;
        let drives = if self.keys.is_empty() { 0.0 } else { scale.warmup };
        let warmup = drives * f64::from(dies) * f64::from(scale.pages_per_die);
        let all = [
            format!("geometry.channels={}", scale.channels),
            format!("geometry.ways={}", scale.ways),
            format!("geometry.pages={}", self.pages),
            format!("geometry.blocks={}", scale.pages_per_die / self.pages),
            format!("capacity.logical={}", rho * 0.95),
            format!("ftl.victim={}", self.victim),
            format!("run.warmup={warmup:.0}"),
        ];
        let mut all = all.to_vec();
        // A full trim log writes a checkpoint, whose blocks would be missing from the usable ones.
        let log = "ftl.trim_log=256MiB";
        all.extend(sets(&["ftl.separate_gc=false", "precondition.overwrite=4", log]));
        let text = format!(
            "randwrite,qd=32,requests={:.0}{}",
            warmup + onefold_units::convert::float(scale.requests),
            self.keys
        );
        let result = simulate(&setup("s1", &all, &workload(&text)), &Control::default())
            .unwrap_or_else(|error| panic!("{} at rho {rho}: {error}", self.name));
        let rho = result.ftl.rho;
        let expected = (self.form)(trim_effective_rho(rho, self.trims));
        Measured { rho, expected, found: result.waf }
    }
}
