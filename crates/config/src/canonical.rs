//! The canonical form of a configuration, which images and results carry.

use std::fmt::Write;

use serde_json::{Map, Value as Json};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::key::{KEYS, Key};
use crate::place::{GLOBAL, PlaceValues};
use crate::tenant::TenantValues;
use crate::value::Value;

/// A text that is not given.
fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Text(text) if text.is_empty())
}

impl Config {
    /// The canonical form: every key with its value, in the order of the reference. It reads back
    /// as an equal configuration.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Writing to a string cannot fail.
        let mut text = String::new();
        let mut section = "";
        for key in self.own_keys() {
            let value = &self.setting(key.path).value;
            let (own_section, name) = key.split();
            // Texts that are not given stay out; all other keys have a value.
            if is_empty(value) {
                continue;
            }
            if own_section != section {
                let _ = write!(text, "\n[{own_section}]\n");
                section = own_section;
            }
            let _ = writeln!(text, "{name} = {}", value.toml());
        }
        for place in &self.places {
            text += "\n[[stack]]\n";
            let head = place.head();
            let values = self.values_of_place(place);
            for (name, value) in head.iter().chain(&values).filter(|(_, value)| !is_empty(value)) {
                let _ = writeln!(text, "{name} = {}", value.toml());
            }
        }
        for tenant in &self.tenants {
            text += "\n[[tenant]]\n";
            for (name, value) in tenant.entries() {
                let _ = writeln!(text, "{name} = {}", value.toml());
            }
        }
        text
    }

    /// The canonical form as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut root = Map::new();
        for key in self.own_keys() {
            let value = &self.setting(key.path).value;
            if is_empty(value) {
                continue;
            }
            match key.split() {
                ("", name) => {
                    root.insert(name.to_owned(), value.json());
                }
                (section, name) => {
                    let section = root.entry(section).or_insert_with(|| Json::Object(Map::new()));
                    section[name] = value.json();
                }
            }
        }
        if !self.tenants.is_empty() {
            let tenant = |values: &TenantValues| -> Json {
                values.entries().map(|(name, value)| (name, value.json())).collect()
            };
            root.insert("tenant".to_owned(), self.tenants.iter().map(tenant).collect());
        }
        if !self.places.is_empty() {
            let place = |values: &PlaceValues| -> Json {
                let mut table = Map::new();
                for (name, value) in values.head().iter().filter(|(_, value)| !is_empty(value)) {
                    table.insert((*name).to_owned(), value.json());
                }
                for (path, value) in self.values_of_place(values) {
                    let (section, name) = path.split_once('.').unwrap_or(("", path));
                    let section = table.entry(section).or_insert_with(|| Json::Object(Map::new()));
                    section[name] = value.json();
                }
                Json::Object(table)
            };
            root.insert("stack".to_owned(), self.places.iter().map(place).collect());
        }
        Json::Object(root)
    }

    /// The keys that the configuration has itself: all, or those that no place of a stack has.
    fn own_keys(&self) -> impl Iterator<Item = &'static Key> {
        let all = self.places.is_empty();
        KEYS.iter().filter(move |key| all || GLOBAL.contains(&key.split().0))
    }

    /// SHA-256 of the canonical form, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> String {
        Sha256::digest(self.to_toml()).iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}
