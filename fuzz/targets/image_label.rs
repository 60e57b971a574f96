//! The image label: any bytes are a label or an error, and a label survives being written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_format::{ImageLabel, LABEL_BYTES};

fuzz_target!(|data: &[u8]| {
    let _ = ImageLabel::decode(data, 0);
    let mut sealed = data.to_vec();
    sealed.resize(LABEL_BYTES, 0);
    onefold_fuzz::seal(&mut sealed);
    if let Ok(label) = ImageLabel::decode(&sealed, 1) {
        let bytes = label.encode().expect("what was decoded fits");
        assert_eq!(ImageLabel::decode(&bytes, 1), Ok(label));
    }
});
