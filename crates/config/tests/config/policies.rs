//! Policies by name: those of the tables, and those that a program adds.

use onefold_buffer::{Build, Lru, PolicyInfo};
use onefold_config::{Config, ConfigError, Policies, SERVED, Sources};
use onefold_ftl::{BuildVictim, Candidate, Candidates, Victim, VictimInfo, VictimSetup};
use onefold_ssd::{BuildClassifier, Classifier, ClassifierInfo, ClassifierSetup, UnitWrite};
use onefold_units::policy::{Limits, Parameter, Value};

static MINE: PolicyInfo = PolicyInfo {
    parameters: &[Parameter {
        name: "k",
        default: Value::Count(1),
        limits: Limits::Count { least: 1, most: 9 },
        about: "A number.",
    }],
    ..PolicyInfo::new("mine", "As LRU.", Build::of::<Lru>())
};

static LAST: VictimInfo = VictimInfo::new("last", "The last one.", BuildVictim::of::<Last>());

#[derive(Clone)]
struct Last;

impl Victim for Last {
    fn new(_: &VictimSetup) -> Self {
        Self
    }

    fn choose(&mut self, candidates: &Candidates<'_>) -> Option<Candidate> {
        candidates.iter().max_by_key(Candidate::place)
    }
}

static EVEN: ClassifierInfo =
    ClassifierInfo::new("even", "By the address.", BuildClassifier::of::<Even>());

struct Even;

impl Classifier for Even {
    fn new(_: &ClassifierSetup) -> Self {
        Self
    }

    fn stream(&mut self, write: &UnitWrite) -> u32 {
        write.lpn.raw() % 2
    }
}

fn load(sets: &[&str], policies: Policies) -> Result<Config, ConfigError> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Config::load(&Sources { sets: &sets, policies, ..Sources::default() })
}

fn own() -> Policies {
    Policies::builtin().with_buffer(&MINE).with_victim(&LAST).with_classifier(&EVEN)
}

#[test]
fn errors_name_every_policy_of_the_table() {
    for (set, names, help) in [
        ("buffer.policy=sieves", Policies::builtin().buffer.names(), "`sieve`"),
        ("ftl.victim=fif", Policies::builtin().victim.names(), "`fifo`"),
        ("ftl.classifier=hot-colt", Policies::builtin().classifier.names(), "`hot-cold`"),
    ] {
        let error = load(&[set], Policies::builtin()).unwrap_err();
        let text = error.to_string();
        assert!(
            names.contains(", ") && text.ends_with(&format!("; use one of: {names}")),
            "{text}"
        );
        assert_eq!(error.help(), format!("did you mean {help}?"));
    }
}

#[test]
fn own_policies_are_known_where_they_were_given() {
    let sets = ["buffer.policy=mine:k=3", "ftl.victim=last", "ftl.classifier=even"];
    for set in sets {
        assert!(load(&[set], Policies::builtin()).is_err(), "{set}");
    }
    let config = load(&sets, own()).unwrap();
    let ssd = config.ssd(0).unwrap();
    assert_eq!(ssd.buffer.policy.value("k"), Value::Count(3));
    assert_eq!((ssd.ftl.victim.name(), ssd.classifier.name()), ("last", "even"));
    assert!(config.to_toml().contains("policy = \"mine:k=3\""));
    // It goes on to know them, and says so.
    let served = config.with_sets(&["buffer.policy=mine".to_owned()], SERVED).unwrap();
    assert_eq!(served.ssd(0).unwrap().buffer.policy.to_string(), "mine");
    let error = config.with_sets(&["buffer.policy=min".to_owned()], SERVED).unwrap_err();
    assert!(error.to_string().ends_with("aoi, mine") && error.help().contains("`mine`"));
    assert!(load(&["buffer.policy=mine:k=10"], own()).unwrap_err().to_string().contains("1 to 9"));
}

#[test]
fn places_of_a_stack_know_them_too() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("stack.toml");
    let text = "[[stack]]\nname = \"flash\"\nkind = \"ssd\"\nextends = \"preset:s1\"\n\
                buffer.policy = \"mine\"\n[[stack]]\nname = \"log\"\nkind = \"log\"\non = \"flash\"\n";
    std::fs::write(&file, text).unwrap();
    let sources = |policies| Sources { file: Some(file.clone()), policies, ..Sources::default() };
    assert!(Config::load(&sources(Policies::builtin())).is_err());
    let config = Config::load(&sources(own())).unwrap();
    let device = config.device_of_stack("flash").unwrap().unwrap();
    assert_eq!(device.ssd(0).unwrap().buffer.policy.name(), "mine");
    assert!(config.to_toml().contains("\"mine\""));
}
