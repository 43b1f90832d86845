//! What does the user read after a test has failed?

mod changes;
pub(crate) mod cycle;
pub(crate) mod dot;
mod elements;
pub(crate) mod execution;
mod facts;
mod holders;
pub(crate) mod html;
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
mod unnumbered;
mod unseen;
pub(crate) mod words;
