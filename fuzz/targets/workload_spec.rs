//! Workload specifications: a text is refused, or its canonical form means the same and its
//! requests stay on the device.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_trace::workload::{Request, Workload};

const DEVICE_BYTES: u64 = 64 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(workload) = Workload::parse(text) else { return };
    let canonical = workload.canonical();
    let again = Workload::parse(&canonical).expect("the canonical form is a specification");
    assert_eq!(again.canonical(), canonical);

    let Ok(mut generator) = workload.instantiate(DEVICE_BYTES, 1) else { return };
    let mut twin = again.instantiate(DEVICE_BYTES, 1).expect("the canonical form fits as well");
    let mut requests = [Request::EMPTY; 64];
    let mut others = [Request::EMPTY; 64];
    let count = generator.fill(&mut requests);
    assert_eq!(twin.fill(&mut others), count);
    for (request, other) in requests[..count].iter().zip(&others[..count]) {
        assert_eq!(request, other);
        let end = request.offset.checked_add(u64::from(request.len));
        assert!(end.is_some_and(|end| end <= DEVICE_BYTES), "{request:?} of {text}");
    }
});
