//! Tapes: what they keep is what the device was asked, and one that is cut short is good up to its last whole entry.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use onefold_crash::{Disk, Event, Log, State};
use onefold_device::observed::Recorded;
use onefold_device::{BlockDevice, Due, Extent};
use onefold_try::explore::Promises;
use onefold_try::tape::{About, Line, Printed, STDOUT, Tape, keep, lines};
use onefold_units::{Rng, Status};

const SIZE: u64 = 64 << 10;

/// A disk in memory, of which the last byte cannot be written.
#[derive(Clone)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn with(&self, offset: u64, len: usize, run: impl FnOnce(&mut [u8])) -> Result<Due, Status> {
        let mut bytes = self.0.lock().unwrap();
        let offset = usize::try_from(offset).unwrap();
        run(bytes.get_mut(offset..offset + len).ok_or(Status::InvalidField)?);
        Ok(None)
    }
}

impl BlockDevice for Memory {
    fn size(&self) -> u64 {
        SIZE
    }
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.with(offset, buf.len(), |bytes| buf.copy_from_slice(bytes))
    }
    fn write(&self, offset: u64, data: &[u8], _: bool) -> Result<Due, Status> {
        if offset + data.len() as u64 == SIZE {
            return Err(Status::MediaError);
        }
        self.with(offset, data.len(), |bytes| bytes.copy_from_slice(data))
    }
    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }
    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.with(offset, usize::try_from(len).unwrap(), |bytes| bytes.fill(0))
    }
    fn write_zeroes(&self, offset: u64, len: u64, _: bool, _: bool) -> Result<Due, Status> {
        self.trim(offset, len)
    }
    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        Ok(Extent { len: len.min(SIZE - offset), mapped: true })
    }
}

/// What a disk holds, and what of it is durable.
struct Holds {
    all: Vec<u8>,
    durable: Vec<u8>,
}

/// The whole sectors around a range: they are durable together.
fn sectors(offset: u64, len: u64) -> Range<usize> {
    let end = (offset + len).div_ceil(512) * 512;
    usize::try_from(offset / 512 * 512).unwrap()..usize::try_from(end).unwrap()
}

/// Keeps a tape of requests at any alignment. Gives what the disk holds then.
fn tape(folder: &Path, requests: u64) -> Holds {
    let mut rng = Rng::new(requests);
    let before: Vec<u8> = (0..SIZE).map(|at| u8::try_from(at / 4096).unwrap()).collect();
    let mut durable = before.clone();
    let memory = Memory(Arc::new(Mutex::new(before)));
    let recorded =
        Recorded { device_bytes: SIZE, device_uuid: [0; 16], lba_bytes: 512, behind_loop: false };
    let (kept, observed) = keep(folder, memory.clone(), &recorded, About::new(SIZE, 0)).unwrap();
    for number in 0..requests {
        // Whole sectors go another way than parts of them.
        let unit = if rng.below(2) == 0 { 512 } else { 1 };
        let offset = rng.below(SIZE - 10_000) / unit * unit;
        let len = (1 + rng.below(9000)).next_multiple_of(unit);
        let fua = rng.below(4) == 0;
        let data = vec![u8::try_from(number % 251).unwrap() + 1; usize::try_from(len).unwrap()];
        let request = rng.below(8);
        match request {
            0 => observed.flush().map(drop).unwrap(),
            1 => observed.trim(offset, len).map(drop).unwrap(),
            2 => observed.write_zeroes(offset, len, true, fua).map(drop).unwrap(),
            // It fails, and so is not there.
            3 => assert!(observed.write(SIZE - len, &data, fua).is_err()),
            _ => observed.write(offset, &data, fua).map(drop).unwrap(),
        }
        let holds = memory.0.lock().unwrap();
        match request {
            0 => durable.copy_from_slice(&holds),
            1 | 3 => {}
            _ if fua => {
                let part = sectors(offset, len);
                durable[part.clone()].copy_from_slice(&holds[part]);
            }
            _ => {}
        }
    }
    observed.recorder().unwrap().finish().unwrap();
    observed.log().unwrap().finish().unwrap();
    kept.end().unwrap();
    let all = memory.0.lock().unwrap().clone();
    Holds { all, durable }
}

/// What the disk of a state reads as.
fn content(log: &Arc<Log>, name: &str) -> Vec<u8> {
    let state = State::parse(name, log).unwrap();
    let disk = Disk::new(Arc::clone(log), &state);
    let mut bytes = vec![0; usize::try_from(SIZE).unwrap()];
    disk.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn it_is_the_device_with_everything_there_and_with_what_is_durable() {
    for requests in 1..=100 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.tape");
        let holds = tape(&path, requests);
        let tape = Tape::open(&path).unwrap();
        assert!(tape.about().seconds.is_some());
        let log = Arc::new(tape.log().unwrap());
        let last = log.events().last().map_or(0, |event| event.entry);
        let all = content(&log, &format!("e{last}-all"));
        assert!(all == holds.all, "{requests} requests");
        let durable = content(&log, &format!("e{last}"));
        assert!(durable == holds.durable, "{requests} requests: what is durable");
        let before: Vec<u8> = (0..SIZE).map(|at| u8::try_from(at / 4096).unwrap()).collect();
        assert_eq!(content(&log, "e0"), before);
    }
}

#[test]
fn a_folder_that_is_there_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tape");
    tape(&path, 1);
    let recorded =
        Recorded { device_bytes: SIZE, device_uuid: [0; 16], lba_bytes: 512, behind_loop: false };
    let memory = Memory(Arc::default());
    let error = keep(&path, memory, &recorded, About::new(SIZE, 0)).err().unwrap().to_string();
    assert!(error.ends_with("exists; a tape is a new folder, and nothing was changed"), "{error}");
    let error = Tape::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is no tape"), "{error}");
    fs::write(path.join("tape.json"), "{}").unwrap();
    let error = Tape::open(&path).unwrap_err().to_string();
    assert!(error.contains("tape.json is damaged: missing field `schema`"), "{error}");
}

/// Cut at every byte the log opens with the entries that are whole, or is refused.
#[test]
fn a_log_cut_at_any_byte_is_good_up_to_its_last_whole_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tape");
    tape(&path, 12);
    let tape = Tape::open(&path).unwrap();
    // From when on something is durable, later entries say.
    let entries = |log: &Log| -> Vec<_> {
        let event = |event: &Event| (event.entry, event.what, event.offset, event.bytes);
        log.events().iter().map(event).collect()
    };
    let whole = entries(&tape.log().unwrap());
    let log = path.join("writes.log");
    let bytes = fs::read(&log).unwrap();
    let mut most = 0;
    for end in (0..bytes.len()).step_by(61) {
        fs::write(&log, &bytes[..end]).unwrap();
        match tape.log() {
            Ok(cut) => {
                assert!(end >= 28 && cut.is_cut_short());
                let events = entries(&cut);
                assert!(events.len() >= most, "more bytes, fewer entries");
                most = events.len();
                assert_eq!(events, whole[..most]);
            }
            Err(error) => assert!(end < 28, "{end}: {error}"),
        }
    }
    assert!(most >= 9, "{most}");
}

#[test]
fn lines_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(STDOUT);
    let mut printed = Printed::create(&path).unwrap();
    printed.keep(3, b"a\tb\n").unwrap();
    printed.keep(4, b"\xff").unwrap();
    let found = lines(&path).unwrap();
    let found: Vec<_> = found.iter().map(|line| (line.entry, line.text.as_str())).collect();
    assert_eq!(found, [(3, "a\tb"), (4, "\u{fffd}")]);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(lines(&path).unwrap().len(), 1, "the last line is not whole");
    fs::write(&path, "3\ta\nx\tb\n").unwrap();
    assert!(lines(&path).unwrap_err().to_string().starts_with("line 2 of "));
    assert!(lines(&folder.path().join("none")).unwrap().is_empty());
}

/// A line counts from the first flush after it, and all that was printed counts when the program has ended.
#[test]
fn a_promise_counts_from_the_next_flush_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.tape");
    let recorded =
        Recorded { device_bytes: SIZE, device_uuid: [0; 16], lba_bytes: 512, behind_loop: false };
    let memory = Memory(Arc::new(Mutex::new(vec![0; usize::try_from(SIZE).unwrap()])));
    let (kept, observed) = keep(&path, memory, &recorded, About::new(SIZE, 0)).unwrap();
    for _ in 0..2 {
        observed.write(0, &[1; 4096], false).unwrap();
        observed.write(4096, &[1; 4096], false).unwrap();
        observed.flush().unwrap();
    }
    observed.write(0, &[2; 4096], false).unwrap();
    observed.log().unwrap().finish().unwrap();
    observed.recorder().unwrap().finish().unwrap();
    let log = kept.end().unwrap().log().unwrap();
    let line = |entry, text: &str| Line { entry, text: text.to_owned() };
    let lines = [line(1, "early"), line(3, "second"), line(6, "late")];
    let count = |ended: Option<u64>| {
        let promises = Promises::new(&log, &lines, ended);
        (0..=7).map(|at| promises.at(at).0.len()).collect::<Vec<_>>()
    };
    assert_eq!(count(None), [0, 0, 0, 1, 1, 1, 2, 2]);
    assert_eq!(count(Some(7)), [0, 0, 0, 1, 1, 1, 2, 3]);
    assert_eq!(count(Some(4)), [0, 0, 0, 1, 2, 2, 3, 3], "it had ended before the last flush");
}
