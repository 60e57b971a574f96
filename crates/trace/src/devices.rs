//! Names of the devices of a trace.

use std::collections::BTreeMap;

/// Gives each device name a small number, in order of appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    numbers: BTreeMap<Box<[u8]>, u16>,
    names: Vec<String>,
    last: (Vec<u8>, u16),
}

impl Devices {
    /// The number of the device that the trace calls `key`; `name` turns the key into a name when
    /// the device is new. `None` past 65,536 devices.
    #[inline]
    pub(crate) fn number(&mut self, key: &[u8], name: fn(&[u8]) -> String) -> Option<u16> {
        // Neighbouring lines mostly name the same device.
        if self.last.0 == key && !self.names.is_empty() {
            return Some(self.last.1);
        }
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => self.insert(key, name(key))?,
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(key);
        self.last.1 = number;
        Some(number)
    }

    fn insert(&mut self, key: &[u8], name: String) -> Option<u16> {
        let number = u16::try_from(self.names.len()).ok()?;
        self.numbers.insert(key.into(), number);
        self.names.push(name);
        Some(number)
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

/// The key itself as a name.
pub(crate) fn plain(key: &[u8]) -> String {
    key.escape_ascii().to_string()
}
