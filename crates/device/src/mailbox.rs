//! The host's side of the control mailbox: remaps and snapshots, whatever way leads to the device.
//!
//! ```
//! use onefold_device::mailbox::{Client, Mailbox, MailboxError, RemapFlags, VectorRange};
//!
//! /// Pages 100 to 199 are to hold what pages 0 to 99 hold.
//! fn clone_pages(device: impl Mailbox) -> Result<(), MailboxError> {
//!     let pages = [VectorRange { dst: 100, src: 0, len: 100 }];
//!     Client::new(device).remap(RemapFlags::COPY, None, &pages).map(drop)
//! }
//! ```

use std::io;

use onefold_format::{
    REMAP_BLOCK_BYTES, RemapBlockError, RemapReply, RemapVector, ReplyContent, SnapshotCommand,
};
pub use onefold_format::{
    RangeResult, RemapCaps, RemapFlags, SnapshotAction, SnapshotEntry, SnapshotName, SnapshotTable,
    VectorRange,
};
use onefold_units::Status;
use thiserror::Error;

use crate::ssd::{MailboxBlock, SsdDevice};

/// A way to the mailbox of a device.
pub trait Mailbox {
    /// Has a block executed and gives the reply.
    ///
    /// # Errors
    /// The way is broken: whether the command was executed is unknown. Refusals are replies.
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock>;
}

/// In the same process.
impl Mailbox for SsdDevice {
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock> {
        Ok(Self::exchange(self, block))
    }
}

impl<M: Mailbox + ?Sized> Mailbox for Box<M> {
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock> {
        (**self).exchange(block)
    }
}

/// Why a command has no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MailboxError {
    /// The way to the device is broken.
    #[error(
        "the mailbox of the device gave no answer: {0}; the command may have been executed, repeat it \
         with the same id"
    )]
    Io(#[from] io::Error),
    /// The command cannot be sent.
    #[error(transparent)]
    Command(RemapBlockError),
    /// The device cannot remember that it moved something.
    #[error(
        "the device copies what it is to remap, and cannot move: MOVE_ON_FLUSH can, and so can a device \
         with ftl.remap = \"ln\" or \"lh\""
    )]
    NoMove,
    /// What came back is no reply.
    #[error("the mailbox of the device gave no reply that this Onefold knows: {0}")]
    Reply(RemapBlockError),
    /// The reply belongs to another command.
    #[error("the mailbox gave the reply of another command; repeat this one with the same id")]
    Foreign,
    /// The device refused.
    #[error("{text}")]
    Refused {
        /// Which kind of refusal.
        status: Status,
        /// Why, in the words of the device.
        text: String,
    },
}

/// What became of a remap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remapped {
    /// The number of the command.
    pub cmd_id: u128,
    /// By range; none if the command had been done before.
    pub results: Vec<RangeResult>,
}

/// Sends commands and understands replies.
pub struct Client<M> {
    mailbox: M,
    caps: Option<RemapCaps>,
}

impl<M: Mailbox> Client<M> {
    /// A client that uses `mailbox`.
    pub const fn new(mailbox: M) -> Self {
        Self { mailbox, caps: None }
    }

    /// What the device can do.
    ///
    /// # Errors
    /// No reply, or none that makes sense.
    pub fn caps(&mut self) -> Result<RemapCaps, MailboxError> {
        if let Some(caps) = self.caps {
            return Ok(caps);
        }
        let reply = self.mailbox.exchange(&[0; REMAP_BLOCK_BYTES])?;
        match read(&reply, 0)?.content {
            ReplyContent::Caps(caps) => Ok(*self.caps.insert(caps)),
            ReplyContent::Results(_) | ReplyContent::Refusal(_) => Err(MailboxError::Foreign),
        }
    }

    /// Remaps ranges, given in units of 4 KiB. Without a number of its own, the command gets a random
    /// one if the device remembers numbers. The result is durable.
    ///
    /// # Errors
    /// Refused commands change nothing.
    pub fn remap(
        &mut self,
        flags: RemapFlags,
        cmd_id: Option<u128>,
        ranges: &[VectorRange],
    ) -> Result<Remapped, MailboxError> {
        let cmd_id = match cmd_id {
            Some(cmd_id) => cmd_id,
            None if self.caps()?.modes.contains(RemapFlags::ATOMIC) => random_id()?,
            // It would need a number, which the device cannot remember.
            None if flags.contains(RemapFlags::MOVE) => return Err(MailboxError::NoMove),
            None => 0,
        };
        let vector = RemapVector { flags, cmd_id, ranges: ranges.to_vec() };
        let block = vector.encode().map_err(MailboxError::Command)?;
        let reply = self.mailbox.exchange(&block)?;
        match read(&reply, cmd_id)?.content {
            ReplyContent::Results(results) => Ok(Remapped { cmd_id, results }),
            ReplyContent::Caps(_) | ReplyContent::Refusal(_) => Err(MailboxError::Foreign),
        }
    }

    /// Does something with snapshots, and gives the table as it is then.
    ///
    /// # Errors
    /// Refused commands change nothing.
    pub fn snapshot(&mut self, action: SnapshotAction) -> Result<SnapshotTable, MailboxError> {
        let cmd_id = random_id()?;
        let block = SnapshotCommand { action, cmd_id }.encode();
        let reply = self.mailbox.exchange(&block)?;
        if !SnapshotTable::is_one(&reply) {
            read(&reply, cmd_id)?;
            return Err(MailboxError::Foreign);
        }
        let table = SnapshotTable::decode(&reply).map_err(MailboxError::Reply)?;
        if table.cmd_id == cmd_id { Ok(table) } else { Err(MailboxError::Foreign) }
    }
}

/// A reply to the command `cmd_id` that is no refusal.
fn read(reply: &MailboxBlock, cmd_id: u128) -> Result<RemapReply, MailboxError> {
    let reply = RemapReply::decode(reply).map_err(MailboxError::Reply)?;
    if reply.cmd_id != cmd_id {
        return Err(MailboxError::Foreign);
    }
    match (reply.status, reply.content) {
        (status, ReplyContent::Refusal(text)) => Err(MailboxError::Refused { status, text }),
        (Status::Ok, content) => Ok(RemapReply { content, ..reply }),
        (status, _) => Err(MailboxError::Refused {
            status,
            text: format!("the device refused it, as {status}"),
        }),
    }
}

/// A number that no other command has. Zero means none.
fn random_id() -> io::Result<u128> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    Ok(u128::from_le_bytes(bytes).max(1))
}
