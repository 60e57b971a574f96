//! How a policy describes itself.

use super::Parameter;

/// A kind of policies, as what builds one of them.
pub trait Kind: Copy + 'static {
    /// What messages call one of them.
    const NOUN: &'static str;

    /// Those that Onefold has, in the order of tables.
    const BUILTIN: &'static [&'static Info<Self>];
}

/// Description of a policy that a `B` builds.
#[derive(Clone, Copy, Debug)]
pub struct Info<B> {
    /// Name in configuration, tables and errors.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters, at most 8.
    pub parameters: &'static [Parameter],
    /// How it is built.
    pub build: B,
}

impl<B> Info<B> {
    /// A policy without parameters whose source is the program that it is part of.
    pub const fn new(name: &'static str, about: &'static str, build: B) -> Self {
        Self { name, about, source: "this program", parameters: &[], build }
    }
}
