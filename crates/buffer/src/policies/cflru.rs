//! Clean-first LRU.

use super::oldest_clean::{OldestClean, check_mark};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value, Violation,
};

const ALL: ListId = ListId(0);

/// Bit of [`Entries::aux_mut`]: the entry is in the window.
const IN_WINDOW: u16 = 1;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "cflru",
    about: "Clean entries first, within a window at the least recently used end.",
    source: "Park, Jung, Kang, Kim, Lee 2006, CFLRU",
    parameters: &[Parameter {
        name: "window",
        default: Value::Ratio(Ratio::new(1, 3)),
        limits: Limits::Ratio,
        about: "Share of the entries in the clean-first window.",
    }],
    build: Build::of::<Cflru>(),
};

/// One LRU list, of which the oldest entries are the window: its oldest clean entry leaves, and the
/// oldest of all if the window is dirty.
///
/// The window is filled up when a victim is needed, so each access moves its border by one entry
/// on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cflru {
    window_most: u32,
    window: u32,
    /// The newest entry of the window.
    end: Option<NodeId>,
    clean: OldestClean,
}

impl Cflru {
    #[inline]
    fn fill_window(&mut self, e: &mut Entries) {
        while self.window < self.window_most {
            let next = match self.end {
                Some(end) => e.slab().newer(end),
                None => e.slab().oldest(ALL),
            };
            let Some(id) = next else { break };
            *e.aux_mut(id) |= IN_WINDOW;
            self.clean.joined(id);
            self.end = next;
            self.window += 1;
        }
    }

    #[inline]
    fn leave_window(&mut self, e: &mut Entries, id: NodeId) {
        if *e.aux_mut(id) & IN_WINDOW == 0 {
            return;
        }
        self.clean.leaves(e, id, self.end);
        *e.aux_mut(id) &= !IN_WINDOW;
        if self.end == Some(id) {
            self.end = e.slab().older(id);
        }
        self.window -= 1;
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, key: u32, out: &mut Actions) -> NodeId {
        self.fill_window(e);
        if let Some(clean) = self.clean.find(e, self.end) {
            self.leave_window(e, clean);
            return e.replace_at(clean, ALL, key, out);
        }
        // All of the window is dirty: its oldest entries leave, and then what a batch takes along
        // from beyond it.
        if e.shape().per_program() == 1 {
            self.shrink(1);
            return e.replace(ALL, ALL, key, out);
        }
        let freed = e.evict(ALL, out);
        self.shrink(freed);
        e.insert(ALL, key)
    }

    #[inline]
    const fn shrink(&mut self, by: u32) {
        self.window = self.window.saturating_sub(by);
        if self.window == 0 {
            self.end = None;
        }
    }
}

impl Replacement for Cflru {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(setup: &Setup) -> Self {
        let window_most = setup.parameters.value("window").ratio().of(setup.shape.slots());
        Self { window_most, window: 0, end: None, clean: OldestClean::default() }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.leave_window(e, id);
        e.move_to_newest(ALL, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        _: Option<NodeId>,
        _: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        Some(if e.is_full() { self.replace(e, key, out) } else { e.insert(ALL, key) })
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        self.leave_window(e, id);
    }

    fn cleaned(&mut self, e: &mut Entries, id: NodeId) {
        self.clean.cleaned(e, id, self.end);
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.clean.check(e, ALL, self.end)?;
        let mut at = e.slab().oldest(ALL);
        for place in 0..e.len(ALL) {
            let Some(id) = at else { break };
            check_mark(e, id, IN_WINDOW, place < self.window)?;
            at = e.slab().newer(id);
        }
        Ok(())
    }
}
