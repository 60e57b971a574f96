//! What can be wrong.

/// Why a buffer cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The buffer cannot hold one flash page.
    #[error(
        "the buffer of {bytes} B holds fewer entries than one flash page needs, expected at least \
         {least} B; enlarge buffer size, or set it to 0 for no buffer"
    )]
    TooSmall {
        /// Size asked for.
        bytes: u64,
        /// Smallest size.
        least: u64,
    },
    /// More entries than an index of 32 bits can manage.
    #[error(
        "the buffer of {bytes} B has {entries} entries, expected at most {most}; use a smaller \
         buffer or a larger mapping unit"
    )]
    TooLarge {
        /// Size asked for.
        bytes: u64,
        /// Entries in it.
        entries: u64,
        /// Most entries.
        most: u64,
    },
    /// The tables of the policy and its smallest content do not fit.
    #[error(
        "the buffer of {bytes} B does not hold the tables of the policy {policy} ({tables} B) and \
         the entries it needs, together at least {least} B; enlarge buffer size, use larger chunks, \
         or smaller areas"
    )]
    Tables {
        /// The policy.
        policy: &'static str,
        /// Size asked for.
        bytes: u64,
        /// Bytes of its tables.
        tables: u64,
        /// Smallest size.
        least: u64,
    },
    /// The buffer has fewer entries than the areas of the policy need.
    #[error(
        "the buffer holds {slots} entries after its tables, and the areas of the policy {policy} need \
         at least {least}; enlarge buffer size or use smaller areas"
    )]
    Areas {
        /// The policy.
        policy: &'static str,
        /// Entries of the buffer.
        slots: u32,
        /// Entries needed.
        least: u32,
    },
    /// Parameters that exclude one another.
    #[error("{key} of the policy {policy} is {found}, expected {limit}")]
    Parameter {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: &'static str,
        /// Its value.
        found: u64,
        /// What is accepted, and why.
        limit: &'static str,
    },
    /// The entry is no power of two in range.
    #[error(
        "the buffer entry (mapping unit) is {bytes} B, expected a power of two from {least} to \
         {most} B; use a unit of 4096, 16384 or 65536 B"
    )]
    EntrySize {
        /// Size asked for.
        bytes: u32,
        /// Smallest size.
        least: u32,
        /// Largest size.
        most: u32,
    },
    /// The flash page and the entry do not divide one another.
    #[error(
        "the flash page is {flash_page} B with buffer entries of {entry} B, expected one to be a \
         multiple of the other and at most {most} entries in a page; change the flash page or the \
         mapping unit"
    )]
    FlashPage {
        /// Flash page asked for, in bytes.
        flash_page: u32,
        /// Entry, in bytes.
        entry: u32,
        /// Most entries in a page.
        most: u32,
    },
}

/// A broken invariant: a bug in a policy. Numbers are those of `entries/mod.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Invariant 1.
    #[error("list {list} has {found} entries linked, its counter says {counted}")]
    ListLength {
        /// The list.
        list: usize,
        /// Entries counted by walking.
        found: u32,
        /// Entries according to the counter.
        counted: u32,
    },
    /// Invariant 1.
    #[error("list {list} is broken at node {node}: wrong list, back link or region")]
    Link {
        /// The list.
        list: usize,
        /// The node.
        node: u32,
    },
    /// Invariant 2.
    #[error("entry {key} of node {node} is not found under its key")]
    Unfindable {
        /// The entry.
        key: u32,
        /// Its node.
        node: u32,
    },
    /// Invariant 2.
    #[error("the index holds {indexed} nodes, the lists {listed}")]
    IndexSize {
        /// Nodes reachable through the index.
        indexed: u32,
        /// Nodes in lists.
        listed: u32,
    },
    /// Invariant 3.
    #[error("{used} of {slots} slots are in lists and {free} are free, expected a partition")]
    Slots {
        /// Slots in lists.
        used: u32,
        /// Slots in the free list.
        free: u32,
        /// All slots.
        slots: u32,
    },
    /// Invariant 4.
    #[error("entry {key} has valid parts {valid:#06x} and dirty parts {dirty:#06x}")]
    Masks {
        /// The entry.
        key: u32,
        /// Valid parts.
        valid: u16,
        /// Dirty parts.
        dirty: u16,
    },
    /// Invariant 5.
    #[error("list {list} has {found} dirty entries, its counter says {counted}")]
    DirtyCount {
        /// The list.
        list: usize,
        /// Dirty entries counted by walking.
        found: u32,
        /// Dirty entries according to the counter.
        counted: u32,
    },
    /// Invariant 6.
    #[error(
        "tenant {tenant} wrote {written} entries, but overwritten, programmed, discarded and dirty \
         ones are {accounted}"
    )]
    Conservation {
        /// The tenant.
        tenant: usize,
        /// Entries written.
        written: u64,
        /// Entries accounted for.
        accounted: u64,
    },
    /// A block of a policy that evicts blocks.
    #[error("block {block} does not have its {pages} entries next to each other in its list")]
    Block {
        /// Number of the block.
        block: u32,
        /// Entries according to the block.
        pages: u32,
    },
    /// A limit of one policy.
    #[error("list {list} has {found} entries, the policy allows {limit}")]
    ListLimit {
        /// The list.
        list: usize,
        /// Entries in it.
        found: u32,
        /// Most entries.
        limit: u32,
    },
    /// A mark that a policy keeps with an entry.
    #[error(
        "the mark {mark:#06x} of entry {key} in list {list} is wrong, expected for its place: \
         {expected}"
    )]
    Mark {
        /// The list.
        list: usize,
        /// The entry.
        key: u32,
        /// The bit of the mark.
        mark: u16,
        /// Whether it should be set.
        expected: bool,
    },
}
