//! What a device with a volatile part may answer after a power cut.

use onefold_units::convert::{index, u32_from, u64_from};

/// Why an answer is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Wrong {
    /// The content is not one the host ever wrote as a whole.
    #[error("unit {lpn} holds a mixture of contents, or that of another unit")]
    Mixed {
        /// The unit.
        lpn: u32,
    },
    /// The content is older or newer than it may be.
    #[error("unit {lpn} holds version {found}, expected one of {expected:?}")]
    Version {
        /// The unit.
        lpn: u32,
        /// What was read; 0 = zeroes.
        found: u64,
        /// What would be right.
        expected: Vec<u64>,
    },
}

#[derive(Clone, Debug)]
struct Unit {
    /// Durable version; 0 = zeroes. Several where it could not be read after a power cut.
    stable: Vec<u64>,
    /// Versions since, oldest first; several where a remap gave it what could not be read.
    later: Vec<Vec<u64>>,
}

impl Unit {
    fn new(stable: u64) -> Self {
        Self { stable: vec![stable], later: Vec::new() }
    }

    fn allowed(&self) -> Vec<u64> {
        self.stable.iter().chain(self.later.iter().flatten()).copied().collect()
    }

    fn newest(&self) -> Vec<u64> {
        self.later.last().unwrap_or(&self.stable).clone()
    }
}

/// The reference: per unit, the durable version and those that came after it.
#[derive(Clone, Debug)]
pub struct Model {
    units: Vec<Unit>,
    version: u64,
    trims_are_durable: bool,
}

impl Model {
    /// A device of zeroes. `trims_are_durable`: a completed trim survives the modelled power cut.
    #[must_use]
    pub fn new(units: u32, trims_are_durable: bool) -> Self {
        Self { units: vec![Unit::new(0); index(units)], version: 0, trims_are_durable }
    }

    /// A write is about to be issued: its version.
    pub fn write(&mut self, lpn: u32) -> u64 {
        self.version += 1;
        self.units[index(lpn)].later.push(vec![self.version]);
        self.version
    }

    /// A trim of `lpns` is about to be issued.
    pub fn trim_begins(&mut self, lpns: std::ops::Range<u32>) {
        for unit in &mut self.units[index(lpns.start)..index(lpns.end)] {
            unit.later.push(vec![0]);
        }
    }

    /// It is complete.
    pub fn trim_completes(&mut self, lpns: std::ops::Range<u32>) {
        if self.trims_are_durable {
            for unit in &mut self.units[index(lpns.start)..index(lpns.end)] {
                *unit = Unit::new(0);
            }
        }
    }

    /// A remap is about to be issued: each first unit is to hold what the second holds now, and the
    /// second nothing if it `moves`.
    pub fn remap_begins(&mut self, pairs: &[(u32, u32)], moves: bool) {
        let newest: Vec<_> =
            pairs.iter().map(|(_, src)| self.units[index(*src)].newest()).collect();
        for ((dst, _), newest) in pairs.iter().zip(newest) {
            self.units[index(*dst)].later.push(newest);
        }
        if moves {
            for src in Self::moved(pairs) {
                self.units[index(src)].later.push(vec![0]);
            }
        }
    }

    /// It is complete.
    pub fn remap_completes(&mut self, pairs: &[(u32, u32)], moves: bool) {
        if !self.trims_are_durable {
            return;
        }
        let sources: Vec<_> = if moves { Self::moved(pairs).collect() } else { Vec::new() };
        for lpn in pairs.iter().map(|(dst, _)| *dst).chain(sources) {
            self.durable(lpn..lpn + 1);
        }
    }

    /// Whether a completed trim, or remap, survives the modelled power cut.
    #[must_use]
    pub const fn trims_are_durable(&self) -> bool {
        self.trims_are_durable
    }

    /// What a unit holds while nothing fails.
    #[must_use]
    pub fn newest(&self, lpn: u32) -> Vec<u64> {
        self.units[index(lpn)].newest()
    }

    /// The newest content of a unit may as well be none, from now on.
    pub fn may_be_unmapped(&mut self, lpn: u32) {
        let mut either = self.units[index(lpn)].newest();
        either.push(0);
        self.units[index(lpn)].later.push(either);
    }

    /// What a unit may hold after a power cut now.
    #[must_use]
    pub fn allowed(&self, lpn: u32) -> Vec<u64> {
        self.units[index(lpn)].allowed()
    }

    /// It was refused: nothing changed.
    pub fn remap_skipped(&mut self, pairs: &[(u32, u32)], moves: bool) {
        let sources: Vec<_> = if moves { Self::moved(pairs).collect() } else { Vec::new() };
        for lpn in pairs.iter().map(|(dst, _)| *dst).chain(sources) {
            self.units[index(lpn)].later.pop();
        }
    }

    /// A flush is complete that unmapped `moved` at its end, after [`Model::trim_begins`].
    pub fn flushed_but(&mut self, moved: &std::collections::BTreeSet<u32>) {
        for (lpn, unit) in (0..).zip(&mut self.units) {
            if moved.contains(&lpn) && !self.trims_are_durable {
                // What it held before is durable; that it is unmapped need not be.
                let trim = unit.later.pop();
                *unit = Unit { stable: unit.newest(), later: trim.into_iter().collect() };
            } else {
                *unit = Unit { stable: unit.newest(), later: Vec::new() };
            }
        }
    }

    /// It failed: each unit holds what it held, or what it was to hold.
    pub fn remap_failed(&mut self, pairs: &[(u32, u32)], moves: bool) {
        let sources: Vec<_> = if moves { Self::moved(pairs).collect() } else { Vec::new() };
        for lpn in pairs.iter().map(|(dst, _)| *dst).chain(sources) {
            let unit = &mut self.units[index(lpn)];
            let Some(mut either) = unit.later.pop() else { continue };
            either.extend(unit.newest());
            unit.later.push(either);
        }
    }

    fn moved(pairs: &[(u32, u32)]) -> impl Iterator<Item = u32> + '_ {
        let is_target = |lpn: u32| pairs.iter().any(|(dst, _)| *dst == lpn);
        let sources: std::collections::BTreeSet<u32> = pairs.iter().map(|(_, src)| *src).collect();
        sources.into_iter().filter(move |src| !is_target(*src))
    }

    /// A flush, or a checkpoint, is complete: everything acknowledged is durable.
    pub fn flushed(&mut self) {
        self.durable(0..u32_from(self.units.len()));
    }

    /// A write of `lpns` that had to be durable is complete.
    pub fn durable(&mut self, lpns: std::ops::Range<u32>) {
        for unit in &mut self.units[index(lpns.start)..index(lpns.end)] {
            *unit = Unit { stable: unit.newest(), later: Vec::new() };
        }
    }

    /// Checks what a running device read.
    ///
    /// # Errors
    /// It is not the newest version.
    pub fn check_running(&self, lpn: u32, data: &[u8]) -> Result<(), Wrong> {
        let found = version_of(data).ok_or(Wrong::Mixed { lpn })?;
        let expected = self.units[index(lpn)].newest();
        if expected.contains(&found) {
            Ok(())
        } else {
            Err(Wrong::Version { lpn, found, expected })
        }
    }

    /// Checks what a recovered device read, and takes it for the durable version from now on.
    ///
    /// # Errors
    /// It is neither the durable version nor one that came after it.
    pub fn settle(&mut self, lpn: u32, data: &[u8]) -> Result<(), Wrong> {
        let found = version_of(data).ok_or(Wrong::Mixed { lpn })?;
        let unit = &mut self.units[index(lpn)];
        let expected = unit.allowed();
        if expected.contains(&found) {
            *unit = Unit::new(found);
            return Ok(());
        }
        Err(Wrong::Version { lpn, found, expected })
    }

    /// A recovered device could not read a unit: which of the possible versions it has stays open.
    pub fn settle_unreadable(&mut self, lpn: u32) {
        let unit = &mut self.units[index(lpn)];
        *unit = Unit { stable: unit.allowed(), later: Vec::new() };
    }
}

/// Fills a unit with the stamp of a version, so that any mixture is noticed.
pub fn fill(lpn: u32, version: u64, data: &mut [u8]) {
    let (words, _) = data.as_chunks_mut::<16>();
    let stamp = stamp(lpn, version);
    words.fill(stamp);
}

fn stamp(lpn: u32, version: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes[8..12].copy_from_slice(&lpn.to_le_bytes());
    bytes[12..].copy_from_slice(b"unit");
    bytes
}

/// The version `lpn` was filled with; 0 for zeroes, `None` for anything else.
#[must_use]
pub fn stamp_of(lpn: u32, data: &[u8]) -> Option<u64> {
    let (origin, version) = origin_of(data)?;
    (version == 0 || origin == lpn).then_some(version)
}

/// The version that some unit was filled with; 0 for zeroes, `None` for anything else. Versions of a
/// [`Model`] belong to one unit each, so nothing is lost if that is not known.
#[must_use]
pub fn version_of(data: &[u8]) -> Option<u64> {
    origin_of(data).map(|(_, version)| version)
}

/// Unit and version of a stamped unit; zeroes are version 0 of unit 0.
fn origin_of(data: &[u8]) -> Option<(u32, u64)> {
    if data.iter().all(|byte| *byte == 0) {
        return Some((0, 0));
    }
    let (words, _) = data.as_chunks::<16>();
    let first = words.first()?;
    let version = first.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))?;
    let lpn = first.get(8..12)?.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))?;
    let whole = u64_from(words.len()) * 16 == u64_from(data.len());
    let expected = stamp(lpn, version);
    (whole && words.iter().all(|word| *word == expected)).then_some((lpn, version))
}
