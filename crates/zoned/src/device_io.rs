//! Requests to devices that are under way, and what is written there that no flush covers.

use std::collections::{BTreeMap, VecDeque};

use onefold_units::ZoneId;
use onefold_units::convert::index;

use crate::io::{Io, IoId, IoKind};

/// Why a request to a device was made.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// To fill bytes of a request of the host, from this block on.
    PartRead {
        part: u64,
        at: u32,
    },
    /// To store a part.
    PartWrite {
        part: u64,
    },
    /// To copy, for a worker.
    CopyRead(usize),
    CopyWrite(usize),
    /// To get on with a metadata flush.
    Flush,
    /// To free a zone.
    Reset(ZoneId),
}

/// A request under way.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) io: Io,
    pub(crate) purpose: Purpose,
    pub(crate) bytes: Vec<u8>,
    /// A flush that covers something.
    pub(crate) covers: bool,
}

/// All of them, by number.
#[derive(Debug)]
pub(crate) struct DeviceIo {
    under_way: BTreeMap<u32, Pending>,
    next: u32,
    /// Those that no device was given yet.
    out: VecDeque<IoId>,
    /// Devices with writes or resets that no flush covers.
    unflushed: Vec<bool>,
}

impl DeviceIo {
    /// None, on as many devices as there are flags.
    pub(crate) const fn new(unflushed: Vec<bool>) -> Self {
        Self { under_way: BTreeMap::new(), next: 0, out: VecDeque::new(), unflushed }
    }

    /// Asks a device for something: (device, first block, blocks).
    pub(crate) fn ask(
        &mut self,
        kind: IoKind,
        (device, at, blocks): (u32, u64, u32),
        purpose: Purpose,
        bytes: Vec<u8>,
    ) {
        let id = IoId(self.next);
        self.next = self.next.wrapping_add(1);
        let covers = kind == IoKind::Flush && std::mem::take(&mut self.unflushed[index(device)]);
        let io = Io { id, device, kind, at, blocks };
        self.under_way.insert(id.0, Pending { io, purpose, bytes, covers });
        self.out.push_back(id);
    }

    /// A request that failed is given to its device again.
    pub(crate) fn send_again(&mut self, id: IoId) {
        self.out.push_back(id);
    }

    /// The next request for a device.
    pub(crate) fn poll(&mut self) -> Option<Io> {
        let id = self.out.pop_front()?;
        Some(self.get(id).io)
    }

    pub(crate) fn get(&self, id: IoId) -> &Pending {
        self.under_way.get(&id.0).expect("a request that is under way")
    }

    pub(crate) fn bytes_mut(&mut self, id: IoId) -> &mut [u8] {
        &mut self.under_way.get_mut(&id.0).expect("a request that is under way").bytes
    }

    /// A request is over, done or not: what it wrote may be there.
    pub(crate) fn over(&mut self, id: IoId) -> Pending {
        let pending = self.under_way.remove(&id.0).expect("a request that is under way");
        if pending.changes() {
            self.unflushed[index(pending.io.device)] = true;
        }
        pending
    }

    /// Whether a device has something to make durable.
    pub(crate) fn is_unflushed(&self, device: usize) -> bool {
        self.unflushed[device]
    }

    /// Whether a device has something that a failed flush may have lost.
    pub(crate) fn may_lose(&self, device: u32) -> bool {
        let changes = |pending: &Pending| pending.io.device == device && pending.changes();
        self.unflushed[index(device)] || self.under_way.values().any(changes)
    }

    /// Whether a zone is being reset.
    pub(crate) fn is_resetting(&self) -> bool {
        self.under_way.values().any(|pending| matches!(pending.purpose, Purpose::Reset(_)))
    }

    /// No request is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way.is_empty()
    }
}

impl Pending {
    /// Whether it changes what is on its device.
    const fn changes(&self) -> bool {
        matches!(self.io.kind, IoKind::Write | IoKind::Reset)
    }
}
