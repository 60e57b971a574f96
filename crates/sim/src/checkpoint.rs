//! The state of a run in a file, to go on from.
//!
//! | part | bytes |
//! |---|---|
//! | magic | `onefold-state-1` and a newline |
//! | blocks | number 8, length 4, bytes, CRC-32C of all before in the block 4 |
//! | end | a block of no bytes |
//!
//! Numbers are little-endian. The first block says in JSON which run it is; the others are the state, as one version of the program
//! keeps it ([`onefold_units::Keep`]). A state goes on only in that version, with the same configuration, seed and traces.

use std::io::{self, Read, Write};

use onefold_units::convert::index;
use onefold_units::{Keep, KeepError, Keeper};
use serde_json::{Value, json};

use crate::setup::Setup;

const MAGIC: &[u8; 16] = b"onefold-state-1\n";

/// Bytes of a block before its content.
const HEAD: usize = 12;

/// Most bytes of a block.
const BLOCK_MAX: usize = 16 << 20;

/// Where the state of a run is stored.
pub trait Store {
    /// Its name in messages.
    fn name(&self) -> String;

    /// What is stored, from its beginning; `None` if nothing is.
    ///
    /// # Errors
    /// It cannot be read.
    fn open(&self) -> io::Result<Option<Box<dyn Read>>>;

    /// Stores what `write` writes, in place of what is stored: all of it, or nothing where anything fails.
    ///
    /// # Errors
    /// It cannot be written.
    fn replace(&self, write: WriteState<'_>) -> io::Result<()>;
}

/// Writes the state of a run.
pub type WriteState<'a> = &'a mut dyn FnMut(&mut dyn Write) -> io::Result<()>;

/// Keeps the state of a run, and goes on from the one that is stored: see [`Control`](crate::Control).
///
/// The state is stored before the first request, when the run is interrupted, and now and then.
#[derive(Clone, Copy)]
pub struct Checkpoint<'a> {
    /// Where.
    pub store: &'a dyn Store,
    /// Requests from one to the next, in steps of 256; `None`: only when the run is interrupted.
    pub every: Option<u64>,
}

/// Why a run cannot be stopped and continued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The store failed.
    #[error("the state of the run cannot be {what} {name}: {source}")]
    Io {
        /// `read from` or `written to`.
        what: &'static str,
        /// The store.
        name: String,
        /// What happened.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{name} is no state of a run: name another file")]
    Foreign {
        /// The store.
        name: String,
    },
    /// It is not whole.
    #[error("{name} is damaged or cut off: remove it, and the run begins anew")]
    Damaged {
        /// The store.
        name: String,
    },
    /// It is of another run.
    #[error(
        "{name} is the state of another run, with {key} = {found}, and this one has {key} = {expected}: repeat that run to \
         go on, or remove the file to begin anew"
    )]
    Other {
        /// The store.
        name: String,
        /// What differs.
        key: String,
        /// Its value there.
        found: String,
        /// Its value here.
        expected: String,
    },
    /// The load gives fewer requests than were done.
    #[error("the load ends before the request that the run was stopped at: it is another load")]
    Load,
    /// What runs cannot be stopped.
    #[error(
        "a run on a volume, zones, [[stack]] or an image cannot be stopped and continued yet: only one new drive with a block namespace can"
    )]
    Unsupported,
    /// A policy cannot be stopped.
    #[error("this run cannot be stopped and continued: {0}")]
    Unkept(KeepError),
}

impl<'a> Checkpoint<'a> {
    /// The store for a run of traces with these digests, and what it holds of it.
    pub(crate) fn of(self, setup: &Setup, traces: &[&str]) -> Result<Kept<'a>, CheckpointError> {
        let identity = json!({
            "version": setup.program.version,
            "commit": setup.program.commit,
            "seed": setup.seed,
            "config": setup.config.to_json(),
            "trace_sha256": traces,
            "trace_options": format!("{:?}", setup.trace_options),
        });
        let mut kept = Kept { store: self.store, identity, found: None };
        if let Some(file) = kept.store.open().map_err(|source| kept.io("read from", source))? {
            kept.found = Some(kept.opened(file)?);
        }
        Ok(kept)
    }
}

/// The store for one run.
pub(crate) struct Kept<'a> {
    store: &'a dyn Store,
    identity: Value,
    /// The state that was found there, not read yet.
    found: Option<Blocks>,
}

impl Kept<'_> {
    /// Whether there is a state to go on from.
    pub(crate) const fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// The store in messages.
    pub(crate) fn name(&self) -> String {
        self.store.name()
    }

    fn io(&self, what: &'static str, source: io::Error) -> CheckpointError {
        CheckpointError::Io { what, name: self.store.name(), source }
    }

    fn damaged(&self) -> CheckpointError {
        CheckpointError::Damaged { name: self.store.name() }
    }

    /// What is stored, if it is of this run.
    fn opened(&self, mut file: Box<dyn Read>) -> Result<Blocks, CheckpointError> {
        let mut magic = [0; MAGIC.len()];
        match file.read_exact(&mut magic) {
            Ok(()) if magic == *MAGIC => {}
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                return Err(self.io("read from", error));
            }
            _ => return Err(CheckpointError::Foreign { name: self.store.name() }),
        }
        let mut blocks = Blocks { file, next: 0, ended: false, error: None };
        let head = blocks.next_block();
        let head = match (head, blocks.error.take()) {
            (Some(head), None) => head,
            (_, Some(error)) => return Err(self.io("read from", error)),
            (None, None) => return Err(self.damaged()),
        };
        let found: Value = serde_json::from_slice(&head).map_err(|_| self.damaged())?;
        match difference(&found, &self.identity) {
            None => Ok(blocks),
            Some((key, found, expected)) => {
                Err(CheckpointError::Other { name: self.store.name(), key, found, expected })
            }
        }
    }

    /// Puts the state that was found into what is built alike. Whether there was one.
    pub(crate) fn load(&mut self, state: &mut impl Keep) -> Result<bool, CheckpointError> {
        let Some(mut blocks) = self.found.take() else { return Ok(false) };
        let mut give = || blocks.next_block();
        let mut keeper = Keeper::reader(&mut give);
        state.keep(&mut keeper);
        let done = keeper.finish();
        match (done, blocks.error) {
            (_, Some(error)) => Err(self.io("read from", error)),
            (Ok(()), None) if blocks.ended => Ok(true),
            (Ok(()) | Err(KeepError::Damaged), None) => Err(self.damaged()),
            (Err(error), None) => Err(CheckpointError::Unkept(error)),
        }
    }

    /// Stores a state.
    pub(crate) fn save(&self, state: &mut impl Keep) -> Result<(), CheckpointError> {
        let mut unkept = None;
        let stored = self.store.replace(&mut |file: &mut dyn Write| {
            file.write_all(MAGIC)?;
            let mut frames = Frames { file, next: 0, frame: Vec::new(), done: Ok(()) };
            frames.add(self.identity.to_string().as_bytes());
            let mut take = |block: &[u8]| frames.add(block);
            let mut keeper = Keeper::writer(&mut take);
            state.keep(&mut keeper);
            if let Err(error) = keeper.finish() {
                unkept = Some(error);
                return Err(io::ErrorKind::Unsupported.into());
            }
            frames.end()
        });
        match unkept {
            Some(error) => Err(CheckpointError::Unkept(error)),
            None => stored.map_err(|source| self.io("written to", source)),
        }
    }
}

/// What differs first between two values: its name, and both.
fn difference(found: &Value, expected: &Value) -> Option<(String, String, String)> {
    let (Value::Object(left), Value::Object(right)) = (found, expected) else {
        let differs = found != expected;
        return differs.then(|| (String::new(), found.to_string(), expected.to_string()));
    };
    let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
    let null = Value::Null;
    keys.into_iter().find_map(|key| {
        let of = |object: &serde_json::Map<String, Value>| object.get(key).unwrap_or(&null).clone();
        let (path, found, expected) = difference(&of(left), &of(right))?;
        let path = if path.is_empty() { key.clone() } else { format!("{key}.{path}") };
        Some((path.strip_prefix("config.").unwrap_or(&path).to_owned(), found, expected))
    })
}

/// Writes blocks.
struct Frames<'a> {
    file: &'a mut dyn Write,
    /// Number of the next block.
    next: u64,
    frame: Vec<u8>,
    done: io::Result<()>,
}

impl Frames<'_> {
    /// Writes a block. One without bytes is left out, since it would be the end.
    fn add(&mut self, block: &[u8]) {
        if self.done.is_ok() && !block.is_empty() {
            self.done = self.write(block);
        }
    }

    fn write(&mut self, block: &[u8]) -> io::Result<()> {
        let len = u32::try_from(block.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        self.frame.clear();
        self.frame.extend_from_slice(&self.next.to_le_bytes());
        self.frame.extend_from_slice(&len.to_le_bytes());
        self.frame.extend_from_slice(block);
        let sum = onefold_format::checksum(&self.frame);
        self.frame.extend_from_slice(&sum.to_le_bytes());
        self.next += 1;
        self.file.write_all(&self.frame)
    }

    fn end(mut self) -> io::Result<()> {
        std::mem::replace(&mut self.done, Ok(()))?;
        self.write(&[])
    }
}

/// Reads blocks.
struct Blocks {
    file: Box<dyn Read>,
    /// Number of the next block.
    next: u64,
    /// The end was read, and nothing follows.
    ended: bool,
    /// Why the last one was not read, if reading failed.
    error: Option<io::Error>,
}

impl Blocks {
    /// The next block; `None` at the end, and of what is damaged.
    fn next_block(&mut self) -> Option<Vec<u8>> {
        match self.read() {
            Ok(block) => block,
            Err(error) => {
                if error.kind() != io::ErrorKind::UnexpectedEof {
                    self.error = Some(error);
                }
                None
            }
        }
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut frame = vec![0; HEAD];
        self.file.read_exact(&mut frame)?;
        let number = u64::from_le_bytes(frame[..8].try_into().unwrap_or_default());
        let len = index(u32::from_le_bytes(frame[8..HEAD].try_into().unwrap_or_default()));
        if number != self.next || len > BLOCK_MAX {
            return Ok(None);
        }
        self.next += 1;
        frame.resize(HEAD + len, 0);
        self.file.read_exact(&mut frame[HEAD..])?;
        let mut sum = [0; 4];
        self.file.read_exact(&mut sum)?;
        if onefold_format::checksum(&frame) != u32::from_le_bytes(sum) {
            return Ok(None);
        }
        if len > 0 {
            return Ok(Some(frame.split_off(HEAD)));
        }
        self.ended = self.file.read(&mut sum)? == 0;
        Ok(None)
    }
}
