//! A disk after a power cut: what it reads as, and what is written to it afterwards, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use onefold_device::{BlockDevice, Due, Extent};
use onefold_units::Status;
use onefold_units::convert::{index64, u64_from};

use crate::CrashError;
use crate::contents::chosen;
use crate::log::Log;
use crate::state::State;

/// Bytes that are zeroed in one step.
const ZEROES_AT_ONCE: u64 = 1 << 20;

/// A disk in a crash state. What is written to it is kept in memory and gone with it.
#[derive(Debug)]
pub struct Disk {
    log: Arc<Log>,
    state: State,
    written: Mutex<BTreeMap<u64, Box<[u8]>>>,
}

impl Disk {
    /// The disk of a state.
    #[must_use]
    pub fn new(log: Arc<Log>, state: &State) -> Self {
        Self { log, state: state.clone(), written: Mutex::default() }
    }

    /// Fills `bytes` from `offset` on; both are multiples of a unit.
    ///
    /// # Errors
    /// The log or the disk before cannot be read.
    pub fn read_units(&self, offset: u64, bytes: &mut [u8]) -> Result<(), CrashError> {
        let unit = self.log.unit_bytes();
        self.log.read_base(offset, bytes)?;
        let units = offset / unit..(offset + u64_from(bytes.len())) / unit;
        let place = |number: u64| {
            let start = index64(number * unit - offset);
            start..start + index64(unit)
        };
        for number in self.log.touched(units.clone()) {
            if let Some(version) = chosen(&self.log, &self.state, number) {
                self.log.read(self.log.versions()[version], &mut bytes[place(number)])?;
            }
        }
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, content) in written.range(units) {
            bytes[place(*number)].copy_from_slice(content);
        }
        Ok(())
    }

    /// Keeps `bytes`, whose place is a multiple of a unit, in memory.
    fn write_units(&self, offset: u64, bytes: &[u8]) {
        let unit = self.log.unit_bytes();
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, content) in (offset / unit..).zip(bytes.chunks(index64(unit))) {
            written.insert(number, content.into());
        }
    }

    /// The units around a range, with their content.
    fn around(&self, offset: u64, len: u64) -> Result<(u64, Vec<u8>), Status> {
        let unit = self.log.unit_bytes();
        let end = offset.checked_add(len).filter(|end| *end <= self.log.size());
        let end = end.ok_or(Status::InvalidField)?;
        let (start, end) = (offset / unit * unit, end.div_ceil(unit) * unit);
        let mut bytes = vec![0; index64(end - start)];
        self.read_units(start, &mut bytes).map_err(|_| Status::MediaError)?;
        Ok((start, bytes))
    }

    fn change(&self, offset: u64, len: u64, change: impl FnOnce(&mut [u8])) -> Result<Due, Status> {
        let (start, mut bytes) = self.around(offset, len)?;
        let from = index64(offset - start);
        change(&mut bytes[from..from + index64(len)]);
        self.write_units(start, &bytes);
        Ok(None)
    }
}

impl BlockDevice for Disk {
    fn size(&self) -> u64 {
        self.log.size()
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        let (start, bytes) = self.around(offset, u64_from(buf.len()))?;
        let from = index64(offset - start);
        buf.copy_from_slice(&bytes[from..from + buf.len()]);
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, Status> {
        self.change(offset, u64_from(data.len()), |bytes| bytes.copy_from_slice(data))
    }

    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.write_zeroes(offset, len, true, false)
    }

    fn write_zeroes(&self, offset: u64, len: u64, _: bool, _: bool) -> Result<Due, Status> {
        // A discard of a whole disk needs no memory for all of it at once.
        let end = offset.checked_add(len).filter(|end| *end <= self.log.size());
        let end = end.ok_or(Status::InvalidField)?;
        let mut at = offset;
        while at < end {
            let part = (end - at).min(ZEROES_AT_ONCE);
            self.change(at, part, |bytes| bytes.fill(0))?;
            at += part;
        }
        Ok(None)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        let left = self.log.size().checked_sub(offset).filter(|left| *left > 0);
        let len = left.ok_or(Status::InvalidField)?.min(len.max(1));
        let unit = self.log.unit_bytes();
        let units = offset / unit..(offset + len).div_ceil(unit);
        let base = self.log.data_from(offset);
        let touched = self.log.touched(units.clone()).next();
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let written = written.range(units).next().map(|(unit, _)| *unit);
        let units =
            touched.into_iter().chain(written).map(|number| number * unit..(number + 1) * unit);
        // What begins first, or has begun.
        let first = units.chain(base).min_by_key(|range| range.start.max(offset));
        let mapped = first.as_ref().is_some_and(|range| range.start <= offset);
        let end = first.map_or(u64::MAX, |range| if mapped { range.end } else { range.start });
        Ok(Extent { len: len.min(end - offset), mapped })
    }
}
