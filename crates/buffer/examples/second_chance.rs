//! A buffer policy of one's own beside LRU and FIFO: second chance, on random reads of which four in five go to a fifth of the pages.
//!
//! `cargo run --release -p onefold-buffer --example second_chance`

use std::io::Write;

use onefold_buffer::{
    Access, Actions, Area, BufferConfig, Cache, Charge, Entries, FtlView, ListId, NodeId, Policy,
    PolicySpec, Replacement, Req, Setup, Sizes, new_policy,
};
use onefold_units::convert::{float, narrow};
use onefold_units::{Lpn, Op, Rng};

const ALL: ListId = ListId(0);

/// Entries leave in the order in which they came, but one that was hit meanwhile is passed over once.
#[derive(Clone, Copy, Debug)]
struct SecondChance;

impl Replacement for SecondChance {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(_: &Setup) -> Self {
        Self
    }

    /// `aux` is free for the policy: here it is the reference bit.
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        *e.aux_mut(id) = 1;
    }

    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        while e.is_full() {
            match e.slab().oldest(ALL) {
                Some(id) if *e.aux_mut(id) == 1 => {
                    *e.aux_mut(id) = 0;
                    e.move_to_newest(ALL, id);
                }
                _ => {
                    e.evict(ALL, out);
                }
            }
        }
        Some(e.insert(ALL, key))
    }
}

/// Everything is stored in flash.
struct AllMapped;

impl FtlView for AllMapped {
    fn mapped(&self, _: Lpn) -> bool {
        true
    }
}

/// Share of reads that found their page.
fn hit_ratio(policy: &mut dyn Policy) -> f64 {
    const READS: u32 = 1_000_000;
    let (mut rng, mut actions) = (Rng::new(1), Actions::new());
    for _ in 0..READS {
        let hot = rng.below(5) > 0;
        let page = if hot { rng.below(20_000) } else { 20_000 + rng.below(80_000) };
        let read = Req::new(Op::Read, Lpn::new(narrow(page)), 1);
        policy.request(&read, &AllMapped, &mut actions);
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
    let setup = Setup::new::<SecondChance>(&config, &sizes)?;
    let ratio = hit_ratio(&mut Cache::<SecondChance>::new(&setup));
    writeln!(stdout, "second chance  {:.1} %", 100.0 * ratio)?;
    Ok(())
}
