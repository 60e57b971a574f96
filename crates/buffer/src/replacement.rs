//! What one policy over single entries decides.

use onefold_units::Keeper;

use crate::{
    Access, Actions, Area, BufferError, Entries, FtlView, Learnt, ListId, NodeId, Pages,
    Parameters, Req, Setup, Tables, Violation,
};

/// What one policy decides: which list an entry is in, and which entry leaves.
///
/// The lists and everything about dirty data are in [`Entries`]; ghosts are entries of further
/// lists without a slot.
pub trait Replacement: Clone + Send + 'static {
    /// The lists of entries, then those of ghosts.
    const AREAS: &'static [Area];

    /// The policy with nothing buffered.
    fn new(setup: &Setup) -> Self;

    /// Refuses parameters that do not fit one another or the sizes.
    fn validate(_: &Setup) -> Result<(), BufferError> {
        Ok(())
    }

    /// Keys without bytes that the policy remembers at most.
    #[must_use]
    fn ghosts(_: &Setup) -> u32 {
        0
    }

    /// Memory of tables that the policy keeps besides entries and ghosts.
    #[must_use]
    fn tables(_: &Setup) -> Tables {
        Tables::default()
    }

    /// Entries the policy cannot do without.
    #[must_use]
    fn least(setup: &Setup) -> u32 {
        setup.shape.per_program()
    }

    /// Slots behind those of the entries that the policy uses within an eviction.
    #[must_use]
    fn scratch(&self) -> u32 {
        0
    }

    /// Whether, with such parameters, [`Replacement::begin`] asks the FTL: only then does whoever
    /// drives the buffer keep track of what is mapped.
    #[must_use]
    fn asks_ftl(_: &Parameters) -> bool {
        false
    }

    /// Looks at a request before its pages are handled.
    #[inline]
    fn begin(&mut self, _: &Req, _: &dyn FtlView, _: &Entries, _: &mut Actions) {}

    /// A buffered page is accessed. The entry must stay buffered.
    fn hit(&mut self, e: &mut Entries, id: NodeId, access: Access, out: &mut Actions);

    /// A page that is not buffered is accessed: makes room and inserts it. `ghost` is what the
    /// policy remembers of it; it has to be removed before. `None` refuses a read, which is then
    /// served from flash; a write has to be admitted.
    fn admit(
        &mut self,
        e: &mut Entries,
        key: u32,
        ghost: Option<NodeId>,
        access: Access,
        out: &mut Actions,
    ) -> Option<NodeId>;

    /// Does for several pages of a request, from the first on, what [`Replacement::admit`] and the
    /// transfer of their bytes do for one after the other, if none of them is buffered or remembered
    /// ([`Entries::fresh`]). Returns how many; the others are handled one by one. A policy that has
    /// no faster way than that admits none.
    #[inline]
    fn admit_fresh(&mut self, _: &mut Entries, _: Pages, _: &mut Actions) -> u32 {
        0
    }

    /// The entry, or ghost, is about to leave because of a TRIM.
    #[inline]
    fn forget(&mut self, _: &mut Entries, _: NodeId) {}

    /// The entry was programmed and stays, clean: the end of a FLUSH or FUA write.
    #[inline]
    fn cleaned(&mut self, _: &mut Entries, _: NodeId) {}

    /// Programs all dirty entries; afterwards [`Replacement::cleaned`] is called for each. The
    /// default goes through the lists in their order, oldest entry first.
    fn flush(&mut self, e: &mut Entries, out: &mut Actions) {
        for list in (0..).take(Self::AREAS.len()) {
            e.flush(ListId(list), out);
        }
    }

    /// Writes the state of the policy, or takes it in place: all that [`Replacement::new`] does not know. Without this
    /// a policy with fields cannot be stopped and continued; [`onefold_units::keep_fields!`] makes it.
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        keeper.stateless(self);
    }

    /// As [`crate::Policy::learnt`].
    fn learnt(&self) -> Option<Learnt<'_>> {
        None
    }

    /// As [`crate::Policy::learn`].
    fn learn(&mut self, _: Learnt<'_>) -> bool {
        false
    }

    /// Checks the limits of the policy.
    fn check(&self, _: &Entries) -> Result<(), Violation> {
        Ok(())
    }
}
