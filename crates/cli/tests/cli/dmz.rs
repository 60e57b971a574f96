//! Volumes of policy `dmz` as a user meets them.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::common::{Folder, json, message, ssd, text};

fn volume(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onefold")).arg("volume").args(arguments).output().unwrap()
}

/// What a command says that has to end well.
fn says(arguments: &[&str]) -> serde_json::Value {
    let output = volume(&[arguments, &["--format", "json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// An image of 32 zones of 4 MiB, and where its cache is to be.
fn devices(folder: &Folder) -> (PathBuf, PathBuf) {
    let image = folder.zoned_image("128MiB");
    (image, folder.0.join("cache.img"))
}

#[test]
fn a_volume_is_made_told_checked_and_dumped() {
    let folder = Folder::new("dmz");
    let (image, cache) = devices(&folder);
    let (image, cache) = (text(&image), text(&cache));
    let on = ["--cache", cache];
    let make = ["create", image, "--zoned", "dmz", "--cache", cache, "--cache-size", "40MiB"];
    let planned = says(&[&make[..], &["--dry-run"]].concat());
    assert!(!PathBuf::from(cache).exists(), "a dry run leaves nothing behind");
    let label = says(&make);
    assert_eq!((&label["chunks"], &label["cache_zones"]), (&31.into(), &8.into()));
    assert_eq!(label["logical_bytes"], planned["logical_bytes"]);
    let info = says(&[&["info", image][..], &on].concat());
    assert_eq!((&info["mode"], &info["uuid"]), (&"dmz".into(), &label["uuid"]));
    assert_eq!(info["zones"]["sequential"]["reserved"], 9);
    assert_eq!((&info["mapped_chunks"], &info["closed"]), (&0.into(), &true.into()));
    let check = says(&[&["check", image, "--data"][..], &on].concat());
    assert_eq!((&check["damaged"], &check["found"]), (&false.into(), &0.into()));
    let zones = says(&[&["dump", image][..], &on, &["segments"]].concat());
    assert_eq!(zones.as_array().map(Vec::len), Some(42));
    assert_eq!((&zones[10]["use"], &zones[10]["device"]), (&"metadata".into(), &"zoned".into()));
    let raw = folder.0.join("raw.img");
    json(&["zones", image, "--export", text(&raw)]);
    let raw = std::fs::read(raw).unwrap();
    assert_eq!((raw.len(), &raw[..4]), (128 << 20, &0x445A_4244_u32.to_le_bytes()[..]));
}

#[test]
fn what_is_not_there_is_refused_with_what_to_do() {
    let folder = Folder::new("dmzno");
    let (image, cache) = devices(&folder);
    let (image, cache) = (text(&image), text(&cache));
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let output = volume(arguments);
        let said = message(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    let make = ["create", image, "--zoned", "dmz"];
    refused(&make, 2, "--cache");
    let odd = ["--cache", cache, "--cache-size", "41MiB"];
    refused(&[&make[..], &odd].concat(), 3, "multiple of the zone size");
    assert!(!PathBuf::from(cache).exists(), "what was made for nothing goes");
    refused(&["info", image, "--cache", image], 5, "in use");
    let good = ["--cache", cache, "--cache-size", "40MiB"];
    says(&[&make[..], &good].concat());
    refused(&[&make[..], &["--cache", cache]].concat(), 2, "--force");
    let verbs = [
        (&["snapshot", "create", image, "name"][..], 2),
        (&["resize", image, "--size", "64MiB"], 2),
        (&["info", image], 2),
        (&["check", image], 8),
    ];
    for (arguments, code) in verbs {
        refused(arguments, code, "name the zoned device");
    }
    refused(&["info", cache], 2, "regular device of a volume of policy dmz");
    refused(&["serve", image, "--cache", cache, "--ack", "buffer"], 2, "cannot be used with");
    refused(&["serve", image, "--cache", cache, "--journal-range", "x"], 2, "journal range");
}

/// An image of ten conventional and 32 sequential zones of 4 MiB.
fn single(folder: &Folder) -> PathBuf {
    let image = folder.0.join("single.img");
    let create = ["create", text(&image), "--preset", "choi2022-single", "--size", "168MiB"];
    let mut arguments = create.to_vec();
    for set in [
        "geometry.pages=16",
        "namespace.zone_size=4MiB",
        "namespace.conventional=10",
        "zoned.policy=none",
    ] {
        arguments.extend(["--set", set]);
    }
    let output = ssd(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", message(&output));
    image
}

#[test]
fn one_device_with_conventional_zones_needs_no_cache() {
    let folder = Folder::new("dmzone");
    let image = single(&folder);
    let image = text(&image);
    let zones = json(&["zones", image])["zones"].clone();
    assert_eq!((&zones[9]["type"], &zones[10]["type"]), (&1.into(), &2.into()));
    assert_eq!(zones[9]["state"], "not write pointer");
    assert!(zones[9]["state_code"] == 0 && zones[9]["write_pointer"].is_null());
    let said = message(&ssd(&["zones", image, "--zone", "3", "--act", "reset"]));
    assert!(said.contains("conventional"), "{said}");
    let label = says(&["create", image, "--zoned", "dmz"]);
    assert_eq!((&label["chunks"], &label["cache_zones"]), (&31.into(), &8.into()));
    assert!(label["cache"].is_null());
    let info = says(&["info", image]);
    assert_eq!((&info["mode"], &info["uuid"]), (&"dmz".into(), &label["uuid"]));
    let own = format!("dmz-{}", &label["uuid"].as_str().unwrap()[..8]);
    assert_eq!(info["name"], own, "dmzadm takes no volume without a name");
    assert_eq!(info["zones"]["conventional"]["metadata"], 2);
    assert_eq!(info["devices"].as_array().map(Vec::len), Some(1));
    let check = says(&["check", image, "--data"]);
    assert_eq!((&check["damaged"], &check["found"]), (&false.into(), &0.into()));
    let zones = says(&["dump", image, "segments"]);
    assert_eq!((&zones[0]["use"], &zones[0]["device"]), (&"metadata".into(), &"zoned".into()));
    assert_eq!(says(&["journals", image])["content_of"], "volume");
    let refused = |arguments: &[&str], words: &str| {
        let output = volume(arguments);
        let said = message(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["create", image, "--zoned", "dmz"], "--force");
    refused(
        &["create", image, "--zoned", "dmz", "--op", "0.5"],
        "--op is not for volumes of policy dmz",
    );
    refused(&["serve", image, "--hot-cold"], "--hot-cold is not for volumes of policy dmz");
    refused(&["snapshot", "create", image, "name"], "volume of policy dmz");
    let cache = folder.0.join("cache.img");
    let both =
        ["create", image, "--zoned", "dmz", "--cache", text(&cache), "--cache-size", "40MiB"];
    refused(&both, "leave --cache out");
    // A volume of mode log takes the same zones, and is no volume of policy dmz then.
    says(&["create", image, "--zoned", "log", "--op", "0.4", "--force"]);
    assert_eq!(says(&["info", image])["mode"], "log");
    refused(&["serve", image, "--journal", "one"], "--journal");
    let found = json(&["info", image])["device"]["zoned"]["conventional"].clone();
    assert_eq!((&found["zones"], &found["read_only"]), (&10.into(), &0.into()));
    assert!(found["stored_bytes"].as_u64() > Some(0));
}

#[test]
fn policies_without_their_devices_are_refused() {
    let folder = Folder::new("dmzlack");
    let (image, cache) = devices(&folder);
    let (image, cache) = (text(&image), text(&cache));
    let block = folder.image();
    let block = text(&block);
    let plain = folder.0.join("plain");
    std::fs::File::create(&plain).unwrap().set_len(64 << 20).unwrap();
    let plain = text(&plain);
    let size = ["--cache-size", "40MiB"];
    let cases: [(&[&str], &[&str], &str); 8] = [
        (&[block, "--zoned", "dmz", "--cache", cache], &size, "this one has no zones"),
        (&[block, "--zoned"], &[], "has no zones"),
        (&[plain, "--zoned", "log"], &[], "has no zones"),
        (&[image, "--zoned", "log", "--cache", cache], &size, "--cache belongs to policy dmz"),
        (&[image, "--cache", cache], &size, "--cache belongs to policy dmz"),
        (&[image, "--zoned", "dmz"], &size, "--cache <FILE>"),
        (&[image, "--zoned", "dmz", "--cache", cache, "--op", "0.3"], &size, "cannot be used with"),
        (&[plain, "--zoned", "--backing-size", "64MiB"], &[], "cannot be used with"),
    ];
    for (arguments, more, words) in cases {
        let output = volume(&[&["create"], arguments, more].concat());
        let said = message(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(!PathBuf::from(cache).exists(), "{arguments:?} leaves nothing behind");
    }
    assert!(std::fs::read(plain).unwrap().iter().all(|byte| *byte == 0));
    // The policy of `--zoned` alone.
    assert_eq!(says(&["create", image, "--zoned", "--op", "0.5"])["mode"], "log");
}

/// What zones hold lies in a file where it lies on the device; what was not chosen and what was not written are holes.
#[test]
fn zones_that_are_chosen_are_exported_once() {
    let folder = Folder::new("dmzexport");
    let (image, cache) = devices(&folder);
    let (image, cache) = (text(&image), text(&cache));
    says(&["create", image, "--zoned", "dmz", "--cache", cache, "--cache-size", "40MiB"]);
    let (first, other) = (folder.0.join("first.raw"), folder.0.join("other.raw"));
    let export =
        |zone: &str, file: &PathBuf| ssd(&["zones", image, "--zone", zone, "--export", text(file)]);
    let told = json(&["zones", image, "--zone", "0", "--export", text(&first)]);
    assert_eq!(told["zones"].as_array().map(Vec::len), Some(1));
    assert_eq!(told["zones"][0]["write_pointer"], 1, "the copy of the root record");
    assert_eq!(export("1", &other).status.code(), Some(0));
    let (first_bytes, other_bytes) =
        (std::fs::read(&first).unwrap(), std::fs::read(&other).unwrap());
    assert_eq!((first_bytes.len(), other_bytes.len()), (128 << 20, 128 << 20));
    assert_eq!(first_bytes[..4], 0x445A_4244_u32.to_le_bytes());
    assert!(first_bytes[4096..].iter().chain(&other_bytes).all(|byte| *byte == 0));
    let held = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(&other).unwrap());
    assert!(held < 1024, "{held} units of 512 B for nothing");
    let twice = export("1", &first);
    assert_eq!(twice.status.code(), Some(1), "{}", message(&twice));
    assert!(message(&twice).contains("cannot export"), "{}", message(&twice));
    assert_eq!(std::fs::read(&first).unwrap(), first_bytes, "a file that is there is not touched");
    let both = ["zones", image, "--zone", "1", "--act", "reset", "--export", text(&other)];
    assert_eq!(ssd(&both).status.code(), Some(2));
    assert_eq!(
        ssd(&["zones", image, "--zone", "32", "--export", "/nonexistent/raw"]).status.code(),
        Some(2)
    );
}

/// A cache with checksums tells so itself; what rots in it is found, and stays an error.
#[test]
fn a_cache_with_checksums_is_made_told_and_checked() {
    let folder = Folder::new("dmzsums");
    let (image, cache) = devices(&folder);
    let (image, cache) = (text(&image), text(&cache));
    let on = ["--cache", cache];
    let make = ["create", image, "--zoned", "dmz", "--cache", cache, "--cache-checksums"];
    let sized = [&make[..], &["--cache-size", "40MiB"]].concat();
    let planned = says(&[&sized[..], &["--dry-run"]].concat());
    assert_eq!((&planned["cache_checksums"], &planned["cache_zones"]), (&true.into(), &8.into()));
    assert!(!PathBuf::from(cache).exists(), "a dry run leaves nothing behind");
    // A file that is there has room for one zone less.
    std::fs::File::create(cache).unwrap().set_len(40 << 20).unwrap();
    let planned = says(&[&make[..], &["--dry-run"]].concat());
    assert_eq!(planned["cache_zones"], 7);
    assert!(std::fs::read(cache).unwrap().iter().all(|byte| *byte == 0));
    std::fs::remove_file(cache).unwrap();
    assert_eq!(says(&sized)["cache_zones"], 8);
    let length = std::fs::metadata(cache).unwrap().len();
    assert_eq!(length, (40 << 20) + (1 + 1 + 10 + 1) * 4096);

    let info = says(&[&["info", image][..], &on].concat());
    let sums = &info["cache_checksums"];
    assert_eq!((&sums["regions"], &sums["dirty_regions"]), (&10.into(), &0.into()));
    let table = volume(&[&["info", image][..], &on].concat());
    assert!(message(&table).is_empty(), "{}", message(&table));
    assert!(String::from_utf8_lossy(&table.stdout).contains("cache with checksums: 0 of 10"));
    let check = says(&[&["check", image, "--data"][..], &on].concat());
    let blocks = (40 << 20) / 4096;
    assert_eq!(check["cache_checksums"]["checked_blocks"], blocks);
    assert_eq!(check["damaged"], false);

    let mut bytes = std::fs::read(cache).unwrap();
    bytes[30 << 20] ^= 1;
    std::fs::write(cache, bytes).unwrap();
    for more in [&[][..], &["--repair"]] {
        let check = [&["check", image, "--data", "--format", "json"][..], &on, more].concat();
        let output = volume(&check);
        assert_eq!(output.status.code(), Some(4), "{}", message(&output));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["cache_checksums"]["differing_blocks"], 1);
    }
    let refused = volume(&["info", cache]);
    assert!(message(&refused).contains("regular device of a volume of policy dmz"));
    let refused = volume(&make);
    assert_eq!(refused.status.code(), Some(2));
    assert!(message(&refused).contains("holds the cache of a volume of policy dmz"));
    let alone = volume(&["create", image, "--zoned", "dmz", "--cache-checksums"]);
    assert!(message(&alone).contains("--cache <FILE>"), "{}", message(&alone));
}
