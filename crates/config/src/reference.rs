//! The reference of all keys: for `onefold config explain`, the documentation and editors.

use std::fmt::Write;

use onefold_units::policy::Info;
use serde_json::{Map, Value as Json, json};

use crate::error::ConfigError;
use crate::key::{self, Key, STACK_KEYS, TENANT_KEYS};
use crate::policies::Policies;
use crate::preset::PRESETS;
use crate::quantity::Measure;
use crate::suggest;
use crate::value::Kind;

/// Everything there is to say about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReference {
    /// Section and name.
    pub key: String,
    /// Kind of value.
    pub kind: &'static str,
    /// Default as TOML; empty = none.
    pub default: String,
    /// Accepted values.
    pub limits: String,
    /// What it means.
    pub meaning: &'static str,
}

impl KeyReference {
    fn new(prefix: &str, key: &Key) -> Self {
        let default =
            if key.default.is_empty() { String::new() } else { key.default_value().toml() };
        Self {
            key: format!("{prefix}{}", key.path),
            kind: key.kind.name(),
            default,
            limits: key.kind.limits(),
            meaning: key.meaning,
        }
    }

    fn extends() -> Self {
        Self {
            key: "extends".to_owned(),
            kind: "text",
            default: String::new(),
            limits: "preset:NAME or a file".to_owned(),
            meaning: "What this file changes: a preset, or a file relative to this one. In files only.",
        }
    }

    /// The reference as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({
            "key": self.key,
            "type": self.kind,
            "default": self.default,
            "limits": self.limits,
            "meaning": self.meaning,
        })
    }
}

/// Every key, in the order of the canonical form; `extends` first, tenants last.
#[must_use]
pub fn all() -> Vec<KeyReference> {
    let keys = key::spelled().map(|key| KeyReference::new("", key));
    let tenants = TENANT_KEYS.iter().map(|key| KeyReference::new("tenant.", key));
    let places = STACK_KEYS.iter().map(|key| KeyReference::new("stack.", key));
    std::iter::once(KeyReference::extends()).chain(keys).chain(places).chain(tenants).collect()
}

/// The keys with one of these names, or in one of these sections; all keys if there are none.
///
/// # Errors
/// A name is neither a key nor a section.
pub fn select(names: &[String]) -> Result<Vec<KeyReference>, ConfigError> {
    let all = all();
    let is_named = |key: &KeyReference, name: &str| {
        key.key == name || key.key.split_once('.').is_some_and(|(section, _)| section == name)
    };
    for name in names {
        if !all.iter().any(|key| is_named(key, name)) {
            let sections = all.iter().filter_map(|key| key.key.split_once('.')).map(|pair| pair.0);
            let candidates = all.iter().map(|key| key.key.as_str()).chain(sections);
            return Err(ConfigError::UnknownKey {
                origin: crate::Origin::Arguments,
                key: name.clone(),
                suggestion: suggest::nearest(name, candidates),
            });
        }
    }
    let wanted =
        |key: &KeyReference| names.is_empty() || names.iter().any(|name| is_named(key, name));
    Ok(all.into_iter().filter(wanted).collect())
}

const INTRODUCTION: &str = "\
# Configuration reference

<!-- Generated from the key table: ONEFOLD_BLESS=1 cargo test -p onefold-config -->

A configuration is a stack of layers, each of which overrides the one below: the defaults (device
`s1`), what `extends` names, the file of `-c`, and `--set KEY=VALUE`. `onefold config show` prints
the result, `onefold config presets` lists the presets ([presets.md](presets.md)), and `onefold
config schema` prints a JSON Schema for editors.

## Numbers, sizes and shares

One grammar holds for this file, `--set`, workloads, buffer policies, studies and the options of all commands.

| What | How it is written | Examples |
|---|---|---|
| number | digits with `_` between them if need be, a point, an exponent | `1000`, `1_000`, `0.87`, `1e6` |
| count | a number, also with k, M, G, T: **powers of 1000** | `256k` is 256,000; `10M`; `1e6` |
| size | a number with B, KiB, MiB, GiB, TiB or k, M, G, T alone: **powers of 1024**; with kB, MB, GB, TB: powers of 1000 | `4K` and `4KiB` are 4,096 B, `4kB` is 4,000 B; `8G`, `1.5TiB` |
| time | a number with ns, us, ms, s, min, h or d | `60us`, `1.5ms`, `7d` |
| rate | a size with its whole unit, per second | `400MB/s` |
| share or number with a point | a number, also as a percentage | `0.87`, `87%` |

A letter alone counts in 1024s where bytes are meant, as in fio and dd, and in 1000s where anything else is: `requests=256k`,
`dedup.fingerprints=256k` and `rate=10k` are decimal, `bs=4k` and `buffer.size=256k` are binary. It may be small or capital, and so
may the units of sizes and rates; those of times are small. Numbers are exact: a value finer than 1 B, 1 ns or 1 B/s is refused, not
rounded. A size without a unit is bytes in workloads, policies and options. In configurations and studies, which are read long after
they were written, sizes, times and rates need their unit, and only zero may stand without.

In TOML everything but a plain number is a text in quotes: `size = \"4KiB\"`, `fingerprints = \"256k\"`, `gc_start = \"5%\"`. With
`--set` the quotes can be left out: `--set timing.read=[50us,60us]`.

## Tenants

A `[[tenant]]` table describes one of several loads on the device; the tenants of a file replace
those of what it extends.

## Stacks

A `[[stack]]` table describes a device or a layer of a [stack](stacks.md), with the keys of its
sections. The places of a file replace those of what it extends.
";

const BUFFER_INTRODUCTION: &str = "
## Buffer policies

`buffer.policy` takes the name of a policy. Parameters that should differ from their defaults follow
a colon: `--set buffer.policy=pt-lru:p=0.9`. Ratios are exact: `1/3`, `0.33` or `33%`. A program can
[add its own](own-policy.md), also of the kinds below.
";

const VICTIM_INTRODUCTION: &str = "
## Victim policies

`ftl.victim` says which superblock garbage collection empties and erases next.
";

const CLASSIFIER_INTRODUCTION: &str = "
## Stream classifiers

`ftl.classifier` says which of the write streams of `ftl.streams` a mapping unit goes to. Streams
have superblocks of their own, so data that dies together should share one. `ftl.separate_gc` keeps
what garbage collection copies apart already: `hot-cold` then gains little.

`auto` gives every write of an unmodified host one of eight classes, in this order: cold or unknown;
append-only (the evidence of the buffer policy `aoi`); a life of half a drive write or more; of a
quarter; of an eighth; of a 32nd; shorter, such as metadata of file systems; journals and other
rings. With fewer streams, neighbours in this order share one. It counts writes, reads no clock,
takes 22.25 B per MiB of the drive and 32 KiB, and begins anew at power-on. It gains more with
`ftl.victim=cost-benefit`. [What it saves, and where it costs](streams.md).
";

const PRESETS_INTRODUCTION: &str = "\
# Presets

<!-- Generated from presets/: ONEFOLD_BLESS=1 cargo test -p onefold-config -->

A preset is a configuration that ships with the program. Its file in `presets/` says where each
number comes from and which are Onefold's own choice. `onefold config show --preset NAME` prints
every key of a preset, `--set` changes one, and a file starts from one with `extends =
\"preset:NAME\"`.

| Preset | Device |
|---|---|
";

const PRESETS_NOTES: &str = "
`s1`, `mqsim-default` and `femu-bb` are compared with simulators and formulas that know no metadata
on flash, so theirs costs no pages (`ftl.metadata = \"oob\"`, no checkpoints). The other presets
stand for products and pay for head pages, tail pages and a checkpoint of the map every quarter of a
drive write.

`onefold ssd create --preset NAME --size SIZE` keeps everything of a preset but the number of
blocks, so the share of spare capacity stays.

`zns-proto`, `zn540`, `femu-zns`, `choi2022`, `choi2022-single` and `dmz-guest` have a zoned namespace
([zoned.md](zoned.md)): the simulator runs them, images hold them, and a volume of mode `log` can lie on one. `choi2022` and
`dmz-guest` have a second device, `choi2022-regular` and `dmz-guest-regular`, beside it, which only the simulator has.
";

/// The reference as Markdown.
#[must_use]
pub fn markdown() -> String {
    // Writing to a string cannot fail.
    let mut text = INTRODUCTION.to_owned();
    let mut section = None;
    for key in all() {
        let (own, name) = key.key.split_once('.').unwrap_or(("", &key.key));
        if section.as_deref() != Some(own) {
            let title = match own {
                "" => "Top level".to_owned(),
                "tenant" | "stack" => format!("`[[{own}]]`"),
                own => format!("`[{own}]`"),
            };
            let _ = write!(text, "\n## {title}\n\n");
            text += "| Key | Type | Default | Accepted | Meaning |\n|---|---|---|---|---|\n";
            section = Some(own.to_owned());
        }
        let default =
            if key.default.is_empty() { "-".to_owned() } else { format!("`{}`", key.default) };
        let _ = writeln!(
            text,
            "| `{name}` | {} | {default} | {} | {} |",
            key.kind, key.limits, key.meaning
        );
    }
    text + &policies_markdown()
}

/// The policies and their parameters as Markdown.
fn policies_markdown() -> String {
    let Policies { buffer, victim, classifier } = Policies::builtin();
    [
        table_of_policies(BUFFER_INTRODUCTION, buffer.iter()),
        table_of_policies(VICTIM_INTRODUCTION, victim.iter()),
        table_of_policies(CLASSIFIER_INTRODUCTION, classifier.iter()),
    ]
    .concat()
}

/// The policies of one kind: what each does, then the parameters of all.
fn table_of_policies<B: 'static>(
    introduction: &str,
    policies: impl Iterator<Item = &'static Info<B>>,
) -> String {
    // Writing to a string cannot fail.
    let mut text = introduction.to_owned();
    let mut parameters = String::new();
    text += "\n| Policy | What it does | Source |\n|---|---|---|\n";
    for info in policies {
        let _ = writeln!(text, "| `{}` | {} | {} |", info.name, info.about, info.source);
        for parameter in info.parameters {
            let _ = writeln!(
                parameters,
                "| `{}` | `{}` | `{}` | {} | {} |",
                info.name, parameter.name, parameter.default, parameter.limits, parameter.about
            );
        }
    }
    if !parameters.is_empty() {
        text += "\n| Policy | Parameter | Default | Accepted | Meaning |\n|---|---|---|---|---|\n";
        text += &parameters;
    }
    text
}

/// The presets as Markdown.
#[must_use]
pub fn presets_markdown() -> String {
    // Writing to a string cannot fail.
    let mut text = PRESETS_INTRODUCTION.to_owned();
    for preset in PRESETS {
        let _ = writeln!(text, "| `{}` | {} |", preset.name, preset.summary());
    }
    text += PRESETS_NOTES;
    text
}

/// A JSON Schema (draft 2020-12) of configuration files.
#[must_use]
pub fn json_schema() -> Json {
    let mut properties = Map::new();
    properties.insert(
        "extends".to_owned(),
        json!({"type": "string", "minLength": 1, "description": KeyReference::extends().meaning}),
    );
    for key in key::spelled() {
        match key.split() {
            ("", name) => {
                properties.insert(name.to_owned(), property(key));
            }
            (section, name) => {
                let section = properties.entry(section).or_insert_with(|| object(&Map::new()));
                section["properties"][name] = property(key);
            }
        }
    }
    let tenant = TENANT_KEYS.iter().map(|key| (key.path.to_owned(), property(key))).collect();
    properties.insert("tenant".to_owned(), json!({"type": "array", "items": object(&tenant)}));
    let mut place: Map<String, Json> =
        STACK_KEYS.iter().map(|key| (key.path.to_owned(), property(key))).collect();
    let names = json!([{"type": "string"}, {"type": "array", "items": {"type": "string"}}]);
    place["on"] = json!({"anyOf": names, "description": place["on"]["description"]});
    place.insert("extends".to_owned(), json!({"type": "string"}));
    let is_of_place = |name: &str, value: &Json| {
        value["type"] == "object" && !matches!(name, "run" | "precondition")
    };
    let sections = properties.iter().filter(|(name, value)| is_of_place(name, value));
    place.extend(sections.map(|(name, value)| (name.clone(), value.clone())));
    properties.insert("stack".to_owned(), json!({"type": "array", "items": object(&place)}));
    let mut schema = object(&properties);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Onefold configuration".into();
    schema
}

fn object(properties: &Map<String, Json>) -> Json {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn property(key: &Key) -> Json {
    const NUMBER: &str = r"[0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?";
    let quantity =
        |units: String| json!({"type": "string", "pattern": format!("^(0|{NUMBER} ?({units}))$")});
    let size = || quantity(units(Measure::Size));
    let time = || quantity(units(Measure::Time));
    let mut schema = match key.kind {
        Kind::Count { min, max } => json!({"anyOf": [
            {"type": "integer", "minimum": min, "maximum": max},
            {"type": "string", "pattern": format!("^{NUMBER} ?[kKmMgGtT]?$")},
        ]}),
        Kind::Spare => json!({"anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": format!("^{NUMBER} ?%?$")},
        ]}),
        Kind::Real { min, max } => json!({"anyOf": [
            {"type": "number", "minimum": min, "maximum": max},
            {"type": "string", "pattern": format!("^{NUMBER} ?%?$")},
        ]}),
        Kind::Quantity { measure, .. } => quantity(units(measure)),
        Kind::PowerOfTwo { .. } => size(),
        Kind::Times { .. } => json!({"anyOf": [
            time(),
            {"type": "array", "items": time(), "minItems": 1, "maxItems": 4},
        ]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Choice { words, .. } => json!({"enum": words}),
        Kind::Text | Kind::Extent => json!({"type": "string"}),
        // Editors offer the names; parameters may follow one.
        Kind::Policy(kind) => {
            let names = kind.names();
            let names: Vec<&str> = names.split(", ").collect();
            json!({"anyOf": [{"enum": names}, {"type": "string"}]})
        }
        Kind::Capacity => json!({"anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": format!("^{NUMBER} ?%?$")},
            size(),
        ]}),
        Kind::MapCache { .. } => json!({"anyOf": [{"const": "all"}, size()]}),
    };
    schema["description"] = key.meaning.into();
    if !key.default.is_empty() {
        schema["default"] = key.default_value().json();
    }
    schema
}

/// The units as a pattern; those of sizes and rates may be written small or in capitals.
fn units(measure: Measure) -> String {
    let list = measure.unit_list();
    let any_case = |c: char| format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase());
    let one = |name: &str| match measure {
        Measure::Time => name.to_owned(),
        Measure::Size | Measure::Rate => name
            .chars()
            .map(|c| if c.is_ascii_alphabetic() { any_case(c) } else { c.into() })
            .collect(),
    };
    list.split(", ").map(one).collect::<Vec<_>>().join("|")
}
