//! Golden images of volumes: what the code of some day left on its devices, kept in the repository, so that all later code has to open
//! it. One is made where a name has none yet, and never again.
//!
//! A file is compressed. In it are facts, a line `name number number ..` each, then an empty line, then blocks: device 4, address 8,
//! 4096 bytes. All numbers in facts are decimal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const BLOCK: usize = 4096;

/// What lay on the devices of a volume, and what there is to know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Golden {
    /// Lists of numbers by their names, which have no spaces.
    pub facts: BTreeMap<String, Vec<u64>>,
    /// Blocks by device and address.
    pub blocks: BTreeMap<(u32, u64), Vec<u8>>,
}

impl Golden {
    /// A fact that has to be there.
    #[must_use]
    pub fn fact(&self, name: &str) -> &[u64] {
        self.facts.get(name).unwrap_or_else(|| panic!("no fact {name:?}"))
    }

    /// Facts whose names begin with a word and a dot, by the rest.
    pub fn facts_of(&self, word: &str) -> impl Iterator<Item = (&str, &[u64])> {
        self.facts.iter().filter_map(move |(name, numbers)| {
            let (first, rest) = name.split_once('.')?;
            (first == word).then_some((rest, &numbers[..]))
        })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, numbers) in &self.facts {
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            bytes.extend(format!("{name} {}\n", numbers.join(" ")).into_bytes());
        }
        bytes.push(b'\n');
        for ((device, at), block) in &self.blocks {
            bytes.extend(device.to_le_bytes());
            bytes.extend(at.to_le_bytes());
            bytes.extend(block);
        }
        zstd::encode_all(&bytes[..], 19).expect("memory")
    }

    fn decode(bytes: &[u8]) -> Self {
        let bytes = zstd::decode_all(bytes).expect("a golden image is compressed");
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").expect("an empty line");
        let text = std::str::from_utf8(&bytes[..end]).expect("facts are text");
        let mut golden = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().expect("a name").to_owned();
            golden.facts.insert(name, words.map(|word| word.parse().expect("a number")).collect());
        }
        let mut rest = &bytes[end + 2..];
        while let Some((head, behind)) = rest.split_first_chunk::<12>() {
            let device = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
            let at = u64::from_le_bytes(head[4..].try_into().expect("8 bytes"));
            golden.blocks.insert((device, at), behind[..BLOCK].to_vec());
            rest = &behind[BLOCK..];
        }
        assert!(rest.is_empty(), "blocks are whole");
        golden
    }

    /// The image of a name in a folder. With `ONEFOLD_BLESS` it is made if there is none.
    #[must_use]
    pub fn load(folder: &Path, name: &str, make: impl FnOnce() -> Self) -> Self {
        let path = folder.join(format!("{name}.zst"));
        if !path.exists() && std::env::var_os("ONEFOLD_BLESS").is_some() {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(&path, make().encode()).expect("a golden image");
        }
        let bytes = fs::read(&path).unwrap_or_else(|error| {
            panic!(
                "{}: {error}; ONEFOLD_BLESS=1 makes a golden image that is missing",
                path.display()
            )
        });
        Self::decode(&bytes)
    }

    /// Names of the images in a folder.
    #[must_use]
    pub fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("the folder of golden images");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".zst").map(str::to_owned)
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut golden = Golden::default();
        golden.facts.insert("held.device".to_owned(), vec![1, u64::MAX]);
        golden.facts.insert("empty".to_owned(), vec![]);
        golden.blocks.insert((1, 7), vec![10; BLOCK]);
        golden.blocks.insert((0, u64::MAX), vec![0; BLOCK]);
        assert_eq!(Golden::decode(&golden.encode()), golden);
        let held: Vec<_> = golden.facts_of("held").collect();
        assert_eq!(held, [("device", &[1, u64::MAX][..])]);
    }
}
