//! A host with a log that cleans by remap, as F2FS would (Wu 2022, sec. V-D): which remaps keep its data over a power cut.
//!
//! The host has one file of one unit, two places for the table that says where the file is, and a footer that says which
//! table counts. It moves the file, and makes its checkpoint as F2FS does: the other table, a flush, the footer, a
//! flush. Only then may the old place be used again. After a power cut it trusts what the footer leads to.

use onefold_ftl::{Ftl, FtlConfig, FtlError, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use onefold_nand::MediaError;
use onefold_testkit::{Cut, CutMedia, Power, fill, version_of};
use onefold_units::Lpn;

use super::rig::CUTS;
use crate::common::{AT, COPY, Setup, plain_config, read, spec};

const OLD: u32 = 0;
const NEW: u32 = 1;
const TABLES: [u32; 2] = [2, 3];
const FOOTER: u32 = 4;
/// What the file holds.
const CONTENT: u64 = 7;
/// Operations of the medium in a cleaning and its checkpoint, at most.
const OPERATIONS: u64 = 24;

const MOVE: RemapOptions = RemapOptions { moves: true, ..COPY };
const MOVE_ON_FLUSH: RemapOptions = RemapOptions { moves_on_flush: true, ..COPY };

struct Host {
    ftl: Ftl<CutMedia>,
    setup: Setup,
}

impl Host {
    /// Numbers stand for contents: that of a table is the place of the file, that of the footer the number of its table, both from 1.
    fn write(&mut self, lpn: u32, number: u64) -> Result<(), FtlError> {
        let mut data = self.setup.unit();
        fill(lpn, number, &mut data);
        self.ftl.write(AT, Lpn::new(lpn), 1, 0, &data).map(drop)
    }

    fn number(&mut self, lpn: u32) -> Option<u64> {
        version_of(&read(&mut self.ftl, &self.setup, lpn).unwrap())
    }

    fn checkpoint(&mut self, table: usize, place: u32) -> Result<(), FtlError> {
        self.write(TABLES[table], u64::from(place) + 1)?;
        self.ftl.flush(AT)?;
        self.write(FOOTER, if table == 0 { 1 } else { 2 })?;
        self.ftl.flush(AT).map(drop)
    }

    /// Moves the file, and lets the old place go after the checkpoint.
    fn clean(&mut self, options: RemapOptions) -> Result<(), FtlError> {
        let range = RemapRange { dst: Lpn::new(NEW), src: Lpn::new(OLD), len: 1 };
        self.ftl.remap(AT, &[range], options)?;
        self.checkpoint(1, NEW)?;
        self.ftl.trim(AT, Lpn::new(OLD), 1).map(drop)
    }

    /// What the file holds by the last checkpoint; nothing is where zeroes are.
    fn file(&mut self) -> Option<u64> {
        let table = if self.number(FOOTER) == Some(2) { TABLES[1] } else { TABLES[0] };
        let place = if self.number(table) == Some(2) { NEW } else { OLD };
        self.number(place).filter(|number| *number > 0)
    }
}

/// What the file holds after a power cut at each instant of a cleaning, `None` where it is lost.
fn files(scheme: RemapScheme, options: RemapOptions) -> Vec<Option<u64>> {
    let remap = RemapConfig { scheme, log_bytes: 1024, segment_bytes: 128, ..RemapConfig::OFF };
    let config = FtlConfig { remap, ..plain_config() };
    let setup = Setup::new(spec(18, 8, 4096, 4096), config, 0.9).unwrap();
    let instants = (0..OPERATIONS).flat_map(|after| CUTS.map(|cut| (after, cut)));
    let file = |(after, cut): (u64, Cut)| {
        let media = CutMedia::new(&setup.geometry, setup.nvram_bytes(), Power::Device, after);
        let mut host = Host { ftl: setup.build(media), setup };
        host.write(OLD, CONTENT).unwrap();
        host.checkpoint(0, OLD).unwrap();
        host.ftl.nand_mut().media_mut().arm(after, cut);
        match host.clean(options) {
            Ok(()) | Err(FtlError::Media(MediaError::PowerLost)) => {}
            Err(error) => panic!("{error}"),
        }
        let mut media = host.ftl.into_media();
        media.restore();
        let (ftl, _) = setup.recover(media).unwrap();
        Host { ftl, setup }.file()
    };
    instants.map(file).collect()
}

#[test]
fn copies_keep_the_file_at_every_instant() {
    for scheme in [RemapScheme::None, RemapScheme::Ln, RemapScheme::Lh] {
        assert!(files(scheme, COPY).iter().all(|file| *file == Some(CONTENT)), "{scheme:?}");
    }
}

/// The checkpoint that is still the last one names the old place, where nothing is any more.
#[test]
fn moves_lose_the_file_until_the_checkpoint() {
    for options in [MOVE, MOVE_ON_FLUSH] {
        for scheme in [RemapScheme::Ln, RemapScheme::Lh] {
            let files = files(scheme, options);
            assert!(files.contains(&None), "{scheme:?}: {options:?} lost nothing");
            // Before it and after it all is well.
            let ends = [files.first(), files.last()];
            assert_eq!(ends, [Some(&Some(CONTENT)); 2], "{scheme:?}: {options:?}");
        }
    }
}
