//! One file per format.

mod appdedupe;
mod blkparse;
mod blktrace;
mod block;
mod clouds;
mod diskmon;
mod fio_iolog;
mod fiu;
mod msr;
mod nbdkit_log;
mod onefold_csv;
mod oracle_general;
mod rwbs;
mod simulators;
mod spc;
mod systor;
mod tracefs;
mod vscsi;

use crate::lines::LineFormat;
use crate::records::RecordFormat;
use crate::{Digest, Format};

/// The line parser of a text format.
pub(crate) fn line_format(format: Format) -> Option<Box<dyn LineFormat>> {
    Some(match format {
        Format::Msr => Box::new(msr::Msr::default()),
        Format::Fiu => Box::new(fiu::Fiu),
        Format::Appdedupe => Box::new(appdedupe::Appdedupe),
        Format::Spc => Box::new(spc::Spc),
        Format::Systor => Box::new(systor::Systor::default()),
        Format::Alibaba => Box::new(clouds::Alibaba),
        Format::K5cloud => Box::new(clouds::K5cloud),
        Format::Tencent => Box::new(clouds::Tencent),
        Format::Ssdsim | Format::Mqsim => Box::new(simulators::Ssdsim),
        Format::Disksim => Box::new(simulators::Disksim { mask: 1 }),
        Format::Ioda => Box::new(simulators::Disksim { mask: u64::MAX }),
        Format::Blkparse => Box::new(blkparse::Blkparse::default()),
        Format::Tracefs => Box::new(tracefs::Tracefs::default()),
        Format::NbdkitLog => Box::new(nbdkit_log::NbdkitLog::default()),
        Format::FioIolog => Box::new(fio_iolog::FioIolog::default()),
        Format::VscsiCsv => Box::new(vscsi::VscsiCsv),
        Format::Diskmon => Box::new(diskmon::Diskmon),
        Format::OnefoldCsv => Box::new(onefold_csv::OnefoldCsv),
        Format::Blktrace
        | Format::Vscsi1
        | Format::Vscsi2
        | Format::Oft
        | Format::Parquet
        | Format::OracleGeneral => return None,
    })
}

/// The parser of a format of binary records.
pub(crate) fn record_format(format: Format) -> Option<Box<dyn RecordFormat>> {
    Some(match format {
        Format::Blktrace => Box::new(blktrace::Blktrace::default()),
        Format::Vscsi1 => Box::new(Vscsi::VERSION_1),
        Format::Vscsi2 => Box::new(Vscsi::VERSION_2),
        Format::OracleGeneral => Box::new(oracle_general::OracleGeneral),
        _ => return None,
    })
}

pub use blktrace::blktrace_event;

// For detection.
pub(crate) use blkparse::is_summary as is_blkparse_summary;
pub(crate) use blktrace::is_magic as blktrace_magic;
pub(crate) use onefold_csv::HEADER as ONEFOLD_CSV_HEADER;
pub(crate) use vscsi::{CSV_HEADER as VSCSI_CSV_HEADER, Vscsi};

/// 32 hexadecimal digits as a digest.
pub(crate) fn digest(hex: &[u8]) -> Option<Digest> {
    let (pairs, odd) = hex.as_chunks::<2>();
    let pairs: &[[u8; 2]; 16] = pairs.try_into().ok()?;
    if !odd.is_empty() {
        return None;
    }
    let mut digest = [0; 16];
    for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
        *byte = crate::cursor::hex_digit(*high)? << 4 | crate::cursor::hex_digit(*low)?;
    }
    Some(digest)
}

/// The digests of eight 512 B sectors as one of 4 KiB. Only equality counts, so FNV-1a in 128 bits
/// is enough: the parts are digests already.
pub(crate) fn fold_digests(hex: &[u8]) -> Option<Digest> {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013B;
    let mut state = BASIS;
    for part in hex.chunks(32) {
        for byte in digest(part)? {
            state = (state ^ u128::from(byte)).wrapping_mul(PRIME);
        }
    }
    Some(state.to_le_bytes())
}
