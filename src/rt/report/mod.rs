//! What does the user read after a test has failed?

mod changes;
pub(crate) mod cycle;
pub(crate) mod dot;
mod elements;
pub(crate) mod execution;
mod facts;
mod holders;
#[cfg(feature = "page")]
pub(crate) mod html;
#[cfg(not(feature = "page"))]
#[path = "html/off.rs"]
pub(crate) mod html;
#[cfg(feature = "json")]
pub(crate) mod json;
#[cfg(not(feature = "json"))]
#[path = "json/off.rs"]
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod loops;
mod memory;
pub(crate) mod old_values;
pub(crate) mod passing;
mod pattern;
pub(crate) mod places;
pub(crate) mod publication;
pub(crate) mod record;
mod rounds;
mod sections;
pub(crate) mod source;
mod stops;
mod table;
pub(crate) mod text;
mod touched;
mod unnumbered;
mod unseen;
pub(crate) mod view;
pub(crate) mod words;
