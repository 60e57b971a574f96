//! A volume on a file and on an emulated SSD, against an array of bytes.

use onefold_device::{
    BlockDevice, VolumeBacking, VolumeDevice, VolumeError, VolumeOptions, VolumeResize, VolumeSpec,
};
use onefold_units::Rng;

const MIB: u64 = 1 << 20;

fn options() -> VolumeOptions {
    let mut options = VolumeOptions::default();
    options.engine.checkpoint_blocks = 2048;
    options
}

fn open(path: &std::path::Path) -> VolumeDevice {
    let backing = VolumeBacking::open(path, true).unwrap();
    VolumeDevice::open(backing, options()).unwrap().device
}

struct Rig {
    device: VolumeDevice,
    model: Vec<u8>,
}

impl Rig {
    fn work(&mut self, rng: &mut Rng, steps: u32) {
        let size = self.device.size();
        for _ in 0..steps {
            let offset = rng.below(size - 300_000);
            let len = 1 + rng.below(200_000);
            let (offset, len) = match rng.below(3) {
                0 => (offset, len),
                1 => (offset / 512 * 512, len.next_multiple_of(512)),
                _ => (offset / 4096 * 4096, len.next_multiple_of(4096)),
            };
            let range = usize::try_from(offset).unwrap()..usize::try_from(offset + len).unwrap();
            match rng.below(8) {
                0 => {
                    self.device.trim(offset, len).unwrap();
                    self.model[range].fill(0);
                }
                1 | 2 => {
                    let mut found = vec![1; range.len()];
                    self.device.read(offset, &mut found).unwrap();
                    assert!(found == self.model[range], "{offset} + {len} is not as written");
                }
                3 => {
                    self.device.flush().unwrap();
                }
                _ => {
                    let byte = u8::try_from(rng.below(255)).unwrap();
                    let data: Vec<u8> =
                        range.clone().map(|at| byte ^ u8::try_from(at % 251).unwrap()).collect();
                    self.device.write(offset, &data, rng.below(20) == 0).unwrap();
                    self.model[range].copy_from_slice(&data);
                }
            }
        }
    }

    fn compare(&self) {
        let mut found = vec![1; self.model.len()];
        for (at, piece) in found.chunks_mut(1 << 20).enumerate() {
            self.device.read(at as u64 * MIB, piece).unwrap();
        }
        assert!(found == self.model, "the volume is not as written");
    }
}

#[test]
fn what_a_backing_holds_is_not_lost_by_accident() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    let spec = VolumeSpec::default();
    VolumeDevice::format(&backing, &spec, false).unwrap();
    let again = VolumeDevice::format(&backing, &spec, false).err().unwrap();
    assert!(matches!(again, VolumeError::Signature { what: "a volume" }), "{again}");
    VolumeDevice::format(&backing, &spec, true).unwrap();
    let busy = VolumeBacking::open(&path, true).err().unwrap();
    assert!(matches!(busy, VolumeError::Busy { .. }), "{busy}");
    let exists = VolumeBacking::create(&path, 96 * MIB).err().unwrap();
    assert!(matches!(exists, VolumeError::Exists { .. }), "{exists}");
}

#[test]
fn a_shrunk_backing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    VolumeDevice::format(&backing, &VolumeSpec::default(), false).unwrap();
    drop(backing);
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(95 * MIB).unwrap();
    let backing = VolumeBacking::open(&path, true).unwrap();
    let refused = VolumeDevice::open(backing, options()).err().unwrap();
    assert!(refused.to_string().contains("the volume was made on 24576"), "{refused}");
}

#[test]
fn a_volume_on_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 96 * MIB).unwrap();
    let spec = VolumeSpec {
        bytes: Some(48 * MIB),
        segment_bytes: Some(512 << 10),
        ..VolumeSpec::default()
    };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    drop(backing);
    let device = open(&path);
    let mut rig = Rig { device, model: vec![0; usize::try_from(48 * MIB).unwrap()] };
    let mut rng = Rng::new(11);
    for round in 0..4 {
        rig.work(&mut rng, 600);
        rig.compare();
        rig.device.flush().unwrap();
        if round % 2 == 0 {
            rig.device.close().unwrap();
        }
        let Rig { device, model } = rig;
        drop(device);
        rig = Rig { device: open(&path), model };
        rig.compare();
    }
    let stats = rig.device.details().stats;
    assert_eq!(stats.crc_errors, 0, "{stats:?}");
}

#[test]
fn sizes_change_while_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 160 * MIB).unwrap();
    let spec = VolumeSpec { bytes: Some(40 * MIB), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    drop(backing);
    let model = vec![0; usize::try_from(40 * MIB).unwrap()];
    let mut rig = Rig { device: open(&path), model };
    let mut rng = Rng::new(4);
    let refused = |rig: &Rig, to: VolumeResize| rig.device.resize(&to).unwrap_err().to_string();
    let logical = |mib: u64| VolumeResize { bytes: Some(mib * MIB), ..VolumeResize::default() };
    let backing =
        |mib: u64| VolumeResize { backing_bytes: Some(mib * MIB), ..VolumeResize::default() };
    for (mib, backing_mib) in [(60, 160), (90, 200), (20, 200), (20, 140), (50, 170)] {
        rig.work(&mut rng, 400);
        let to = VolumeResize {
            bytes: Some(mib * MIB),
            backing_bytes: Some(backing_mib * MIB),
            discard_tail: true,
        };
        rig.device.resize(&to).unwrap();
        assert_eq!(rig.device.size(), mib * MIB);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), backing_mib * MIB);
        rig.model.resize(usize::try_from(mib * MIB).unwrap(), 0);
        rig.compare();
        let Rig { device, model } = rig;
        device.close().unwrap();
        drop(device);
        rig = Rig { device: open(&path), model };
        rig.compare();
    }
    let tail = vec![3; 4096];
    rig.device.write(49 * MIB, &tail, false).unwrap();
    rig.model[usize::try_from(49 * MIB).unwrap()..][..4096].fill(3);
    assert!(refused(&rig, logical(40)).contains("holds data"));
    assert!(refused(&rig, logical(4000)).contains("can hold data"));
    assert!(refused(&rig, backing(100)).contains("log segments"));
    assert!(refused(&rig, VolumeResize { bytes: Some(5), ..logical(1) }).contains("multiple"));
    rig.compare();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 170 * MIB);
}
