//! Marks in a log of writes, and replaying one to a backing.

use std::ops::RangeInclusive;

use onefold_units::convert::{index64, u64_from};

use super::VolumeDevice;
use super::backing::VolumeBacking;
use super::error::VolumeError;
use crate::write_log::{Logged, WriteLogError, WriteLogReader};

/// Bytes that are in memory at a time.
const PIECE: usize = 1 << 20;

/// What a replay did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Entries.
    pub entries: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes that hold nothing any more.
    pub discarded: u64,
}

impl VolumeDevice {
    /// Marks what is in the log of writes now.
    ///
    /// # Errors
    /// None is kept, or the text is too long.
    pub fn mark(&self, text: &str) -> Result<(), VolumeError> {
        let log = self.driver.shared.backing.write_log().ok_or(WriteLogError::NotKept)?;
        Ok(log.mark(text)?)
    }
}

impl VolumeBacking {
    /// Does what the entries of a log with these numbers say, in their order. What was discarded reads as zeroes.
    ///
    /// # Errors
    /// One of them is damaged, not there, or about more than the backing has: then nothing was changed. Or the backing or the log failed
    /// meanwhile.
    pub fn replay(
        &self,
        log: &mut WriteLogReader,
        numbers: RangeInclusive<u64>,
    ) -> Result<Replayed, WriteLogError> {
        if self.as_zoned().is_some() {
            return Err(WriteLogError::Untold("zones, so it cannot be replayed to them"));
        }
        if !numbers.is_empty() {
            log.expect_entry(*numbers.end())?;
        }
        let bytes = self.bytes();
        each(log, &numbers, |_, logged| {
            let (begin, end) = (logged.offset(), logged.offset() + logged.len());
            if end <= bytes {
                return Ok(());
            }
            Err(WriteLogError::Outside { number: logged.number, begin, end, bytes })
        })?;
        let mut done = Replayed::default();
        each(log, &numbers, |log, logged| {
            done.entries += 1;
            if logged.entry.is_discard() {
                done.discarded += logged.len();
                return self.clear(logged.offset(), logged.len()).map_err(|_| failed(logged));
            }
            done.written += logged.len();
            self.copy(log, logged)
        })?;
        self.flush().map_err(|_| WriteLogError::Target { number: *numbers.end() })?;
        Ok(done)
    }

    fn copy(&self, log: &WriteLogReader, logged: &Logged) -> Result<(), WriteLogError> {
        let (mut at, mut left) = (0, logged.data_bytes());
        let mut piece = vec![0; index64(left.min(u64_from(PIECE)))];
        while left > 0 {
            let bytes = &mut piece[..index64(left.min(u64_from(PIECE)))];
            log.read_data(logged, at, bytes)?;
            self.put(logged.offset() + at, bytes).map_err(|_| failed(logged))?;
            at += u64_from(bytes.len());
            left -= u64_from(bytes.len());
        }
        Ok(())
    }
}

const fn failed(logged: &Logged) -> WriteLogError {
    WriteLogError::Target { number: logged.number }
}

/// Calls `what` for all entries with these numbers, in their order.
fn each(
    log: &mut WriteLogReader,
    numbers: &RangeInclusive<u64>,
    mut what: impl FnMut(&WriteLogReader, &Logged) -> Result<(), WriteLogError>,
) -> Result<(), WriteLogError> {
    log.rewind();
    while let Some(logged) = log.read_next()? {
        if numbers.contains(&logged.number) {
            what(log, &logged)?;
        }
        if logged.number >= *numbers.end() {
            break;
        }
    }
    Ok(())
}
