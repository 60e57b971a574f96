//! The B-tree that SQLite keeps a table WITHOUT ROWID in, as far as it decides which pages a transaction changes.
//!
//! Cells have equal sizes, so that a page is a number of them. What SQLite 3.40.1 does (`btree.c`, `balance_nonroot` and
//! `balance_deeper`):
//!
//! 1. A page that overflows is rebalanced with up to two siblings: cells go to as few pages as hold them, filled from the left, then
//!    evened out from the right. All of these pages and their parent change.
//! 2. A root that overflows gives its cells to a new child, so that the root stays at its page.
//! 3. A cell is in one page only: those that separate children are in the parent alone.
//!
//! Deleted pages do not occur: a value is replaced by one of the same size.

use onefold_units::convert::{index, u32_from};

/// A page of the tree.
#[derive(Clone, Debug, Default)]
struct Node {
    page: u32,
    keys: Vec<u32>,
    /// Nodes by number; empty in a leaf, else one more than keys.
    children: Vec<u32>,
}

/// The tree.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The first is the root.
    nodes: Vec<Node>,
    cells_most: usize,
}

/// Pages of the database file, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pages {
    /// Pages of the file.
    pub(super) last: u32,
}

impl Pages {
    pub(super) const fn allocate(&mut self) -> u32 {
        self.last += 1;
        self.last
    }
}

impl Tree {
    /// An empty tree with its root at `root`, and so many cells of a page.
    pub(super) fn new(root: u32, cells_most: usize) -> Self {
        Self { nodes: vec![Node { page: root, ..Node::default() }], cells_most }
    }

    /// Puts a key in place; pages that change are added to `changed`.
    pub(super) fn put(&mut self, key: u32, pages: &mut Pages, changed: &mut Vec<u32>) {
        // Nodes on the way, each with the number of the child that was taken.
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut at = 0;
        loop {
            let node = &mut self.nodes[at];
            match node.keys.binary_search(&key) {
                Ok(slot) => return self.replace(at, slot, changed),
                Err(slot) if node.children.is_empty() => {
                    node.keys.insert(slot, key);
                    changed.push(node.page);
                    break;
                }
                Err(slot) => {
                    path.push((at, slot));
                    at = index(node.children[slot]);
                }
            }
        }
        while self.nodes[at].keys.len() > self.cells_most {
            let (parent, slot) = path.pop().unwrap_or_else(|| {
                self.deepen(pages, changed);
                (0, 0)
            });
            self.balance(parent, slot, pages, changed);
            at = parent;
        }
    }

    /// A cell gives way to another one: where it separates two children, the last cell before it takes its place.
    fn replace(&self, at: usize, slot: usize, changed: &mut Vec<u32>) {
        let mut node = &self.nodes[at];
        changed.push(node.page);
        let mut child = node.children.get(slot);
        while let Some(next) = child {
            node = &self.nodes[index(*next)];
            child = node.children.last();
            if child.is_none() {
                changed.push(node.page);
            }
        }
    }

    /// The root gives all it has to a new child.
    fn deepen(&mut self, pages: &mut Pages, changed: &mut Vec<u32>) {
        let root = self.nodes[0].page;
        let child = Node { page: pages.allocate(), ..std::mem::take(&mut self.nodes[0]) };
        changed.extend([root, child.page]);
        let number = u32_from(self.nodes.len());
        self.nodes.push(child);
        self.nodes[0] = Node { page: root, keys: Vec::new(), children: vec![number] };
    }

    /// Evens out a child with its siblings.
    fn balance(&mut self, parent: usize, slot: usize, pages: &mut Pages, changed: &mut Vec<u32>) {
        let dividers = self.nodes[parent].keys.len();
        let first = slot.saturating_sub(1).min(dividers.saturating_sub(2));
        let last = (first + 2).min(dividers);
        let numbers: Vec<u32> = self.nodes[parent].children[first..=last].to_vec();
        let (mut keys, mut children) = (Vec::new(), Vec::new());
        for (n, number) in numbers.iter().enumerate() {
            let node = &mut self.nodes[index(*number)];
            keys.append(&mut node.keys);
            children.append(&mut node.children);
            keys.extend(self.nodes[parent].keys[first..last].get(n));
        }
        let cells = shares(keys.len(), self.cells_most);
        let mut numbers = numbers;
        while numbers.len() < cells.len() {
            numbers.push(u32_from(self.nodes.len()));
            self.nodes.push(Node { page: pages.allocate(), ..Node::default() });
        }
        // Siblings lie in the order of their pages.
        let mut places: Vec<u32> = numbers.iter().map(|n| self.nodes[index(*n)].page).collect();
        places.sort_unstable();
        let (mut keys, mut children) = (keys.into_iter(), children.into_iter());
        let mut between = Vec::new();
        for ((number, page), count) in numbers.iter().zip(places).zip(&cells) {
            let node = &mut self.nodes[index(*number)];
            node.page = page;
            node.keys.extend(keys.by_ref().take(*count));
            node.children.extend(children.by_ref().take(*count + 1));
            changed.push(page);
            between.extend(keys.next());
        }
        let parent = &mut self.nodes[parent];
        parent.keys.splice(first..last, between);
        parent.children.splice(first..=last, numbers);
        changed.push(parent.page);
    }
}

#[cfg(test)]
impl Tree {
    /// All keys, in the order of the tree.
    pub(super) fn keys(&self) -> Vec<u32> {
        let mut keys = Vec::new();
        self.walk(0, &mut keys);
        keys
    }

    fn walk(&self, at: usize, keys: &mut Vec<u32>) {
        let node = &self.nodes[at];
        for n in 0..=node.keys.len() {
            if let Some(child) = node.children.get(n) {
                self.walk(index(*child), keys);
            }
            keys.extend(node.keys.get(n));
        }
    }

    /// Whether each of the pages 2 to `last` is one node, with no more cells than fit and a child between each two.
    pub(super) fn pages_are_whole(&self, last: u32) -> bool {
        let mut pages: Vec<u32> = self.nodes.iter().map(|node| node.page).collect();
        pages.sort_unstable();
        let is_whole = |node: &Node| {
            let children = node.children.len();
            node.keys.len() <= self.cells_most && (children == 0 || children == node.keys.len() + 1)
        };
        pages.into_iter().eq(2..=last) && self.nodes.iter().all(is_whole)
    }
}

/// How many of `cells` cells each of as few pages as possible gets; one cell goes between each two of them.
fn shares(cells: usize, most: usize) -> Vec<usize> {
    let mut shares = Vec::new();
    let mut left = cells;
    while left > most {
        shares.push(most);
        left -= most + 1;
    }
    shares.push(left);
    for at in (1..shares.len()).rev() {
        while shares[at] == 0 || shares[at] + 2 <= shares[at - 1] {
            shares[at] += 1;
            shares[at - 1] -= 1;
        }
    }
    shares
}
