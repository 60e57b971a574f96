//! The latency models of a study.

use onefold_units::convert::narrow;

use super::lists::items;
use super::reader::{Field, Keys, Table};
use crate::StudyError;
use crate::latency::{LatencyChoice, LatencyModel, ModelKind, Placement, WB_SLOTS_MOST};

const LATENCY: Keys = Keys {
    section: "a latency model",
    known: &["model", "reads", "programs", "wb_slots", "label"],
};

/// The models of the key `latency`; the `service` model without it.
pub(super) fn models(study: &Table<'_>) -> Result<Vec<LatencyChoice>, StudyError> {
    let Some(field) = study.get("latency") else {
        return Ok(vec![LatencyChoice::new(LatencyModel::default())]);
    };
    let mut choices: Vec<LatencyChoice> = Vec::new();
    for item in items(&field)? {
        let choice = choice(&item)?;
        let is_known =
            |other: &LatencyChoice| other.model == choice.model || other.label == choice.label;
        if choices.iter().any(is_known) {
            return Err(item.refuse("expected every model and every label once"));
        }
        choices.push(choice);
    }
    Ok(choices)
}

fn choice(item: &Field<'_>) -> Result<LatencyChoice, StudyError> {
    let kind = |field: &Field<'_>| field.choice(&ModelKind::ALL, ModelKind::name);
    if !item.is_table() {
        let model = LatencyModel { kind: kind(item)?, ..LatencyModel::default() };
        return Ok(LatencyChoice::new(model));
    }
    let table = item.table(LATENCY)?;
    let place = |key| {
        table.or(key, Placement::default(), |field| field.choice(&Placement::ALL, Placement::name))
    };
    let model = LatencyModel {
        kind: kind(&table.need("model", "\"service\", \"queued\" or \"counted\"")?)?,
        reads: place("reads")?,
        programs: place("programs")?,
        wb_slots: table.or("wb_slots", 0, slots)?,
    };
    let places = ["reads", "programs", "wb_slots"];
    if model.kind == ModelKind::Counted
        && let Some(field) = places.into_iter().find_map(|key| table.get(key))
    {
        return Err(field.refuse("expected only with service or queued: counted adds up"));
    }
    let plain = LatencyChoice::new(model);
    Ok(LatencyChoice { label: table.or("label", plain.label.clone(), Field::name)?, ..plain })
}

fn slots(field: &Field<'_>) -> Result<u32, StudyError> {
    let slots = field.count()?;
    if slots <= WB_SLOTS_MOST {
        return Ok(narrow(slots));
    }
    Err(field.refuse(format_args!("expected 0 to {WB_SLOTS_MOST}")))
}
