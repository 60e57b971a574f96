//! Counts, sizes and times.

use crate::PAGE_BYTES;

/// A size or offset in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// A count of 4 KiB host pages ([`PAGE_BYTES`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pages(u64);

/// A point in time or a duration, in nanoseconds. The core's only time type; where zero lies is up
/// to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(u64);

macro_rules! quantity {
    ($name:ident) => {
        impl $name {
            /// None of it.
            pub const ZERO: Self = Self(0);

            /// The quantity `raw`.
            #[must_use]
            pub const fn new(raw: u64) -> Self {
                Self(raw)
            }

            /// The bare number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// Sum; `None` on overflow.
            #[must_use]
            pub fn checked_add(self, other: Self) -> Option<Self> {
                self.0.checked_add(other.0).map(Self)
            }

            /// Difference; zero where `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl std::ops::Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
    };
}

quantity!(Bytes);
quantity!(Pages);
quantity!(Nanos);

impl Bytes {
    /// The number of whole 4 KiB pages. `None` unless the size is a multiple: the caller has to
    /// say how to round.
    #[must_use]
    pub fn to_pages_exact(self) -> Option<Pages> {
        (self.0.is_multiple_of(PAGE_BYTES)).then_some(Pages(self.0 / PAGE_BYTES))
    }
}

impl Pages {
    /// The size of that many pages. `None` on overflow.
    #[must_use]
    pub fn to_bytes(self) -> Option<Bytes> {
        self.0.checked_mul(PAGE_BYTES).map(Bytes)
    }
}
