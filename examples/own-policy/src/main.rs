use onefold_buffer::{Access, Actions, Area, Build, Entries, ListId, NodeId, Setup};
use onefold_buffer::{PolicyInfo, Replacement};
use onefold_config::Policies;
use onefold_ftl::{BuildVictim, Candidate, Candidates, VictimInfo};
use onefold_ssd::{BuildClassifier, ClassifierInfo, UnitWrite};
use onefold_study::{Control, Options, Study, report, run};

const ALL: ListId = ListId(0);
static LIP: PolicyInfo = PolicyInfo::new("lip", "LRU insertion.", Build::of::<Lip>());
static PATIENT: VictimInfo = VictimInfo::new("patient", "Waits.", BuildVictim::choosing(patient));
static LONG: ClassifierInfo = ClassifierInfo::new("long", "By length.", BuildClassifier::by(long));

/// Buffer policy: pages enter at the oldest end, where one leaves; a hit makes a page the newest.
#[derive(Clone)]
struct Lip;

impl Replacement for Lip {
    const AREAS: &'static [Area] = &[Area::new("all")];
    fn new(_: &Setup) -> Self {
        Self
    }
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        e.move_to_newest(ALL, id);
    }
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        if e.is_full() {
            e.evict(ALL, out);
        }
        let id = e.insert(ALL, key);
        e.move_to_oldest(ALL, id);
        Some(id)
    }
}

/// Victim policy: most to gain, where a superblock counts more the longer it has been closed.
fn patient(candidates: &Candidates<'_>) -> Option<Candidate> {
    candidates.iter().max_by_key(|c| u64::from(c.capacity - c.valid) * c.age.isqrt())
}

/// Stream classifier: units of long requests apart from those of short ones.
fn long(write: &UnitWrite) -> u32 {
    u32::from(write.units >= 16)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = Policies::builtin().with_buffer(&LIP).with_victim(&PATIENT).with_classifier(&LONG);
    for file in std::env::args().skip(1) {
        let study = Study::load_with(file.as_ref(), &own)?;
        let summary = run(&study, &Options::new("results"), &Control::default())?;
        print!("{}", report::text(&report::Report::new(&study, &summary.rows)));
    }
    Ok(())
}
