//! What becomes of callers when a thread panics that has the volume (invariant 2 of [`crate::driver`]).

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use onefold_units::{Lba, Status};
use onefold_volume::Range;

use super::jobs::Job;
use super::{VolumeBacking, VolumeDevice, VolumeError, VolumeIo, VolumeOptions, VolumeSpec};
use crate::BlockDevice;
use crate::driver::Refused;

fn open(folder: &tempfile::TempDir, io: VolumeIo) -> VolumeDevice {
    let path = folder.path().join("volume");
    let backing = VolumeBacking::create(&path, 64 << 20).unwrap();
    VolumeDevice::format(&backing, &VolumeSpec::default(), false).unwrap();
    let options = VolumeOptions { io, ..VolumeOptions::default() };
    VolumeDevice::open(backing, options).unwrap().device
}

/// A caller that waits for what never comes.
fn waits(device: &VolumeDevice) -> Receiver<Result<(), Status>> {
    let (driver, (sender, receiver)) = (Arc::clone(&device.driver), channel());
    let ask =
        move || driver.ask_and_wait(|_, _| Ok::<_, Refused<Status>>(()))?.1.map_err(Status::from);
    std::thread::spawn(move || sender.send(ask()));
    while !device.driver.is_awaited() {
        std::thread::yield_now();
    }
    receiver
}

fn assert_over(device: &VolumeDevice, waiting: &Receiver<Result<(), Status>>) {
    // A hang would be that of this test.
    let answer = waiting.recv_timeout(Duration::from_mins(1)).expect("an answer");
    assert_eq!(answer, Err(Status::MediaError));
    assert_eq!(device.read(0, &mut [0; 4096]), Err(Status::Poisoned));
    assert_eq!(device.write(0, &[0; 4096], true), Err(Status::Poisoned));
    assert!(matches!(device.close(), Err(VolumeError::Failed)));
}

#[test]
fn a_panic_of_a_thread_of_the_volume_answers_who_waits() {
    for io in [VolumeIo::Auto, VolumeIo::Threads] {
        let folder = tempfile::tempdir().unwrap();
        let device = open(&folder, io);
        let (driver, waiting) = (&device.driver, waits(&device));
        let mut state = driver.state();
        let (range, now) = (Range { lba: Lba::new(0), blocks: 1 }, state.now);
        state.engine.volume.write(u64::MAX, range, Some(&[1; 4096]), true).unwrap();
        state.engine.volume.pump(now);
        let io = state.engine.volume.poll_io().expect("it is sent at once");
        // It will be over twice, and no volume takes that.
        if let Some(bell) = &driver.shared.bell {
            state.engine.inbox.requests.extend([io, io]);
            bell.ring();
        } else {
            (0..2).for_each(|_| driver.shared.jobs.push(Job::new(io, &*state.engine.volume)));
        }
        drop(state);
        assert_over(&device, &waiting);
    }
}

#[test]
fn a_panic_of_a_caller_answers_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let device = open(&folder, VolumeIo::Auto);
    let waiting = waits(&device);
    let driver = Arc::clone(&device.driver);
    let caller = std::thread::spawn(move || driver.ask::<(), Status>(|_, _| panic!("a bug")));
    assert!(caller.join().is_err());
    assert_over(&device, &waiting);
}
