//! The client's side of NBD, as far as judging a server's answers needs it, and a disk in memory.

use std::sync::Mutex;

use onefold_device::{BlockDevice, Due, Extent};
use onefold_serve::nbd::execute;
use onefold_serve::nbd::parse::{CloseReason, Export, Machine, Output, Step};
use onefold_units::Status;

/// Size of the served disk in bytes.
pub const DISK_BYTES: u64 = 64 << 10;

const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// What is served.
#[must_use]
pub fn export(read_only: bool) -> Export {
    Export { name: "disk".to_owned(), size: DISK_BYTES, read_only, control: 0 }
}

/// An option as a client sends it.
#[must_use]
pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).expect("short").to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A good handshake up to the transmission phase.
#[must_use]
pub fn handshake(structured: bool) -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    if structured {
        bytes.extend(option(8, &[]));
        // SET_META_CONTEXT: no export name, one query.
        let mut data = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 15];
        data.extend(b"base:allocation");
        bytes.extend(option(10, &data));
    }
    // GO: empty name, no information asked for.
    bytes.extend(option(7, &[0; 6]));
    bytes
}

/// What a connection led to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Everything the server sent.
    pub sent: Vec<u8>,
    /// Requests executed.
    pub executed: usize,
    /// Where the replies to requests begin in `sent`, if the handshake ended.
    pub replies_from: Option<usize>,
    /// Why the server wants to close, if it does.
    pub closed: Option<CloseReason>,
}

/// Feeds a connection `chunk` bytes at a time and executes its requests.
#[must_use]
pub fn converse(export: Export, input: &[u8], chunk: usize) -> Outcome {
    let disk = MemoryDisk::new();
    let mut out = Output::default();
    let mut machine = Machine::new(export, &mut out);
    let mut outcome = Outcome::default();
    let (mut from, mut to) = (0, 0);
    loop {
        let available = &input[from..to];
        match machine.step(available, &mut out) {
            Step::Need(bytes) => {
                assert!(bytes > available.len(), "needs {bytes} of {}", available.len());
                if to == input.len() {
                    break;
                }
                to = input.len().min(to + chunk.max(1));
            }
            Step::Consumed(bytes) => {
                assert!(0 < bytes && bytes <= available.len(), "{bytes} consumed");
                from += bytes;
            }
            Step::Negotiated(bytes) => {
                assert!(0 < bytes && bytes <= available.len(), "{bytes} consumed");
                from += bytes;
                outcome.replies_from = Some(out.len());
            }
            Step::Enter => machine.admit(Ok(())),
            Step::Execute { consumed, request, payload } => {
                let data = &available[payload];
                let style = machine.reply_style();
                let due = execute(&disk, style, &request, data, &mut out);
                assert_eq!(due, None);
                outcome.executed += 1;
                from += consumed;
            }
            Step::Disconnect => break,
            Step::Close(reason) => {
                outcome.closed = Some(reason);
                break;
            }
        }
    }
    outcome.sent = out.pending().to_vec();
    outcome
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (field, rest) = self.0.split_at_checked(count).expect("a reply is cut short");
        self.0 = rest;
        field
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().expect("eight bytes"))
    }
}

/// Checks greeting and option replies; returns how many options were answered for good. The answer
/// to EXPORT_NAME has no header, so that what follows `NBD_OPT_EXPORT_NAME` is not looked at.
#[must_use]
pub fn check_option_replies(sent: &[u8]) -> usize {
    let mut reader = Reader(sent);
    assert_eq!(reader.take(16), b"NBDMAGICIHAVEOPT");
    reader.take(2);
    let mut answered = 0;
    while reader.0.starts_with(&OPTION_REPLY.to_be_bytes()) {
        reader.u64();
        let _option = reader.u32();
        let kind = reader.u32();
        let len = reader.u32();
        assert!(len <= 65_536, "an option reply of {len} bytes");
        reader.take(usize::try_from(len).expect("64 bit"));
        // ACK and errors end an option, INFO, SERVER and META_CONTEXT do not.
        answered += usize::from(kind == 1 || kind >= 1 << 31);
    }
    answered
}

/// Checks replies to requests; returns the number of requests answered for good.
#[must_use]
pub fn check_replies(replies: &[u8], mut simple_read: impl FnMut(u64) -> usize) -> usize {
    let mut reader = Reader(replies);
    let mut answered = 0;
    while !reader.0.is_empty() {
        match reader.u32() {
            SIMPLE_REPLY => {
                let error = reader.u32();
                let cookie = reader.u64();
                // Only a reply without error to a read has data; its length is the request's.
                if error == 0 {
                    reader.take(simple_read(cookie));
                }
                answered += 1;
            }
            STRUCTURED_REPLY => {
                let flags_and_kind = reader.u32();
                reader.u64();
                let len = reader.u32();
                assert!(u64::from(len) <= DISK_BYTES + 8 * 4097, "a chunk of {len} bytes");
                reader.take(usize::try_from(len).expect("64 bit"));
                answered += usize::from(flags_and_kind >> 16 & 1 == 1);
            }
            magic => panic!("reply magic {magic:x}"),
        }
    }
    answered
}

/// A disk in memory. Odd pages count as mapped, so that replies have data and holes.
struct MemoryDisk(Mutex<Vec<u8>>);

impl MemoryDisk {
    fn new() -> Self {
        let size = usize::try_from(DISK_BYTES).expect("64 bit");
        Self(Mutex::new(vec![0; size]))
    }

    fn with<R>(
        &self,
        offset: u64,
        len: usize,
        act: impl FnOnce(&mut [u8]) -> R,
    ) -> Result<R, Status> {
        let mut bytes = self.0.lock().expect("one thread");
        let from = usize::try_from(offset).map_err(|_| Status::InvalidField)?;
        let to = from.checked_add(len).ok_or(Status::InvalidField)?;
        bytes.get_mut(from..to).map(act).ok_or(Status::InvalidField)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<Due, Status> {
        let len = usize::try_from(len).map_err(|_| Status::InvalidField)?;
        self.with(offset, len, |bytes| bytes.fill(0))?;
        Ok(None)
    }
}

impl BlockDevice for MemoryDisk {
    fn size(&self) -> u64 {
        DISK_BYTES
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<Due, Status> {
        self.with(offset, buf.len(), |bytes| buf.copy_from_slice(bytes))?;
        Ok(None)
    }

    fn write(&self, offset: u64, data: &[u8], _fua: bool) -> Result<Due, Status> {
        self.with(offset, data.len(), |bytes| bytes.copy_from_slice(data))?;
        Ok(None)
    }

    fn flush(&self) -> Result<Due, Status> {
        Ok(None)
    }

    fn trim(&self, offset: u64, len: u64) -> Result<Due, Status> {
        self.zero(offset, len)
    }

    fn write_zeroes(
        &self,
        offset: u64,
        len: u64,
        _may_unmap: bool,
        _fua: bool,
    ) -> Result<Due, Status> {
        self.zero(offset, len)
    }

    fn extent(&self, offset: u64, len: u64) -> Result<Extent, Status> {
        let left = 4096 - offset % 4096;
        Ok(Extent { len: left.min(len), mapped: offset / 4096 % 2 == 1 })
    }
}
