//! The label of a volume: head 48 | name 32 | compat 8 | `ro_compat` 8 | incompat 8 | logical blocks 8
//! | unit blocks 4 | log segment blocks 4 | mode 1 | devices 1 | over-provisioning 2 | 0 4 | four
//! devices of 40 B: uuid 16, role 1, 0 7, blocks 8, zone blocks 8 | 0 ...

use super::block::{BlockHead, HEAD_BYTES, behind_head};
use super::block::{open, seal};
use super::coded::coded;
use super::error::BlockError;
use super::fields::{Fields, LBA_LIMIT};
use super::kind::{BLOCK_BYTES, BlockKind};
use super::name::VolumeName;
use crate::bytes::Writer;
use onefold_units::convert::u64_from;

/// Devices of a volume at most.
pub const VOLUME_DEVICES_MAX: usize = 4;

/// Feature bits that an older Onefold may ignore. None is defined.
pub const COMPAT_KNOWN: u64 = 0;

/// Feature bits without which a volume can still be read. None is defined.
pub const RO_COMPAT_KNOWN: u64 = 0;

/// Blocks may be compressed, and lie in packs ([`super::Slot`]): locations have the slot in their highest bits.
pub const INCOMPAT_PACKED: u64 = 1;

/// What is compressed may be so by Zstandard; with [`INCOMPAT_PACKED`] only.
pub const INCOMPAT_ZSTD: u64 = 2;

/// Feature bits without which a volume cannot be opened.
pub const INCOMPAT_KNOWN: u64 = INCOMPAT_PACKED | INCOMPAT_ZSTD;

coded! {
    /// How a volume places and cleans, chosen at format (volume.md, section 2).
    VolumeMode {
        /// Log segments and a flat paged map.
        Log = 1,
        /// The layer of Sung 2022.
        Sung = 2,
        /// The layer of Han 2021.
        Han = 3,
    }
}

impl VolumeMode {
    /// Name in commands, configurations and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Sung => "sung",
            Self::Han => "han",
        }
    }
}

coded! {
    /// What a device of a volume is for.
    DeviceRole {
        /// The bulk of the data.
        Data = 0,
        /// The fast device of a pair.
        Fast = 1,
    }
}

/// A device of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeDevice {
    /// Its identity.
    pub uuid: [u8; 16],
    /// What it is for.
    pub role: DeviceRole,
    /// Its size in blocks of 4 KiB.
    pub blocks: u64,
    /// Size of a zone in blocks of 4 KiB; 0: not zoned.
    pub zone_blocks: u64,
}

/// Label of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeLabel {
    /// Identity of the volume.
    pub uuid: [u8; 16],
    /// Counts label writes; the newest copy wins.
    pub generation: u64,
    /// What its owner calls it.
    pub name: VolumeName,
    /// How it works.
    pub mode: VolumeMode,
    /// Features that may be ignored.
    pub compat: u64,
    /// Features that have to be known to write.
    pub ro_compat: u64,
    /// Features that have to be known to read.
    pub incompat: u64,
    /// Indirection unit of the backing in blocks of 4 KiB, at least 1.
    pub unit_blocks: u32,
    /// Log segment in blocks of 4 KiB: a multiple of the indirection unit.
    pub segment_blocks: u32,
    /// Exported blocks of 4 KiB, at most 2^40.
    pub logical_blocks: u64,
    /// OP in basis points of the log space, at most 10,000.
    pub op_basis_points: u16,
    /// One to four devices.
    pub devices: Vec<VolumeDevice>,
}

impl VolumeLabel {
    /// The bytes of the copy at `address`. Panics if [`check`](Self::check) refuses the label.
    #[must_use]
    pub fn encode(&self, address: u64) -> Box<[u8; BLOCK_BYTES]> {
        if let Err(error) = self.check() {
            panic!("label: {error}");
        }
        let mut block = Box::new([0; BLOCK_BYTES]);
        self.write(&mut Writer::new(&mut block[HEAD_BYTES..]));
        let (kind, uuid, generation) = (BlockKind::Label, self.uuid, self.generation);
        seal(&mut block[..], &BlockHead { kind, uuid, address, generation });
        block
    }

    /// Reads the copy at `address`.
    ///
    /// # Errors
    /// See [`BlockError`]; [`BlockError::Features`] if there are unknown `incompat` bits.
    pub fn decode(block: &[u8], address: u64) -> Result<Self, BlockError> {
        let head = open(block, BlockKind::Label, None, address)?;
        let label = Self::read(&head, &mut behind_head(block))?;
        label.check()?;
        Ok(label)
    }

    /// Whether this build must not write to the volume: it has features that it does not know.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.ro_compat & !RO_COMPAT_KNOWN != 0
    }

    /// Whether the label can stand on media.
    ///
    /// # Errors
    /// [`BlockError::Features`], or [`BlockError::Malformed`] with the rule that is broken.
    pub fn check(&self) -> Result<(), BlockError> {
        let unknown = self.incompat & !INCOMPAT_KNOWN;
        if unknown != 0 {
            return Err(BlockError::Features { unknown });
        }
        let whole_units = self.segment_blocks.checked_rem(self.unit_blocks) == Some(0);
        let devices = (1..=VOLUME_DEVICES_MAX).contains(&self.devices.len());
        let zoned = self.devices.iter().all(|device| device.zone_blocks <= device.blocks);
        let rules = [
            (whole_units, "the log segment is no multiple of the indirection unit"),
            (self.segment_blocks > 0, "the log segment has no block"),
            (self.logical_blocks <= LBA_LIMIT, "there are more than 2^40 logical blocks"),
            (self.op_basis_points <= 10_000, "the over-provisioning is above 100 %"),
            (devices, "the number of devices is not 1 to 4"),
            (zoned, "a zone is larger than its device"),
        ];
        let broken = rules.into_iter().find(|(kept, _)| !kept);
        broken.map_or(Ok(()), |(_, rule)| Err(BlockError::Malformed(rule)))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&self.name.to_bytes());
        for word in [self.compat, self.ro_compat, self.incompat, self.logical_blocks] {
            writer.uint(word, 8);
        }
        writer.uint(u64::from(self.unit_blocks), 4);
        writer.uint(u64::from(self.segment_blocks), 4);
        writer.uint(u64::from(self.mode.code()), 1);
        writer.uint(u64_from(self.devices.len()), 1);
        writer.uint(u64::from(self.op_basis_points), 2);
        writer.uint(0, 4);
        for device in &self.devices {
            device.write(writer);
        }
    }

    fn read(head: &BlockHead, fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let name = VolumeName::read(fields)?;
        let (compat, ro_compat, incompat) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let logical_blocks = fields.u64()?;
        let (unit_blocks, segment_blocks) = (fields.u32()?, fields.u32()?);
        let (mode, devices) = (fields.u8()?, usize::from(fields.u8()?));
        let op_basis_points = fields.u16()?;
        fields.skip(4)?;
        // Before the rest: what an unknown feature changed may look malformed.
        let unknown = incompat & !INCOMPAT_KNOWN;
        if unknown != 0 {
            return Err(BlockError::Features { unknown });
        }
        let mode = VolumeMode::from_code(mode);
        let mode = mode.ok_or(BlockError::Malformed("the mode of the volume is unknown"))?;
        let devices = fields.list(devices, VolumeDevice::BYTES, VolumeDevice::read)?;
        Ok(Self {
            uuid: head.uuid,
            generation: head.generation,
            name,
            mode,
            compat,
            ro_compat,
            incompat,
            unit_blocks,
            segment_blocks,
            logical_blocks,
            op_basis_points,
            devices,
        })
    }
}

impl VolumeDevice {
    const BYTES: usize = 40;

    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(&self.uuid);
        writer.uint(u64::from(self.role.code()), 1);
        writer.uint(0, 7);
        writer.uint(self.blocks, 8);
        writer.uint(self.zone_blocks, 8);
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, BlockError> {
        let (uuid, role) = (fields.array()?, DeviceRole::from_code(fields.u8()?));
        fields.skip(7)?;
        let role = role.ok_or(BlockError::Malformed("the role of a device is unknown"))?;
        Ok(Self { uuid, role, blocks: fields.u64()?, zone_blocks: fields.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        ADDRESS, UUID, assert_refuses_damage, content, forged, golden_head, lie,
    };
    use super::{
        BlockError, BlockKind, DeviceRole, LBA_LIMIT, VolumeDevice, VolumeLabel, VolumeMode,
        VolumeName,
    };
    use proptest::prelude::{prop_assert_eq, proptest};

    fn label() -> VolumeLabel {
        let bulk = VolumeDevice {
            uuid: [0xB0; 16],
            role: DeviceRole::Data,
            blocks: 0x0807_0605_0403_0201,
            zone_blocks: 0x1_0000,
        };
        let fast =
            VolumeDevice { uuid: [0xFA; 16], role: DeviceRole::Fast, blocks: 9, zone_blocks: 0 };
        VolumeLabel {
            uuid: UUID,
            generation: 3,
            name: VolumeName::new("vol0").unwrap(),
            mode: VolumeMode::Han,
            compat: 0x11,
            ro_compat: 0,
            incompat: 0,
            unit_blocks: 4,
            segment_blocks: 0x4000,
            logical_blocks: 0x00A0_B0C0,
            op_basis_points: 2000,
            devices: vec![bulk, fast],
        }
    }

    fn decode(block: &[u8]) -> Result<VolumeLabel, BlockError> {
        VolumeLabel::decode(block, ADDRESS)
    }

    #[test]
    fn golden_there_and_back() {
        let block = label().encode(ADDRESS);
        assert_eq!(block[..48], golden_head(&block[..], 1, 3));
        assert_eq!(block[48..54], *b"vol0\0\0");
        assert_eq!(block[80..90], [0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(block[104..112], [0xC0, 0xB0, 0xA0, 0, 0, 0, 0, 0]);
        assert_eq!(block[112..128], [4, 0, 0, 0, 0, 0x40, 0, 0, 3, 2, 0xD0, 7, 0, 0, 0, 0]);
        assert_eq!(block[128..144], [0xB0; 16]);
        assert_eq!(block[144..152], [0; 8]);
        assert_eq!(block[152..168], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(block[168..184], [0xFA; 16]);
        assert_eq!(block[184..194], [1, 0, 0, 0, 0, 0, 0, 0, 9, 0]);
        assert!(block[208..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&block[..]), Ok(label()));
        assert_refuses_damage(&block[..], decode);
    }

    #[test]
    fn four_devices_fit() {
        let four = VolumeLabel { devices: vec![label().devices[0]; 4], ..label() };
        assert_eq!(decode(&four.encode(ADDRESS)[..]), Ok(four));
    }

    #[test]
    fn unknown_features_are_named_before_anything_else() {
        let block = label().encode(ADDRESS);
        let mut newer = block.to_vec();
        newer[96] = 0x0C;
        newer[120] = 77; // a mode that comes with the feature
        super::super::testing::reseal(BlockKind::Label, &mut newer);
        assert_eq!(decode(&newer), Err(BlockError::Features { unknown: 12 }));

        let read_only = VolumeLabel { ro_compat: 1, ..label() };
        assert!(read_only.is_read_only() && !label().is_read_only());
        assert_eq!(decode(&read_only.encode(ADDRESS)[..]), Ok(read_only));
    }

    #[test]
    fn content_that_is_no_label_is_refused() {
        let block = label().encode(ADDRESS);
        let lie = |at, value| lie((BlockKind::Label, &block[..]), (at, value), decode);
        assert!(lie(48, 0xFF).contains("name"));
        assert!(lie(120, 0).contains("mode"));
        assert!(lie(121, 0).contains("devices"));
        assert!(lie(121, 5).contains("devices"));
        assert!(lie(121, 255).contains("longer"));
        assert!(lie(144, 2).contains("role"));
        assert!(lie(112, 3).contains("multiple"));
        assert!(lie(112, 0).contains("multiple"));
        assert!(lie(117, 0).contains("no block"));
        assert!(lie(109, 2).contains("logical"));
        assert!(lie(123, 0x28).contains("over-provisioning"));
        assert!(lie(200, 10).contains("zone"));
    }

    #[test]
    fn limits_are_inclusive() {
        let device = VolumeDevice { zone_blocks: 9, ..label().devices[1] };
        let largest = VolumeLabel {
            logical_blocks: LBA_LIMIT,
            op_basis_points: 10_000,
            devices: vec![device],
            ..label()
        };
        assert_eq!(decode(&largest.encode(ADDRESS)[..]), Ok(largest));
    }

    #[test]
    #[should_panic(expected = "number of devices")]
    fn a_label_that_could_not_be_read_is_not_written() {
        let _ = VolumeLabel { devices: Vec::new(), ..label() }.encode(ADDRESS);
    }

    proptest! {
        #[test]
        fn any_content_is_a_label_or_refused(content in content(4048), valid in content(300)) {
            let mut patched = label().encode(ADDRESS)[48..].to_vec();
            for (byte, change) in patched.iter_mut().zip(&valid) {
                *byte ^= change;
            }
            for content in [content, patched] {
                if let Ok(label) = decode(&forged(BlockKind::Label, &content)) {
                    prop_assert_eq!(decode(&label.encode(ADDRESS)[..]), Ok(label));
                }
            }
        }
    }
}
