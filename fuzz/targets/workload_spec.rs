//! Workload specifications: a text is refused, or its canonical form means the same and its
//! requests stay on the device, a small one or the one it is made for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_trace::workload::{Request, Workload};

const DEVICE_BYTES: u64 = 64 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let workload = match Workload::parse(text) {
        Ok(workload) => workload,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let canonical = workload.canonical();
    let again = Workload::parse(&canonical).expect("the canonical form is a specification");
    assert_eq!(again, workload);
    assert_eq!(again.canonical(), canonical);

    let natural = workload.natural_bytes().filter(|bytes| *bytes > DEVICE_BYTES);
    for device in [Some(DEVICE_BYTES), natural].into_iter().flatten() {
        compare(&workload, &again, device);
    }
});

/// Equal workloads send equal requests, all of them to the device.
fn compare(workload: &Workload, again: &Workload, device: u64) {
    let Ok(mut generator) = workload.instantiate(device, 1) else { return };
    let mut twin = again.instantiate(device, 1).expect("the canonical form fits as well");
    let mut requests = [Request::EMPTY; 64];
    let mut others = [Request::EMPTY; 64];
    // The files of a small merge tree have a few pages each: it gets as far as merging them.
    for _ in 0..16 {
        let count = generator.fill(&mut requests);
        assert_eq!(twin.fill(&mut others), count);
        for (request, other) in requests[..count].iter().zip(&others[..count]) {
            assert_eq!(request, other);
            let end = request.offset.checked_add(u64::from(request.len));
            assert!(end.is_some_and(|end| end <= device), "{request:?} of {workload}");
        }
        if count < requests.len() {
            return;
        }
    }
}
