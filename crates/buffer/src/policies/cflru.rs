//! Clean-first LRU.

use super::nested::{Nested, Newcomer};
use super::oldest_clean::{OldestClean, check_mark};
use crate::{
    Access, Actions, Area, Build, Entries, Limits, ListId, NodeId, Parameter, PolicyInfo, Ratio,
    Replacement, Setup, Value, Violation,
};

/// Share of the window where nobody says otherwise.
const WINDOW_SHARE: Ratio = Ratio::new(1, 3);

/// Bit of [`Entries::aux_mut`]: the entry is in the window.
const IN_WINDOW: u16 = 1;

/// Name, source and parameters.
pub(crate) static INFO: PolicyInfo = PolicyInfo {
    name: "cflru",
    about: "Clean entries first, within a window at the least recently used end.",
    source: "Park, Jung, Kang, Kim, Lee 2006, CFLRU",
    parameters: &[Parameter {
        name: "window",
        default: Value::Ratio(WINDOW_SHARE),
        limits: Limits::Ratio,
        about: "Share of the entries in the clean-first window.",
    }],
    build: Build::of::<Cflru>(),
};

/// One LRU list, of which the oldest entries are the window: its oldest clean entry leaves, and the
/// oldest of all if the window is dirty.
///
/// The window is filled up when a victim is needed, so each access moves its border by one entry
/// on average. The list is number `AT`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cflru<const AT: u8 = 0> {
    window_most: u32,
    window: u32,
    /// The newest entry of the window.
    end: Option<NodeId>,
    clean: OldestClean,
}

impl<const AT: u8> Cflru<AT> {
    const ALL: ListId = ListId(AT);

    #[inline]
    fn fill_window(&mut self, e: &mut Entries) {
        while self.window < self.window_most {
            let next = match self.end {
                Some(end) => e.slab().newer(end),
                None => e.slab().oldest(Self::ALL),
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

    /// The oldest clean entry of the window, which leaves it.
    #[inline]
    fn clean_victim(&mut self, e: &mut Entries) -> Option<NodeId> {
        self.fill_window(e);
        let clean = self.clean.find(e, self.end)?;
        self.leave_window(e, clean);
        Some(clean)
    }

    /// All of the window is dirty: its oldest entries leave, and then what a batch takes along from
    /// beyond it.
    #[inline]
    fn evict_dirty(&mut self, e: &mut Entries, out: &mut Actions) {
        let freed = e.evict(Self::ALL, out);
        self.shrink(freed);
    }

    #[inline]
    const fn shrink(&mut self, by: u32) {
        self.window = self.window.saturating_sub(by);
        if self.window == 0 {
            self.end = None;
        }
    }
}

impl<const AT: u8> Nested for Cflru<AT> {
    #[inline]
    fn len(e: &Entries) -> u32 {
        e.len(Self::ALL)
    }

    fn evict(&mut self, e: &mut Entries, out: &mut Actions) {
        match self.clean_victim(e) {
            Some(clean) => {
                e.evict_at(clean, out);
            }
            None => self.evict_dirty(e, out),
        }
    }

    #[inline]
    fn insert(&mut self, e: &mut Entries, page: Newcomer, _: &mut Actions) -> NodeId {
        e.insert(Self::ALL, page.key)
    }

    #[inline]
    fn replace(&mut self, e: &mut Entries, page: Newcomer, out: &mut Actions) -> NodeId {
        if let Some(clean) = self.clean_victim(e) {
            return e.replace_at(clean, Self::ALL, page.key, out);
        }
        if e.shape().per_program() == 1 {
            self.shrink(1);
            return e.replace(Self::ALL, Self::ALL, page.key, out);
        }
        self.evict_dirty(e, out);
        self.insert(e, page, out)
    }

    #[inline]
    fn join(&mut self, e: &mut Entries, id: NodeId) {
        e.move_to_newest(Self::ALL, id);
    }
}

/// As an area of a divided buffer it has the default share of the whole buffer.
fn window_most(setup: &Setup) -> u32 {
    let own = setup.parameters.policy() == INFO.name;
    let share = if own { setup.parameters.value("window").ratio() } else { WINDOW_SHARE };
    share.of(setup.shape.slots())
}

impl<const AT: u8> Replacement for Cflru<AT> {
    const AREAS: &'static [Area] = &[Area::new("all")];

    fn new(setup: &Setup) -> Self {
        Self {
            window_most: window_most(setup),
            window: 0,
            end: None,
            clean: OldestClean::default(),
        }
    }

    #[inline]
    fn hit(&mut self, e: &mut Entries, id: NodeId, _: Access, _: &mut Actions) {
        self.leave_window(e, id);
        e.move_to_newest(Self::ALL, id);
    }

    #[inline]
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId> {
        self.make_room_and_insert(e, (key, access), ghost, out)
    }

    fn forget(&mut self, e: &mut Entries, id: NodeId) {
        self.leave_window(e, id);
    }

    fn cleaned(&mut self, e: &mut Entries, id: NodeId) {
        self.clean.cleaned(e, id, self.end);
    }

    fn check(&self, e: &Entries) -> Result<(), Violation> {
        self.clean.check(e, Self::ALL, self.end)?;
        let mut at = e.slab().oldest(Self::ALL);
        for place in 0..e.len(Self::ALL) {
            let Some(id) = at else { break };
            check_mark(e, id, IN_WINDOW, place < self.window)?;
            at = e.slab().newer(id);
        }
        Ok(())
    }

    onefold_units::keep_fields!({ window, end, clean } but { window_most });
}
