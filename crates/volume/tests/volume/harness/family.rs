//! What the snapshots of a volume have to hold: what the batches up to the one that the volume names left.

use std::collections::{BTreeMap, BTreeSet};

use onefold_units::convert::{index64, u64_from};
use onefold_volume::{MemberId, MemberInfo};

use super::oracle::Oracle;

/// A change of the family that was not reported done.
#[derive(Clone, Debug)]
pub(crate) enum FamilyChange {
    /// A snapshot of this name, of so many blocks.
    Make(String, u64),
    Delete(MemberId),
}

/// Snapshots by what the host knows of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshots {
    /// What those hold that were there when the volume was opened.
    held: BTreeMap<MemberId, Vec<u64>>,
    /// Those reported made, by name, and those reported deleted.
    made: BTreeSet<String>,
    /// Blocks of those that were asked for, by name.
    sizes: BTreeMap<String, u64>,
    deleted: BTreeSet<MemberId>,
    /// Those whose deletion was asked for.
    doomed: BTreeSet<MemberId>,
}

/// What was found in a snapshot. `None` where a block was not looked at.
pub(crate) type Found = (MemberInfo, Vec<Option<u64>>);

impl Snapshots {
    /// Changes whenever more has to survive.
    pub(crate) fn promised(&self) -> u64 {
        u64_from(self.made.len() + self.deleted.len())
    }

    pub(crate) fn asked(&mut self, change: &FamilyChange) {
        match change {
            FamilyChange::Make(name, blocks) => drop(self.sizes.insert(name.clone(), *blocks)),
            FamilyChange::Delete(id) => drop(self.doomed.insert(*id)),
        }
    }

    pub(crate) fn done(&mut self, change: FamilyChange) {
        match change {
            FamilyChange::Make(name, _) => drop(self.made.insert(name)),
            FamilyChange::Delete(id) => drop(self.deleted.insert(id)),
        }
    }
}

impl Oracle {
    /// What a snapshot has to hold, each of its blocks.
    pub(crate) fn content(&self, info: &MemberInfo) -> Result<Vec<u64>, String> {
        if let Some(held) = self.snapshots.held.get(&info.id) {
            return Ok(held.clone());
        }
        if info.seq < self.durable() {
            return Err(format!("{info:?} is new, and says it is older than the opening"));
        }
        let Some(blocks) = self.snapshots.sizes.get(&info.name) else {
            return Err(format!("nobody asked for {info:?}"));
        };
        let mut content = self.state_at(info.seq);
        content.truncate(index64(*blocks));
        Ok(content)
    }

    /// Checks the snapshots of a volume that was opened (I8).
    pub(crate) fn check_family(&self, found: &[Found]) -> Result<(), String> {
        let there = |id: MemberId| found.iter().any(|(info, _)| info.id == id);
        let names: BTreeSet<&str> = found.iter().map(|(info, _)| info.name.as_str()).collect();
        for (info, blocks) in found {
            if self.snapshots.deleted.contains(&info.id) {
                return Err(format!("{info:?} was deleted"));
            }
            let content = self.content(info)?;
            if info.blocks != u64_from(content.len()) {
                return Err(format!("{info:?} had {} blocks (I8)", content.len()));
            }
            for (lba, block) in blocks.iter().enumerate() {
                if block.is_some_and(|block| block != content[lba]) {
                    let expected = content[lba];
                    return Err(format!(
                        "block {lba} of {info:?} has operation {block:?} instead of {expected} (I8)"
                    ));
                }
            }
        }
        if let Some(id) = self
            .snapshots
            .held
            .keys()
            .find(|id| !there(**id) && !self.snapshots.doomed.contains(id))
        {
            return Err(format!("{id:?} is gone"));
        }
        // Names are not used again, so a snapshot that was made and deleted since is not missed by its name.
        let lost = |name: &&String| !names.contains(name.as_str());
        match self.snapshots.made.iter().find(lost) {
            Some(name) if self.snapshots.doomed.is_empty() => Err(format!("{name} is gone")),
            _ => Ok(()),
        }
    }

    /// Power is back: these snapshots are there from now on. Comes before the device is judged.
    pub(crate) fn recovered_family(&mut self, infos: impl IntoIterator<Item = MemberInfo>) {
        let content = |info: MemberInfo| (info.id, self.content(&info).expect("checked before"));
        let held = infos.into_iter().map(content).collect();
        self.snapshots = Snapshots { held, ..Snapshots::default() };
    }

    /// Changes whenever more has to survive, of the device or of the family.
    pub(crate) fn promised_all(&self) -> u64 {
        self.promised().wrapping_add(self.snapshots.promised())
    }
}
