//! The label of an image file: what device it is, and where its parts lie.
//!
//! The label takes the first 64 KiB, and a second copy the next: magic 8 | version 2 | 0 2 | features
//! 4 | uuid 16 | generation 8 | clean 1 | counts 1 | 0 2 | configuration length 4 | unit bytes 4 |
//! superblocks 4 | slots 4 | nvram bytes 8 | logical bytes 8 | configuration (TOML) | .. | crc 4.

use crate::bytes::{Reader, Writer, checked_body, seal};

/// Version of the image format.
pub const IMAGE_VERSION: u64 = 1;

/// Bytes of one copy of the label.
pub const LABEL_BYTES: usize = 65_536;

/// First bytes of an image.
pub const IMAGE_MAGIC: &[u8; 8] = b"ONEFOLD\0";
const FIXED_BYTES: usize = 76;

/// Feature bit: entries of the remap log may have strides. Without it they are runs of neighbouring
/// units, and who does not know it would take them for such.
pub const FEATURE_STRIDES: u32 = 1;
/// Feature bit: the device is a zoned namespace, whose NVRAM and spare areas hold zones and sets of blocks.
pub const FEATURE_ZONES: u32 = 2;
/// Feature bit: the first zones are conventional, and the last blocks of every plane have a block namespace's layout.
pub const FEATURE_CONVENTIONAL: u32 = 4;
const KNOWN_FEATURES: u32 = FEATURE_STRIDES | FEATURE_ZONES | FEATURE_CONVENTIONAL;

/// Why a label cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// Not an image of ours.
    #[error("this is not a Onefold image: the magic number at byte 0 is missing")]
    NotAnImage,
    /// Made by a newer Onefold.
    #[error("the image has format version {found}, this Onefold reads version {expected}")]
    Version {
        /// Version found.
        found: u64,
        /// Version this build writes and reads.
        expected: u64,
    },
    /// Needs something this build does not know.
    #[error("the image needs features {unknown:#x} that this Onefold does not have")]
    Features {
        /// Unknown feature bits.
        unknown: u32,
    },
    /// Checksum or contents are wrong.
    #[error("the image label is damaged (checksum or contents of copy {copy} are wrong)")]
    Damaged {
        /// Which copy, 0 or 1.
        copy: u32,
    },
}

/// Label of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLabel {
    /// Feature bits: what a reader has to know.
    pub features: u32,
    /// Identity of the device.
    pub uuid: [u8; 16],
    /// Counts label writes; the newer copy wins.
    pub generation: u64,
    /// The device was shut down cleanly.
    pub clean: bool,
    /// Whoever wrote the label keeps lifetime counters behind the data. Builds before that write `false`.
    pub counts: bool,
    /// Bytes of a mapping unit.
    pub unit_bytes: u32,
    /// Superblocks of the array.
    pub superblocks: u32,
    /// Slots per superblock.
    pub slots: u32,
    /// Bytes of NVRAM.
    pub nvram_bytes: u64,
    /// Bytes the host sees.
    pub logical_bytes: u64,
    /// Resolved configuration, TOML.
    pub config: String,
}

impl ImageLabel {
    /// The bytes of one copy. `None` if the configuration does not fit.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let config = self.config.as_bytes();
        if FIXED_BYTES + config.len() + 4 > LABEL_BYTES {
            return None;
        }
        let mut bytes = vec![0; LABEL_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(IMAGE_MAGIC);
        writer.uint(IMAGE_VERSION, 2);
        writer.uint(0, 2);
        writer.uint(u64::from(self.features), 4);
        writer.bytes(&self.uuid);
        writer.uint(self.generation, 8);
        writer.uint(u64::from(self.clean), 1);
        writer.uint(u64::from(self.counts), 1);
        writer.uint(0, 2);
        writer.uint(onefold_units::convert::u64_from(config.len()), 4);
        writer.uint(u64::from(self.unit_bytes), 4);
        writer.uint(u64::from(self.superblocks), 4);
        writer.uint(u64::from(self.slots), 4);
        writer.uint(self.nvram_bytes, 8);
        writer.uint(self.logical_bytes, 8);
        writer.bytes(config);
        seal(&mut bytes);
        Some(bytes)
    }

    /// Reads copy number `copy` of a label.
    ///
    /// # Errors
    /// Tells apart what is no image, another version, unknown features, and damage.
    pub fn decode(bytes: &[u8], copy: u32) -> Result<Self, ImageError> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(IMAGE_MAGIC.len()) != Some(IMAGE_MAGIC) {
            return Err(ImageError::NotAnImage);
        }
        let damaged = ImageError::Damaged { copy };
        let found = reader.uint(2).ok_or_else(|| damaged.clone())?;
        if found != IMAGE_VERSION {
            return Err(ImageError::Version { found, expected: IMAGE_VERSION });
        }
        // Fields end before the checksum, whatever a length among them says.
        let body =
            bytes.get(..LABEL_BYTES).and_then(checked_body).ok_or_else(|| damaged.clone())?;
        let mut fields = Reader::new(body);
        fields.bytes(IMAGE_MAGIC.len() + 2);
        decode_fields(&mut fields).ok_or(damaged)?
    }
}

fn decode_fields(reader: &mut Reader<'_>) -> Option<Result<ImageLabel, ImageError>> {
    reader.uint(2)?;
    let features = reader.u32()?;
    let unknown = features & !KNOWN_FEATURES;
    if unknown != 0 {
        return Some(Err(ImageError::Features { unknown }));
    }
    let uuid = reader.bytes(16)?.try_into().ok()?;
    let generation = reader.uint(8)?;
    let clean = reader.u8()? == 1;
    let counts = reader.u8()? == 1;
    reader.uint(2)?;
    let config_len = usize::try_from(reader.uint(4)?).ok()?;
    let (unit_bytes, superblocks, slots) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let (nvram_bytes, logical_bytes) = (reader.uint(8)?, reader.uint(8)?);
    let config = std::str::from_utf8(reader.bytes(config_len)?).ok()?.to_owned();
    Some(Ok(ImageLabel {
        features,
        uuid,
        generation,
        clean,
        counts,
        unit_bytes,
        superblocks,
        slots,
        nvram_bytes,
        logical_bytes,
        config,
    }))
}

#[cfg(test)]
mod tests {
    use super::{FEATURE_STRIDES, ImageError, ImageLabel, LABEL_BYTES};

    fn label() -> ImageLabel {
        ImageLabel {
            features: FEATURE_STRIDES,
            uuid: [7; 16],
            generation: 2,
            clean: true,
            counts: true,
            unit_bytes: 4096,
            superblocks: 10,
            slots: 64,
            nvram_bytes: 1 << 20,
            logical_bytes: 1 << 30,
            config: "[geometry]\n".to_owned(),
        }
    }

    #[test]
    fn there_and_back() {
        let bytes = label().encode().unwrap();
        assert_eq!(bytes.len(), LABEL_BYTES);
        assert_eq!(ImageLabel::decode(&bytes, 0), Ok(label()));
    }

    #[test]
    fn refusals_tell_what_is_wrong() {
        let bytes = label().encode().unwrap();
        assert_eq!(ImageLabel::decode(&[0; 512], 0), Err(ImageError::NotAnImage));
        let mut newer = bytes.clone();
        newer[8] = 9;
        assert_eq!(
            ImageLabel::decode(&newer, 0),
            Err(ImageError::Version { found: 9, expected: 1 })
        );
        let unknown = ImageLabel { features: 9, ..label() }.encode().unwrap();
        assert_eq!(ImageLabel::decode(&unknown, 0), Err(ImageError::Features { unknown: 8 }));
        for at in (10..LABEL_BYTES).step_by(997) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(ImageLabel::decode(&damaged, 1), Err(ImageError::Damaged { copy: 1 }));
        }
        for len in [0, 8, 12, 100, LABEL_BYTES - 1] {
            assert!(ImageLabel::decode(&bytes[..len], 0).is_err());
        }
    }

    /// The checksum was taken for the end of a configuration that claimed to reach into it.
    #[test]
    fn a_configuration_does_not_reach_into_the_checksum() {
        let longest = LABEL_BYTES - super::FIXED_BYTES - 4;
        for (len, fits) in [(longest, true), (longest + 1, false), (longest + 4, false)] {
            let config = "x".repeat(longest);
            let mut bytes = ImageLabel { config, ..label() }.encode().unwrap();
            let claimed = u32::try_from(len).unwrap().to_le_bytes();
            bytes[44..48].copy_from_slice(&claimed);
            crate::bytes::seal(&mut bytes);
            assert_eq!(ImageLabel::decode(&bytes, 0).is_ok(), fits, "{len} bytes");
        }
    }

    #[test]
    fn a_configuration_that_does_not_fit_is_refused() {
        let long = ImageLabel { config: "x".repeat(LABEL_BYTES), ..label() };
        assert_eq!(long.encode(), None);
    }
}
