//! The evidence of append-only isolation without its buffer.

use onefold_units::{Lpn, Op};

use super::classify::Classifier;
use crate::{FtlView, PolicySpec, Req, Setup, Shape, Sizes};

/// Which parts of a device hold append-only data, by the large-append table of `aoi` (Jeong 2021, sec. IV-A).
///
/// A large write that does not continue the one before it is an update, and a chunk of 1 MiB that large writes rewrite from
/// end to end is append-only again: `aoi:reaccess=cursor,restart=on`. So nobody has to say what is mapped, and journals and files that
/// take the place of others are told without TRIM. Memory is a quarter of a byte for each MiB and 32 KiB.
#[derive(Clone, Debug)]
pub struct Appends(Classifier);

onefold_units::keep!(Appends(classifier));

impl Appends {
    /// A table for a device of `units` mapping units of `unit_bytes` B, of which nothing is known; `None` if no buffer could
    /// have entries of that size.
    #[must_use]
    pub fn new(units: u64, unit_bytes: u32) -> Option<Self> {
        let sizes = Sizes::of_one_die(unit_bytes, units * u64::from(unit_bytes));
        Some(Self(Classifier::new(&Setup {
            shape: Shape::new(unit_bytes.into(), true, &sizes).ok()?,
            parameters: PolicySpec::parse("aoi:reaccess=cursor,restart=on").ok()?.parameters(),
            device_entries: units,
            channels: 1,
            ways: 1,
        })))
    }

    /// Learns from a write or a TRIM; other requests tell nothing.
    pub fn request(&mut self, r: &Req) {
        match r.op {
            Op::Write | Op::WriteZeroes => {
                let large = self.0.is_large(r);
                for piece in self.0.pieces(r) {
                    self.0.write(&piece, large, &Unasked);
                }
            }
            Op::Trim => self.0.trim(r),
            Op::Read | Op::Flush => {}
        }
    }

    /// Whether a unit lies in a chunk of append-only data.
    #[inline]
    #[must_use]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.0.is_append_only(lpn.raw())
    }
}

/// With cursors nobody asks.
struct Unasked;

impl FtlView for Unasked {
    fn mapped(&self, _: Lpn) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::{Lpn, Op};

    use super::Appends;
    use crate::Req;

    /// Units of 4 KiB: 256 in a chunk.
    #[test]
    fn chunks_are_append_only_until_they_are_updated() {
        let mut appends = Appends::new(1 << 12, 4096).unwrap();
        let mut ask = |op, first, n, of| {
            appends.request(&Req::new(op, Lpn::new(first), n));
            appends.contains(Lpn::new(of))
        };
        assert!(!ask(Op::Read, 0, 256, 0), "reads tell nothing");
        assert!(!ask(Op::Write, 0, 2, 0), "a small write is no append");
        assert!(ask(Op::Write, 256, 128, 300));
        assert!(ask(Op::Write, 384, 128, 300), "it goes on");
        assert!(!ask(Op::Write, 300, 64, 300), "an update");
        assert!(!ask(Op::Write, 256, 128, 300), "half a rewrite");
        assert!(ask(Op::Write, 384, 128, 300), "rewritten from end to end");
        assert!(!ask(Op::Write, 290, 32, 300));
        assert!(!ask(Op::Trim, 256, 256, 300) && ask(Op::Write, 270, 64, 300), "as good as new");
        assert!(!ask(Op::Flush, 0, 0, 0) && !ask(Op::Write, 0, 1, 5000), "beyond the device");
    }

    #[test]
    fn no_buffer_has_such_units() {
        assert!(Appends::new(1 << 12, 100).is_none());
    }
}
