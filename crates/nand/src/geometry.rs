//! The shape of the flash array and how addresses map onto it.
//!
//! Terms. A *lane* is a place that takes part in a superblock: one plane of one die. The pages of a
//! superblock are numbered lane by lane, so that consecutive pages lie on consecutive channels. A
//! *unit* is what the FTL maps (the indirection unit); a *slot* is the room for one unit. A
//! *program* is the smallest amount written at once: a flash page, or a whole unit where the unit
//! is larger. A *pool* is a set of superblocks with free list, frontiers and collection of its own:
//! the device, or one die (`superblock = "die"`).

use onefold_units::{Divisor, PAGE_BYTES, Ppn, SuperblockId};

/// Which blocks form a superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// The same block offset on every plane of every die: one pool.
    Device,
    /// The same block offset on every plane of one die: one pool and write frontier per die.
    Die,
}

/// A geometry as configured, before its numbers were checked against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeometrySpec {
    /// Channels of the controller.
    pub channels: u32,
    /// Dies per channel.
    pub ways: u32,
    /// Planes per die.
    pub planes: u32,
    /// Blocks per plane.
    pub blocks: u32,
    /// Flash pages per block.
    pub pages: u32,
    /// Bytes of a flash page.
    pub page_bytes: u32,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// What a superblock spans.
    pub span: Span,
}

/// Why a geometry cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A dimension is zero or absurd.
    #[error("geometry.{key} is {value}, expected 1 to {max}")]
    Dimension {
        /// Configuration key.
        key: &'static str,
        /// What was found.
        value: u32,
        /// Largest accepted value.
        max: u32,
    },
    /// A size is not a power of two in range.
    #[error("{key} is {value} B, expected a power of two from 4096 to {max}")]
    Size {
        /// Configuration key.
        key: &'static str,
        /// What was found, in bytes.
        value: u32,
        /// Largest accepted value, in bytes.
        max: u32,
    },
    /// 32-bit slot addresses do not reach that far.
    #[error(
        "the flash array has {units} mapping units, expected at most {max}: use a coarser \
         ftl.indirection or fewer blocks"
    )]
    TooLarge {
        /// Mapping units of the array.
        units: u64,
        /// Largest accepted number.
        max: u64,
    },
    /// A superblock is too small to hold one unit, or to be collected.
    #[error(
        "a superblock holds {slots} mapping units, expected at least 2: use more pages per block \
         or a finer ftl.indirection"
    )]
    SmallSuperblock {
        /// Mapping units per superblock.
        slots: u64,
    },
}

/// A checked geometry with everything derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    spec: GeometrySpec,
    dies: u32,
    lanes: u32,
    pools: u32,
    superblocks: u32,
    slots: u32,
    slots_per_program: u32,
    pages_per_program: u32,
    slot_divisor: Divisor,
    lane_divisor: Divisor,
    pool_divisor: Divisor,
    channel_divisor: Divisor,
    die_divisor: Divisor,
    program_divisor: Divisor,
}

/// Where a flash page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLocation {
    /// Die, counted channel first: `die % channels` is its channel.
    pub die: u32,
    /// Plane on that die.
    pub plane: u32,
    /// Channel of the die.
    pub channel: u32,
    /// Page in the block.
    pub row: u32,
}

const MAX_UNITS: u64 = 0xFFFF_FF00;
const MAX_PAGE_BYTES: u32 = 65_536;

impl Geometry {
    /// Checks `spec`.
    ///
    /// # Errors
    /// Names the value that is out of range, or the limit that the whole array exceeds.
    pub fn new(spec: GeometrySpec) -> Result<Self, GeometryError> {
        for (key, value, max) in [
            ("channels", spec.channels, 1024),
            ("ways", spec.ways, 1024),
            ("planes", spec.planes, 64),
            ("blocks", spec.blocks, 1 << 24),
            ("pages", spec.pages, 1 << 20),
        ] {
            if value == 0 || value > max {
                return Err(GeometryError::Dimension { key, value, max });
            }
        }
        for (key, value) in
            [("geometry.page", spec.page_bytes), ("ftl.indirection", spec.unit_bytes)]
        {
            let in_range = (4096..=MAX_PAGE_BYTES).contains(&value);
            if !in_range || !value.is_power_of_two() {
                return Err(GeometryError::Size { key, value, max: MAX_PAGE_BYTES });
            }
        }
        Self::derive(spec)
    }

    fn derive(spec: GeometrySpec) -> Result<Self, GeometryError> {
        let dies = spec.channels * spec.ways;
        let (lanes, superblocks, pools) = match spec.span {
            Span::Device => (u64::from(dies) * u64::from(spec.planes), u64::from(spec.blocks), 1),
            Span::Die => {
                (u64::from(spec.planes), u64::from(spec.blocks) * u64::from(dies), u64::from(dies))
            }
        };
        let superblock_bytes = lanes * u64::from(spec.pages) * u64::from(spec.page_bytes);
        let slots = superblock_bytes / u64::from(spec.unit_bytes);
        let units = slots.saturating_mul(superblocks);
        if units > MAX_UNITS {
            return Err(GeometryError::TooLarge { units, max: MAX_UNITS });
        }
        let slots_per_program = (spec.page_bytes / spec.unit_bytes).max(1);
        let pages_per_program = (spec.unit_bytes / spec.page_bytes).max(1);
        if slots < 2 {
            return Err(GeometryError::SmallSuperblock { slots });
        }
        let narrow = onefold_units::convert::narrow;
        let divisor = |by: u32| {
            Divisor::new(by).ok_or(GeometryError::Dimension { key: "geometry", value: 0, max: 1 })
        };
        let (lanes, slots, pools) = (narrow(lanes), narrow(slots), narrow(pools));
        Ok(Self {
            spec,
            dies,
            lanes,
            pools,
            superblocks: narrow(superblocks),
            slots,
            slots_per_program,
            pages_per_program,
            slot_divisor: divisor(slots)?,
            lane_divisor: divisor(lanes)?,
            pool_divisor: divisor(pools)?,
            channel_divisor: divisor(spec.channels)?,
            die_divisor: divisor(dies)?,
            program_divisor: divisor(slots_per_program)?,
        })
    }

    /// The numbers this geometry was made from.
    #[must_use]
    pub const fn spec(&self) -> &GeometrySpec {
        &self.spec
    }

    /// Dies of the array.
    #[must_use]
    pub const fn dies(&self) -> u32 {
        self.dies
    }

    /// Lanes of a superblock.
    #[must_use]
    pub const fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Superblocks of the array.
    #[must_use]
    pub const fn superblocks(&self) -> u32 {
        self.superblocks
    }

    /// Pools; superblock `i` belongs to pool `i % pools`.
    #[must_use]
    pub const fn pools(&self) -> u32 {
        self.pools
    }

    /// Superblocks per pool.
    #[must_use]
    pub const fn superblocks_per_pool(&self) -> u32 {
        self.spec.blocks
    }

    /// Slots per superblock, metadata slots included.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Bytes of a superblock of every pool: data written one after the other fills these together, and dies together.
    #[must_use]
    pub fn superblock_row_bytes(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.pools) * u64::from(self.spec.unit_bytes)
    }

    /// Slots of the whole array.
    #[must_use]
    pub fn total_slots(&self) -> u64 {
        u64::from(self.slots) * u64::from(self.superblocks)
    }

    /// Slots written by one program; more than 1 where the flash page holds several units.
    #[must_use]
    pub const fn slots_per_program(&self) -> u32 {
        self.slots_per_program
    }

    /// Flash pages written by one program; more than 1 where the unit is larger than a page.
    #[must_use]
    pub const fn pages_per_program(&self) -> u32 {
        self.pages_per_program
    }

    /// Bytes of a mapping unit.
    #[must_use]
    pub const fn unit_bytes(&self) -> u32 {
        self.spec.unit_bytes
    }

    /// 4 KiB host pages per mapping unit.
    #[must_use]
    pub fn pages_per_unit(&self) -> u64 {
        u64::from(self.spec.unit_bytes) / PAGE_BYTES
    }

    /// Raw capacity in bytes.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.total_slots() * u64::from(self.spec.unit_bytes)
    }

    /// Divides by the number of pools.
    #[must_use]
    pub const fn pool_divisor(&self) -> Divisor {
        self.pool_divisor
    }

    /// Divides by the slots of a superblock.
    #[must_use]
    pub const fn slot_divisor(&self) -> Divisor {
        self.slot_divisor
    }

    /// The pool of a superblock.
    #[must_use]
    pub fn pool_of(&self, superblock: SuperblockId) -> u32 {
        self.pool_divisor.split(superblock.raw()).1
    }

    /// The pool of a superblock and its place in the pool.
    #[must_use]
    #[inline]
    pub fn pool_and_place(&self, superblock: SuperblockId) -> (u32, u32) {
        let (place, pool) = self.pool_divisor.split(superblock.raw());
        (pool, place)
    }

    /// The `at`-th superblock of a pool.
    #[must_use]
    pub const fn superblock_of_pool(&self, pool: u32, at: u32) -> SuperblockId {
        SuperblockId::new(at * self.pools + pool)
    }

    /// Superblock and slot of a physical address.
    #[must_use]
    #[inline]
    pub fn split(&self, ppn: Ppn) -> (SuperblockId, u32) {
        let (superblock, slot) = self.slot_divisor.split(ppn.raw());
        (SuperblockId::new(superblock), slot)
    }

    /// The physical address of a slot.
    #[must_use]
    #[inline]
    pub const fn ppn(&self, superblock: SuperblockId, slot: u32) -> Ppn {
        Ppn::new(superblock.raw() * self.slots + slot)
    }

    /// The program that holds a slot, and the slot's place in it.
    #[must_use]
    #[inline]
    pub fn program_of(&self, slot: u32) -> (u32, u32) {
        self.program_divisor.split(slot)
    }

    /// Where the `part`-th flash page of a program lies.
    #[must_use]
    #[inline]
    pub fn locate(&self, superblock: SuperblockId, program: u32, part: u32) -> PageLocation {
        let (row, lane) = self.lane_divisor.split(program * self.pages_per_program + part);
        PageLocation { row, ..self.lane(superblock, lane) }
    }

    /// Whether a part of a slot lies on a die.
    #[must_use]
    pub fn lies_on(&self, ppn: Ppn, die: u32) -> bool {
        let (superblock, slot) = self.split(ppn);
        let (program, _) = self.program_of(slot);
        let mut parts = 0..self.pages_per_program;
        parts.any(|part| self.locate(superblock, program, part).die == die)
    }

    /// Where the first page of a lane of a superblock lies.
    #[must_use]
    #[inline]
    pub fn lane(&self, superblock: SuperblockId, lane: u32) -> PageLocation {
        let (plane, die) = match self.spec.span {
            Span::Device => self.die_divisor.split(lane),
            Span::Die => (lane, self.pool_of(superblock)),
        };
        PageLocation { die, plane, channel: self.channel_of(die), row: 0 }
    }

    /// The channel of a die.
    #[must_use]
    #[inline]
    pub fn channel_of(&self, die: u32) -> u32 {
        self.channel_divisor.split(die).1
    }
}
