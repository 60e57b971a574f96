//! A reading of the journal detector.

use onefold_journal::{Found, Survey};
use onefold_units::Lba;

type Block = [u8; 4096];

/// Reads what the blocks say that it asks for; `read` fills one and says whether that worked.
pub(super) fn survey(blocks: u64, mut read: impl FnMut(Lba, &mut Block) -> bool) -> Found {
    let mut survey = Survey::new(blocks);
    let mut block = [0; 4096];
    while let Some(lba) = survey.ask() {
        let is_read = read(lba, &mut block);
        survey.supply(lba, is_read.then_some(&block));
    }
    survey.finish().unwrap_or_default()
}
