//! Deduplicated writes: fingerprints, and the time they take (remap.md, section 11).
//!
//! A unit is fingerprinted on its way to the FTL: when it leaves the buffer, or at once where there is
//! none. With `dedup.scope = reads` or `all`, a unit that the host reads from flash is, too. Whether a
//! content is stored already, and may be shared, is the FTL's business.
//!
//! Which contents are remembered depends on the order of commands and never on time, so that both
//! clocks program the same pages: every unit read is hashed. The answer to a read does not wait for
//! its hash, which is made from the bytes on their way out. But hash units are few, and a queue without
//! bound would make writes wait for ever: a read waits once [`READ_BACKLOG`] pages are ahead of it. So
//! hash units that are slower than the host reads slow it down, as remap.md, section 11, warns: one
//! unit at 32 us hashes 31,250 pages in a second.

use onefold_ftl::{Fingerprint, Ftl, FtlError, RemapScheme};
use onefold_nand::{At, Delay, Grant, Media};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Lpn, Nanos};

use crate::superblocks::has_superblock;
use crate::{Hasher, SsdConfig};

/// Content of a page of which nothing is known: it is like no other.
pub(crate) const UNKNOWN: u128 = 0;

/// Content of a page of zeroes, as traces with MD5 digests have it.
pub const ZEROES: u128 =
    u128::from_le_bytes(*b"\x62\x0f\x0b\x67\xa9\x1f\x7f\x74\x15\x1b\xc5\xbe\x74\x5b\x71\x10");

/// Pages read that may wait for a hash unit before a read waits with them.
const READ_BACKLOG: u64 = 64;

/// What fingerprinting did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedupStats {
    /// 4 KiB pages hashed.
    pub hashed_pages: u64,
    /// Time that took, over all units.
    pub busy: Nanos,
}

onefold_units::keep!(DedupStats { hashed_pages, busy });

impl DedupStats {
    /// What was counted since `earlier`, an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            hashed_pages: self.hashed_pages - earlier.hashed_pages,
            busy: self.busy.saturating_sub(earlier.busy),
        }
    }
}

/// The fingerprint engine of a device.
#[derive(Clone, Debug)]
pub(crate) struct Dedup {
    hasher: Hasher,
    hash_time: Nanos,
    /// Until when each unit is busy; empty if there is one for everybody.
    busy: Vec<Nanos>,
    timed: bool,
    /// Whether reads are fingerprinted.
    pub(crate) hears_reads: bool,
    /// By unit, what is in it; empty where bytes are stored or reads do not count.
    known: Vec<u128>,
    pub(crate) stats: DedupStats,
}

onefold_units::keep!(Dedup { busy, timed, known, stats } but { hasher, hash_time, hears_reads });

impl Dedup {
    /// `None` if the device does not deduplicate.
    pub(crate) fn new<M: Media>(config: &SsdConfig, units: u32) -> Option<Self> {
        let shares = config.ftl.remap.scheme != RemapScheme::None && config.ftl.fingerprints > 0;
        let kind = config.dedup.hash.filter(|_| shares)?;
        let hears_reads = config.ftl.dedup_scope.has_reads();
        Some(Self {
            hasher: Hasher::new(kind, config.dedup.key),
            hash_time: config.dedup.hash_time,
            busy: vec![Nanos::ZERO; index(config.dedup.hash_units)],
            timed: true,
            hears_reads,
            known: vec![UNKNOWN; if hears_reads && !M::STORES { index(units) } else { 0 }],
            stats: DedupStats::default(),
        })
    }

    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.timed = timed;
        self.busy.fill(Nanos::ZERO);
    }

    /// When so many pages that arrive at `ready` are hashed.
    fn hash_at(&mut self, ready: Nanos, pages: u64) -> Nanos {
        if !self.timed {
            return ready;
        }
        let time = Nanos::new(self.hash_time.get() * pages);
        self.stats.hashed_pages += pages;
        self.stats.busy += time;
        match self.busy.iter_mut().min() {
            Some(free) => {
                *free = ready.max(*free) + time;
                *free
            }
            None => ready + time,
        }
    }

    /// When a read that flash answered at `done` is answered: its pages queue for the hash units, but
    /// it waits only for those ahead of the backlog.
    pub(crate) fn hash_read_at(&mut self, done: Nanos, pages: u64) -> Nanos {
        let backlog = Nanos::new(self.hash_time.get() * (READ_BACKLOG + pages));
        done.max(self.hash_at(done, pages).saturating_sub(backlog))
    }

    /// The fingerprint of a unit: of its bytes where they are stored, else of what is said about its
    /// content. None of what has to stay alone on its page.
    fn fingerprint(&self, data: &[u8], content: u128) -> Option<Fingerprint> {
        if !data.is_empty() {
            return (!has_superblock(data)).then(|| self.hasher.of(data));
        }
        (content != UNKNOWN).then(|| Fingerprint::new(content))
    }

    /// The fingerprint of a unit that was read: of its bytes, or of what is known to be in it.
    pub(crate) fn fingerprint_of_read(&self, lpn: Lpn, data: &[u8]) -> Option<Fingerprint> {
        self.fingerprint(data, self.known.get(lpn.index()).copied().unwrap_or(UNKNOWN))
    }

    /// What is in units without bytes changed. Units that are not stored are never asked for theirs.
    pub(crate) fn set_known(&mut self, first: Lpn, count: u32, content: u128) {
        let units = first.index()..first.index() + index(count);
        if let Some(units) = self.known.get_mut(units) {
            units.fill(content);
        }
    }
}

/// One unit on its way to the FTL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit<'a> {
    pub(crate) lpn: Lpn,
    /// 4 KiB pages of it that the host wrote.
    pub(crate) pages: u64,
    pub(crate) stream: u32,
    /// Empty where no bytes are stored.
    pub(crate) data: &'a [u8],
    /// What is in it where no bytes are stored.
    pub(crate) content: u128,
}

impl Unit<'_> {
    /// Whether it is all zeroes, as far as anything is known of it.
    fn is_zero(&self) -> bool {
        match self.data {
            [] => self.content == ZEROES,
            data => is_zero(data),
        }
    }
}

/// Whether all bytes are zero. A chunk at a time: most contents end it at the first.
fn is_zero(data: &[u8]) -> bool {
    const CHUNK: usize = 64;
    data.chunks(CHUNK).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Writes one unit to the FTL, unmapped or deduplicated if the device does that.
#[inline]
pub(crate) fn store<M: Media>(
    ftl: &mut Ftl<M>,
    dedup: Option<&mut Dedup>,
    unmap_zeroes: bool,
    at: At,
    unit: Unit<'_>,
) -> Result<Grant, FtlError> {
    if unmap_zeroes && unit.is_zero() {
        let done = ftl.write_zeroes(at, unit.lpn)?;
        return Ok(Grant { done, delay: Delay::None });
    }
    let Unit { lpn, pages, stream, data, content } = unit;
    let Some(dedup) = dedup else { return ftl.write(at, lpn, pages, stream, data) };
    let hashed = ftl.nand().geometry().pages_per_unit();
    let at = At { ready: dedup.hash_at(at.ready, hashed), ..at };
    let verify = !dedup.hasher.kind().strong();
    let written = match dedup.fingerprint(data, content) {
        Some(print) => {
            ftl.write_content(at, lpn, pages, stream, data, print, verify).map(|done| done.0)
        }
        None => ftl.write(at, lpn, pages, stream, data),
    };
    dedup.set_known(lpn, 1, if written.is_ok() { content } else { UNKNOWN });
    written
}

/// The content of a unit made of these pages; unknown if that of one of them is, and zeroes if all are.
pub(crate) fn content_of_unit(pages: &[u128]) -> u128 {
    match pages {
        [] => UNKNOWN,
        [page] => *page,
        pages if pages.contains(&UNKNOWN) => UNKNOWN,
        pages if pages.iter().all(|page| *page == ZEROES) => ZEROES,
        // FNV-1a over whole contents: one unit is as good as another for a model.
        pages => pages.iter().fold(u128::from(u64_from(pages.len())), |sum, page| {
            (sum.rotate_left(64) ^ page).wrapping_mul(0x0100_0000_0000_0000_0000_013B)
        }),
    }
}

#[cfg(test)]
mod tests {
    use onefold_ftl::{FtlConfig, RemapConfig};
    use onefold_nand::NullMedia;
    use onefold_units::{Nanos, Op};

    use super::content_of_unit;
    use crate::{Command, DedupConfig, HashKind, Payload, Ssd, SsdConfig, example_config};

    fn device(dedup: DedupConfig) -> Ssd<NullMedia> {
        let mut config = example_config();
        let scheme = onefold_ftl::RemapScheme::Opt;
        let remap = RemapConfig { scheme, log_bytes: 1 << 20, ..RemapConfig::OFF };
        config.ftl = FtlConfig { remap, fingerprints: 1000, ..config.ftl };
        Ssd::new(SsdConfig { dedup, ..config }, NullMedia).unwrap()
    }

    fn write(ssd: &mut Ssd<NullMedia>, page: u64, contents: &[u128]) -> Nanos {
        let len = u64::try_from(contents.len()).unwrap() * 4096;
        let command = Command::new(Op::Write, page * 4096, len);
        ssd.submit(Nanos::ZERO, &command, Payload::Contents(contents)).unwrap().at
    }

    #[test]
    fn equal_contents_are_programmed_once_unknown_ones_always() {
        let mut ssd = device(DedupConfig::DEFAULT);
        write(&mut ssd, 0, &[7, 8, 7, 0, 0]);
        write(&mut ssd, 5, &[8]);
        assert_eq!(ssd.ftl().remap_stats().deduplicated, 2);
        assert_eq!(ssd.ftl().programs().total(), 4);
        assert_eq!(ssd.dedup_stats().hashed_pages, 6);
    }

    /// 32 us per page: three pages through one unit, two, and as many as there are pages. The third
    /// repeats the first, so that nothing but its hash takes time.
    #[test]
    fn pages_queue_for_the_units() {
        for (hash_units, us) in [(1, 96), (2, 64), (0, 32)] {
            let mut ssd = device(DedupConfig { hash_units, ..DedupConfig::DEFAULT });
            write(&mut ssd, 0, &[7, 8]);
            assert_eq!(write(&mut ssd, 2, &[7]), Nanos::new(us * 1000), "{hash_units}");
            assert_eq!(ssd.dedup_stats().busy, Nanos::new(96_000));
        }
    }

    /// XXH3 is not taken at its word: the page is read.
    #[test]
    fn a_weak_hash_is_verified() {
        let mut ssd = device(DedupConfig { hash: Some(HashKind::Xxh3), ..DedupConfig::DEFAULT });
        write(&mut ssd, 0, &[7]);
        write(&mut ssd, 1, &[7]);
        assert_eq!(ssd.ftl().stats().reads.total(), 1);
        let mut ssd = device(DedupConfig { hash: None, ..DedupConfig::DEFAULT });
        write(&mut ssd, 0, &[7]);
        write(&mut ssd, 1, &[7]);
        assert_eq!(ssd.ftl().programs().total(), 2, "without a hash nothing is found");
    }

    #[test]
    fn a_unit_is_known_if_all_its_pages_are() {
        assert_eq!(content_of_unit(&[5]), 5);
        assert_eq!(content_of_unit(&[5, 0]), 0);
        assert_ne!(content_of_unit(&[5, 6]), content_of_unit(&[6, 5]));
    }
}
