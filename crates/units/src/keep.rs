//! The state of a simulation as bytes, to go on from later: see `docs/design.md` on runs that are stopped and continued.
//!
//! What goes on is built from its configuration first, and then takes its state in place. So a [`Keep`] says once which fields are
//! state, for writing and for reading, and the macros name every field: one that is added and forgotten here does not compile.
//!
//! The bytes are those of one version of the program. Whoever stores them says which, and guards them with checksums.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use crate::convert::{index64, u64_from};
use crate::{
    Bytes, Lba, Location, LogSegmentId, Lpn, Nanos, Pages, Ppn, Seq, SuperblockId, ZoneId,
};

/// Bytes that are handed on at once.
const BLOCK: usize = 1 << 16;

/// Elements for which room is made before any of them was read.
const TRUSTED: usize = 1 << 12;

/// State that is written and read.
pub trait Keep {
    /// Writes the state, or takes the one that was written: as `keeper` is doing.
    fn keep(&mut self, keeper: &mut Keeper<'_>);
}

/// Why state was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepError {
    /// What was read is no state of what it was read into.
    #[error("the state ends early, or is of something else")]
    Damaged,
    /// Something has a state that it does not keep.
    #[error("{0} does not keep its state")]
    Unkept(&'static str),
}

/// Takes a block of bytes.
pub type TakeBlock<'a> = &'a mut dyn FnMut(&[u8]);

/// Gives the next block of bytes; `None` at their end, or if they cannot be read.
pub type GiveBlock<'a> = &'a mut dyn FnMut() -> Option<Vec<u8>>;

enum Way<'a> {
    Out(TakeBlock<'a>),
    In(GiveBlock<'a>),
}

/// Writes state, or reads it. After an error it does nothing any more, and what it read is of no use.
pub struct Keeper<'a> {
    way: Way<'a>,
    /// The block that is filled or emptied.
    block: Vec<u8>,
    /// Where it is read.
    at: usize,
    error: Option<KeepError>,
}

impl<'a> Keeper<'a> {
    /// One that writes.
    pub fn writer(take: TakeBlock<'a>) -> Self {
        let block = Vec::with_capacity(BLOCK + 16);
        Self { way: Way::Out(take), block, at: 0, error: None }
    }

    /// One that reads.
    pub const fn reader(give: GiveBlock<'a>) -> Self {
        Self { way: Way::In(give), block: Vec::new(), at: 0, error: None }
    }

    /// Whether state is read.
    #[must_use]
    pub const fn reads(&self) -> bool {
        matches!(self.way, Way::In(_))
    }

    /// Writes what is left; or sees that nothing is.
    pub fn finish(mut self) -> Result<(), KeepError> {
        if self.error.is_none() {
            match &mut self.way {
                Way::Out(take) => take(&self.block),
                Way::In(give) => {
                    if self.at < self.block.len() || give().is_some() {
                        self.damaged();
                    }
                }
            }
        }
        self.error.map_or(Ok(()), Err)
    }

    /// What was read cannot be.
    #[cold]
    pub const fn damaged(&mut self) {
        self.fail(KeepError::Damaged);
    }

    /// Something has a state and cannot keep it.
    #[cold]
    pub const fn unkept(&mut self, what: &'static str) {
        self.fail(KeepError::Unkept(what));
    }

    /// For a policy that says nothing of its state: one without fields has none.
    pub fn stateless<T>(&mut self, _: &T) {
        if size_of::<T>() > 0 {
            self.unkept(std::any::type_name::<T>());
        }
    }

    const fn fail(&mut self, error: KeepError) {
        if self.error.is_none() {
            self.error = Some(error);
        }
    }

    #[inline]
    fn bytes<const N: usize>(&mut self, bytes: &mut [u8; N]) {
        match &mut self.way {
            Way::Out(take) => {
                self.block.extend_from_slice(bytes);
                if self.block.len() >= BLOCK {
                    take(&self.block);
                    self.block.clear();
                }
            }
            Way::In(_) => match self.block[self.at..].first_chunk::<N>() {
                Some(found) => {
                    *bytes = *found;
                    self.at += N;
                }
                None => self.over_the_end(bytes),
            },
        }
    }

    /// Bytes that are not all in this block.
    #[cold]
    fn over_the_end(&mut self, bytes: &mut [u8]) {
        bytes.fill(0);
        if self.error.is_some() {
            return;
        }
        for byte in bytes {
            while self.at == self.block.len() {
                let Way::In(give) = &mut self.way else { return };
                let Some(block) = give() else { return self.damaged() };
                (self.block, self.at) = (block, 0);
            }
            *byte = self.block[self.at];
            self.at += 1;
        }
    }

    /// A number of elements; 0 after an error.
    pub fn count(&mut self, count: usize) -> usize {
        let mut kept = u64_from(count);
        kept.keep(self);
        if self.error.is_some() { 0 } else { index64(kept) }
    }

    /// Elements that are there already, and as many as there were.
    pub fn each<'t, T: Keep + 't>(&mut self, all: impl IntoIterator<Item = &'t mut T>) {
        let mut count = 0;
        for one in all {
            one.keep(self);
            count += 1;
        }
        if self.count(count) != count {
            self.damaged();
        }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl Keep for $number {
            #[inline]
            fn keep(&mut self, keeper: &mut Keeper<'_>) {
                let mut bytes = self.to_le_bytes();
                keeper.bytes(&mut bytes);
                *self = Self::from_le_bytes(bytes);
            }
        })*
    };
}

numbers!(u8, u16, u32, u64, u128, i32, i64, f64);

impl Keep for usize {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut number = u64_from(*self);
        number.keep(keeper);
        *self = index64(number);
    }
}

impl Keep for bool {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut byte = u8::from(*self);
        byte.keep(keeper);
        *self = byte != 0;
        if byte > 1 {
            keeper.damaged();
        }
    }
}

macro_rules! newtypes {
    ($($name:ident $get:ident),*) => {
        $(impl Keep for $name {
            #[inline]
            fn keep(&mut self, keeper: &mut Keeper<'_>) {
                let mut raw = self.$get();
                raw.keep(keeper);
                *self = Self::new(raw);
            }
        })*
    };
}

newtypes!(
    Lpn raw, Ppn raw, SuperblockId raw, ZoneId raw, Lba raw, Location raw, LogSegmentId raw, Seq raw, Bytes get, Pages get, Nanos get
);

impl<T: Keep + Default> Keep for Option<T> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut is_some = self.is_some();
        is_some.keep(keeper);
        if keeper.reads() {
            *self = is_some.then(T::default);
        }
        if let Some(value) = self {
            value.keep(keeper);
        }
    }
}

impl<T: Keep + ?Sized> Keep for Box<T> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        (**self).keep(keeper);
    }
}

/// Of a length that does not change.
impl<T: Keep> Keep for [T] {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        keeper.each(self);
    }
}

impl<T: Keep, const N: usize> Keep for [T; N] {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        for one in self {
            one.keep(keeper);
        }
    }
}

macro_rules! lists {
    ($($list:ident $push:ident),*) => {
        $(impl<T: Keep + Default> Keep for $list<T> {
            fn keep(&mut self, keeper: &mut Keeper<'_>) {
                let count = keeper.count(self.len());
                if !keeper.reads() {
                    for one in self {
                        one.keep(keeper);
                    }
                    return;
                }
                self.clear();
                self.reserve(count.min(TRUSTED));
                for _ in 0..count {
                    let mut one = T::default();
                    one.keep(keeper);
                    if keeper.error.is_some() {
                        return;
                    }
                    self.$push(one);
                }
            }
        })*
    };
}

lists!(Vec push, VecDeque push_back);

impl<A: Keep, B: Keep> Keep for (A, B) {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        self.0.keep(keeper);
        self.1.keep(keeper);
    }
}

impl<T: Keep> Keep for std::cmp::Reverse<T> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        self.0.keep(keeper);
    }
}

impl<K: Keep + Default + Ord, V: Keep + Default> Keep for BTreeMap<K, V> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut list: Vec<(K, V)> = std::mem::take(self).into_iter().collect();
        list.keep(keeper);
        self.extend(list);
    }
}

impl<K: Keep + Default + Ord> Keep for BTreeSet<K> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let mut list: Vec<K> = std::mem::take(self).into_iter().collect();
        list.keep(keeper);
        self.extend(list);
    }
}

impl<T: Keep + Default + Ord> Keep for BinaryHeap<T> {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        // A heap made of the list of a heap is that list.
        let mut list = std::mem::take(self).into_vec();
        list.keep(keeper);
        *self = list.into();
    }
}

/// Implements [`Keep`] for a struct: `keep!(Name { state } each { lists } but { built })`, or `keep!(<T> Name<T> { .. } ..)`.
///
/// All fields have to be named. Those of `each` are lists, or options, whose elements are built and take their state in place; those
/// of `but` follow from the configuration.
///
/// ```compile_fail
/// struct Queue {
///     list: Vec<u64>,
///     forgotten: u64,
/// }
/// onefold_units::keep!(Queue { list });
/// ```
#[macro_export]
macro_rules! keep {
    (<$($generic:ident),*> $name:ty { $($fields:tt)* } $($rest:tt)*) => {
        impl<$($generic),*> $crate::Keep for $name {
            $crate::keep_fields!({ $($fields)* } $($rest)*);
        }
    };
    ($name:ident ( $($field:ident),* )) => {
        impl $crate::Keep for $name {
            fn keep(&mut self, keeper: &mut $crate::Keeper<'_>) {
                let Self($($field),*) = self;
                $($crate::Keep::keep($field, keeper);)*
            }
        }
    };
    ($name:ty { $($fields:tt)* } $($rest:tt)*) => {
        impl $crate::Keep for $name {
            $crate::keep_fields!({ $($fields)* } $($rest)*);
        }
    };
}

/// The method `keep` of [`keep!`] alone, for traits with such a method.
#[macro_export]
macro_rules! keep_fields {
    ({ $($kept:ident),* $(,)? } $(each { $($each:ident),* $(,)? })? $(but { $($built:ident),* $(,)? })?) => {
        fn keep(&mut self, keeper: &mut $crate::Keeper<'_>) {
            let Self { $($kept,)* $($($each,)*)? $($($built: _,)*)? } = self;
            $($crate::Keep::keep($kept, keeper);)*
            $($(keeper.each($each.iter_mut());)*)?
            let _ = keeper;
        }
    };
}

/// Implements [`Keep`] for an enum: `keep_enum!(Name { Unit, Struct { a, b }, Tuple(a) })`, with all variants.
#[macro_export]
macro_rules! keep_enum {
    ($name:ty { $($variant:ident $({ $($field:ident),* })? $(($($item:ident),*))?),* $(,)? }) => {
        impl $crate::Keep for $name {
            fn keep(&mut self, keeper: &mut $crate::Keeper<'_>) {
                let mut tag: u8 = 0;
                let is = [$(matches!(self, Self::$variant { .. })),*];
                for here in is {
                    if here {
                        break;
                    }
                    tag += 1;
                }
                $crate::Keep::keep(&mut tag, keeper);
                if keeper.reads() {
                    let mut left = tag;
                    let mut found = false;
                    $(
                        if left == 0 && !found {
                            found = true;
                            *self = Self::$variant $({ $($field: Default::default()),* })?
                                $(($({ let $item = Default::default(); $item }),*))?;
                        }
                        left = left.saturating_sub(1);
                    )*
                    let _ = left;
                    if !found {
                        keeper.damaged();
                    }
                }
                match self {
                    $(Self::$variant $({ $($field),* })? $(($($item),*))? => {
                        $($($crate::Keep::keep($field, keeper);)*)?
                        $($($crate::Keep::keep($item, keeper);)*)?
                    })*
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    enum Kind {
        #[default]
        Nothing,
        Range {
            first: u32,
            len: u64,
        },
        Number(f64),
    }

    keep_enum!(Kind { Nothing, Range { first, len }, Number(value) });

    #[derive(Clone, Debug, Default, PartialEq)]
    struct State {
        built: u8,
        wide: u128,
        list: Vec<(u32, Option<Nanos>)>,
        queue: VecDeque<Kind>,
        set: BTreeSet<u16>,
        places: Vec<Place>,
    }

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Place {
        of: u32,
        used: bool,
    }

    keep!(Place { used } but { of });
    keep!(State { wide, list, queue, set } each { places } but { built });

    /// With a set of so many.
    fn state_of(set: u16) -> State {
        State {
            built: 1,
            wide: 1 << 100,
            list: vec![(7, None), (8, Some(Nanos::new(9)))],
            queue: [Kind::Range { first: 3, len: 1 << 40 }, Kind::Nothing, Kind::Number(0.1)]
                .into(),
            set: (0..set).collect(),
            places: vec![Place { of: 1, used: true }, Place { of: 2, used: false }],
        }
    }

    fn state() -> State {
        state_of(20)
    }

    fn written(state: &mut State) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut take = |block: &[u8]| bytes.extend_from_slice(block);
        let mut keeper = Keeper::writer(&mut take);
        state.keep(&mut keeper);
        keeper.finish().unwrap();
        bytes
    }

    /// From blocks of so many bytes.
    fn read(into: &mut State, bytes: &[u8], block: usize) -> Result<(), KeepError> {
        let mut blocks = bytes.chunks(block);
        let mut give = || blocks.next().map(<[u8]>::to_vec);
        let mut keeper = Keeper::reader(&mut give);
        into.keep(&mut keeper);
        keeper.finish()
    }

    #[test]
    fn what_is_read_is_what_was_written_and_what_is_built_stays() {
        let bytes = written(&mut state_of(40_000));
        for block in [1, 7, 4096, 1 << 20] {
            let places = vec![Place { of: 5, used: false }, Place { of: 6, used: true }];
            let mut other = State { built: 3, list: vec![(1, None)], places, ..State::default() };
            read(&mut other, &bytes, block).unwrap();
            let places = vec![Place { of: 5, used: true }, Place { of: 6, used: false }];
            assert_eq!(other, State { built: 3, places, ..state_of(40_000) });
        }
    }

    #[test]
    fn what_is_too_short_too_long_or_of_something_else_is_refused() {
        let bytes = written(&mut state());
        for len in 0..bytes.len() {
            assert_eq!(read(&mut state(), &bytes[..len], 64), Err(KeepError::Damaged), "{len}");
        }
        assert_eq!(read(&mut state(), &[&bytes[..], &[0]].concat(), 64), Err(KeepError::Damaged));
        let mut other = State { places: vec![Place::default()], ..state() };
        assert_eq!(read(&mut other, &bytes, 64), Err(KeepError::Damaged));
        // No length makes room for what is not there.
        let huge = [&bytes[..16], &[0xff; 8][..]].concat();
        assert_eq!(read(&mut state(), &huge, 64), Err(KeepError::Damaged));
    }
}
