//! The body of a checkpoint, a stream without gaps: seq 8 | next epoch 8 | next run 8 | next member 4 |
//! logical blocks 8 | then lists, each a number of items 4 and the items: counters of 8 B | members |
//! runs | log segments | open log segments | reserve of 4 B each.
//!
//! It has no checksum of its own: the root has it, and each block that holds a piece has one.

use onefold_units::{LogSegmentId, Seq};

use super::BlockError;
use super::fields::{Fields, LBA_LIMIT, put_count};
use super::member::Member;
use super::run_entry::RunEntry;
use super::segment::{OpenSegment, SegmentEntry};

/// Counters of a body at most.
pub const BODY_COUNTERS_MAX: usize = 64;

/// Members of a family at most: a run has a bit for each.
pub const MEMBERS_MAX: usize = 64;

/// The body of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The checkpoint has the effect of all batches up to this one.
    pub seq: Seq,
    /// Number of the next allocation of a log segment.
    pub next_epoch: u64,
    /// Number of the next run.
    pub next_run: u64,
    /// Number of the next member.
    pub next_member: u32,
    /// Exported blocks of 4 KiB, at most 2^40.
    pub logical_blocks: u64,
    /// Statistics over the volume's life, at most 64; the volume knows their order.
    pub counters: Vec<u64>,
    /// The live device, snapshots and clones.
    pub members: Vec<Member>,
    /// Delta runs.
    pub runs: Vec<RunEntry>,
    /// Every log segment, in order.
    pub segments: Vec<SegmentEntry>,
    /// Where streams write.
    pub open: Vec<OpenSegment>,
    /// The next log segments that streams may open, in order.
    pub reserve: Vec<LogSegmentId>,
}

impl Body {
    /// The bytes of the stream. Panics if a limit of a field is exceeded or an extent not valid.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if let Err(error) = self.check() {
            panic!("body: {error}");
        }
        let mut bytes = Vec::new();
        for word in [self.seq.raw(), self.next_epoch, self.next_run] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.next_member.to_le_bytes());
        bytes.extend(self.logical_blocks.to_le_bytes());
        put_list(&mut bytes, &self.counters, |word, bytes| bytes.extend(word.to_le_bytes()));
        put_list(&mut bytes, &self.members, Member::write);
        put_list(&mut bytes, &self.runs, RunEntry::write);
        put_list(&mut bytes, &self.segments, SegmentEntry::write);
        put_list(&mut bytes, &self.open, OpenSegment::write);
        put_list(&mut bytes, &self.reserve, |id, bytes| bytes.extend(id.raw().to_le_bytes()));
        bytes
    }

    /// Reads a stream whose checksum was compared with the root's. What it allocates is in proportion to
    /// `bytes`.
    ///
    /// # Errors
    /// [`BlockError::Malformed`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BlockError> {
        let mut fields = Fields::new(bytes);
        let body = Self::read(&mut fields)?;
        fields.end()?;
        body.check()?;
        Ok(body)
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        Ok(Self {
            seq: fields.seq()?,
            next_epoch: fields.u64()?,
            next_run: fields.u64()?,
            next_member: fields.u32()?,
            logical_blocks: fields.u64()?,
            counters: fields.counted_list(8, Fields::u64)?,
            members: fields.counted_list(Member::BYTES_MIN, Member::read)?,
            runs: fields.counted_list(RunEntry::BYTES_MIN, RunEntry::read)?,
            segments: fields.counted_list(SegmentEntry::BYTES, SegmentEntry::read)?,
            open: fields.counted_list(OpenSegment::BYTES, OpenSegment::read)?,
            reserve: fields.counted_list(4, |fields| fields.u32().map(LogSegmentId::new))?,
        })
    }

    fn check(&self) -> Result<(), BlockError> {
        if self.counters.len() > BODY_COUNTERS_MAX {
            return Err(BlockError::Malformed("the body has more than 64 counters"));
        }
        if self.members.len() > MEMBERS_MAX {
            return Err(BlockError::Malformed("the family has more than 64 members"));
        }
        if self.logical_blocks > LBA_LIMIT {
            return Err(BlockError::Malformed("there are more than 2^40 logical blocks"));
        }
        Ok(())
    }
}

fn put_list<T>(bytes: &mut Vec<u8>, items: &[T], put: impl Fn(&T, &mut Vec<u8>)) {
    put_count(bytes, items.len());
    for item in items {
        put(item, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::content;
    use super::{
        BODY_COUNTERS_MAX, Body, LBA_LIMIT, LogSegmentId, MEMBERS_MAX, Member, OpenSegment,
        RunEntry,
    };
    use super::{SegmentEntry, Seq};
    use crate::volume::{DirectoryPlace, Extent, SegmentState, VolumeName};
    use onefold_units::Location;
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    fn place(location: u32) -> DirectoryPlace {
        DirectoryPlace { location: Location::new(location), crc: 0xC1C0 }
    }

    fn member(id: u32) -> Member {
        Member {
            id,
            parent: 2,
            flags: 3,
            birth: 4,
            seq: Seq::new(5),
            epoch: 10,
            logical_blocks: 6,
            mapped: 7,
            name: VolumeName::new("daily").unwrap(),
            directory: vec![place(8), place(9)],
        }
    }

    fn body() -> Body {
        let extents = vec![Extent { location: Location::new(8), blocks: 9 }];
        let run = RunEntry {
            number: 1,
            members: 2,
            records: 3,
            counted: true,
            data_blocks: 5,
            index_blocks: 6,
            extents,
        };
        let state = SegmentState::Prefree;
        Body {
            seq: Seq::new(0x0101),
            next_epoch: 0x0202,
            next_run: 0x0303,
            next_member: 0x0404,
            logical_blocks: 0x0505,
            counters: vec![0x0606],
            members: vec![member(1)],
            runs: vec![run],
            segments: vec![SegmentEntry { state, stream: 4, live: 5, epoch: 6, doubtful: false }],
            open: vec![OpenSegment { stream: 7, segment: LogSegmentId::new(8), next: 9 }],
            reserve: vec![LogSegmentId::new(10), LogSegmentId::new(11)],
        }
    }

    /// The bytes of `body`, field by field.
    fn golden() -> Vec<Vec<u8>> {
        let word = |value: u64| value.to_le_bytes().to_vec();
        let half = |value: u32| value.to_le_bytes().to_vec();
        let halves = |values: &[u32]| values.iter().flat_map(|value| half(*value)).collect();
        let words = |values: &[u64]| values.iter().flat_map(|value| word(*value)).collect();
        let name = [&b"daily"[..], &[0; 27]].concat();
        vec![
            words(&[0x0101, 0x0202, 0x0303]),
            half(0x0404),
            word(0x0505),
            half(1),
            word(0x0606),
            halves(&[1, 1, 2, 3, 4]),
            words(&[5, 10, 6, 7]),
            name,
            halves(&[2, 8, 0xC1C0, 9, 0xC1C0]),
            half(1),
            word(1),
            word(2),
            word(3),
            vec![1],
            halves(&[5, 6, 1, 8, 9]),
            half(1),
            vec![3, 4, 0, 0],
            half(5),
            word(6),
            half(1),
            vec![7],
            halves(&[8, 9, 2, 10, 11]),
        ]
    }

    #[test]
    fn golden_there_and_back() {
        let bytes = body().encode();
        assert_eq!(bytes, golden().concat());
        assert_eq!(Body::decode(&bytes), Ok(body()));
        let empty = Body::default();
        assert_eq!(empty.encode().len(), 60);
        assert_eq!(Body::decode(&empty.encode()), Ok(empty));
    }

    #[test]
    fn a_stream_that_is_cut_or_too_long_is_refused() {
        let bytes = body().encode();
        for len in 0..bytes.len() {
            assert!(Body::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Body::decode(&longer).unwrap_err().to_string().contains("behind the last"));
    }

    /// Each count is compared with the bytes left before there is memory for it: 2^32 - 1 of anything
    /// would be more than this machine has.
    #[test]
    fn a_count_that_lies_is_refused() {
        // Field of `golden` and place in it where each count lies, and bytes of the smallest item.
        let counts = [
            (3, 0, 8),
            (5, 0, 84),
            (8, 0, 8),
            (9, 0, 37),
            (14, 8, 8),
            (15, 0, 16),
            (19, 0, 9),
            (21, 8, 4),
        ];
        for (field, at, bytes_min) in counts {
            let left = golden()[field..].concat().len() - at - 4;
            let fit = u32::try_from(left / bytes_min).unwrap();
            for count in [fit + 1, u32::MAX] {
                let mut fields = golden();
                fields[field][at..at + 4].copy_from_slice(&count.to_le_bytes());
                let error = Body::decode(&fields.concat()).unwrap_err().to_string();
                assert!(error.contains("longer than"), "{count} in field {field}: {error}");
            }
        }
    }

    #[test]
    fn the_smallest_items_have_the_bytes_that_counts_assume() {
        let (mut member_bytes, mut run_bytes) = (Vec::new(), Vec::new());
        Member { directory: Vec::new(), ..member(1) }.write(&mut member_bytes);
        RunEntry { extents: Vec::new(), ..body().runs[0].clone() }.write(&mut run_bytes);
        assert_eq!(member_bytes.len(), Member::BYTES_MIN);
        assert_eq!(run_bytes.len(), RunEntry::BYTES_MIN);
    }

    #[test]
    fn content_that_is_no_body_is_refused() {
        let refused = |field: usize, value: &[u8]| {
            let mut fields = golden();
            fields[field][..value.len()].copy_from_slice(value);
            Body::decode(&fields.concat()).unwrap_err().to_string()
        };
        assert!(refused(13, &[2]).contains("flag"));
        assert!(refused(16, &[6]).contains("state"));
        assert!(refused(7, b"\x07").contains("name"));
        assert!(
            refused(4 + 1, &[1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 1])
                .contains("birth")
        );
        let too_large = (LBA_LIMIT + 1).to_le_bytes();
        assert!(refused(2, &too_large).contains("logical blocks"));
        let member_too_large =
            [&5_u64.to_le_bytes()[..], &10_u64.to_le_bytes(), &too_large].concat();
        assert!(refused(6, &member_too_large).contains("a member has more"));

        let crowd = Body { members: vec![member(1); MEMBERS_MAX], ..body() };
        assert_eq!(Body::decode(&crowd.encode()), Ok(crowd.clone()));
        let mut bytes = crowd.encode();
        bytes[48] = 65;
        let mut one = Vec::new();
        member(1).write(&mut one);
        bytes.splice(52..52, one);
        assert!(Body::decode(&bytes).unwrap_err().to_string().contains("64 members"));

        let full = Body { counters: vec![1; BODY_COUNTERS_MAX], ..body() };
        let bytes = full.encode();
        assert_eq!(Body::decode(&bytes), Ok(full));
        let mut longer = bytes.clone();
        longer[36] = 65;
        longer.splice(40..40, [0; 8]);
        assert!(Body::decode(&longer).unwrap_err().to_string().contains("64 counters"));
    }

    #[test]
    #[should_panic(expected = "more than 64 counters")]
    fn a_body_that_could_not_be_read_is_not_written() {
        let _ = Body { counters: vec![1; BODY_COUNTERS_MAX + 1], ..body() }.encode();
    }

    #[test]
    fn every_state_has_its_code() {
        let states = [
            SegmentState::Free,
            SegmentState::Open,
            SegmentState::Closed,
            SegmentState::Prefree,
            SegmentState::Suspect,
            SegmentState::Fixed,
        ];
        for (code, state) in (0..).zip(states) {
            assert_eq!((state.code(), SegmentState::from_code(code)), (code, Some(state)));
        }
        assert_eq!(SegmentState::from_code(6), None);
    }

    fn any_body() -> impl Strategy<Value = Body> {
        let segment = (0..6_u8, any::<u8>(), any::<u32>(), any::<u64>()).prop_map(
            |(state, stream, live, epoch)| {
                let state = SegmentState::from_code(state).unwrap();
                SegmentEntry { state, stream, live, epoch, doubtful: live % 3 == 0 }
            },
        );
        let open = any::<(u8, u32, u32)>().prop_map(|(stream, segment, next)| {
            let segment = LogSegmentId::new(segment);
            OpenSegment { stream, segment, next }
        });
        let directory = vec(any::<u32>().prop_map(place), 0..20);
        let member = (any::<u32>(), directory)
            .prop_map(|(id, directory)| Member { directory, ..member(id) });
        let lists =
            (vec(member, 0..5), vec(segment, 0..50), vec(open, 0..9), vec(any::<u32>(), 0..64));
        (lists, vec(any::<u64>(), 0..64), 0..4_usize).prop_map(|(lists, counters, runs)| {
            let (members, segments, open, reserve) = lists;
            let reserve = reserve.into_iter().map(LogSegmentId::new).collect();
            let runs = vec![body().runs[0].clone(); runs];
            Body { counters, members, runs, segments, open, reserve, ..body() }
        })
    }

    proptest! {
        #[test]
        fn any_body_comes_back(body in any_body()) {
            prop_assert_eq!(Body::decode(&body.encode()), Ok(body));
        }

        #[test]
        fn any_bytes_are_a_body_or_refused(bytes in content(600), change in content(240)) {
            let mut patched = body().encode();
            for (byte, change) in patched.iter_mut().zip(&change) {
                *byte ^= change;
            }
            for bytes in [bytes, patched] {
                if let Ok(body) = Body::decode(&bytes) {
                    prop_assert!(body.segments.capacity() * SegmentEntry::BYTES <= bytes.len());
                    prop_assert_eq!(Body::decode(&body.encode()), Ok(body));
                }
            }
        }
    }
}
