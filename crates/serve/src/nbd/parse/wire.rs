//! Numbers of the NBD protocol. Source: the protocol document of the project Network Block Device.
//! Everything on the wire is big-endian.

/// First eight bytes a server sends: `NBDMAGIC`.
pub(crate) const GREETING: u64 = 0x4e42_444d_4147_4943;
/// `IHAVEOPT`: announces the fixed newstyle handshake and starts every option.
pub(crate) const OPTION: u64 = 0x4948_4156_454f_5054;
/// Starts every reply to an option.
pub(crate) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Starts every request.
pub(crate) const REQUEST: u32 = 0x2560_9513;
/// Starts a simple reply.
pub(crate) const SIMPLE_REPLY: u32 = 0x6744_6698;
/// Starts a chunk of a structured reply.
pub(crate) const STRUCTURED_REPLY: u32 = 0x668e_33ef;

/// Handshake flags, the same bits for server and client.
pub(crate) mod handshake {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1;
    pub(crate) const NO_ZEROES: u16 = 2;
}

/// Option numbers.
pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Replies to options.
pub(crate) mod answer {
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERR_UNSUP: u32 = 0x8000_0001;
    pub(crate) const ERR_POLICY: u32 = 0x8000_0002;
    pub(crate) const ERR_INVALID: u32 = 0x8000_0003;
    pub(crate) const ERR_UNKNOWN: u32 = 0x8000_0006;
    pub(crate) const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// Kinds of information in a reply to INFO and GO.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export.
pub(crate) mod export {
    pub(crate) const HAS_FLAGS: u16 = 0x001;
    pub(crate) const READ_ONLY: u16 = 0x002;
    pub(crate) const SEND_FLUSH: u16 = 0x004;
    pub(crate) const SEND_FUA: u16 = 0x008;
    pub(crate) const SEND_TRIM: u16 = 0x020;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 0x040;
    pub(crate) const SEND_DF: u16 = 0x080;
    pub(crate) const CAN_MULTI_CONN: u16 = 0x100;
    pub(crate) const SEND_FAST_ZERO: u16 = 0x800;
}

/// Request types.
pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Request flags.
pub(crate) mod flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 2;
    pub(crate) const DF: u16 = 4;
    pub(crate) const REQ_ONE: u16 = 8;
    pub(crate) const FAST_ZERO: u16 = 16;
}

/// Chunk flags and types of structured replies.
pub(crate) mod chunk {
    pub(crate) const DONE: u16 = 1;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const OFFSET_HOLE: u16 = 2;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = 0x8001;
    pub(crate) const ERROR_OFFSET: u16 = 0x8002;
}

/// `base:allocation`: the only metadata context, and its id on the wire.
pub(crate) const ALLOCATION: &[u8] = b"base:allocation";
/// Id of [`ALLOCATION`] in `BLOCK_STATUS` replies.
pub(crate) const ALLOCATION_ID: u32 = 1;
/// State of an unmapped extent: a hole (1) that reads as zeroes (2).
pub(crate) const STATE_HOLE_ZERO: u32 = 3;

/// Minimum block size told to clients. Smaller and unaligned requests are served all the same.
pub(crate) const MIN_BLOCK: u32 = 512;
/// Preferred block size.
pub(crate) const PREFERRED_BLOCK: u32 = 4096;
/// Largest payload of a READ or a WRITE, in bytes.
pub const MAX_PAYLOAD: u32 = 32 << 20;
/// Largest data of one option, in bytes.
pub(crate) const MAX_OPTION: u32 = 64 << 10;
/// Longest export name, in bytes.
pub(crate) const MAX_NAME: usize = 4096;
/// Bytes of a request before its payload.
pub const REQUEST_BYTES: usize = 28;
