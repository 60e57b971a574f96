//! Policies by name, with parameters: `pt-lru:p=0.9`.
//!
//! A policy describes itself with an [`Info`]: name, parameters, one sentence, and how it is built.
//! Policies that can stand in for one another are of one [`Kind`], which the crate that runs them
//! defines with the table of those that Onefold has. Configuration, studies, documentation and
//! errors all read that one table. A program adds policies of its own with [`Policies::with`].
//!
//! ```
//! use onefold_units::policy::{Info, Kind, Policies};
//!
//! /// Ways to greet, built as texts.
//! #[derive(Clone, Copy)]
//! struct Greeting(fn(&str) -> String);
//! impl Kind for Greeting {
//!     const NOUN: &'static str = "greeting";
//!     const BUILTIN: &'static [&'static Info<Self>] = &[&HELLO];
//! }
//! static HELLO: Info<Greeting> =
//!     Info::new("hello", "Says hello.", Greeting(|name| format!("Hello, {name}!")));
//! static BYE: Info<Greeting> =
//!     Info::new("bye", "Says good-bye.", Greeting(|name| format!("Bye, {name}!")));
//!
//! let policies = Policies::builtin().with(&BYE);
//! let spec = policies.parse("bye")?;
//! assert_eq!((spec.info().build.0)("Ada"), "Bye, Ada!");
//! let error = policies.parse("hullo").unwrap_err().to_string();
//! assert_eq!(error, "`hullo` is no greeting; use one of: hello, bye");
//! # Ok::<(), onefold_units::policy::PolicyError>(())
//! ```

mod error;
mod info;
mod parameters;
mod policies;
mod spec;
mod value;

pub use error::PolicyError;
pub use info::{Info, Kind};
pub use parameters::{Parameter, Parameters};
pub use policies::Policies;
pub use spec::Spec;
pub use value::{Limits, Ratio, Value};
