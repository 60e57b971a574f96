//! The files that belong to the repository, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// Text files by path relative to the root, with `/` between folders, and the names of the others.
#[derive(Debug, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
    binary: BTreeSet<String>,
}

impl Tree {
    /// Reads what git tracks or would track; without git, every file outside `.git` and `target`.
    pub(super) fn load(root: &Path) -> io::Result<Self> {
        let paths = match from_git(root) {
            Some(paths) => paths,
            None => from_folders(root)?,
        };
        let mut files = BTreeMap::new();
        let mut binary = BTreeSet::new();
        for path in paths {
            // A file deleted but not yet removed from the index is not an error.
            let Ok(bytes) = fs::read(root.join(&path)) else { continue };
            match String::from_utf8(bytes) {
                Ok(text) => drop(files.insert(path, text)),
                Err(_) => drop(binary.insert(path)),
            }
        }
        Ok(Self { files, binary })
    }

    /// A tree for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Self { files: files.iter().map(own).collect(), binary: BTreeSet::new() }
    }

    /// The text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether there is such a file or folder. Binary files count here.
    pub(super) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        let mut paths = self.files.keys().chain(&self.binary);
        paths.any(|file| file == path || file.starts_with(&folder))
    }

    /// All files, by path.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// How many files there are.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Folder names below `crates/` that hold a manifest.
    pub(super) fn crates(&self) -> impl Iterator<Item = &str> {
        self.files.keys().filter_map(|path| {
            let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some(name)
        })
    }
}

fn from_git(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let listing = String::from_utf8(output.stdout).ok()?;
    Some(listing.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn from_folders(root: &Path) -> io::Result<Vec<String>> {
    let mut paths = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && !matches!(name.as_str(), ".git" | "target" | "out") {
                pending.push(path);
            } else if kind.is_file() {
                paths.push(path);
            }
        }
    }
    Ok(paths)
}
