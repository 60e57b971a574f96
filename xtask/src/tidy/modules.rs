//! The modules of a crate: which file each is in, what it defines, and where a path leads.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Attribute, Item, UseTree, Visibility};

use super::tree::Tree;

/// Aliases that lead to one another are followed this far.
const ALIASES_MAX: usize = 16;

struct Module {
    file: String,
    parent: usize,
    items: Vec<Item>,
    defines: BTreeSet<String>,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings in, and where from.
    aliases: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// What `use` names and does not export again.
    imports: Vec<Vec<String>>,
}

/// What a path leads to.
enum Place {
    Module(usize),
    /// Something that the module defines.
    Item(usize),
}

/// All modules of a crate; the first one is its root.
pub(super) struct Modules(Vec<Module>);

impl Modules {
    /// Reads a crate from its root file. The error has a file and what is wrong there.
    pub(super) fn of(tree: &Tree, root: &str) -> Result<Self, (String, String)> {
        let mut modules = Self(Vec::new());
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.read(tree, root, folder, 0)?;
        Ok(modules)
    }

    pub(super) fn indices(&self) -> std::ops::Range<usize> {
        0..self.0.len()
    }

    pub(super) fn file(&self, module: usize) -> &str {
        &self.0[module].file
    }

    pub(super) fn items(&self, module: usize) -> &[Item] {
        &self.0[module].items
    }

    pub(super) fn imports(&self, module: usize) -> &[Vec<String>] {
        &self.0[module].imports
    }

    /// The file that defines what a path names, if that is in this crate. A module is defined nowhere.
    pub(super) fn file_of(&self, module: usize, path: &[String]) -> Option<usize> {
        match self.resolve(module, path, 0)? {
            Place::Module(_) => None,
            Place::Item(module) => Some(module),
        }
    }

    /// Whether a module lies somewhere within another one.
    pub(super) fn is_within(&self, module: usize, outer: usize) -> bool {
        let mut at = module;
        while at != 0 {
            at = self.0[at].parent;
            if at == outer {
                return true;
            }
        }
        false
    }

    fn read(
        &mut self,
        tree: &Tree,
        path: &str,
        folder: &str,
        parent: usize,
    ) -> Result<usize, (String, String)> {
        let text = tree.text(path).unwrap_or_default();
        let file = syn::parse_file(text)
            .map_err(|error| (path.to_owned(), format!("cannot be parsed: {error}")))?;
        self.add(tree, (path, folder), file.items, parent)
    }

    /// Adds a module and those within it. `folder` is where its files lie.
    fn add(
        &mut self,
        tree: &Tree,
        (path, folder): (&str, &str),
        items: Vec<Item>,
        parent: usize,
    ) -> Result<usize, (String, String)> {
        let at = self.0.len();
        self.0.push(Module {
            file: path.to_owned(),
            parent,
            items: Vec::new(),
            defines: BTreeSet::new(),
            children: BTreeMap::new(),
            aliases: BTreeMap::new(),
            globs: Vec::new(),
            imports: Vec::new(),
        });
        for item in items.iter().filter(|item| !is_test(item)) {
            match item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = format!("{folder}/{name}");
                    let child = match &inner.content {
                        Some((_, items)) => self.add(tree, (path, &below), items.clone(), at)?,
                        None => self.read(tree, &file_of_module(tree, &below), &below, at)?,
                    };
                    self.0[at].children.insert(name, child);
                }
                Item::Use(used) => {
                    let exports = !matches!(used.vis, Visibility::Inherited);
                    self.0[at].take_in(&used.tree, &mut Vec::new(), exports);
                }
                other => self.0[at].defines.extend(name_of(other)),
            }
        }
        self.0[at].items = items;
        Ok(at)
    }

    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Place> {
        if depth > ALIASES_MAX {
            return None;
        }
        let mut at = from;
        for part in path {
            match part.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.0[at].parent,
                name => match self.look_up(at, name, depth)? {
                    Place::Module(next) => at = next,
                    // What follows is a variant or an associated item.
                    item @ Place::Item(_) => return Some(item),
                },
            }
        }
        Some(Place::Module(at))
    }

    fn look_up(&self, at: usize, name: &str, depth: usize) -> Option<Place> {
        let module = &self.0[at];
        if let Some(child) = module.children.get(name) {
            return Some(Place::Module(*child));
        }
        if module.defines.contains(name) {
            return Some(Place::Item(at));
        }
        if let Some(path) = module.aliases.get(name) {
            // `use foo::foo` of another crate must not lead to itself.
            return self.resolve(at, path, depth + 1);
        }
        module.globs.iter().find_map(|path| match self.resolve(at, path, depth + 1)? {
            Place::Module(other) => self.look_up(other, name, depth + 1),
            Place::Item(_) => None,
        })
    }
}

impl Module {
    fn take_in(&mut self, tree: &UseTree, path: &mut Vec<String>, exports: bool) {
        match tree {
            UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.take_in(&part.tree, path, exports);
                path.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.take_in(tree, path, exports));
            }
            UseTree::Glob(_) => self.globs.push(path.clone()),
            UseTree::Name(name) => self.alias(path, &name.ident, &name.ident, exports),
            UseTree::Rename(name) => self.alias(path, &name.ident, &name.rename, exports),
        }
    }

    fn alias(&mut self, path: &[String], of: &syn::Ident, name: &syn::Ident, exports: bool) {
        let mut path = path.to_vec();
        let mut name = name.to_string();
        if of == "self" {
            if name == "self" {
                name = path.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(of.to_string());
        }
        if path.len() > 1 {
            self.aliases.insert(name, path.clone());
        }
        if !exports {
            self.imports.push(path);
        }
    }
}

/// The file of `mod name;`, where `below` is the folder of the files within it.
fn file_of_module(tree: &Tree, below: &str) -> String {
    let beside = format!("{below}.rs");
    if tree.text(&beside).is_some() { beside } else { format!("{below}/mod.rs") }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Whether an item is there for tests only.
pub(super) fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        let only = attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"));
        attribute.path().is_ident("cfg") && only
    })
}
