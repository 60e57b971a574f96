//! The media of a namespace.

use onefold_nand::NullMedia;

/// The media of a namespace.
#[derive(Clone, Debug)]
pub struct ZnsMedia<M> {
    /// That of the sequential zones.
    pub sequential: M,
    /// That of the conventional zones, if there are any.
    pub conventional: Option<M>,
}

impl ZnsMedia<NullMedia> {
    /// No bytes of any zone are kept.
    pub const NULL: Self = Self { sequential: NullMedia, conventional: Some(NullMedia) };
}

impl<M> From<M> for ZnsMedia<M> {
    /// Without conventional zones.
    fn from(sequential: M) -> Self {
        Self { sequential, conventional: None }
    }
}
