//! Grids: every key of a configuration, and what runs on it, as an axis.
//!
//! ```toml
//! [grid]
//! preset = ["tlc", "qlc-16k"]
//! "ftl.victim" = ["greedy", "d-choices"]
//! trace = ["a.csv", "b.oft"]
//! zip = [["preset", "ftl.victim"]]
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use onefold_config::{Load, Policies};
use onefold_trace::workload::Workload as Generated;
use onefold_units::convert::u64_from;

use super::Workload;
use super::axis::{Coordinate, OWN_AXES};
use super::devices::{Base, Cells, DeviceChoice, DeviceLoad, Devices};
use super::lists::items;
use super::reader::{Field, Table};
use crate::StudyError;

/// Most points of all grids of a study: a slip of the keyboard should not start a year of work.
const POINTS_MOST: usize = 10_000;
const ZIP: &str = "zip";

/// One grid as written.
struct Grid<'a> {
    axes: Vec<Axis<'a>>,
    /// Numbers of axes that go together; an axis that goes with no other is alone.
    groups: Vec<Vec<usize>>,
    field: Field<'a>,
}

struct Axis<'a> {
    name: String,
    values: Vec<(Coordinate, Field<'a>)>,
}

/// Reads `[grid]`, or each `[[grid]]`, into what the points of the study are.
pub(super) fn parse(
    study: &Table<'_>,
    path: &Path,
    (preset, sets): (Option<String>, Vec<String>),
) -> Result<(Devices, Vec<Workload>), StudyError> {
    let field = study.need("grid", "a table of axes, such as preset = [\"tlc\", \"qlc-16k\"]")?;
    let tables = if field.is_table() { vec![field] } else { items(&field)? };
    let grids = tables.iter().map(Grid::parse).collect::<Result<Vec<_>, _>>()?;
    let points = grids.iter().map(Grid::len).fold(0, usize::saturating_add);
    if points > POINTS_MOST {
        return Err(
            field.refuse(format_args!("expected at most {POINTS_MOST} points, not {points}"))
        );
    }
    let mut order: Vec<&str> = Vec::new();
    for name in grids.iter().flat_map(|grid| grid.axes.iter().map(|axis| axis.name.as_str())) {
        if !order.contains(&name) {
            order.push(name);
        }
    }
    let names = names(&grids);
    let base = Base::Preset(preset.unwrap_or_else(|| "s1".to_owned()));
    let mut built = Built::new(base, path, &names);
    for grid in &grids {
        for point in grid.points() {
            built.add(&grid.field, &point)?;
        }
    }
    Ok(built.finish(&order, sets))
}

impl<'a> Grid<'a> {
    fn parse(field: &Field<'a>) -> Result<Self, StudyError> {
        let mut axes: Vec<Axis<'a>> = Vec::new();
        let mut zips = None;
        for (name, values) in field.entries()? {
            if name == ZIP {
                zips = Some(values);
                continue;
            }
            axes.push(Axis::parse(name, &values)?);
        }
        if axes.is_empty() {
            return Err(field.refuse("expected at least one axis, or the grid is empty"));
        }
        let mut grid = Self { axes, groups: Vec::new(), field: *field };
        grid.groups = zips.map_or(Ok(Vec::new()), |zips| grid.zipped(&zips))?;
        let alone = |at: &usize| !grid.groups.iter().flatten().any(|other| other == at);
        let alone: Vec<usize> = (0..grid.axes.len()).filter(alone).collect();
        grid.groups.extend(alone.into_iter().map(|at| vec![at]));
        // Points come in the order of the file: the first axis changes last.
        grid.groups.sort_by_key(|group| group.iter().min().copied());
        Ok(grid)
    }

    /// The axes that `zip = [["preset", "size"]]` puts together, checked.
    fn zipped(&self, zips: &Field<'a>) -> Result<Vec<Vec<usize>>, StudyError> {
        let mut seen = BTreeSet::new();
        let mut group = |names: Field<'a>| {
            let mut group = Vec::new();
            for name in items(&names)? {
                let text = name.name()?;
                let at = self.axes.iter().position(|axis| axis.name == text);
                let at = at.ok_or_else(|| name.refuse("expected an axis of this grid"))?;
                if !seen.insert(at) {
                    return Err(name.refuse("expected every axis once"));
                }
                group.push(at);
            }
            let lengths: BTreeSet<usize> =
                group.iter().map(|at: &usize| self.axes[*at].values.len()).collect();
            if group.len() < 2 || lengths.len() > 1 {
                return Err(names.refuse("expected two axes or more, with as many values each"));
            }
            Ok(group)
        };
        items(zips)?.into_iter().map(&mut group).collect()
    }

    fn len_of(&self, group: &[usize]) -> usize {
        group.first().map_or(1, |at| self.axes[*at].values.len())
    }

    fn len(&self) -> usize {
        self.groups.iter().map(|group| self.len_of(group)).fold(1, usize::saturating_mul)
    }

    /// The values of each point.
    fn points(&self) -> impl Iterator<Item = Vec<&(Coordinate, Field<'a>)>> {
        (0..self.len()).map(|number| {
            let mut rest = number;
            let mut at = vec![0; self.axes.len()];
            for group in self.groups.iter().rev() {
                let count = self.len_of(group);
                for axis in group {
                    at[*axis] = rest % count;
                }
                rest /= count;
            }
            self.axes.iter().zip(at).map(|(axis, at)| &axis.values[at]).collect()
        })
    }
}

impl<'a> Axis<'a> {
    fn parse(name: String, values: &Field<'a>) -> Result<Self, StudyError> {
        if !name.contains('.') && !OWN_AXES.contains(&name.as_str()) {
            let own = OWN_AXES.join(", ");
            return Err(values.refuse(format_args!(
                "expected a key of configurations, such as \"ftl.victim\", or one of {own}, {ZIP}"
            )));
        }
        // One value is an axis, too: what all points of the grid have.
        let fields = if values.is_list() { items(values)? } else { vec![*values] };
        let mut read: Vec<(Coordinate, Field<'a>)> = Vec::new();
        for field in fields {
            let text = field.plain()?;
            let coordinate =
                Coordinate::new(&name, &text).map_err(|problem| field.refuse(problem))?;
            if read.iter().any(|(other, _)| other.text == coordinate.text) {
                return Err(field.refuse("expected every value once"));
            }
            read.push((coordinate, field));
        }
        Ok(Self { name, values: read })
    }
}

/// How files are called: by their names, as long as no two of an axis are alike.
fn names(grids: &[Grid<'_>]) -> BTreeMap<String, String> {
    let axes = grids.iter().flat_map(|grid| &grid.axes);
    let files = axes.filter(|axis| matches!(axis.name.as_str(), "trace" | "config"));
    let texts: BTreeSet<&str> =
        files.flat_map(|axis| axis.values.iter().map(|(one, _)| one.text.as_str())).collect();
    let short = |text: &str| {
        let name = Path::new(text).file_name();
        name.map_or_else(|| text.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let is_alone = |name: &String| texts.iter().filter(|text| short(text) == **name).count() < 2;
    let name = |text: &str| Some(short(text)).filter(is_alone).unwrap_or_else(|| text.to_owned());
    texts.iter().map(|text| ((*text).to_owned(), name(text))).collect()
}

/// Devices, loads and the pairs of them that are points.
struct Built<'a> {
    base: Base,
    path: &'a Path,
    names: &'a BTreeMap<String, String>,
    choices: Vec<DeviceChoice>,
    loads: Vec<DeviceLoad>,
    /// Numbers of devices and loads by their values.
    known: BTreeMap<Vec<(String, String)>, usize>,
    cells: Cells,
}

impl<'a> Built<'a> {
    fn new(base: Base, path: &'a Path, names: &'a BTreeMap<String, String>) -> Self {
        let (choices, loads, known, cells) =
            (Vec::new(), Vec::new(), BTreeMap::new(), Cells::new());
        Self { base, path, names, choices, loads, known, cells }
    }

    /// Takes over one point.
    fn add(
        &mut self,
        grid: &Field<'_>,
        point: &[&(Coordinate, Field<'_>)],
    ) -> Result<(), StudyError> {
        let named = |one: &&&(Coordinate, Field<'_>), name: &str| one.0.axis == name;
        let on = |name: &str| point.iter().find(|one| named(one, name)).copied();
        if let (Some(_), Some((_, field))) = (on("preset"), on("config")) {
            return Err(field.refuse("expected either preset or config, not both"));
        }
        let load = match (on("trace"), on("workload")) {
            (Some(_), Some((_, field))) => {
                return Err(field.refuse("expected either trace or workload, not both"));
            }
            (None, None) => {
                return Err(grid.refuse("expected an axis trace or workload: what the devices run"));
            }
            (Some((trace, _)), None) => (trace, Load::Trace(self.beside(&trace.text))),
            (None, Some((workload, field))) => {
                Generated::parse(&workload.text).map_err(|error| field.refuse(error))?;
                (workload, Load::Workload(workload.text.clone()))
            }
        };
        let load = self.load(load.0, load.1);
        let device: Vec<&Coordinate> = point
            .iter()
            .map(|(one, _)| one)
            .filter(|one| !matches!(one.axis.as_str(), "trace" | "workload" | "seed"))
            .collect();
        let device = self.device(&device);
        let seeds = self.cells.entry((load, device)).or_default();
        if let Some((Coordinate { value: onefold_config::Typed::Count(seed), .. }, _)) = on("seed")
            && !seeds.contains(seed)
        {
            seeds.push(*seed);
        }
        Ok(())
    }

    fn beside(&self, file: &str) -> PathBuf {
        self.path.parent().unwrap_or_else(|| Path::new("")).join(file)
    }

    fn shown(&self, one: &Coordinate) -> Coordinate {
        match self.names.get(&one.text) {
            Some(name) if matches!(one.axis.as_str(), "trace" | "config") => {
                Coordinate::text(&one.axis, name)
            }
            _ => one.clone(),
        }
    }

    fn load(&mut self, one: &Coordinate, load: Load) -> usize {
        let axis = self.shown(one);
        let at = self.loads.len();
        let at = *self.known.entry(vec![(one.axis.clone(), one.text.clone())]).or_insert(at);
        if at == self.loads.len() {
            self.loads.push(DeviceLoad { load: Some(load), sets: Vec::new(), axis: Some(axis) });
        }
        at
    }

    fn device(&mut self, values: &[&Coordinate]) -> usize {
        // A key of its own, so that a device of one value is not taken for a load.
        let own = [("device".to_owned(), String::new())].into_iter();
        let key = own.chain(values.iter().map(|one| (one.axis.clone(), one.text.clone())));
        let at = self.choices.len();
        let at = *self.known.entry(key.collect()).or_insert(at);
        if at < self.choices.len() {
            return at;
        }
        let mut choice = DeviceChoice::new(self.base.clone());
        for one in values {
            match one.axis.as_str() {
                "preset" => choice.base = Base::Preset(one.text.clone()),
                "config" => choice.base = Base::File(self.beside(&one.text)),
                "size" => {
                    if let onefold_config::Typed::Count(bytes) = one.value {
                        choice.size = Some(bytes);
                    }
                }
                key => choice.sets.push(format!("{key}={}", one.text)),
            }
            choice.axes.push(self.shown(one));
        }
        self.choices.push(choice);
        at
    }

    fn finish(mut self, order: &[&str], sets: Vec<String>) -> (Devices, Vec<Workload>) {
        label(&mut self.choices, order);
        let workload = |load: &DeviceLoad| {
            let name = load.axis.as_ref().map_or_else(String::new, |axis| axis.text.clone());
            Workload { label: name.clone(), name, sizes: Vec::new(), sources: Vec::new() }
        };
        let workloads = self.loads.iter().map(workload).collect();
        let axes = order.iter().map(|name| (*name).to_owned()).collect();
        let devices = Devices {
            sets,
            size_key: String::new(),
            choices: self.choices,
            loads: self.loads,
            axes,
            cells: self.cells,
            policies: Policies::builtin(),
        };
        (devices, workloads)
    }
}

/// Names devices by what they differ in: `qlc-16k, greedy`.
fn label(choices: &mut [DeviceChoice], order: &[&str]) {
    let on = |choice: &DeviceChoice, axis: &str| {
        choice.axes.iter().find(|one| one.axis == axis).map(Coordinate::short)
    };
    let differs = |axis: &&&str| {
        let values: BTreeSet<Option<String>> = choices.iter().map(|one| on(one, axis)).collect();
        values.len() > 1
    };
    let differing: Vec<&str> = order.iter().filter(differs).copied().collect();
    // A word that two axes have says nothing alone.
    let mut owners: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for axis in &differing {
        for text in choices.iter().filter_map(|choice| on(choice, axis)) {
            owners.entry(text).or_default().insert(axis);
        }
    }
    let labels: Vec<String> = choices
        .iter()
        .map(|choice| {
            let part = |axis: &&str| {
                let text = on(choice, axis)?;
                let is_alone = owners.get(&text).is_none_or(|owners| owners.len() == 1);
                Some(if is_alone { text } else { format!("{axis} {text}") })
            };
            differing.iter().filter_map(part).collect::<Vec<String>>().join(", ")
        })
        .collect();
    for (number, (choice, label)) in choices.iter_mut().zip(labels).enumerate() {
        choice.label = match (label.is_empty(), &choice.base) {
            (false, _) => label,
            (true, Base::Preset(name)) if number == 0 => name.clone(),
            (true, _) => format!("device {}", u64_from(number) + 1),
        };
    }
}
