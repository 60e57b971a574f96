//! Figures of a study: which rows become which numbers, as text and as HTML.

mod data;
mod html;
mod text;

pub use data::{Data, Group, Point, figures};
pub use html::html;
pub use text::text;
