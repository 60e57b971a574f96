//! A backing that refuses reads for a while: collection leaves what it cannot read, and nothing is given up.

use onefold_ftl::{Ftl, FtlError};
use onefold_nand::{Head, Media, MediaError, MemoryMedia, Spare};
use onefold_testkit::fill;
use onefold_units::convert::low32;
use onefold_units::{Lpn, Ppn, Rng, SuperblockId};

use crate::common::{AT, Setup, plain_config, read, spec};

/// Memory that refuses reads of slots before one.
#[derive(Clone, Debug)]
struct Refusing {
    inner: MemoryMedia,
    before: u32,
}

const REFUSED: MediaError = MediaError::Backing { errno: 5 };

impl Media for Refusing {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        self.inner.program(first, spares, data)
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        if ppn.raw() < self.before { Err(REFUSED) } else { self.inner.read(ppn, data) }
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        self.inner.read_spares(superblock)
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        self.inner.program_head(superblock, head)
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        self.inner.read_head(superblock)
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        self.inner.erase(superblock)
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        self.inner.nvram_write(offset, bytes)
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        self.inner.nvram_read(offset, bytes)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        self.inner.sync()
    }
}

struct World {
    setup: Setup,
    ftl: Ftl<Refusing>,
    versions: Vec<u64>,
    rng: Rng,
}

impl World {
    fn new() -> Self {
        let setup = Setup::new(spec(24, 8, 4096, 4096), plain_config(), 0.9).unwrap();
        let nvram = setup.nvram_bytes();
        let inner = MemoryMedia::new(&setup.geometry, nvram);
        let ftl = setup.build(Refusing { inner, before: 0 });
        let units = ftl.host_units();
        let mut world = Self { setup, ftl, versions: Vec::new(), rng: Rng::new(7) };
        for lpn in 0..units {
            world.versions.push(0);
            world.write(lpn).unwrap();
        }
        world
    }

    fn refuse(&mut self, before: u32) {
        self.ftl.nand_mut().media_mut().before = before;
    }

    fn write(&mut self, lpn: u32) -> Result<(), FtlError> {
        let version = self.versions[Lpn::new(lpn).index()] + 1;
        let mut data = self.setup.unit();
        fill(lpn, version, &mut data);
        self.ftl.write(AT, Lpn::new(lpn), 1, 0, &data)?;
        self.versions[Lpn::new(lpn).index()] = version;
        Ok(())
    }

    fn write_any(&mut self) -> Result<(), FtlError> {
        let lpn = low32(self.rng.below(self.ftl.host_units().into()));
        self.write(lpn)
    }

    fn expect_all(&mut self) {
        self.ftl.check().unwrap();
        for (lpn, version) in (0..).zip(self.versions.clone()) {
            let mut expected = self.setup.unit();
            fill(lpn, version, &mut expected);
            assert_eq!(read(&mut self.ftl, &self.setup, lpn), Ok(expected), "unit {lpn}");
        }
    }
}

/// A write failed because collection could not read a slot, and so did every write after it; or the slot was given up.
#[test]
fn writes_go_on_while_a_superblock_cannot_be_read() {
    let mut world = World::new();
    world.refuse(3 * 8);
    for _ in 0..2000 {
        world.write_any().unwrap();
    }
    assert!(world.ftl.stats().media_failures > 0, "collection came there");
    world.refuse(0);
    world.expect_all();
}

#[test]
fn a_backing_that_refuses_all_reads_is_no_full_device_and_comes_back() {
    let mut world = World::new();
    world.refuse(u32::MAX);
    let mut refused = 0;
    for _ in 0..200 {
        match world.write_any() {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, FtlError::Media(REFUSED));
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "collection was needed");
    world.refuse(0);
    for _ in 0..200 {
        world.write_any().unwrap();
    }
    world.expect_all();
}
