//! Keys that were given and do nothing, as another key says that there is nothing for them to act on.

use serde_json::Value;

use crate::config::Config;
use crate::error::Origin;
use crate::tenant::Load;

/// Keys by their beginning, and what they act on.
struct Needs {
    keys: &'static [&'static str],
    /// Not these, which decide whether there is such a thing.
    except: &'static [&'static str],
    met: fn(&Config, &Value) -> bool,
    /// Why they do nothing.
    else_: &'static str,
}

const NEEDS: [Needs; 17] = [
    Needs {
        keys: &["buffer."],
        except: &["buffer.size"],
        met: |_, json| json["buffer"]["size"] != "0",
        else_: "buffer.size is 0",
    },
    Needs {
        keys: &["dedup."],
        except: &["dedup.fingerprints", "dedup.scope"],
        met: |config, _| config.fingerprints() > 0,
        else_: "nothing is deduplicated: dedup.scope is off",
    },
    Needs {
        keys: &["dedup.fingerprints"],
        except: &[],
        met: |_, json| json["dedup"]["scope"] != "off",
        else_: "dedup.scope is off",
    },
    Needs {
        keys: &["dedup.fingerprints", "dedup.scope"],
        except: &[],
        met: |_, json| json["ftl"]["remap"] != "none",
        else_: "ftl.remap is none",
    },
    Needs {
        keys: &["volume."],
        except: &["volume.mode"],
        met: |_, json| json["volume"]["mode"] != "none" || json["zoned"]["policy"] == "log",
        else_: "volume.mode is none",
    },
    Needs {
        keys: &["volume.map_memory"],
        except: &[],
        met: |_, json| json["volume"]["mode"] != "han",
        else_: "mode han has all tables in memory",
    },
    Needs {
        keys: &["volume.clean_share"],
        except: &[],
        met: |_, json| json["volume"]["mode"] == "han",
        else_: "volume.mode is not han",
    },
    Needs {
        keys: &["zoned."],
        except: &["zoned.policy"],
        met: |_, json| json["zoned"]["policy"] != "none",
        else_: "zoned.policy is none",
    },
    Needs {
        keys: &["namespace."],
        except: &["namespace.type"],
        met: |config, _| config.is_zoned(),
        else_: "namespace.type is no zoned one",
    },
    Needs {
        keys: &["ftl.remap_"],
        except: &[],
        met: |_, json| json["ftl"]["remap"] != "none",
        else_: "ftl.remap is none",
    },
    Needs {
        keys: &["faults.slow_by"],
        except: &[],
        met: |_, json| is_positive(&json["faults"]["slow"]),
        else_: "faults.slow is 0",
    },
    Needs {
        keys: &["faults.die"],
        except: &[],
        met: |config, _| !config.is_zoned(),
        else_: "dies of drives with zones do not fail",
    },
    Needs {
        keys: &["ftl.relocate"],
        except: &[],
        met: |_, json| {
            ["slow", "read", "bit_rot"].iter().any(|fault| is_positive(&json["faults"][fault]))
        },
        else_: "faults.slow, faults.read and faults.bit_rot are 0",
    },
    Needs {
        keys: &["ftl.streams"],
        except: &[],
        met: |_, json| {
            // A buffer sends what is append-only to a stream of its own.
            let has_buffer = json["buffer"]["size"] != "0";
            let classified = json["ftl"]["classifier"] != "host";
            json["volume"]["mode"] != "none" || has_buffer || classified || has_streams(json)
        },
        else_: "no request has a stream, of which [[tenant]], buffers, volumes and ftl.classifier give some",
    },
    Needs {
        keys: &["ftl.classifier"],
        except: &[],
        met: |_, json| json["ftl"]["streams"] != 1,
        else_: "ftl.streams is 1",
    },
    Needs {
        keys: &["run.mode", "run.speedup", "run.align", "run.fit", "run.repeat", "run.until"],
        except: &[],
        met: |config, json| has_trace(config, json),
        else_: "no trace is replayed",
    },
    Needs {
        keys: &["run.qd"],
        except: &[],
        met: |config, json| {
            has_trace(config, json)
                && ["closed", "bounded"].iter().any(|mode| json["run"]["mode"] == *mode)
        },
        else_: "run.mode is neither closed nor bounded, or no trace is replayed",
    },
];

fn is_positive(share: &Value) -> bool {
    share.as_f64().is_some_and(|share| share > 0.0)
}

fn tenants(json: &Value) -> impl Iterator<Item = &Value> {
    json["tenant"].as_array().into_iter().flatten()
}

fn has_streams(json: &Value) -> bool {
    tenants(json).any(|tenant| tenant["stream"].as_u64() > Some(0))
}

fn has_trace(config: &Config, json: &Value) -> bool {
    let of_tenants = || {
        tenants(json).any(|tenant| tenant["trace"].as_str().is_some_and(|path| !path.is_empty()))
    };
    matches!(config.load_of_run(), Some(Load::Trace(_))) || of_tenants()
}

impl Config {
    /// Keys that were given with `--set` or in a file and do nothing in a simulation, and why.
    /// Stacks are not looked at: their places have keys of their own.
    #[must_use]
    pub fn idle(&self) -> Vec<(&'static str, &'static str)> {
        if !self.places.is_empty() {
            return Vec::new();
        }
        let json = self.to_json();
        let given = self.given(|origin| matches!(origin, Origin::Set | Origin::File { .. }));
        let why = |key: &'static str| {
            let begins = |needs: &&Needs| {
                needs.keys.iter().any(|one| key.starts_with(one)) && !needs.except.contains(&key)
            };
            let unmet = |needs: &&Needs| !(needs.met)(self, &json);
            NEEDS.iter().filter(begins).find(unmet).map(|needs| (key, needs.else_))
        };
        given.filter_map(why).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Sources};

    fn idle(sets: &[&str]) -> Vec<&'static str> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let config = Config::load(&Sources { sets: &sets, ..Sources::default() }).unwrap();
        config.idle().into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn keys_with_nothing_to_act_on_are_found() {
        for (set, but) in [
            ("buffer.policy=arc", "buffer.size=1MiB"),
            ("volume.op=0.3", "volume.mode=log"),
            ("ftl.remap_compaction=never", "ftl.remap=lh"),
            ("faults.slow_by=20", "faults.slow=0.01"),
            ("ftl.relocate=true", "faults.read=0.01"),
            ("ftl.streams=2", "volume.mode=log"),
            ("ftl.streams=2", "buffer.size=1MiB"),
            ("ftl.streams=2", "ftl.classifier=hot-cold"),
            ("ftl.classifier=hot-cold", "ftl.streams=2"),
            ("run.speedup=2", "trace=a.csv"),
        ] {
            let key = set.split_once('=').unwrap().0;
            assert_eq!(idle(&[set]), [key]);
            assert_eq!(idle(&[set, but]), [""; 0], "{set} with {but}");
        }
        assert_eq!(idle(&["dedup.hash=xxh3"]), ["dedup.hash"]);
        for on in ["dedup.fingerprints=1k", "dedup.scope=reads"] {
            let key = on.split_once('=').unwrap().0;
            assert_eq!(idle(&["dedup.hash=xxh3", on]), [key], "nothing is shared without remaps");
            assert_eq!(idle(&["dedup.hash=xxh3", on, "ftl.remap=lh"]), [""; 0]);
            let off = idle(&[on, "ftl.remap=lh", "dedup.scope=off"]);
            assert_eq!(off.is_empty(), key == "dedup.scope", "{off:?}");
        }
        let with = |mode: &str, set: &str| idle(&[&format!("volume.mode={mode}"), set]);
        for (set, effect) in [("map_memory=2MiB", ["log", "sung"]), ("clean_share=0.5", ["han"; 2])]
        {
            for mode in ["log", "sung", "han"] {
                let expected = usize::from(!effect.contains(&mode));
                let found = with(mode, &format!("volume.{set}"));
                assert_eq!(found.len(), expected, "{set} with {mode}: {found:?}");
            }
        }
        assert_eq!(idle(&["faults.die=9"]), [""; 0]);
        assert_eq!(idle(&["run.qd=4", "trace=a.csv"]), ["run.qd"]);
        assert_eq!(idle(&["run.qd=4", "run.mode=closed", "trace=a.csv"]), [""; 0]);
        assert_eq!(idle(&["ftl.victim=fifo", "geometry.blocks=200"]), [""; 0]);
    }

    /// What a preset says is for whoever makes more of it.
    #[test]
    fn nobody_is_told_of_what_presets_say() {
        for preset in crate::PRESETS {
            let config = Config::load(&Sources { preset: Some(preset.name), ..Sources::default() });
            assert_eq!(config.unwrap().idle(), [], "{}", preset.name);
        }
    }
}
