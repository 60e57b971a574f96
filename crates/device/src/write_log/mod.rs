//! Logs of all that is written to a device, in the format of dm-log-writes ([`onefold_format::WriteLogEntry`]): of what a volume sends
//! to its backing, or of what clients send; read and replayed afterwards.

mod error;
mod reader;
mod recorder;

pub use error::WriteLogError;
pub use reader::{Logged, WriteLogReader};
pub(crate) use recorder::Covered;
pub use recorder::{Keeps, WriteLog};
