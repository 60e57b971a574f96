//! What becomes of callers when a thread panics that has the volume (invariant 2 of [`super`]).

use super::Shared;
use crate::driver::{Driven, Fallible};

impl Driven for Shared {
    fn stop(&self) {
        self.jobs.close();
        let mut state = self.state();
        state.inbox.closed = true;
        self.watched.notify_all();
        if let Some(bell) = &self.bell
            && state.inbox.has_to_wake(None)
        {
            bell.ring();
        }
    }

    fn fall(&self) {
        self.state().fall();
        self.stop();
        self.state.tell_progress();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use onefold_units::{Lba, Status};
    use onefold_volume::Range;

    use super::super::jobs::Job;
    use super::super::{VolumeBacking, VolumeDevice, VolumeError, VolumeIo};
    use super::super::{VolumeOptions, VolumeSpec};
    use crate::BlockDevice;

    fn open(folder: &tempfile::TempDir, io: VolumeIo) -> VolumeDevice {
        let path = folder.path().join("volume");
        let backing = VolumeBacking::create(&path, 64 << 20).unwrap();
        VolumeDevice::format(&backing, &VolumeSpec::default(), false).unwrap();
        let options = VolumeOptions { io, ..VolumeOptions::default() };
        VolumeDevice::open(backing, options).unwrap().device
    }

    /// A caller that waits for what never comes.
    fn waits(device: &VolumeDevice) -> Receiver<Result<(), Status>> {
        let (shared, (sender, receiver)) = (Arc::clone(&device.shared), channel());
        std::thread::spawn(move || sender.send(shared.ask_and_wait(|_, _| Ok(()))));
        while device.shared.state().waiting.is_empty() {
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
            let (shared, waiting) = (&device.shared, waits(&device));
            let mut state = shared.state();
            let (range, now) = (Range { lba: Lba::new(0), blocks: 1 }, state.now);
            state.volume.write(u64::MAX, range, Some(&[1; 4096]), true).unwrap();
            state.volume.pump(now);
            let io = state.volume.poll_io().expect("it is sent at once");
            // It will be over twice, and no volume takes that.
            if let Some(bell) = &shared.bell {
                state.inbox.requests.extend([io, io]);
                bell.ring();
            } else {
                (0..2).for_each(|_| shared.jobs.push(Job::new(io, &*state.volume)));
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
        let shared = Arc::clone(&device.shared);
        let caller = std::thread::spawn(move || shared.ask::<()>(|_, _| panic!("a bug")));
        assert!(caller.join().is_err());
        assert_over(&device, &waiting);
    }
}
