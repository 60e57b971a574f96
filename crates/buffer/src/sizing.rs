//! How many entries a buffer has: its memory also pays for the tables of its policy.

use onefold_units::convert::narrow;

use crate::{BufferConfig, BufferError, Charge, Replacement, Setup, Shape, Sizes};

/// Bytes that [`Charge::Full`] takes for one ghost: key and links.
const GHOST_BYTES: u64 = 8;

/// The setup of policy `R`: as many entries as fit with its tables into the configured size.
pub(crate) fn setup_of<R: Replacement>(
    config: &BufferConfig,
    sizes: &Sizes,
) -> Result<Setup, BufferError> {
    let shape = Shape::new(config.bytes, config.volatile, sizes)?;
    let device_entries = sizes.device_bytes.div_ceil(u64::from(sizes.entry_bytes));
    let parameters = config.policy.parameters();
    let Sizes { channels, ways, .. } = *sizes;
    let all = Setup { shape, parameters, device_entries, channels, ways };
    R::validate(&all)?;
    let tables = match config.charge {
        Charge::None => 0,
        Charge::Paper => R::tables(&all).paper,
        Charge::Full => R::tables(&all).full,
    };
    let entry = u64::from(shape.entry_bytes());
    let least = tables.saturating_add(u64::from(R::least(&all)) * entry);
    if config.bytes < least {
        let policy = config.policy.name();
        return Err(BufferError::Tables { policy, bytes: config.bytes, tables, least });
    }
    let slots = narrow(((config.bytes - tables) / entry).min(u64::from(shape.slots())));
    let with = |slots| Setup { shape: shape.with_slots(slots), ..all };
    let setup = if config.charge == Charge::Full {
        let ghosts = |slots| u64::from(R::ghosts(&with(slots))) * GHOST_BYTES;
        let fits = |slots: u32| u64::from(slots) * entry + tables + ghosts(slots) <= config.bytes;
        with(last_that(slots, fits))
    } else {
        with(slots)
    };
    let (slots, least) = (setup.shape.slots(), R::least(&setup));
    if slots < least {
        let policy = config.policy.name();
        return Err(BufferError::Areas { policy, slots, least });
    }
    Ok(setup)
}

/// The last number up to `most` that fits, 0 if none does. What fits goes before what does not.
fn last_that(most: u32, fits: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}
