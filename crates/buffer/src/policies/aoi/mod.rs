//! Append-only isolation (Jeong 2021).

use crate::{Limits, Parameter, PolicyInfo, Value};

/// Name, source and parameters.
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "aoi",
    about: "Append-only isolation: data written once leaves before anything that is used again.",
    source: "Jeong et al. 2021",
    parameters: &[
        Parameter {
            name: "reaccess",
            default: Value::Word("mapped"),
            limits: Limits::Words(&["mapped", "cursor", "literal"]),
            about: "What tells an update from an append.",
        },
        Parameter {
            name: "chunk",
            default: Value::Bytes(1 << 20),
            limits: Limits::PowerOfTwo { least: 512, most: 1 << 30 },
            about: "Addresses that share two bits of the large-append table.",
        },
        Parameter {
            name: "threshold",
            default: Value::Bytes(16 << 10),
            limits: Limits::Bytes { least: 0, most: 1 << 40 },
            about: "Size from which a request is large.",
        },
        Parameter {
            name: "channels",
            default: Value::Count(8),
            limits: Limits::Count { least: 1, most: 4096 },
            about: "Flash channels: an append-only area holds a page for each die.",
        },
        Parameter {
            name: "ways",
            default: Value::Count(8),
            limits: Limits::Count { least: 1, most: 4096 },
            about: "Dies on a channel.",
        },
        Parameter {
            name: "trim_reset",
            default: Value::Word("touch"),
            limits: Limits::Words(&["touch", "full", "off"]),
            about: "Large TRIMs that reset the bits of a chunk: all that touch it, that cover it, none.",
        },
        Parameter {
            name: "area",
            default: Value::Word("lru"),
            limits: Limits::Words(&["lru", "s3-fifo", "sieve"]),
            about: "Replacement inside the area of small and re-accessed pages.",
        },
    ],
};
