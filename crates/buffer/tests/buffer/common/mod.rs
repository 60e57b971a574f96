//! What the tests share.

pub(crate) mod build;
pub(crate) mod model;
pub(crate) mod replay;
pub(crate) mod streams;
pub(crate) mod text;
pub(crate) mod traces;
pub(crate) mod unmapped;
pub(crate) mod zipf;
