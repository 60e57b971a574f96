//! Each way to be wrong, with the text a user sees.

use std::fs;

use onefold_buffer::Charge;
use onefold_config::{Config, ConfigError, Load, Mode, SERVED, Sources, Until};
use onefold_ssd::Writeback;
use onefold_units::Nanos;
use tempfile::TempDir;

fn set(text: &str) -> Result<Config, ConfigError> {
    let sets = [text.to_owned()];
    Config::load(&Sources { sets: &sets, ..Sources::default() })
}

fn preset(name: &str) -> Result<Config, ConfigError> {
    Config::load(&Sources { preset: Some(name), ..Sources::default() })
}

/// Loads `main.toml` of these files.
fn files(texts: &[(&str, &str)]) -> (TempDir, Result<Config, ConfigError>) {
    let folder = TempDir::new().unwrap();
    for (name, text) in texts {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let file = Some(folder.path().join("main.toml"));
    let result = Config::load(&Sources { file, ..Sources::default() });
    (folder, result)
}

fn file(text: &str) -> Result<Config, ConfigError> {
    files(&[("main.toml", text)]).1
}

/// Message without the temporary folder, and help.
fn texts(result: Result<Config, ConfigError>) -> (String, String) {
    let error = result.unwrap_err();
    let message = error.to_string();
    let from = message.find("main.toml").unwrap_or(0);
    (message[from..].to_owned(), error.help())
}

#[test]
fn set_values_take_the_type_of_their_key() {
    let victim = set("ftl.victim=fifo").unwrap().ssd(0).unwrap().ftl.victim;
    assert_eq!(victim.name(), "fifo");
    let quoted = set("ftl.victim=\"fifo\"").unwrap();
    assert_eq!(quoted, set("ftl.victim = fifo").unwrap());
    let logical = |text| set(text).unwrap().logical_bytes().unwrap();
    assert_eq!(logical("capacity.logical=0.5"), 2 << 30);
    assert_eq!(logical("capacity.logical=3GiB"), 3 << 30);
    assert_eq!(logical("capacity.logical=5000B"), 4096, "rounded down to a unit");
    assert_eq!(set("geometry.page=16KiB").unwrap().ssd(0).unwrap().geometry.raw_bytes(), 16 << 30);
    let read = set("timing.read=[50us, 60us]").unwrap().ssd(0).unwrap().timing.read;
    assert_eq!(read.iter().collect::<Vec<_>>(), [Nanos::new(50_000), Nanos::new(60_000)]);
    assert_eq!(
        set("ftl.map_cache=2MiB").unwrap().ssd(0).unwrap().ftl.map_cache_bytes,
        Some(2 << 20)
    );
    assert_eq!(set("ftl.map_cache=all").unwrap().ssd(0).unwrap().ftl.map_cache_bytes, None);
    assert!(!set("ftl.separate_gc=false").unwrap().ssd(0).unwrap().ftl.separate_gc);
    assert_eq!(set("run.window=10_000").unwrap().run().window, 10_000);
    assert_eq!(set("run.mode=closed").unwrap().run().mode, Mode::Closed);
    assert_eq!(set("precondition.until=steady").unwrap().precondition().until, Until::Steady);
    let workload = set("workload=randwrite,bs=4KiB,qd=32,requests=1M").unwrap();
    let expected = "randwrite,bs=4KiB,qd=32,requests=1M".to_owned();
    assert_eq!(workload.load_of_run(), Some(Load::Workload(expected)));
}

#[test]
fn the_last_set_wins() {
    let sets = ["ftl.d=3".to_owned(), "ftl.victim=d-choices".to_owned(), "ftl.d=5".to_owned()];
    let config = Config::load(&Sources { sets: &sets, ..Sources::default() }).unwrap();
    let ftl = config.ssd(0).unwrap().ftl;
    assert_eq!((ftl.victim.name(), ftl.victim_draws), ("d-choices", 5));
}

/// `--set dedup.fingerprints=256k` was refused where workloads took such numbers: one grammar holds for both (docs/configuration.md).
#[test]
fn numbers_sizes_and_shares_are_written_as_everywhere() {
    let shown = |result: Result<Config, ConfigError>, key: &str| {
        let toml = result.unwrap().to_toml();
        let (section, name) = key.split_once('.').unwrap();
        let own = toml.split_once(&format!("[{section}]")).unwrap().1;
        let line = own.lines().find(|line| line.starts_with(&format!("{name} ="))).unwrap();
        line.split_once(" = ").unwrap().1.to_owned()
    };
    for (key, value, expected) in [
        ("dedup.fingerprints", "256k", "256000"),
        ("dedup.fingerprints", "1e6", "1000000"),
        ("dedup.fingerprints", "10M", "10000000"),
        ("dedup.fingerprints", "1_000", "1000"),
        ("buffer.size", "8G", "\"8GiB\""),
        ("buffer.size", "256k", "\"256KiB\""),
        ("buffer.size", "4kB", "\"4000B\""),
        ("buffer.size", "1e6B", "\"1000000B\""),
        ("capacity.logical", "87%", "0.87"),
        ("capacity.logical", "0.87", "0.87"),
        ("volume.op", "7%", "0.07"),
        ("timing.erase", "1min", "\"60s\""),
    ] {
        let sets = format!("{key}={value}");
        assert_eq!(shown(set(&sets), key), expected, "{sets}");
        let (section, name) = key.split_once('.').unwrap();
        let text = file(&format!("[{section}]\n{name} = \"{value}\""));
        assert_eq!(shown(text, key), expected, "{name} = \"{value}\"");
    }
    assert_eq!(shown(file("[dedup]\nfingerprints = 1e6"), "dedup.fingerprints"), "1000000");
    assert!(set("dedup.fingerprints=256KiB").is_err() && set("dedup.fingerprints=0.5").is_err());
    assert!(set("dedup.fingerprints=-1").is_err() && set("buffer.size=87%").is_err());
}

/// Value of `--set`, message, help.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "geometry.page=4096",
        "--set: geometry.page is `4096`, a number without a unit; expected a size with a unit, such as \"4KiB\"",
        "add one of TiB, GiB, MiB, KiB, B, TB, GB, MB, kB, T, G, M, k",
    ),
    (
        "geometry.page=4KiBs",
        "--set: geometry.page is `4KiBs`, `KiBs` is not a unit; expected one of TiB, GiB, MiB, KiB, B, TB, GB, MB, kB, T, G, M, k",
        "did you mean `KiB`?",
    ),
    (
        "geometry.page=12KiB",
        "--set: geometry.page is `12KiB`, expected a power of two from 4KiB to 64KiB",
        "choose a value from 4KiB to 64KiB",
    ),
    (
        "timing.read=60usec",
        "--set: timing.read is `60usec`, `usec` is not a unit; expected one of s, ms, us, ns, m, min, h, d",
        "use one of s, ms, us, ns, m, min, h, d",
    ),
    (
        "timing.erase=0.5ns",
        "--set: timing.erase is `0.5ns`, which is no multiple of 1 ns",
        "round it to a multiple of 1 ns",
    ),
    (
        "timing.read=[1us,2us,3us,4us,5us]",
        "--set: timing.read is [`1us`, `2us`, `3us`, `4us`, `5us`], expected a time such as \"60us\", or a list of 1 to 4 times by page type",
        "write a time such as \"60us\", or a list of 1 to 4 times by page type",
    ),
    (
        "timing.erase=2h",
        "--set: timing.erase is `2h`, expected 0 to 3600s",
        "choose a value from 0 to 3600s",
    ),
    (
        "timing.erase=7200s",
        "--set: timing.erase is `7200s`, expected 0 to 3600s",
        "choose a value from 0 to 3600s",
    ),
    (
        "ftl.victim=greddy",
        "--set: ftl.victim is `greddy`, `greddy` is no victim policy; use one of: greedy, cost-benefit, fifo, d-choices, random",
        "did you mean `greedy`?",
    ),
    (
        "ftl.classifier=hot",
        "--set: ftl.classifier is `hot`, `hot` is no stream classifier; use one of: host, hot-cold, auto, ranges",
        "did you mean `host`?",
    ),
    (
        "buffer.policy=pt-lru:q=1",
        "--set: buffer.policy is `pt-lru:q=1`, the policy pt-lru has no parameter `q`; use one of: p",
        "docs/configuration.md explains the policies and their parameters",
    ),
    (
        "buffer.policy=aoi:chunk=3MiB",
        "--set: buffer.policy is `aoi:chunk=3MiB`, chunk of the policy aoi is `3MiB`, expected a power of two from 512B to 1GiB, such as 1MiB",
        "docs/configuration.md explains the policies and their parameters",
    ),
    (
        "buffer.policy=[lru]",
        "--set: buffer.policy is [`lru`], expected a buffer policy such as \"lru\" or \"pt-lru:p=0.9\"",
        "write a buffer policy such as \"lru\" or \"pt-lru:p=0.9\"",
    ),
    (
        "ftl.remap=hybrid",
        "--set: ftl.remap is `hybrid`, expected one of none, gf, gn, ln, lh, opt",
        "use none, gf, gn, ln, lh, opt",
    ),
    (
        "ftl.separate_gc=yes",
        "--set: ftl.separate_gc is `yes`, expected true or false",
        "write true or false",
    ),
    (
        "geometry.channels=0",
        "--set: geometry.channels is `0`, expected 1 to 1024",
        "choose a value from 1 to 1024",
    ),
    (
        "faults.read=1.5",
        "--set: faults.read is `1.5`, expected 0 to 1",
        "choose a value from 0 to 1",
    ),
    (
        "faults.read=nan",
        "--set: faults.read is `nan`, expected a number from 0 to 1",
        "write a number from 0 to 1",
    ),
    (
        "capacity.logical=1.5",
        "--set: capacity.logical is `1.5`, expected a fraction of the raw capacity such as 0.875, or a size such as \"32GiB\"",
        "write a fraction of the raw capacity such as 0.875, or a size such as \"32GiB\"",
    ),
    (
        "capacity.logical=4GiB",
        "--set: capacity.logical is \"4GiB\", expected at least one mapping unit of 4KiB and less than the raw capacity of 4GiB",
        "lower capacity.logical, or raise geometry.blocks",
    ),
    (
        "ftl.gc_stop=0.5",
        "--set: ftl.gc_stop is 0.5, expected at most ftl.gc_start, which is 0.05",
        "lower ftl.gc_stop, or raise ftl.gc_start",
    ),
    (
        "ftl.victm=fifo",
        "--set: `ftl.victm` is not a configuration key",
        "did you mean `ftl.victim`?",
    ),
    ("victim=fifo", "--set: `victim` is not a configuration key", "did you mean `ftl.victim`?"),
    (
        "colour=red",
        "--set: `colour` is not a configuration key",
        "`onefold config explain` lists every key",
    ),
    (
        "ftl.victim",
        "--set is `ftl.victim`, expected KEY=VALUE",
        "write, for example, --set ftl.victim=fifo",
    ),
    (
        "geometry.blocks=16777216",
        "the geometry of `s1` cannot work: the flash array has 68719476736 mapping units, expected at most 4294967040: use a coarser ftl.indirection or fewer blocks",
        "change the named key, for example with --set",
    ),
];

#[test]
fn values_are_refused_with_limit_and_remedy() {
    for (text, message, help) in REFUSED {
        assert_eq!(texts(set(text)), ((*message).to_owned(), (*help).to_owned()), "{text}");
    }
}

#[test]
fn a_buffer_is_described_completely() {
    let text = [
        "buffer.policy=aoi:chunk=4KiB,reaccess=cursor,channels=0",
        "buffer.size=32MiB",
        "buffer.charge=full",
        "buffer.writeback=async",
        "buffer.wb_slots=5",
        "timing.table_lookup=70ns",
    ];
    let sets = text.map(str::to_owned);
    let config = Config::load(&Sources { sets: &sets, ..Sources::default() }).unwrap();
    let ssd = config.ssd(0).unwrap();
    assert_eq!(ssd.buffer.policy.to_string(), "aoi:reaccess=cursor,chunk=4KiB");
    assert_eq!((ssd.buffer.bytes, ssd.buffer.charge), (32 << 20, Charge::Full));
    assert_eq!((ssd.writeback, ssd.separate_streams), (Writeback::Async { slots: 5 }, true));
    assert_eq!(ssd.timing.table_lookup, Nanos::new(70));
    // Defaults are left out, so equal policies are equal configurations.
    let shown = config.to_toml();
    assert!(shown.contains("policy = \"aoi:reaccess=cursor,chunk=4KiB\""), "{shown}");
    assert_eq!(Config::from_canonical(&shown).unwrap(), config);
}

#[test]
fn a_device_that_exists_keeps_what_its_medium_depends_on() {
    let config = preset("tlc").unwrap();
    let with = |text: &str| config.with_sets(&[text.to_owned()], SERVED);
    let policy = with("buffer.policy=lru-wsr").unwrap().ssd(0).unwrap().buffer.policy;
    assert_eq!(policy.name(), "lru-wsr");
    let (message, help) = texts(with("geometry.pages=64"));
    assert!(message.ends_with("expected timing, buffer"), "{message}");
    assert!(help.contains("ssd create"));
    assert_eq!(texts(with("buffer.polcy=lru")).1, "did you mean `buffer.policy`?");
}

#[test]
fn one_key_suffices_to_start_gc_later() {
    let ftl = set("ftl.gc_start=0.004").unwrap().ssd(0).unwrap().ftl;
    assert_eq!((ftl.gc_start, ftl.gc_stop), (0.004, 0.004));
    let sets = ["ftl.gc_start=0.004".to_owned(), "ftl.gc_stop=0.005".to_owned()];
    let error = Config::load(&Sources { sets: &sets, ..Sources::default() }).unwrap_err();
    assert_eq!(error.code(), "config::order", "both given, and in the wrong order");
}

#[test]
fn only_the_command_line_is_a_usage_error() {
    assert!(set("ftl.victim").unwrap_err().is_usage());
    assert!(!set("ftl.victim=x").unwrap_err().is_usage());
    let missing = Sources { file: Some("no/such.toml".into()), ..Sources::default() };
    let error = Config::load(&missing).unwrap_err();
    assert!(error.is_usage());
    assert!(error.to_string().starts_with("cannot read the configuration no/such.toml: "));
    let both = Sources { preset: Some("s1"), ..missing };
    assert!(Config::load(&both).unwrap_err().is_usage());
}

#[test]
fn unknown_presets_are_told() {
    let (message, help) = texts(preset("mqsim"));
    assert_eq!(message, "there is no preset `mqsim`");
    assert!(help.contains("config presets"), "{help}");
    assert_eq!(texts(preset("fmeu32")).1, "did you mean `femu32`?");
}

#[test]
fn a_zoned_volume_says_what_it_needs() {
    let refused = |preset, sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        texts(Config::load(&Sources { preset: Some(preset), sets: &sets, ..Sources::default() })).0
    };
    for (preset, sets, expected) in [
        ("s1", &["zoned.policy=dmz"][..], "zoned.policy needs namespace.type = \"zoned\""),
        (
            "femu-zns",
            &["zoned.policy=dmz"],
            "zoned.policy needs namespace.conventional, or zoned.regular, the preset of a device for random writes",
        ),
        (
            "choi2022-single",
            &["zoned.regular=s1"],
            "zoned.policy needs either namespace.conventional or zoned.regular, not both",
        ),
        (
            "femu-zns",
            &["namespace.conventional=31"],
            "namespace.conventional is 31, which with an over-provisioning of 0.25 needs more than the 32 flash blocks of each \
             plane: raise geometry.blocks, or use fewer conventional zones",
        ),
        (
            "choi2022",
            &["zoned.regular=zn540"],
            "zoned.policy needs a zoned.regular without zones and volume",
        ),
        (
            "choi2022",
            &["zoned.journal=one"],
            "zoned.policy needs zoned.journal_size, for zoned.journal to know the journal",
        ),
        (
            "choi2022",
            &["zoned.journal_size=64MiB", "zoned.journal_offset=4GiB"],
            "zoned.policy needs a journal inside the volume",
        ),
        ("s1", &["zoned.policy=log"], "zoned.policy needs namespace.type = \"zoned\""),
        (
            "choi2022",
            &["zoned.policy=log", "zoned.journal=one", "zoned.journal_size=64MiB"],
            "zoned.policy needs policy \"dmz\" for zoned.journal = \"one\"",
        ),
        (
            "choi2022",
            &["zoned.policy=log", "zoned.journal=set"],
            "zoned.policy needs zoned.journal_size, for zoned.journal to know the journal",
        ),
    ] {
        assert_eq!(refused(preset, sets), expected);
    }
    let error =
        refused("femu-zns", &["namespace.conventional=8", "ftl.gc_stop=0.4", "ftl.gc_start=0.5"]);
    assert!(
        error.contains("namespace.conventional") || error.contains("lower capacity.logical"),
        "{error}"
    );
    let error = refused("choi2022", &["zoned.regular=nope"]);
    assert_eq!(error, "there is no preset `nope`");
}

/// The worked example of zoned.md, section 3.
#[test]
fn the_devices_of_choi_2022_export_62_chunks() {
    let config = preset("choi2022").unwrap();
    let zoned = config.zoned_volume().unwrap().unwrap();
    assert_eq!((zoned.geometry.zones(), zoned.logical_bytes), (80, 62 << 26));
    assert_eq!(config.host_bytes().unwrap(), 62 << 26);
    let single = preset("choi2022-single").unwrap().zoned_volume().unwrap().unwrap();
    assert_eq!((single.geometry.zones(), single.logical_bytes), (80, 62 << 26));
    assert!(single.regular.is_none() && single.geometry.devices() == 1);
}

/// Policy `log` on the same devices exports as much, and has a volume whose first zones are conventional.
#[test]
fn policy_log_exports_what_dmz_does() {
    let sets = ["zoned.policy=log", "zoned.journal=set", "zoned.journal_size=64MiB"];
    let load = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::load(&Sources { preset: Some("choi2022"), sets: &sets, ..Sources::default() })
    };
    let config = load(&sets).unwrap();
    assert!(config.zoned_volume().unwrap().is_none());
    let volume = config.volume().unwrap().unwrap();
    assert_eq!((volume.geometry.backing_blocks, volume.logical_bytes()), (80 << 14, 62 << 26));
    assert_eq!((volume.journal, config.host_bytes().unwrap()), (Some(0..1 << 14), 62 << 26));
    let regular = config.regular_of_log().unwrap().unwrap();
    assert_eq!(regular.logical_bytes().unwrap(), 1 << 30);
    // On the zones alone it is as volume.mode = "log".
    let alone = load(&["zoned.policy=log", "zoned.regular=", "volume.op=0.4"]).unwrap();
    let volume = alone.volume().unwrap().unwrap();
    assert_eq!((volume.geometry.backing_blocks, volume.journal), (64 << 14, None));
    assert!(alone.regular_of_log().unwrap().is_none());
}

#[test]
fn a_zoned_namespace_refuses_what_needs_blocks() {
    let zoned = |sets: &[&str]| {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        Config::load(&Sources { preset: Some("femu-zns"), sets: &sets, ..Sources::default() })
    };
    for (set, what) in [
        ("ftl.remap=lh", "ftl.remap"),
        ("precondition.overwrite=1", "precondition.overwrite"),
        ("precondition.until=steady", "precondition.until = \"steady\""),
        ("capacity.snapshots=1GiB", "capacity.snapshots"),
    ] {
        let expected =
            format!("{what} needs namespace.type = \"block\", and a zoned namespace is configured");
        assert_eq!(texts(zoned(&[set])).0, expected);
    }
    for (sets, expected) in [
        (
            &["namespace.zone_capacity=100000B"][..],
            "namespace.zone_capacity is 100000 B, expected a multiple of 4096 B",
        ),
        (
            &["namespace.zone_capacity=20KiB"],
            "the zoned namespace cannot work: the capacity of a zone is 5 blocks of 4 KiB, expected whole flash pages of 4 \
             blocks, and at most the 32768 blocks of a zone",
        ),
        (
            &["namespace.zone_dies=3"],
            "the zoned namespace cannot work: a zone stripes over 3 dies, expected a divisor of 8, and all of them where a \
             superblock spans the device",
        ),
        (
            &["capacity.logical=4095MiB", "namespace.zone_size=4MiB"],
            "the zoned namespace cannot work: 1023 zones and no spare one need 1024 sets of 1 superblocks, expected at most \
             the 32 of the flash array: lower capacity.logical, or raise geometry.blocks",
        ),
        (
            &["namespace.max_open=5", "namespace.max_active=4"],
            "the zoned namespace cannot work: the limit of open zones is 5, expected 1 to 4",
        ),
    ] {
        assert_eq!(texts(zoned(sets)).0, expected);
    }
    let config = zoned(&["namespace.max_open=4"]).unwrap();
    assert_eq!(config.zns(0).unwrap().unwrap().limits.max_open, Some(4));
    assert!(config.ssd(0).is_err(), "a zoned namespace is no block device");
    assert_eq!(preset("s1").unwrap().zns(0).unwrap(), None);
}

#[test]
fn errors_in_files_name_the_line() {
    let cases = [
        ("[ftl]\n\nvictm = \"fifo\"", "main.toml, line 3: `ftl.victm` is not a configuration key"),
        (
            "[ftl]\nvictim = 3",
            "main.toml, line 2: ftl.victim is 3, expected a victim policy such as \"greedy\"",
        ),
        (
            "[geometry]\npage = 4096",
            "main.toml, line 2: geometry.page is 4096, a number without a unit; expected a size with a unit, such as \"4KiB\"",
        ),
        (
            "[geometri]\nblocks = 3",
            "main.toml, line 2: `geometri.blocks` is not a configuration key",
        ),
        ("[geometri]", "main.toml, line 1: `geometri` is not a configuration key"),
        ("geometry = 3", "main.toml, line 1: `geometry` is not a configuration key"),
        (
            "[capacity]\nlogical = \"8\"",
            "main.toml, line 2: capacity.logical is \"8\", expected a fraction of the raw capacity such as 0.875, or a size such as \"32GiB\"",
        ),
        (
            "[run]\nqd = 1.5",
            "main.toml, line 2: run.qd is 1.5, expected an integer from 1 to 65536",
        ),
        (
            "[run]\nqd = 99999999999999999999",
            "main.toml, line 2: run.qd is 99999999999999999999, expected 1 to 65536",
        ),
        ("extends = 3", "main.toml, line 1: extends is 3, expected \"preset:NAME\" or a file name"),
        (
            "workload = \"a\"\ntrace = \"b\"",
            "main.toml, line 2: both workload and trace are given, expected at most one",
        ),
        (
            "[timing]\nchannel = \"1MB/s\"\ntransfer = \"1us\"",
            "main.toml, line 3: both timing.channel and timing.transfer are given, expected at most one",
        ),
        ("[[tenant]]\nsped = 2", "main.toml, line 2: `tenant.sped` is not a configuration key"),
        (
            "[[tenant]]\nrange = \"0-1\"",
            "main.toml, line 2: tenant.range is \"0-1\", expected a range of sizes or percentages such as \"0..1GiB\" or \"25%..50%\"",
        ),
        ("tenant = 3", "main.toml, line 1: `tenant` is not a configuration key"),
    ];
    for (text, message) in cases {
        assert_eq!(texts(file(text)).0, message, "{text}");
    }
    let (message, _) = texts(file("[ftl]\nvictim = "));
    assert!(message.starts_with("main.toml, line 2: not valid TOML: "), "{message}");
}

#[test]
fn files_extend_presets_and_files() {
    let (_folder, config) = files(&[
        ("main.toml", "extends = \"sub/base.toml\"\n[run]\nqd = 9\n"),
        (
            "sub/base.toml",
            "extends = \"preset:tlc\"\ntrace = \"t.csv\"\n[run]\nqd = 8\nwindow = 5\n",
        ),
    ]);
    let config = config.unwrap();
    assert_eq!((config.name(), config.run().qd, config.run().window), ("main", 9, 5));
    assert_eq!(config.ssd(0).unwrap().timing.read.of_row(1), Nanos::new(77_500));
    let Some(Load::Trace(path)) = config.load_of_run() else { panic!("a trace") };
    assert!(path.ends_with("sub/t.csv"), "{path:?} is relative to the file that names it");
    assert_eq!(config.to_json()["trace"], "t.csv", "the form does not depend on the folder");
}

#[test]
fn circles_are_refused() {
    let (_folder, result) = files(&[
        ("main.toml", "extends = \"b.toml\""),
        ("b.toml", "extends = \"sub/../main.toml\""),
        ("sub/x", ""),
    ]);
    let error = result.unwrap_err();
    assert!(matches!(&error, ConfigError::Cycle { chain } if chain.len() == 3), "{error}");
    let deep: Vec<(String, String)> =
        (0..30).map(|i| (format!("f{i}.toml"), format!("extends = \"f{}.toml\"", i + 1))).collect();
    let mut all = vec![("main.toml", "extends = \"f0.toml\"")];
    all.extend(deep.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let error = files(&all).1.unwrap_err();
    assert!(matches!(error, ConfigError::Depth { max: 16, .. }), "{error}");
}

#[test]
fn tenants_are_typed_and_checked() {
    let config = file(
        "[ftl]\nstreams = 2\n\
         [[tenant]]\nname = \"db\"\ntrace = \"a.csv\"\nrange = \"0..50%\"\nspeed = 2.0\nweight = 3\n\
         [[tenant]]\nworkload = \"randread\"\nrange = \"50%..100%\"\nstart = \"1s\"\nstream = 1\n",
    )
    .unwrap();
    let tenants = config.tenants().unwrap();
    assert_eq!((tenants[0].name.as_str(), tenants[1].name.as_str()), ("db", "tenant1"));
    assert!(matches!(&tenants[0].load, Load::Trace(path) if path.ends_with("a.csv")));
    assert_eq!(tenants[0].weight, 3);
    assert_eq!(tenants[1].start, Nanos::new(1_000_000_000));
    assert_eq!(tenants[1].stream, 1);
    let logical = config.logical_bytes().unwrap();
    assert_eq!(tenants[1].range.resolve(logical), Some(logical / 2..logical));
    let again = Config::from_canonical(&config.to_toml()).unwrap();
    assert_eq!(again, config);
    assert_eq!(again.tenants().unwrap().len(), 2);

    let cases = [
        (
            "[[tenant]]\nname = \"a\"",
            "tenant `a`: neither workload nor trace is given, expected one of them",
        ),
        (
            "[[tenant]]\nworkload = \"w\"\nrange = \"0..4GiB\"",
            "tenant `tenant0`: range is 0..4GiB, expected a part of the 3584MiB of logical space",
        ),
        (
            "[[tenant]]\nworkload = \"w\"\nstream = 1",
            "tenant `tenant0`: stream is 1, expected less than ftl.streams, which is 1",
        ),
        (
            "[[tenant]]\nname = \"a\"\nworkload = \"w\"\n[[tenant]]\nname = \"a\"\nworkload = \"w\"",
            "tenant `a`: the name is used twice",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(texts(file(text)).0, message, "{text}");
    }
}

#[test]
fn the_command_line_can_replace_the_load() {
    let config = set("workload=randread").unwrap();
    let replaced = config.with_load(&Load::Trace("x/y.csv".into()));
    assert_eq!(replaced.load_of_run(), Some(Load::Trace("x/y.csv".into())));
    assert!(replaced.to_json().get("workload").is_none());
    let odd = set("name=x").unwrap().with_load(&Load::Trace("a\n\"b\\.csv".into()));
    assert_eq!(Config::from_canonical(&odd.to_toml()).unwrap(), odd);
}
