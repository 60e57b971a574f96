//! Blocks whose content tells which of its versions it is.

use onefold_device::BlockDevice;

const BLOCK: u64 = 4096;

/// What a block holds: number and version.
pub(crate) fn content(block: u64, version: u64) -> Vec<u8> {
    if version == 0 { vec![0; 4096] } else { (version << 20 | block).to_le_bytes().repeat(512) }
}

/// Versions of a block: the last that is durable, the one that it holds, and the last that was written.
#[derive(Clone, Copy, Default)]
struct Version {
    durable: u64,
    current: u64,
    issued: u64,
}

fn make_durable(versions: &mut [Version]) {
    for version in versions {
        version.durable = version.current;
    }
}

/// What the blocks of a device may hold.
pub(crate) struct Versions(Vec<Version>);

impl Versions {
    /// Of so many blocks, all of which read as zeroes.
    pub(crate) fn new(blocks: u64) -> Self {
        Self(vec![Version::default(); usize::try_from(blocks).unwrap()])
    }

    /// Writes blocks anew, in one request.
    pub(crate) fn write(&mut self, device: &dyn BlockDevice, first: u64, count: u64, fua: bool) {
        let part =
            &mut self.0[usize::try_from(first).unwrap()..][..usize::try_from(count).unwrap()];
        let mut data = Vec::new();
        for (block, version) in (first..).zip(part.iter_mut()) {
            version.issued += 1;
            version.current = version.issued;
            data.extend(content(block, version.issued));
        }
        device.write(first * BLOCK, &data, fua).unwrap();
        if fua {
            make_durable(part);
        }
    }

    pub(crate) fn flush(&mut self, device: &dyn BlockDevice) {
        device.flush().unwrap();
        make_durable(&mut self.0);
    }

    /// Each block holds what was durable last, or something newer, whatever happened to the device.
    pub(crate) fn verify(&mut self, device: &dyn BlockDevice) {
        for (block, version) in (0..).zip(&mut self.0) {
            let mut found = vec![0xEE; 4096];
            device.read(block * BLOCK, &mut found).unwrap();
            let mut range = (version.durable..=version.issued).rev();
            let Some(holds) = range.find(|one| found == content(block, *one)) else {
                let word = u64::from_le_bytes(found[..8].try_into().unwrap());
                let Version { durable, issued, .. } = version;
                panic!("block {block} holds {word:#x}, expected version {durable} to {issued}");
            };
            // Numbers go on, so that what was lost never looks like what comes.
            (version.durable, version.current) = (holds, holds);
        }
    }
}
