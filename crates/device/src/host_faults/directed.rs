//! What a host that fails must not lead to, one thing at a time.

use onefold_units::convert::u64_from;
use onefold_units::{Op, Status};

use super::common::{Folder, plain, shares};
use super::{BLOCK, World, bare, open};
use crate::backing::chaos::Faults;
use crate::mailbox::{Client, SnapshotAction, SnapshotName};
use crate::{Access, BlockDevice, DeviceError, Held, Image, Latency, OpenOptions, SsdDevice};

/// Each request was an error from then on, reads included, until the device was opened again.
#[test]
fn a_full_host_refuses_changes_and_reads_go_on() {
    let mut world = World::new(&plain(), 1);
    world.faults = Faults { full: true, ..Faults::default() };
    world.backing.set_faults(world.faults);
    let mut refused = 0;
    for _ in 0..2000 {
        world.write(false);
        refused = world.device.image().unwrap().refused_requests;
        if refused > 20 {
            break;
        }
    }
    assert!(refused > 20, "the host has no room");
    assert_eq!(world.device.flush(), Err(Status::NoSpace));
    assert_eq!(world.device.trim(0, 4096), Err(Status::NoSpace));
    let image = world.device.image().unwrap();
    assert_eq!(image.state(), "host_full");
    // One request came that far, and what waited to be written together.
    assert!((1..20 << 20).contains(&image.waiting_bytes), "{image:?}");
    for _ in 0..50 {
        world.read();
    }
    assert!(matches!(world.device.close(), Err(DeviceError::Held { held: Held::Full, .. })));
    let mut world = World::new(&plain(), 2);
    world.backing.set_faults(Faults { full: true, ..Faults::default() });
    while world.device.write(0, &vec![1; 65_536], false).is_ok() {}
    world.heal();
    assert_eq!(world.device.image().unwrap().state(), "ok");
}

/// The operating system tells one caller that it dropped what was written; the next one got a success for it.
#[test]
fn a_failed_synchronisation_is_told_to_everybody() {
    let world = World::new(&plain(), 1);
    world.device.write(0, &[7; 4096], false).unwrap();
    world.backing.set_faults(Faults { syncs: 1000, ..Faults::default() });
    assert_eq!(world.device.flush(), Err(Status::MediaError));
    world.backing.set_faults(Faults::default());
    assert!(world.backing.sync_for_good().is_err());
    for _ in 0..3 {
        assert_eq!(world.device.flush(), Err(Status::Poisoned));
        assert_eq!(world.device.write(4096, &[8; 4096], false), Err(Status::Poisoned));
    }
    // Right, or an error; never what was there before.
    let mut back = [0; 4096];
    if world.device.read(0, &mut back).is_ok() {
        assert_eq!(back, [7; 4096]);
    }
    world.device.read(4096, &mut back).unwrap();
    assert_eq!((back, world.device.image().unwrap().state()), ([0; 4096], "sync_failed"));
}

#[test]
fn requests_wait_for_room_until_nobody_serves_the_device() {
    let folder = Folder::new(&plain());
    let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
    let backing = image.backing();
    backing.begin_chaos(1);
    let options = OpenOptions::new(Latency::None).waiting_for_room();
    let device = SsdDevice::open(image, &plain(), options).unwrap().device;
    backing.set_faults(Faults { full: true, ..Faults::default() });
    let waiting = device.clone();
    let writer = std::thread::spawn(move || {
        (0..).find_map(|_| waiting.write(0, &vec![1; 65_536], false).err())
    });
    while device.image().unwrap().refused_requests < 3 {
        assert!(!writer.is_finished(), "it waits");
        std::thread::yield_now();
    }
    assert!(device.waits(Op::Write));
    device.read(0, &mut [0; 4096]).unwrap();
    device.stop_waiting();
    assert_eq!(writer.join().unwrap(), Some(Status::NoSpace));
}

fn snapshot(name: &str) -> SnapshotAction {
    SnapshotAction::Create { name: SnapshotName::new(name).unwrap(), first: 0, units: 16 }
}

/// The table that names a snapshot came to the disk though its creation had failed, and its content was given up.
#[test]
fn a_snapshot_whose_creation_failed_names_nothing_that_is_used_otherwise() {
    let config = bare(shares(plain()));
    for seed in 0..60 {
        let mut world = World::new(&config, seed);
        let mut client = Client::new(world.device.clone());
        world.device.write(0, &vec![1; 16 * BLOCK], true).unwrap();
        world.backing.set_faults(Faults { writes: 300 + 10 * seed, ..Faults::default() });
        let made: Vec<bool> =
            (0..4).map(|n| client.snapshot(snapshot(&format!("s{n}"))).is_ok()).collect();
        world.backing.set_faults(Faults::default());
        world.device.write(0, &vec![2; 16 * BLOCK], true).unwrap();
        let _ = client.snapshot(snapshot("late"));
        if seed % 2 == 0 {
            world.backing.cut();
        }
        drop(client);
        world.kill();
        let (device, _) = open(&world.folder, &config, &mut world.rng, Faults::default()).unwrap();
        let mut client = Client::new(device.clone());
        let entries = client.snapshot(SnapshotAction::List).unwrap().entries;
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        for (n, made) in made.iter().enumerate() {
            let name = format!("s{n}");
            assert!(!made || names.contains(&&*name), "seed {seed}: {name} of {names:?}");
        }
        for name in names {
            let clone =
                SnapshotAction::Clone { name: SnapshotName::new(name).unwrap(), target: 32 };
            client.snapshot(clone).unwrap();
            let mut back = vec![0; 16 * BLOCK];
            device.read(u64_from(32 * BLOCK), &mut back).unwrap();
            let expected = if name == "late" { 2 } else { 1 };
            assert!(back.iter().all(|byte| *byte == expected), "seed {seed}: {name}");
        }
    }
}
