//! The requests of a pattern on a device.

use onefold_units::convert::{float, u64_from};
use onefold_units::{Nanos, Op, Rng};

use super::address::{Fit, Place, Placement, Size, threshold};
use super::choices::{Arrivals, Left, Ops, Sizes, stream};
use super::in_use::InUse;
use super::remaps::Remaps;
use super::spec::{Bound, Length, Pacing, PatternWorkload, RangeSpec};
use super::{RemapFrom, Request, WorkloadError};

/// Bits a trimming workload may keep: 4 GiB of memory, 128 TiB of 4 KiB units.
const MAX_TRIM_UNITS: u64 = 1 << 35;
/// Positions that fit the 53 bits of a draw.
const MAX_RANKED_UNITS: u64 = 1 << 52;

/// Produces the requests of a [`PatternWorkload`], in constant memory (one bit per unit of `align` if
/// there are trims). Batches and single requests can be mixed: the sequence is the same.
#[derive(Clone, Debug)]
pub struct PatternGenerator {
    place: Placement,
    state: State,
}

impl PatternWorkload {
    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<PatternGenerator, WorkloadError> {
        let seed = self.seed.unwrap_or(seed);
        let (start, fit) = self.fit(device_bytes)?;
        let too_many = |limit| WorkloadError::TooManyUnits { found: fit.starts, limit };
        let place = Placement::new(self, &fit, Rng::fork(seed, stream::SCATTER).next_u64())
            .ok_or_else(|| too_many(MAX_RANKED_UNITS))?;
        let trims = self.trim_share > 0.0;
        let unmaps = trims || self.remap.is_some_and(|remap| remap.move_share > 0.0);
        if unmaps && fit.length / fit.align > MAX_TRIM_UNITS {
            return Err(too_many(MAX_TRIM_UNITS));
        }
        let sizes = Sizes::new(self, &fit, seed);
        let ops = Ops::new(self, seed);
        let only = match &sizes {
            Sizes::Fixed(size) => Some(*size),
            Sizes::Weighted { .. } => None,
        };
        // Requests that all count towards the length can be counted instead of their bytes.
        let all_count = match self.length {
            _ if self.remap.is_some() => false,
            Length::DriveWrites(_) => matches!(ops, Ops::Always(_)),
            Length::Requests(_) | Length::Bytes(_) => !trims,
        };
        let countable = only.filter(|_| self.flush_every.is_none() && all_count);
        let decorated =
            trims || self.remap.is_some() || self.fua_share > 0.0 || self.flush_every.is_some();
        let closed = matches!(self.pacing, Pacing::Closed { .. });
        Ok(PatternGenerator {
            place,
            state: State {
                start,
                length: fit.length,
                align: fit.align,
                places: Rng::fork(seed, stream::PLACES),
                left: Left::new(self.length, fit.length, countable),
                plain: only.filter(|_| closed && !decorated),
                ops,
                sizes,
                fua: Rng::fork(seed, stream::FUA),
                fua_below: threshold(self.fua_share),
                flush_every: self.flush_every,
                unflushed: 0,
                arrivals: Arrivals::new(self.pacing, seed),
                trims: Rng::fork(seed, stream::TRIMS),
                remaps: Remaps::new(self.remap, &fit, seed),
                in_use: unmaps.then(|| InUse::new(fit.length / fit.align, !self.fresh)),
            },
        })
    }

    fn fit(&self, device: u64) -> Result<(u64, Fit), WorkloadError> {
        let align = u64::from(self.align);
        let (start, end) = self.range.resolve(device)?;
        let start = start.div_ceil(align).saturating_mul(align);
        let length = (end / align * align).saturating_sub(start);
        let bytes = || self.sizes.iter().map(|size| u64::from(size.bytes));
        let run = self.remap.map_or(0, |remap| u64::from(remap.run));
        let largest = bytes().max().unwrap_or(align).max(run);
        if length < largest {
            return Err(WorkloadError::RangeTooSmall { range: length, request: largest });
        }
        let smallest = bytes().min().unwrap_or(align);
        Ok((start, Fit { length, align, starts: (length - smallest) / align + 1 }))
    }
}

impl RangeSpec {
    /// First byte and first byte after the range on a device of so many bytes.
    pub(super) fn resolve(&self, device: u64) -> Result<(u64, u64), WorkloadError> {
        let (start, end) = (self.start.resolve(device), self.end.resolve(device));
        if end > device {
            return Err(WorkloadError::RangeBeyondDevice { end, device });
        }
        Ok((start, end))
    }
}

impl Bound {
    /// The bound in bytes of a device, or of the range for shares of that.
    pub(super) fn resolve(self, device: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Micropercent(millionths) => {
                let scaled = u128::from(device) * u128::from(millionths) / 100_000_000;
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        }
    }
}

impl PatternGenerator {
    /// First byte of the range on the device.
    #[must_use]
    pub const fn start_bytes(&self) -> u64 {
        self.state.start
    }

    /// Size of the range in bytes.
    #[must_use]
    pub const fn length_bytes(&self) -> u64 {
        self.state.length
    }

    /// Share of the units in use, as the trims see it. `None` for a workload without trims.
    #[must_use]
    pub fn in_use_share(&self) -> Option<f64> {
        let set = self.state.in_use.as_ref()?;
        Some(float(set.used()) / float(self.state.length / self.state.align))
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        let Self { place, state } = self;
        match place {
            Placement::Uniform(place) => state.fill(place, out),
            Placement::Sequential(place) => state.fill(place, out),
            Placement::Zipf(place) => state.fill(place, out),
            Placement::HotCold(place) => state.fill(place, out),
            Placement::Pareto(place) => state.fill(place, out),
            Placement::Gaussian(place) => state.fill(place, out),
        }
    }
}

/// Everything but the choice of addresses.
#[derive(Clone, Debug)]
struct State {
    start: u64,
    length: u64,
    align: u64,
    places: Rng,
    left: Left,
    /// The size, if address and operation are all there is to decide.
    plain: Option<Size>,
    ops: Ops,
    sizes: Sizes,
    fua: Rng,
    fua_below: u64,
    flush_every: Option<u64>,
    /// Writes since the last flush.
    unflushed: u64,
    arrivals: Arrivals,
    trims: Rng,
    remaps: Option<Remaps>,
    in_use: Option<InUse>,
}

impl State {
    fn fill<P: Place>(&mut self, place: &mut P, out: &mut [Request]) -> usize {
        if let (Some(size), Left::Requests(left)) = (self.plain, self.left) {
            let most = usize::try_from(left).map_or(out.len(), |left| out.len().min(left));
            let out = &mut out[..most];
            match &mut self.ops {
                Ops::Always(op) => {
                    let op = *op;
                    plain(&mut self.places, place, self.start, &size, out, || op);
                }
                Ops::Mixed { rng, read_below, .. } => {
                    // Without trims; a table, because the branch could not be predicted.
                    let below = *read_below;
                    let op = || [Op::Write, Op::Read][usize::from(rng.next_u64() < below)];
                    plain(&mut self.places, place, self.start, &size, out, op);
                }
            }
            self.left = Left::Requests(left - u64_from(most));
            return most;
        }
        let mut filled = 0;
        for request in out.iter_mut() {
            if self.left.is_over() {
                break;
            }
            *request = self.step(place);
            filled += 1;
        }
        filled
    }

    fn step<P: Place>(&mut self, place: &mut P) -> Request {
        let at = self.arrivals.next();
        if self.flush_every.is_some_and(|writes| self.unflushed >= writes) {
            self.unflushed = 0;
            self.left.count(Op::Flush, 0);
            return Request { at, ..Request::EMPTY };
        }
        if let Some(size) = self.remaps.as_mut().and_then(Remaps::next)
            && let Some(from) = self.source()
        {
            return self.remap(place, size, from, at);
        }
        let op = self.ops.next();
        let size = self.sizes.next();
        let (op, offset, len) = match op {
            Op::Trim => match self.trim(size) {
                Some((offset, len)) => (Op::Trim, offset, len),
                None => (Op::Write, place.offset(&mut self.places, &size), size.bytes),
            },
            op => (op, place.offset(&mut self.places, &size), size.bytes),
        };
        if op == Op::Write {
            self.unflushed += 1;
            self.mark(offset, len, true);
        }
        let fua = op == Op::Write && self.fua_below > 0 && self.fua.next_u64() < self.fua_below;
        self.left.count(op, len);
        Request { op, fua, len, offset: self.start + offset, at, ..Request::EMPTY }
    }

    /// Where a remap takes its data from. `None` if nothing is in use: another request takes its place.
    fn source(&mut self) -> Option<RemapFrom> {
        self.remaps.as_mut()?.source(self.in_use.as_ref())
    }

    fn remap<P: Place>(
        &mut self,
        place: &mut P,
        size: Size,
        from: RemapFrom,
        at: Option<Nanos>,
    ) -> Request {
        let offset = place.offset(&mut self.places, &size);
        if let (Some(set), Some(remaps)) = (&mut self.in_use, &self.remaps) {
            remaps.mark(set, offset, from);
        }
        self.left.count_other();
        let remap = Some(RemapFrom { offset: self.start + from.offset, ..from });
        let offset = self.start + offset;
        Request { op: Op::Write, len: size.bytes, offset, at, remap, ..Request::EMPTY }
    }

    /// Takes a unit out of use, with its followers up to the size. `None` if nothing is in use.
    fn trim(&mut self, size: Size) -> Option<(u64, u32)> {
        let unit = self.in_use.as_ref()?.choose(&mut self.trims)?;
        let offset = unit * self.align;
        let rest = u32::try_from(self.length - offset).unwrap_or(u32::MAX);
        let len = size.bytes.min(rest);
        self.mark(offset, len, false);
        Some((offset, len))
    }

    fn mark(&mut self, offset: u64, len: u32, used: bool) {
        if let Some(set) = &mut self.in_use {
            let end = (offset + u64::from(len)).div_ceil(self.align);
            set.set(offset / self.align, end, used);
        }
    }
}

/// Requests that differ in address and operation only.
#[inline]
fn plain<P: Place>(
    places: &mut Rng,
    place: &mut P,
    start: u64,
    size: &Size,
    out: &mut [Request],
    mut op: impl FnMut() -> Op,
) {
    // A local copy keeps the generator's state in a register.
    let mut rng = places.clone();
    for request in out {
        let offset = start + place.offset(&mut rng, size);
        *request = Request { op: op(), len: size.bytes, offset, ..Request::EMPTY };
    }
    *places = rng;
}
