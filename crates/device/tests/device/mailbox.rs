//! Remaps and snapshots on a device in a file: what they promise, also when the process dies, and what is
//! refused.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::common::{Folder, HOST, SNAPSHOTS, open, plain, rich, shares};
use onefold_device::mailbox::{
    Client, MailboxError, RemapFlags, SnapshotAction, SnapshotName, SnapshotTable, VectorRange,
};
use onefold_device::observed::DeviceStats as _;
use onefold_device::{
    Access, BlockDevice, CONTROL_BYTES, Image, Latency, OpenOptions, RemappedRange, SsdDevice,
};
use onefold_format::{REMAP_BLOCK_BYTES, RemapReply, RemapVector, ReplyContent};
use onefold_ftl::RemapConfig;
use onefold_nand::CellTimes;
use onefold_units::{Cause, Nanos, Status};
use proptest::prelude::*;

const PAGE: u64 = 4096;

fn content(seed: u8, page: u64) -> Vec<u8> {
    (0..PAGE)
        .map(|at| seed ^ u8::try_from((page * 31 + at * 7 + at / 251) % 251).unwrap())
        .collect()
}

fn write(device: &SsdDevice, seed: u8, pages: std::ops::Range<u64>) {
    for page in pages {
        device.write(page * PAGE, &content(seed, page), false).unwrap();
    }
}

fn read(device: &SsdDevice, page: u64) -> Vec<u8> {
    let mut bytes = vec![0xEE; 4096];
    device.read(page * PAGE, &mut bytes).unwrap();
    bytes
}

fn range(dst: u64, src: u64, len: u32) -> VectorRange {
    VectorRange { dst, src, len }
}

fn name(text: &str) -> SnapshotName {
    SnapshotName::new(text).unwrap()
}

fn create(device: &SsdDevice, text: &str, first: u64, units: u64) -> Result<SnapshotTable, String> {
    let action = SnapshotAction::Create { name: name(text), first, units };
    Client::new(device.clone()).snapshot(action).map_err(|error| error.to_string())
}

fn restore(device: &SsdDevice, text: &str) -> Result<SnapshotTable, String> {
    let action = SnapshotAction::Restore { name: name(text) };
    Client::new(device.clone()).snapshot(action).map_err(|error| error.to_string())
}

fn names(device: &SsdDevice) -> Vec<String> {
    let table = Client::new(device.clone()).snapshot(SnapshotAction::List).unwrap();
    table.entries.iter().map(|entry| entry.name.as_str().to_owned()).collect()
}

#[test]
fn a_copy_shares_and_survives_a_kill() {
    for config in [shares(plain()), shares(rich())] {
        let folder = Folder::new(&config);
        let device = folder.open().device;
        write(&device, 1, 0..100);
        device.flush().unwrap();
        let before = device.details().unwrap().ftl.programs.total();
        let mut client = Client::new(device.clone());
        let ranges = [range(200, 0, 50), range(100, 50, 50)];
        let done = client.remap(RemapFlags::COPY, None, &ranges).unwrap();
        let remapped: Vec<u32> = done.results.iter().map(|result| result.remapped).collect();
        assert_eq!(remapped, [50, 50]);
        assert_eq!(device.details().unwrap().ftl.programs.total(), before, "nothing is programmed");
        // Dropping all handles is a kill: nothing is flushed.
        drop((client, device));
        let device = folder.open().device;
        for at in 0..50 {
            assert_eq!(read(&device, 200 + at), content(1, at));
            assert_eq!(read(&device, 100 + at), content(1, 50 + at));
        }
        device.close().unwrap();
        drop(device);
        assert!(folder.is_whole());
    }
}

/// What holds nothing shares nothing: the target is unmapped, whether the source was trimmed or never
/// written, and stays so.
#[test]
fn an_unmapped_source_unmaps_its_target() {
    for config in [shares(plain()), plain()] {
        let folder = Folder::new(&config);
        let device = folder.open().device;
        write(&device, 1, 0..20);
        device.trim(4 * PAGE, 2 * PAGE).unwrap();
        let mut client = Client::new(device.clone());
        let ranges = [range(10, 4, 2), range(12, 200, 2)];
        let done = client.remap(RemapFlags::COPY, None, &ranges).unwrap();
        assert!(done.results.iter().all(|result| result.remapped == 2), "{done:?}");
        drop((client, device));
        let device = folder.open().device;
        for page in 10..14 {
            assert_eq!(read(&device, page), vec![0; 4096], "page {page}");
        }
        assert_eq!((read(&device, 9), read(&device, 14)), (content(1, 9), content(1, 14)));
    }
}

/// The source was acknowledged, but nothing was flushed: the remap still is durable, and so is what it
/// shows.
#[test]
fn a_remap_of_unflushed_data_is_durable() {
    let config = shares(rich());
    let folder = Folder::new(&config);
    let device = folder.open().device;
    write(&device, 7, 0..8);
    let mut client = Client::new(device.clone());
    client.remap(RemapFlags::COPY, None, &[range(64, 0, 8)]).unwrap();
    drop((client, device));
    let device = folder.open().device;
    for at in 0..8 {
        assert_eq!(read(&device, 64 + at), content(7, at));
    }
}

#[test]
fn refusals_say_what_is_wrong_and_change_nothing() {
    let folder = Folder::new(&shares(plain()));
    let device = folder.open().device;
    write(&device, 1, 0..HOST);
    let refusal = |ranges: &[VectorRange]| match Client::new(device.clone())
        .remap(RemapFlags::COPY, None, ranges)
        .unwrap_err()
    {
        MailboxError::Refused { status: Status::InvalidField, text } => text,
        other => panic!("{other:?}"),
    };
    let beyond = "range 0 of the remap ends at unit 401 of 4 KiB, beyond the device of 400 units";
    assert_eq!(refusal(&[range(399, 0, 2)]), beyond);
    assert_eq!(refusal(&[range(0, 399, 2)]), beyond);
    assert!(refusal(&[range(0, u64::MAX - 9, 2)]).contains("beyond the device"));
    let twice = refusal(&[range(10, 0, 4), range(13, 50, 4)]);
    assert!(twice.contains("targets of the remap overlap at unit 13"), "{twice}");
    for page in 0..HOST {
        assert_eq!(read(&device, page), content(1, page));
    }
    let error = Client::new(device).remap(RemapFlags::COPY, None, &[]).unwrap_err();
    assert!(matches!(error, MailboxError::Command(_)), "{error}");
}

#[test]
fn a_larger_mapping_unit_refuses_what_it_cannot_map() {
    let mut config = shares(plain());
    let spec = *config.geometry.spec();
    let spec = onefold_nand::GeometrySpec { page_bytes: 16_384, unit_bytes: 16_384, ..spec };
    config.geometry = onefold_nand::Geometry::new(spec).unwrap();
    let folder = Folder::new(&config);
    let device = folder.open().device;
    let mut client = Client::new(device.clone());
    let caps = client.caps().unwrap();
    assert_eq!((caps.granularity_bytes, caps.ranges_max), (16_384, 168));
    write(&device, 3, 0..8);
    let done = client.remap(RemapFlags::COPY, None, &[range(8, 0, 8)]).unwrap();
    assert_eq!(done.results[0].remapped, 8, "in units of 4 KiB");
    assert_eq!(read(&device, 13), content(3, 5));
    let error = client.remap(RemapFlags::COPY, None, &[range(9, 0, 4)]).unwrap_err().to_string();
    assert!(error.contains("expected multiples of 4: the device maps 16 KiB together"), "{error}");
    let error = create(&device, "odd", 1, 4).unwrap_err();
    assert!(error.contains("expected multiples of 4"), "{error}");
    create(&device, "even", 4, 4).unwrap();
    write(&device, 4, 0..8);
    restore(&device, "even").unwrap();
    assert_eq!((read(&device, 4), read(&device, 0)), (content(3, 4), content(4, 0)));
}

#[test]
fn a_slot_tells_the_reply_and_other_writes_are_refused() {
    let folder = Folder::new(&shares(plain()));
    let device = folder.open().device;
    let control = device.control().unwrap();
    assert_eq!(control.size(), CONTROL_BYTES);
    let slot = |at: u64| {
        let mut block = [0; REMAP_BLOCK_BYTES];
        control.read(at * PAGE, &mut block).unwrap();
        block
    };
    let reply = |at: u64| RemapReply::decode(&slot(at)).unwrap();
    assert!(matches!(reply(255).content, ReplyContent::Caps(_)));
    let vector = RemapVector { cmd_id: 5, ranges: vec![range(1, 0, 1)], ..Default::default() };
    let good = vector.encode().unwrap();
    control.write(3 * PAGE, &good, false).unwrap();
    assert!(matches!(reply(3).content, ReplyContent::Results(ref results) if results.len() == 1));
    assert_eq!(reply(3).cmd_id, 5);
    assert!(matches!(reply(4).content, ReplyContent::Caps(_)));
    let mut damaged = good;
    damaged[70] ^= 1;
    let mut unknown = good;
    unknown[6] = 0x80;
    for (bad, text) in [(damaged, "checksum"), (unknown, "checksum"), ([1; 4096], "magic number")] {
        assert_eq!(control.write(3 * PAGE, &bad, false), Err(Status::InvalidField));
        let ReplyContent::Refusal(found) = reply(3).content else { panic!("{:?}", reply(3)) };
        assert!(found.contains(text), "{found}");
        assert_eq!(reply(3).status, Status::InvalidField);
    }
    control.write(3 * PAGE, &[0; 4096], false).unwrap();
    assert!(matches!(reply(3).content, ReplyContent::Caps(_)), "zeroes ask for the capabilities");
    for (offset, len) in [(0, 512), (0, 8192), (512, 4096), (CONTROL_BYTES, 4096), (u64::MAX, 1)] {
        assert_eq!(control.write(offset, &vec![0; len], false), Err(Status::InvalidField));
    }
    assert_eq!(control.read(CONTROL_BYTES - 1, &mut [0; 2]), Err(Status::InvalidField));
    let mut across = [0; 4096];
    control.read(2 * PAGE + 1000, &mut across).unwrap();
    assert_eq!((&across[..3096], &across[3096..]), (&slot(2)[1000..], &slot(3)[..1000]));
    assert_eq!(control.trim(0, 4096), Err(Status::InvalidField));
    device.close().unwrap();
    assert_eq!(control.write(0, &good, false), Err(Status::Poisoned));
    assert_eq!(reply(0).status, Status::Poisoned);
}

#[test]
fn a_snapshot_keeps_what_was_there() {
    for config in [shares(plain()), shares(rich())] {
        let folder = Folder::new(&config);
        let device = folder.open().device;
        write(&device, 1, 0..100);
        device.flush().unwrap();
        let programs = || device.details().unwrap().ftl.programs;
        let before = programs();
        let table = create(&device, "day-1", 0, 150).unwrap();
        assert_eq!((table.capacity, table.entries.len()), (SNAPSHOTS, 1));
        let made = programs().since(&before);
        assert_eq!((made.of(Cause::User), made.of(Cause::Fallback)), (0, 0), "the host wrote none");
        assert_eq!(made.of(Cause::Metadata), 1, "the table");
        for round in 0..6 {
            write(&device, 100 + round, 0..HOST);
        }
        assert!(device.details().unwrap().ftl.erases > 0, "collection has moved it");
        drop(device);
        let device = folder.open().device;
        assert_eq!(names(&device), ["day-1"]);
        let target = SnapshotAction::Clone { name: name("day-1"), target: 200 };
        Client::new(device.clone()).snapshot(target).unwrap();
        restore(&device, "day-1").unwrap();
        for page in 0..150 {
            let expected = if page < 100 { content(1, page) } else { vec![0; 4096] };
            assert_eq!(read(&device, page), expected, "restored page {page}");
            assert_eq!(read(&device, 200 + page), expected, "cloned page {page}");
        }
        assert_ne!(read(&device, 160), vec![0; 4096]);
        let delete = SnapshotAction::Delete { name: name("day-1") };
        let table = Client::new(device.clone()).snapshot(delete).unwrap();
        assert!(table.entries.is_empty());
        assert_eq!(read(&device, 99), content(1, 99), "the host keeps its own");
        device.close().unwrap();
        drop(device);
        assert!(folder.is_whole());
    }
}

#[test]
fn names_room_and_ranges_of_snapshots_are_checked() {
    let folder = Folder::new(&shares(plain()));
    let device = folder.open().device;
    create(&device, "a", 0, 100).unwrap();
    let refused = |text: &str, first, units| create(&device, text, first, units).unwrap_err();
    assert!(refused("a", 0, 1).contains("snapshot a exists: delete it or choose another name"));
    let full = refused("b", 0, 101);
    assert!(full.contains("101 units of 4 KiB, but 100 in one piece are free"), "{full}");
    assert!(refused("b", 390, 11).contains("ends at unit 401 of 4 KiB, beyond the device"));
    assert!(refused("b", 0, 0).contains("has 0 units, expected at least 1"));
    assert!(refused("b", 0, u64::MAX).contains("are free"));
    assert!(restore(&device, "c").unwrap_err().contains("there is no snapshot c: have a"));
    create(&device, "b", 300, 100).unwrap();
    assert!(refused("c", 0, 1).contains("but 0 in one piece are free"));
    let delete = SnapshotAction::Delete { name: name("a") };
    Client::new(device.clone()).snapshot(delete).unwrap();
    for at in 0..40 {
        create(&device, &format!("n{at}"), at, 1).unwrap();
    }
    assert!(refused("one-more", 0, 1).contains("there are 41 snapshots, the most"));

    let none = Folder::new(&plain());
    let error = create(&none.open().device, "a", 0, 1).unwrap_err();
    assert!(error.contains("no capacity for snapshots: create it with"), "{error}");
}

/// Snapshot units that no entry names are given back when the device is opened: a cut between the remap
/// and the table leaves some.
#[test]
fn what_no_entry_names_is_given_back() {
    let config = shares(plain());
    let folder = Folder::new(&config);
    let device = folder.open().device;
    write(&device, 1, 0..100);
    create(&device, "kept", 0, 50).unwrap();
    device.close().unwrap();
    drop(device);
    let image = Image::open(&folder.path(), Access::Exclusive);
    let image = image.unwrap();
    let media = onefold_device::FileMedia::new(&image, config.geometry);
    let (mut ssd, _) = onefold_ssd::Ssd::recover(config, media).unwrap();
    let now = Nanos::ZERO;
    let (dst, src) = (ssd.snapshot_lpn(60), onefold_units::Lpn::new(0));
    let orphan = [onefold_ftl::RemapRange { dst, src, len: 50 }];
    ssd.remap_snapshots(now, &orphan, onefold_ftl::RemapOptions::default()).unwrap();
    assert!(ssd.ftl().is_mapped(ssd.snapshot_lpn(109)));
    ssd.shut_down(now).unwrap();
    drop((ssd, image));
    let device = folder.open().device;
    device.close().unwrap();
    drop(device);
    let image = Image::open(&folder.path(), Access::Exclusive);
    let image = image.unwrap();
    let media = onefold_device::FileMedia::new(&image, config.geometry);
    let (ssd, _) = onefold_ssd::Ssd::recover(config, media).unwrap();
    let mapped: Vec<u32> =
        (0..ssd.snapshot_units()).filter(|at| ssd.ftl().is_mapped(ssd.snapshot_lpn(*at))).collect();
    assert_eq!(mapped, (0..51).collect::<Vec<_>>(), "the table and the snapshot");
}

/// What a page holds: the seed and the page it was written at.
type Page = Option<(u8, u64)>;

/// Any step of a history that ends with a kill.
#[derive(Clone, Debug)]
enum Step {
    Write { page: u64, seed: u8 },
    Copy { dst: u64, src: u64, len: u64 },
    Create { name: u8, first: u64, units: u64 },
    Delete { name: u8 },
    Restore { name: u8 },
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..HOST, any::<u8>()).prop_map(|(page, seed)| Step::Write { page, seed }),
        3 => (0..300_u64, 0..300_u64, 1..100_u64)
            .prop_map(|(dst, src, len)| Step::Copy { dst, src, len }),
        2 => (0..4_u8, 0..300_u64, 1..100_u64)
            .prop_map(|(name, first, units)| Step::Create { name, first, units }),
        1 => (0..4_u8).prop_map(|name| Step::Delete { name }),
        2 => (0..4_u8).prop_map(|name| Step::Restore { name }),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Commands against a map of pages: what is answered is there, also after a kill.
    #[test]
    fn histories_match_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let folder = Folder::new(&shares(rich()));
        let mut device = folder.open().device;
        let mut model: Vec<Page> = vec![None; 400];
        let mut kept: BTreeMap<u8, (u64, Vec<Page>)> = BTreeMap::new();
        let pages = |first: u64, units: u64| {
            usize::try_from(first).unwrap()..usize::try_from(first + units).unwrap()
        };
        for step in steps {
            let mut client = Client::new(device.clone());
            match step {
                Step::Write { page, seed } => {
                    device.write(page * PAGE, &content(seed, page), true).unwrap();
                    model[usize::try_from(page).unwrap()] = Some((seed, page));
                }
                Step::Copy { dst, src, len } => {
                    let ranges = [range(dst, src, u32::try_from(len).unwrap())];
                    client.remap(RemapFlags::COPY, None, &ranges).unwrap();
                    let from = model[pages(src, len)].to_vec();
                    model[pages(dst, len)].copy_from_slice(&from);
                }
                Step::Create { name, first, units } => {
                    if create(&device, &format!("s{name}"), first, units).is_ok() {
                        let old = kept.insert(name, (first, model[pages(first, units)].to_vec()));
                        prop_assert!(old.is_none(), "a name is given once");
                    }
                }
                Step::Delete { name: at } => {
                    let delete = SnapshotAction::Delete { name: name(&format!("s{at}")) };
                    let done = client.snapshot(delete).is_ok();
                    prop_assert_eq!(done, kept.remove(&at).is_some());
                }
                Step::Restore { name } => {
                    let done = restore(&device, &format!("s{name}")).is_ok();
                    prop_assert_eq!(done, kept.contains_key(&name));
                    if let Some((first, old)) = kept.get(&name) {
                        model[pages(*first, old.len() as u64)].copy_from_slice(old);
                    }
                }
                Step::Kill => {
                    drop(client);
                    drop(device);
                    device = open(&folder.path(), &shares(rich())).device;
                    prop_assert_eq!(names(&device).len(), kept.len());
                }
            }
        }
        drop(device);
        let device = folder.open().device;
        for (page, expected) in (0..).zip(&model) {
            let expected = expected.map_or_else(|| vec![0; 4096], |(seed, at)| content(seed, at));
            prop_assert!(read(&device, page) == expected, "page {}", page);
        }
        device.close().unwrap();
        drop(device);
        prop_assert!(folder.is_whole());
    }

    /// No block, whole or changed under a right checksum, does more than be refused.
    #[test]
    fn any_write_is_survived(
        offset in prop_oneof![(0..300_u64).prop_map(|slot| slot * PAGE), any::<u64>()],
        len in prop_oneof![9 => Just(4096_usize), 1 => 0..9000_usize],
        fields in prop::collection::vec((0..512_usize, any::<u8>()), 0..12),
        start in 0..3_u8,
    ) {
        let folder = Folder::new(&shares(plain()));
        let device = folder.open().device;
        let control = device.control().unwrap();
        let vector = RemapVector { cmd_id: 1, ranges: vec![range(9, 0, 4)], ..Default::default() };
        let action = SnapshotAction::Create { name: name("x"), first: 0, units: 4 };
        let mut block = match start {
            0 => vec![0; 4096],
            1 => vector.encode().unwrap().to_vec(),
            _ => onefold_format::SnapshotCommand { action, cmd_id: 1 }.encode().to_vec(),
        };
        for (at, byte) in fields {
            block[at] = byte;
        }
        block[32..36].fill(0);
        let sum = onefold_format::checksum(&block);
        block[32..36].copy_from_slice(&sum.to_le_bytes());
        block.resize(len, 0);
        let written = control.write(offset, &block, false);
        prop_assert!(matches!(written, Ok(_) | Err(Status::InvalidField | Status::NoSpace)));
        device.close().unwrap();
        drop((control, device));
        prop_assert!(folder.is_whole());
    }
}

/// Where nothing is shared, all of it works by copying, but what needs a log of commands.
#[test]
fn without_a_log_everything_is_copied() {
    let mut config = shares(plain());
    config.ftl.remap = RemapConfig::OFF;
    let folder = Folder::new(&config);
    let device = folder.open().device;
    write(&device, 1, 0..50);
    let mut client = Client::new(device.clone());
    let caps = client.caps().unwrap();
    assert_eq!(caps.atomic_units_max, 0);
    assert!(!caps.modes.contains(RemapFlags::ATOMIC) && !caps.modes.contains(RemapFlags::MOVE));
    let done = client.remap(RemapFlags::COPY, None, &[range(200, 0, 50)]).unwrap();
    assert_eq!((done.cmd_id, done.results[0].copied), (0, 50));
    // A command that only a device with a memory can take.
    let one = [range(300, 0, 1)];
    let refused = |client: &mut Client<SsdDevice>, flags, id| {
        client.remap(flags, id, &one).unwrap_err().to_string()
    };
    for (flags, id) in
        [(RemapFlags::COPY, Some(5)), (RemapFlags::MOVE, Some(5)), (RemapFlags::ATOMIC, None)]
    {
        let text = refused(&mut client, flags, id);
        assert!(text.contains("need a device with ftl.remap = \"ln\" or \"lh\""), "{text}");
    }
    assert!(
        refused(&mut client, RemapFlags::MOVE, None).contains("cannot move: MOVE_ON_FLUSH can")
    );
    assert_eq!(read(&device, 300), vec![0; 4096]);
    create(&device, "day", 0, 50).unwrap();
    write(&device, 2, 0..50);
    restore(&device, "day").unwrap();
    let details = device.details().unwrap();
    assert_eq!((details.remap.remapped, details.remap.copied), (0, 150));
    assert_eq!(details.ftl.programs.of(Cause::Fallback), 150);
    assert_eq!(device.snapshot().unwrap().remap_pages, [0, 150, 0], "what the metrics tell");
    drop((client, device));
    let device = folder.open().device;
    for at in 0..50 {
        assert_eq!((read(&device, at), read(&device, 200 + at)), (content(1, at), content(1, at)));
    }
}

/// A host that does not know whether its command was executed sends it again.
#[test]
fn a_repeated_command_is_not_executed_again() {
    let config = shares(plain());
    let folder = Folder::new(&config);
    let device = folder.open().device;
    write(&device, 1, 0..8);
    let mut client = Client::new(device.clone());
    let ranges = [range(100, 0, 8)];
    assert_eq!(client.remap(RemapFlags::MOVE, Some(7), &ranges).unwrap().results.len(), 1);
    write(&device, 2, 0..8);
    assert!(client.remap(RemapFlags::MOVE, Some(7), &ranges).unwrap().results.is_empty());
    assert_eq!((read(&device, 0), read(&device, 100)), (content(2, 0), content(1, 0)));
    device.flush().unwrap();
    drop((client, device));
    let device = folder.open().device;
    let mut client = Client::new(device.clone());
    assert!(client.remap(RemapFlags::MOVE, Some(7), &ranges).unwrap().results.is_empty());
    assert_eq!((read(&device, 0), read(&device, 100)), (content(2, 0), content(1, 0)));
    // Another number is another command.
    assert_eq!(client.remap(RemapFlags::MOVE, Some(8), &ranges).unwrap().results.len(), 1);
    assert_eq!((read(&device, 0), read(&device, 100)), (vec![0; 4096], content(2, 0)));
}

#[test]
fn move_on_flush_unmaps_at_the_flush() {
    let folder = Folder::new(&shares(plain()));
    let device = folder.open().device;
    write(&device, 1, 0..8);
    device.flush().unwrap();
    let mut client = Client::new(device.clone());
    client.remap(RemapFlags::MOVE_ON_FLUSH, None, &[range(100, 0, 8)]).unwrap();
    write(&device, 2, 3..4);
    // A write with FUA is no flush, and neither is another remap.
    device.write(50 * PAGE, &content(2, 50), true).unwrap();
    client.remap(RemapFlags::COPY, None, &[range(200, 50, 1)]).unwrap();
    assert_eq!((read(&device, 0), read(&device, 100)), (content(1, 0), content(1, 0)));
    device.flush().unwrap();
    assert_eq!((read(&device, 0), read(&device, 3)), (vec![0; 4096], content(2, 3)));
    assert_eq!(read(&device, 103), content(1, 3));
}

/// With modelled latency a command is due when the model completes it, here hours later: after the stores to
/// NVRAM, or after the programs of copies, and after commands before it that need the same.
#[test]
fn a_remap_is_due_at_its_modelled_time() {
    const HOUR: Duration = Duration::from_hours(1);
    let hour = Nanos::new(3_600_000_000_000);
    let mut shared = shares(plain());
    shared.ftl.remap.nvram_write = hour;
    let mut copied = shares(plain());
    copied.ftl.remap = RemapConfig::OFF;
    copied.timing.program = CellTimes::new(&[hour]).unwrap();
    for (config, latency) in [
        (&shared, Latency::Model),
        (&shared, Latency::None),
        (&copied, Latency::Model),
        (&copied, Latency::None),
    ] {
        let folder = Folder::new(config);
        let image = Image::open(&folder.path(), Access::Exclusive).unwrap();
        let device = SsdDevice::open(image, config, OpenOptions::new(latency)).unwrap().device;
        write(&device, 1, 0..1);
        let control = device.control().unwrap();
        let due = |dst| {
            let ranges = vec![range(dst, 0, 1)];
            let block = RemapVector { ranges, ..Default::default() }.encode().unwrap();
            control.write(0, &block, false).unwrap()
        };
        let sent = Instant::now();
        let dues = [due(100), due(200)];
        if latency == Latency::None {
            assert_eq!(dues, [None, None]);
            continue;
        }
        assert!(dues[0].unwrap() >= sent + HOUR, "{dues:?}");
        // Half an hour of doubt: the two copies go to dies that began at different times.
        assert!(dues[1].unwrap() >= dues[0].unwrap() + HOUR / 2, "{dues:?}");
        // The content is there at once, as for writes: only the answer waits.
        assert_eq!(read(&device, 200), content(1, 0));
    }
}

/// Every range that changed something is told, with its bytes and whether it moves; a command that had been done before, one
/// that is refused, a range that was skipped, and snapshots are not.
#[test]
fn ranges_that_were_remapped_are_told() {
    let folder = Folder::new(&shares(plain()));
    let device = folder.open().device;
    let (told, seen) = std::sync::mpsc::channel();
    device.watch_remaps(Box::new(move |range| {
        let RemappedRange { target, source, len, moves, .. } = *range;
        told.send((target / PAGE, source / PAGE, len / PAGE, moves)).unwrap();
    }));
    let seen = || seen.try_iter().collect::<Vec<_>>();
    write(&device, 1, 0..8);
    let mut client = Client::new(device.clone());
    let mut remap = |flags, id, ranges: &[VectorRange]| client.remap(flags, id, ranges).is_ok();
    let two = [range(100, 0, 4), range(200, 2, 2)];
    assert!(remap(RemapFlags::COPY, Some(7), &two));
    assert_eq!(seen(), [(100, 0, 4, false), (200, 2, 2, false)]);
    assert!(remap(RemapFlags::COPY, Some(7), &two));
    assert_eq!(seen(), [], "it was done before");
    assert!(remap(RemapFlags::MOVE, Some(8), &[range(300, 4, 1)]));
    assert!(remap(RemapFlags::MOVE_ON_FLUSH, None, &[range(301, 5, 1)]));
    assert_eq!(seen(), [(300, 4, 1, true), (301, 5, 1, true)]);
    assert!(remap(RemapFlags::VERIFY_EQUAL, None, &[range(1, 0, 1), range(101, 1, 1)]));
    assert_eq!(seen(), [(101, 1, 1, false)], "pages 0 and 1 differ");
    assert!(!remap(RemapFlags::COPY, None, &[range(0, u64::MAX, 1)]));
    create(&device, "a", 0, 4).unwrap();
    assert_eq!(seen(), []);
    device.cut_power().unwrap();
    assert!(remap(RemapFlags::COPY, None, &[range(302, 100, 2)]));
    assert_eq!(seen(), [(302, 100, 2, false)], "after a power cut as well");
}
