//! The client's side of the NBD protocol, by hand: any bytes can be sent.

use std::io::{Read, Write};

pub(crate) const EXPORT_NAME: u32 = 1;
pub(crate) const LIST: u32 = 3;
pub(crate) const GO: u32 = 7;
pub(crate) const STRUCTURED: u32 = 8;
pub(crate) const SET_META: u32 = 10;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISC: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const ZEROES: u16 = 6;
pub(crate) const STATUS: u16 = 7;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const REQ_ONE: u16 = 8;
pub(crate) const FAST_ZERO: u16 = 16;

/// The client flags: fixed newstyle and no zeroes.
pub(crate) const CLIENT_FLAGS: [u8; 4] = [0, 0, 0, 3];

/// An option with its data.
pub(crate) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(number.to_be_bytes());
    bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
    bytes.extend(data);
    bytes
}

fn string(text: &[u8]) -> Vec<u8> {
    [&u32::try_from(text.len()).unwrap().to_be_bytes(), text].concat()
}

/// Data of INFO and GO.
pub(crate) fn info(name: &[u8], kinds: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend(u16::try_from(kinds.len()).unwrap().to_be_bytes());
    for kind in kinds {
        data.extend(kind.to_be_bytes());
    }
    data
}

/// Data of the two options about contexts.
pub(crate) fn contexts(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut data = string(name);
    data.extend(u32::try_from(queries.len()).unwrap().to_be_bytes());
    for query in queries {
        data.extend(string(query));
    }
    data
}

/// A request without payload.
pub(crate) fn request(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// A write with its payload.
pub(crate) fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let len = u32::try_from(data.len()).unwrap();
    [request(flags, WRITE, cookie, offset, len), data.to_vec()].concat()
}

/// Client flags and the options that lead to transmission.
pub(crate) fn handshake(structured: bool, allocation: bool) -> Vec<u8> {
    let mut bytes = CLIENT_FLAGS.to_vec();
    if structured {
        bytes.extend(option(STRUCTURED, &[]));
    }
    if allocation {
        bytes.extend(option(SET_META, &contexts(b"", &[b"base:allocation"])));
    }
    bytes.extend(option(GO, &info(b"", &[])));
    bytes
}

/// One reply of the server to an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) option: u32,
    pub(crate) kind: u32,
    pub(crate) data: Vec<u8>,
}

pub(crate) const ACK: u32 = 1;
pub(crate) const ERR_UNSUP: u32 = 0x8000_0001;
pub(crate) const ERR_POLICY: u32 = 0x8000_0002;
pub(crate) const ERR_INVALID: u32 = 0x8000_0003;
pub(crate) const ERR_UNKNOWN: u32 = 0x8000_0006;
pub(crate) const ERR_TOO_BIG: u32 = 0x8000_0009;

/// What came back for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) cookie: u64,
    pub(crate) error: u32,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) structured: bool,
}

/// One chunk of a structured reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Data { offset: u64, data: Vec<u8> },
    Hole { offset: u64, len: u32 },
    Status { context: u32, extents: Vec<(u32, u32)> },
    ErrorAt(u64),
}

impl Reply {
    /// The bytes of a read at `offset`, holes filled in.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0xee; len];
        for piece in &self.pieces {
            let (at, data) = match piece {
                Piece::Data { offset, data } => (offset, data.clone()),
                Piece::Hole { offset, len } => (offset, vec![0; *len as usize]),
                other => panic!("not a piece of a read: {other:?}"),
            };
            let at = usize::try_from(at - offset).unwrap();
            bytes[at..at + data.len()].copy_from_slice(&data);
        }
        bytes
    }
}

/// Reads big-endian fields from a stream; `None` at its end.
pub(crate) struct Source<R>(pub(crate) R);

impl<R: Read> Source<R> {
    fn bytes(&mut self, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).ok().map(|()| bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes(2).map(|b| u16::from_be_bytes(b.try_into().unwrap()))
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes(4).map(|b| u32::from_be_bytes(b.try_into().unwrap()))
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes(8).map(|b| u64::from_be_bytes(b.try_into().unwrap()))
    }

    /// Checks the greeting.
    pub(crate) fn greeting(&mut self) {
        assert_eq!(self.bytes(16).unwrap(), b"NBDMAGICIHAVEOPT");
        assert_eq!(self.u16(), Some(3));
    }

    pub(crate) fn answer(&mut self) -> Option<Answer> {
        assert_eq!(self.u64()?, 0x0003_e889_0455_65a9);
        let (option, kind, len) = (self.u32()?, self.u32()?, self.u32()?);
        Some(Answer { option, kind, data: self.bytes(len as usize)? })
    }

    /// All answers up to the last of an option.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(answer) = self.answer() {
            let last = answer.kind == ACK || answer.kind >= 1 << 31;
            answers.push(answer);
            if last {
                break;
            }
        }
        answers
    }

    /// A whole reply. `read` gives the length of the data of a simple reply to a read.
    pub(crate) fn reply(&mut self, read: impl Fn(u64) -> u32) -> Option<Reply> {
        match self.u32()? {
            0x6744_6698 => {
                let (error, cookie) = (self.u32()?, self.u64()?);
                let mut pieces = Vec::new();
                let len = read(cookie);
                if error == 0 && len > 0 {
                    // A simple reply does not say where its data belongs.
                    pieces.push(Piece::Data { offset: 0, data: self.bytes(len as usize)? });
                }
                Some(Reply { cookie, error, pieces, structured: false })
            }
            0x668e_33ef => self.chunks(),
            magic => panic!("reply magic {magic:x}"),
        }
    }

    fn chunks(&mut self) -> Option<Reply> {
        let mut reply = Reply { cookie: 0, error: 0, pieces: Vec::new(), structured: true };
        loop {
            let (flags, kind, cookie, len) = (self.u16()?, self.u16()?, self.u64()?, self.u32()?);
            assert!(reply.pieces.is_empty() || reply.cookie == cookie, "chunks are mixed");
            reply.cookie = cookie;
            match kind {
                0 => assert_eq!(len, 0),
                1 => {
                    assert!(len > 8, "an empty data chunk");
                    let (offset, data) = (self.u64()?, self.bytes(len as usize - 8)?);
                    reply.pieces.push(Piece::Data { offset, data });
                }
                2 => {
                    assert_eq!(len, 12);
                    reply.pieces.push(Piece::Hole { offset: self.u64()?, len: self.u32()? });
                }
                5 => {
                    let context = self.u32()?;
                    let count = (len - 4) / 8;
                    let extents = (0..count).map(|_| (self.u32().unwrap(), self.u32().unwrap()));
                    reply.pieces.push(Piece::Status { context, extents: extents.collect() });
                }
                0x8001 | 0x8002 => {
                    reply.error = self.u32()?;
                    let text = self.u16()?;
                    self.bytes(usize::from(text))?;
                    if kind == 0x8002 {
                        reply.pieces.push(Piece::ErrorAt(self.u64()?));
                    }
                }
                _ => panic!("chunk type {kind:x}"),
            }
            if flags & 1 != 0 {
                return Some(reply);
            }
            // Every further chunk starts with the same magic.
            assert_eq!(self.u32()?, 0x668e_33ef);
        }
    }
}

/// A connected client.
pub(crate) struct Client<S> {
    pub(crate) stream: Source<S>,
    pub(crate) size: u64,
    pub(crate) flags: u16,
}

impl<S: Read + Write> Client<S> {
    /// Goes through the handshake.
    pub(crate) fn new(stream: S, structured: bool, allocation: bool) -> Self {
        let mut client = Self { stream: Source(stream), size: 0, flags: 0 };
        client.stream.greeting();
        client.send(&handshake(structured, allocation));
        for _ in 0..u32::from(structured) + u32::from(allocation) {
            assert_eq!(client.stream.answers().last().unwrap().kind, ACK);
        }
        let answers = client.stream.answers();
        assert_eq!(answers.last().unwrap().kind, ACK);
        let export = &answers[0].data;
        client.size = u64::from_be_bytes(export[2..10].try_into().unwrap());
        client.flags = u16::from_be_bytes(export[10..12].try_into().unwrap());
        client
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.0.write_all(bytes).unwrap();
    }

    pub(crate) fn reply(&mut self) -> Option<Reply> {
        self.stream.reply(|_| 0)
    }

    /// Sends one request and takes its reply.
    pub(crate) fn ask(&mut self, request: &[u8]) -> Reply {
        self.send(request);
        self.reply().unwrap()
    }

    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Vec<u8> {
        let reply = self.ask(&request(0, READ, 99, offset, len));
        assert_eq!(reply.error, 0);
        reply.bytes(offset, len as usize)
    }
}
