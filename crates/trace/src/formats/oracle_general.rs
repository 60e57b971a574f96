//! libCacheSim's `oracleGeneral`: 24 B little-endian {`time_s` u32, object u64, size u32, next
//! i64}.
//!
//! It has no read/write flag, so a [`crate::Reader`] takes it only for cache studies: every request
//! is a read of the object's number times 512 B.

use crate::Record;
use crate::TraceOp;
use crate::error::BinaryProblem;
use crate::lines::{Context, Taken};
use crate::records::{RecordFormat, binary_request, u32_at, u64_at};

#[derive(Debug)]
pub(crate) struct OracleGeneral;

impl RecordFormat for OracleGeneral {
    fn length(&mut self, _bytes: &[u8]) -> Result<Option<usize>, BinaryProblem> {
        Ok(Some(24))
    }

    fn record(
        &mut self,
        bytes: &[u8],
        context: &mut Context,
        out: &mut Vec<Record>,
    ) -> Result<Taken, BinaryProblem> {
        // 2^32 seconds times 10^9 fits 64 bits.
        let t_ns = u64::from(u32_at(bytes, 0)) * 10_u64.pow(context.digits);
        let offset = u64_at(bytes, 4).checked_mul(context.addr);
        let len = Some(u64::from(u32_at(bytes, 12)));
        out.push(binary_request(t_ns, TraceOp::Read, offset, len)?);
        Ok(Taken::Request)
    }
}
