//! A buffer policy outside the crate, compared with FIFO and LRU: LIP (Qureshi et al., ISCA 2007).
//! The load reads hot pages at random, and scans cold ones in between.
//!
//! `cargo run --release -p onefold-buffer --example lip`

use std::io::Write;

use onefold_buffer::{
    Access, Actions, Area, BufferConfig, Cache, Charge, Entries, FtlView, ListId, NodeId, Policy,
    PolicySpec, Replacement, Req, Setup, Sizes, new_policy,
};
use onefold_units::convert::{float, narrow};
use onefold_units::{Lpn, Op, Rng};

const ALL: ListId = ListId(0);

/// LRU insertion policy: a page enters at the oldest end, and moves to the newest when it is hit. A
/// scan replaces its own pages.
#[derive(Clone, Copy, Debug)]
struct Lip;

impl Replacement for Lip {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(ALL, id);
    }

    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if e.is_full() {
            e.evict(ALL, out);
        }
        let id = e.insert(ALL, key);
        e.move_to_oldest(ALL, id);
        Some(id)
    }
}

/// Everything is stored in flash.
struct AllMapped;

impl FtlView for AllMapped {
    fn mapped(&self, _: Lpn) -> bool {
        true
    }
}

/// Share of reads that found their page: half of them go to 8,000 hot pages, half scan 100,000 cold
/// ones again and again.
fn hit_ratio(policy: &mut dyn Policy) -> f64 {
    const READS: u32 = 1_000_000;
    let (mut rng, mut actions) = (Rng::new(1), Actions::new());
    for n in 0..READS {
        let hot = n % 2 == 0;
        let page = if hot { narrow(rng.below(8_000)) } else { 8_000 + n / 2 % 100_000 };
        policy.request(&Req::new(Op::Read, Lpn::new(page), 1), &AllMapped, &mut actions);
    }
    float(policy.stats().total().reads.hits) / float(READS.into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sizes = Sizes { entry_bytes: 4096, flash_page_bytes: 4096, device_bytes: 1 << 30 };
    let mut stdout = std::io::stdout().lock();
    for name in ["fifo", "lru"] {
        let policy = PolicySpec::parse(name)?;
        let config =
            BufferConfig { policy, bytes: 40 << 20, charge: Charge::Paper, volatile: true };
        let ratio = hit_ratio(&mut *new_policy(&config, &sizes)?);
        writeln!(stdout, "{name:14} {:.1} %", 100.0 * ratio)?;
    }
    let policy = PolicySpec::parse("fifo")?;
    let config = BufferConfig { policy, bytes: 40 << 20, charge: Charge::Paper, volatile: true };
    let ratio = hit_ratio(&mut Cache::<Lip>::new(&config, &sizes)?);
    writeln!(stdout, "lip            {:.1} %", 100.0 * ratio)?;
    Ok(())
}
