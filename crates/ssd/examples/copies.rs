//! What a drive that sees copies (`dedup.scope = reads`, XXH3) takes of a page, beside a drive that does not.
//!
//! Each round has a drive of 256 MiB of either kind in memory. Counts the CPU time of the thread, so other programs disturb
//! little; the last line has the least of all rounds.
//!
//! `cargo run --release -p onefold-ssd --example copies`
use std::io::Write;

use onefold_ftl::{DedupScope, Layout, RemapConfig, RemapScheme};
use onefold_nand::{Geometry, GeometrySpec, MemoryMedia, Span};
use onefold_ssd::{
    Command, DedupConfig, HashKind, Hasher, Payload, Ssd, SsdConfig, example_config,
};
use onefold_units::convert::{float, index64, u64_from};
use onefold_units::{Nanos, Op, Rng};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const UNIT: u64 = 4096;
/// Pages of each step: 64 MiB, more than a cache of the processor holds.
const PAGES: u64 = 16_384;
const ROUNDS: u32 = 7;

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> Outcome<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split_ascii_whitespace().next().unwrap_or_default().parse()?)
}

/// CPU nanoseconds per page of steps over so many pages: write, read, write of what was read.
type Steps = [f64; 3];

struct Drive(Ssd<MemoryMedia>);

impl Drive {
    fn new(sees_copies: bool) -> Outcome<Self> {
        let geometry = Geometry::new(GeometrySpec {
            channels: 1,
            ways: 1,
            planes: 1,
            blocks: 320,
            pages: 256,
            page_bytes: 4096,
            unit_bytes: 4096,
            span: Span::Device,
        })?;
        let mut config = SsdConfig { geometry, ..example_config() };
        config.ftl.logical_units = 65_536;
        if sees_copies {
            let scheme = RemapScheme::Lh;
            config.ftl.remap =
                RemapConfig { scheme, log_bytes: 2 << 20, segment_bytes: 1024, ..RemapConfig::OFF };
            config.ftl.fingerprints = 256_000;
            config.ftl.dedup_scope = DedupScope::Reads;
            config.dedup = DedupConfig { hash: Some(HashKind::Xxh3), ..DedupConfig::DEFAULT };
        }
        let nvram = Layout::new(&config.geometry, &config.ftl)?.nvram_bytes();
        Ok(Self(Ssd::new(config, MemoryMedia::new(&config.geometry, nvram))?))
    }

    fn write(&mut self, first: u64, pages: &[Vec<u8>]) -> Outcome<f64> {
        let start = cpu_ns()?;
        for (page, at) in pages.iter().zip(first..) {
            let command = Command::new(Op::Write, at * UNIT, UNIT);
            self.0.submit(Nanos::ZERO, &command, Payload::Write(page))?;
        }
        Ok((cpu_ns()? - start) / float(PAGES))
    }

    fn read(&mut self, first: u64) -> Outcome<f64> {
        let mut page = vec![0; index64(UNIT)];
        let start = cpu_ns()?;
        for at in first..first + PAGES {
            let command = Command::new(Op::Read, at * UNIT, UNIT);
            self.0.submit(Nanos::ZERO, &command, Payload::Read(&mut page))?;
        }
        Ok((cpu_ns()? - start) / float(PAGES))
    }
}

/// The first half of the pages is known when the second is written, so that lookups go through a table with entries.
fn steps(sees_copies: bool, pages: &[Vec<u8>]) -> Outcome<Steps> {
    let (known, new) = pages.split_at(index64(PAGES));
    let mut drive = Drive::new(sees_copies)?;
    drive.write(0, known)?;
    drive.read(0)?;
    let written = drive.write(PAGES, new)?;
    let read = drive.read(PAGES)?;
    let copied = drive.write(2 * PAGES, new)?;
    let shared = drive.0.ftl().stats().saved.copy_read;
    // Of random pages some look like a superblock of ext4, and stay alone.
    let expected = if sees_copies { PAGES - PAGES / 1000..=PAGES } else { 0..=0 };
    assert!(expected.contains(&shared), "{shared} pages of the last step are copies");
    Ok([written, read, copied])
}

fn hash(pages: &[Vec<u8>]) -> Outcome<f64> {
    let hasher = Hasher::new(HashKind::Xxh3, [7; 32]);
    let start = cpu_ns()?;
    let all = pages.iter().fold(0, |all, page| all ^ hasher.of(page).raw());
    std::hint::black_box(all);
    Ok((cpu_ns()? - start) / float(u64_from(pages.len())))
}

fn main() -> Outcome<()> {
    let mut rng = Rng::new(1);
    let page = |_| (0..UNIT / 8).flat_map(|_| rng.next_u64().to_le_bytes()).collect();
    let pages: Vec<Vec<u8>> = (0..2 * PAGES).map(page).collect();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "CPU ns per page: hash | without: write read write | with: write of new, read, write of a copy | beyond the hash"
    )?;
    let mut least = [f64::INFINITY; 7];
    for round in 0..=ROUNDS {
        let [plain, seeing] = [steps(false, &pages)?, steps(true, &pages)?];
        let all = [hash(&pages)?, plain[0], plain[1], plain[2], seeing[0], seeing[1], seeing[2]];
        least = std::array::from_fn(|at| least[at].min(all[at]));
        let [hash, p0, p1, p2, s0, s1, s2] = if round < ROUNDS { all } else { least };
        let beyond = [s0 - p0 - hash, s1 - p1 - hash, s2 - p2 - hash];
        writeln!(
            out,
            "{hash:6.0} | {p0:6.0} {p1:6.0} {p2:6.0} | {s0:6.0} {s1:6.0} {s2:6.0} | {:6.0} {:6.0} {:6.0}",
            beyond[0], beyond[1], beyond[2]
        )?;
    }
    Ok(())
}
