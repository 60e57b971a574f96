//! Every preset, the canonical form, and the documents that list them.

use onefold_config::{Config, PRESETS, Sources, reference};
use onefold_ssd::SsdConfig;
use onefold_units::Nanos;
use onefold_units::convert::float;

fn load(preset: &str, sets: &[&str]) -> Config {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let sources = Sources { preset: Some(preset), sets: &sets, ..Sources::default() };
    Config::load(&sources).unwrap_or_else(|error| panic!("{preset}: {error}"))
}

#[test]
fn every_preset_is_feasible_and_documented() {
    for preset in PRESETS {
        let config = load(preset.name, &[]);
        if config.zns(7).unwrap().is_some() {
            continue;
        }
        let ssd = config.ssd(7).unwrap();
        let total = ssd.geometry.total_slots();
        assert_eq!(config.name(), preset.name);
        assert!(ssd.ftl.logical_units < total);
        // Free superblocks above the GC threshold have to exist when the device is full, otherwise
        // GC has nothing to gain.
        let spare = 1.0 - float(ssd.ftl.logical_units) / float(total);
        assert!(spare > ssd.ftl.gc_start, "{}: spare {spare}", preset.name);
        assert!(preset.summary().len() > 20, "{} has a first line", preset.name);
        let names_source = ["Source:", "Onefold's own", "FEMU's", "extends"];
        assert!(names_source.iter().any(|word| preset.text.contains(word)), "{}", preset.name);
    }
}

/// Every preset of a block device can lie below a volume of every mode (volume.md, section 11).
#[test]
fn every_preset_carries_every_volume() {
    let is_zoned = |name: &str| load(name, &[]).zns(0).unwrap().is_some();
    for preset in PRESETS.iter().filter(|preset| !is_zoned(preset.name)) {
        for mode in ["log", "sung", "han"] {
            let set = format!("volume.mode={mode}");
            let config = load(preset.name, &[&set]);
            let volume = config.volume().unwrap().unwrap();
            assert_eq!(volume.mode.name(), mode);
            let ssd = config.ssd(0).unwrap();
            let unit = SsdConfig::write_unit_bytes(&ssd.geometry, &ssd.buffer) / 4096;
            let aligned = volume.geometry.unit_blocks;
            assert_eq!(aligned, if mode == "log" { unit } else { 1 }, "{}", preset.name);
            assert!(volume.logical_bytes() <= config.logical_bytes().unwrap() / 10 * 8);
        }
    }
}

/// A flush programs what was begun of a flash page; a protected buffer keeps it.
#[test]
fn batches_are_filled_up_to_what_the_device_would_pad() {
    let unit = |preset: &str, set: &[&str]| {
        let volume = load(preset, &[&["volume.mode=log"], set].concat()).volume();
        volume.unwrap().unwrap().geometry.unit_blocks
    };
    assert_eq!(
        ["tlc", "qlc-16k", "tlc-plp", "qlc-16k-plp"].map(|name| unit(name, &[])),
        [4, 4, 1, 4]
    );
    assert_eq!(unit("tlc-plp", &["buffer.volatile=true"]), 4);
    assert_eq!(unit("tlc", &["volume.unit=8KiB"]), 2);
}

#[test]
fn s1_is_the_default() {
    let bare = Config::load(&Sources::default()).unwrap();
    assert_eq!(bare, load("s1", &[]));
    let ssd = bare.ssd(0).unwrap();
    assert_eq!(ssd.geometry.raw_bytes(), 4 << 30);
    assert_eq!(ssd.geometry.pools(), 16, "one pool per die");
    assert_eq!(ssd.ftl.logical_units, 917_504);
    assert_eq!(ssd.timing.channel_rate, 400_000_000);
    assert_eq!(ssd.timing.link_rate, 4_000_000_000);
    assert_eq!(ssd.timing.read.of_row(5), Nanos::new(40_000));
    assert_eq!(ssd.ftl.map_cache_bytes, None);
    assert_eq!(ssd.buffer.bytes, 0);
    assert!(!ssd.ftl.metadata_pages);
}

#[test]
fn presets_have_the_sizes_of_their_sources() {
    let raw = |name| load(name, &[]).ssd(0).unwrap().geometry.raw_bytes();
    let logical = |name| load(name, &[]).logical_bytes().unwrap();
    assert_eq!(raw("mqsim-default"), 512 << 30);
    assert_eq!(raw("femu-bb"), 16 << 30);
    assert_eq!((logical("femu32"), raw("femu32")), (32 << 30, 36 << 30));
    assert_eq!((logical("ssdsim256"), raw("ssdsim256")), (256 << 30, 288 << 30));
    assert_eq!(logical("jeong2021"), 300 << 30);
    let femu32 = load("femu32", &[]).ssd(0).unwrap().geometry;
    assert_eq!((femu32.superblocks(), femu32.slots()), (576, 16_384));
    let ssdsim = load("ssdsim256", &[]).ssd(0).unwrap();
    assert_eq!((ssdsim.geometry.dies(), ssdsim.geometry.superblocks()), (32, 2304));
    assert_eq!(ssdsim.timing.program.of_row(0), Nanos::new(500_000), "inherited from femu32");
    let qlc = load("qlc-16k", &[]).ssd(0).unwrap();
    assert_eq!(qlc.geometry.unit_bytes(), 16_384);
    assert_eq!(qlc.timing.read.of_row(3), Nanos::new(169_600));
}

#[test]
fn zoned_presets_have_the_zones_of_their_sources() {
    let zns = |name| load(name, &[]).zns(0).unwrap().unwrap();
    for (name, zones, bytes, dies, sets) in [
        ("zns-proto", 1013, 32 << 20, 1, 1024),
        ("zn540", 15, 2 << 30, 32, 16),
        ("femu-zns", 31, 128 << 20, 8, 32),
    ] {
        let zns = zns(name);
        assert_eq!((zns.zones, zns.zone_dies), (zones, dies), "{name}");
        assert_eq!(u64::from(zns.zone_blocks) * 4096, bytes, "{name}");
        assert_eq!(zns.capacity_blocks, zns.zone_blocks, "{name}");
        assert_eq!(onefold_ssd::zns::ZnsLayout::new(&zns).unwrap().sets(), sets, "{name}");
    }
    assert_eq!(load("femu-zns", &[]).logical_bytes().unwrap(), 31 * (128 << 20));
    let single = zns("choi2022-single");
    assert_eq!((single.conventional_zones(), single.zones, single.zone_blocks), (16, 64, 16_384));
    assert_eq!(onefold_ssd::zns::ZnsLayout::new(&single).unwrap().sets(), 65);
    let conventional = single.conventional.unwrap();
    assert_eq!(conventional.ftl.logical_units * 4096, 1 << 30);
    assert_eq!(conventional.geometry.spec().blocks, 93 - 65);
    assert_eq!(load("choi2022-single", &[]).logical_bytes().unwrap(), 5 << 30);
}

/// Conventional zones take the flash that they need and not more, wherever that leaves room for the others.
#[test]
fn conventional_zones_have_their_share_of_the_flash() {
    let share = |sets: &[&str]| {
        let zns = load("choi2022-single", sets).zns(0).unwrap().unwrap();
        let device = zns.conventional.unwrap();
        let ftl = onefold_ftl::FtlConfig {
            logical_units: device.ftl.logical_units * 5 / 4,
            ..device.ftl
        };
        let fits = |blocks| {
            let spec = onefold_nand::GeometrySpec { blocks, ..*device.geometry.spec() };
            let geometry = onefold_nand::Geometry::new(spec).unwrap();
            onefold_ftl::Layout::new(&geometry, &ftl).is_ok()
        };
        let blocks = device.geometry.spec().blocks;
        assert!(fits(blocks) && !fits(blocks - 1), "{blocks} blocks");
        assert_eq!(device.geometry.dies(), zns.geometry.dies());
        (blocks, zns.zones, device.faults.bad_superblocks, zns.faults.bad_superblocks)
    };
    assert_eq!(share(&[]), (28, 64, 0, 0));
    let bad = "faults.bad_superblocks=6";
    assert_eq!(share(&[bad]), (28, 64, 1, 5), "28 of 93 superblocks are theirs");
    let fewer = ["namespace.conventional=4", "capacity.logical=4.5GiB", "geometry.blocks=90"];
    let (blocks, zones, ..) = share(&fewer);
    assert_eq!(zones, 68);
    assert!(blocks < 28);
    let sized = load("choi2022-single", &["zoned.policy=none"]).with_logical_size(3 << 30).unwrap();
    let zns = sized.zns(0).unwrap().unwrap();
    assert_eq!((zns.conventional_zones(), zns.zones), (16, 32));
    assert!(zns.geometry.spec().blocks > 32 + 28);
    let odd = load("choi2022-single", &[]).with_logical_size((3 << 30) + 4096);
    assert!(odd.is_err() && load("choi2022-single", &[]).with_logical_size(1 << 30).is_err());
}

#[test]
fn a_transfer_time_becomes_a_rate() {
    // 16 KiB in 52.433 us.
    assert_eq!(load("tlc", &[]).ssd(0).unwrap().timing.channel_rate, 312_474_968);
    // A rate given later displaces the time of the preset, and the other way round.
    let rate = |sets: &[&str]| load("tlc", sets).ssd(0).unwrap().timing.channel_rate;
    assert_eq!(rate(&["timing.channel=800MB/s"]), 800_000_000);
    assert_eq!(rate(&["timing.channel=0"]), 0);
    let s1 = load("s1", &["timing.transfer=20us"]);
    assert_eq!(s1.ssd(0).unwrap().timing.channel_rate, 204_800_000);
}

#[test]
fn canonical_forms_read_back() {
    for preset in PRESETS {
        let config = load(preset.name, &["run.qd=7"]);
        let text = config.to_toml();
        let again = Config::from_canonical(&text).unwrap();
        assert_eq!(again.to_toml(), text);
        assert_eq!(again.ssd(3).ok(), config.ssd(3).ok());
        assert_eq!(again.zns(3).unwrap(), config.zns(3).unwrap());
        assert_eq!(again.sha256(), config.sha256());
        assert_eq!(again.name(), preset.name);
        assert_eq!(again.run().qd, 7);
    }
    assert_ne!(load("s1", &[]).sha256(), load("s1", &["run.qd=7"]).sha256());
    assert_eq!(load("s1", &[]).sha256().len(), 64);
}

#[test]
fn forms_of_older_versions_get_defaults() {
    let config = Config::from_canonical("name = \"old\"\n[geometry]\nblocks = 128\n").unwrap();
    assert_eq!(config.name(), "old");
    assert_eq!(config.ssd(0).unwrap().geometry.raw_bytes(), 2 << 30);
    assert!(Config::from_canonical("extends = \"preset:s1\"").is_err());
}

#[test]
fn json_has_the_values_of_the_canonical_form() {
    let json = load("tlc", &["workload=randwrite,bs=4KiB,qd=32"]).to_json();
    assert_eq!(json["name"], "tlc");
    assert_eq!(json["workload"], "randwrite,bs=4KiB,qd=32");
    assert_eq!(json["timing"]["read"][2], "106us");
    assert_eq!(json["geometry"]["page"], "16KiB");
    assert_eq!(json["capacity"]["logical"], 0.934);
    assert_eq!(json["ftl"]["gc_pacing"], true);
    assert!(json.get("trace").is_none());
}

#[test]
fn served_devices_get_exactly_their_size() {
    for preset in PRESETS {
        let config = load(preset.name, &[]);
        if config.zns(0).unwrap().is_some() {
            continue;
        }
        let share = |config: &Config| {
            let ssd = config.ssd(0).unwrap();
            let (logical, total) = (ssd.ftl.logical_units, ssd.geometry.total_slots());
            u32::try_from(logical * 1_000_000 / total).unwrap()
        };
        let sized = config.with_logical_size(8 << 30).unwrap();
        assert_eq!(sized.logical_bytes().unwrap(), 8 << 30, "{}", preset.name);
        assert!(share(&sized) <= share(&config) + 1, "{}: spare capacity stays", preset.name);
        let own = config.logical_bytes().unwrap();
        let same = config.with_logical_size(own).unwrap().ssd(0).unwrap();
        assert_eq!(same, config.ssd(0).unwrap(), "{}: its own size changes nothing", preset.name);
        let fewer = sized.ssd(0).unwrap().geometry.spec().blocks - 1;
        let smaller =
            load(preset.name, &[&format!("geometry.blocks={fewer}")[..], "capacity.logical=8GiB"]);
        assert!(share(&smaller) + 1 >= share(&config), "{}: no block too many", preset.name);
        assert_eq!(Config::from_canonical(&sized.to_toml()).unwrap(), sized);
    }
    for (preset, bytes, zones) in
        [("zns-proto", 1 << 30, 32), ("zn540", 4 << 30, 2), ("femu-zns", 512 << 20, 4)]
    {
        let config = load(preset, &[]);
        let sized = config.with_logical_size(bytes).unwrap();
        let zns = sized.zns(0).unwrap().unwrap();
        assert_eq!((sized.logical_bytes().unwrap(), zns.zones), (bytes, zones), "{preset}");
        assert_eq!(Config::from_canonical(&sized.to_toml()).unwrap(), sized);
        let error = config.with_logical_size(bytes + (1 << 20)).unwrap_err();
        assert_eq!(error.code(), "config::size", "{preset}: part of a zone");
        let own = config.with_logical_size(config.logical_bytes().unwrap()).unwrap();
        assert_eq!(own.zns(0).unwrap(), config.zns(0).unwrap(), "{preset}");
    }
    let s1 = load("s1", &[]);
    for size in [0, 5000, u64::MAX / 4096 * 4096] {
        let error = s1.with_logical_size(size).unwrap_err();
        assert_eq!(error.code(), "config::size", "{error}");
    }
}

#[test]
fn seeds_reach_every_random_part() {
    let config = load("s1", &[]);
    let (a, b) = (config.ssd(1).unwrap(), config.ssd(2).unwrap());
    assert_ne!(a.ftl.seed, b.ftl.seed);
    assert_ne!(a.faults.seed, b.faults.seed);
    assert_ne!(a.ftl.seed, a.faults.seed);
}

/// `docs/configuration.md` and `docs/presets.md` are written by `ONEFOLD_BLESS=1 cargo test`.
#[test]
fn documents_are_in_step() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for (name, text) in
        [("configuration.md", reference::markdown()), ("presets.md", reference::presets_markdown())]
    {
        let path = docs.join(name);
        if std::env::var_os("ONEFOLD_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/{name} is out of date: ONEFOLD_BLESS=1 cargo test -p onefold-config"
        );
    }
}

#[test]
fn the_schema_knows_every_key_and_its_default() {
    let schema = reference::json_schema();
    for key in reference::all() {
        let pointer = match key.key.split_once('.') {
            None => format!("/properties/{}", key.key),
            Some(("tenant", name)) => format!("/properties/tenant/items/properties/{name}"),
            Some(("stack", name)) => format!("/properties/stack/items/properties/{name}"),
            Some((section, name)) => format!("/properties/{section}/properties/{name}"),
        };
        let property = schema.pointer(&pointer).unwrap_or_else(|| panic!("{pointer}"));
        assert_eq!(property["description"], key.meaning);
        assert_eq!(property.get("default").is_some(), !key.default.is_empty(), "{pointer}");
    }
    assert_eq!(
        schema["properties"]["ftl"]["properties"]["victim"]["anyOf"][0]["enum"][0],
        "greedy"
    );
    assert_eq!(schema["additionalProperties"], false);
}

/// Spare area as vendors say it is another way to say the logical capacity: the same device, the same canonical form.
#[test]
fn spare_area_is_a_spelling_of_the_capacity() {
    let load = |preset, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::load(&Sources { preset: Some(preset), sets: &sets, ..Sources::default() })
    };
    let spare = load("s1", &["capacity.op=25 %"]).unwrap();
    assert_eq!(spare, load("s1", &["capacity.logical=0.8"]).unwrap());
    assert!(spare.to_toml().contains("logical = 0.8"));
    // A preset says its capacity as a size; what is said above it counts.
    let raw = load("femu32", &[]).unwrap().ssd(0).unwrap().geometry.raw_bytes();
    let logical = load("femu32", &["capacity.op=0.28"]).unwrap().logical_bytes().unwrap();
    assert!((raw * 100).abs_diff(logical * 128) < raw / 10_000);
    for (set, expected) in [("0", "0.001"), ("-0.1", "0.001"), ("101", "100"), ("much", "7%")] {
        let error = load("s1", &[&format!("capacity.op={set}")]).unwrap_err().to_string();
        assert!(error.contains("capacity.op") && error.contains(expected), "{error}");
    }
    let both = load("s1", &["capacity.op=0.1", "capacity.logical=0.8"]).unwrap_err();
    assert!(both.to_string().contains("both capacity.logical and capacity.op"), "{both}");
}
