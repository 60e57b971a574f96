//! What the detector tells from the writes and flushes of a trace alone, without their content, against the range that is known to
//! be the journal. Reads the CSV of our recorded traces (`t_ns,op,sector512,nsect,flags,lat_ns`) from standard input.
//!
//! `zstd -dc rec-fio-ext4-journal.csv.zst | cargo run --release -p onefold-journal --example replay -- 1408MiB-1472MiB`
use std::io::{BufRead as _, Write as _};

use onefold_journal::{Class, Detector, Output, Setting, Write};
use onefold_units::convert::float;
use onefold_units::{Lba, Nanos, PAGE_BYTES};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// 4 TiB: traces do not name the size of their device.
const BLOCKS: u64 = 1 << 30;

/// Blocks written, by whether they lie in the journal and whether the detector said so when they were written.
#[derive(Default)]
struct Score {
    hit: u64,
    missed: u64,
    wrong: u64,
    data: u64,
}

impl Score {
    fn count(&mut self, said: bool, is: bool) {
        let place = match (said, is) {
            (true, true) => &mut self.hit,
            (false, true) => &mut self.missed,
            (true, false) => &mut self.wrong,
            (false, false) => &mut self.data,
        };
        *place += 1;
    }
}

fn serve(detector: &mut Detector, now: Nanos) {
    while let Some(output) = detector.poll_output() {
        if let Output::Read(lba) = output {
            detector.handle_read(now, lba, None);
        }
    }
    if detector.poll_timeout().is_some_and(|at| at <= now) {
        detector.handle_timeout(now);
    }
}

fn main() -> Outcome<()> {
    let range = std::env::args().nth(1).unwrap_or_default();
    let Setting::Ranges(oracle) = Setting::parse(&range)? else {
        return Err("name a range".into());
    };
    let mut out = std::io::stdout();
    let mut detector = Detector::new(BLOCKS, Setting::Detect, Nanos::ZERO);
    let mut score = Score::default();
    let mut now = Nanos::ZERO;
    for line in std::io::stdin().lock().lines().skip(1) {
        let line = line?;
        let fields: Vec<&str> = line.split(',').collect();
        let [time, op, first, count, flags, ..] = fields[..] else { continue };
        now = now.max(Nanos::new(time.parse()?));
        serve(&mut detector, now);
        let (at, bytes) = (first.parse::<u64>()? * 512, count.parse::<u64>()? * 512);
        if op == "F" {
            detector.handle_flush(now);
        }
        if op != "W" || bytes == 0 {
            continue;
        }
        let is = oracle.iter().any(|(first, end)| (*first..*end).contains(&at));
        for block in at / PAGE_BYTES..(at + bytes).div_ceil(PAGE_BYTES) {
            let said = detector.span(Lba::new(block)).class == Some(Class::JournalLog);
            score.count(said, is);
        }
        let was = detector.ranges().to_vec();
        detector.handle_write(now, &Write { at, bytes, data: None, fua: flags.contains('F') });
        if detector.ranges().len() != was.len() {
            writeln!(
                out,
                "after {} blocks: {:?}",
                score.hit + score.missed + score.wrong + score.data,
                detector.ranges().iter().map(ToString::to_string).collect::<Vec<_>>()
            )?;
        }
    }
    for range in detector.ranges() {
        writeln!(out, "at the end: {range}")?;
    }
    let share = |part: u64, other: u64| match part + other {
        0 => "-".to_owned(),
        all => format!("{:.4}", float(part) / float(all)),
    };
    writeln!(
        out,
        "blocks written: {} to the journal, {} elsewhere; precision {}, recall {}",
        score.hit + score.missed,
        score.wrong + score.data,
        share(score.hit, score.wrong),
        share(score.hit, score.missed)
    )?;
    Ok(())
}
