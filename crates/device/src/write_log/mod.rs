//! Logs of all that a volume sends to its backing, in the format of dm-log-writes ([`onefold_format::WriteLogEntry`]): kept while a
//! volume is served, read and replayed afterwards.

mod error;
mod reader;
mod recorder;

pub use error::WriteLogError;
pub use reader::{Logged, WriteLogReader};
pub(crate) use recorder::WriteLog;
