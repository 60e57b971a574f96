//! A volume on a file and on an emulated SSD, against an array of bytes.

use onefold_device::{
    BlockDevice, VolumeBacking, VolumeDevice, VolumeError, VolumeOptions, VolumeSpec,
};
use onefold_units::{Rng, Status};

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
fn snapshots_and_clones_beside_the_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("volume");
    let backing = VolumeBacking::create(&path, 128 * MIB).unwrap();
    let spec = VolumeSpec { bytes: Some(24 * MIB), ..VolumeSpec::default() };
    VolumeDevice::format(&backing, &spec, false).unwrap();
    drop(backing);
    let mut rng = Rng::new(3);
    let name = |text| onefold_format::volume::VolumeName::new(text).unwrap();
    let device = open(&path);
    let mut device = Rig { model: vec![0; usize::try_from(device.size()).unwrap()], device };
    device.work(&mut rng, 150);
    device.device.make_snapshot(&name("daily")).unwrap();
    let held = device.model.clone();
    let snapshot = Rig { device: device.device.member("daily").unwrap(), model: held.clone() };
    let again = device.device.make_snapshot(&name("daily")).unwrap_err();
    assert!(again.to_string().contains("of that name"), "{again}");
    assert_eq!(snapshot.device.write(0, &[1; 4096], false), Err(Status::InvalidField));
    snapshot.device.make_clone(&name("copy")).unwrap();
    let mut clone = Rig { device: snapshot.device.member("copy").unwrap(), model: held };
    // All at once: a snapshot is read while its device and its clone are written.
    std::thread::scope(|scope| {
        scope.spawn(|| clone.work(&mut Rng::new(4), 150));
        scope.spawn(|| snapshot.compare());
        device.work(&mut rng, 150);
    });
    [&device, &clone, &snapshot].into_iter().for_each(Rig::compare);
    device.device.close().unwrap();

    // The file is free when all handles are gone.
    let models = [device, clone, snapshot].map(|rig| rig.model);
    let reopened = open(&path);
    let [copy, daily] = ["copy", "daily"].map(|name| reopened.member(name).unwrap());
    let [one, two, three] = models;
    let device = Rig { device: reopened, model: one };
    let clone = Rig { device: copy, model: two };
    let snapshot = Rig { device: daily, model: three };
    [&device, &clone, &snapshot].into_iter().for_each(Rig::compare);
    let before = device.device.details().usage.data_blocks;
    device.device.delete_member("daily").unwrap();
    device.device.delete_member("copy").unwrap();
    device.device.wait_until_freed();
    assert!(device.device.details().usage.data_blocks < before);
    let mut byte = [0; 1];
    assert_eq!(snapshot.device.read(0, &mut byte), Err(Status::InvalidField));
    assert_eq!(device.device.members().len(), 1);
    device.compare();
    device.device.close().unwrap();
}
