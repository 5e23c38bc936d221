//! Variables of a frame and expressions of them, by the debug information, as they were at one moment.
//!
//! An uncertain value is left out: a variable in pieces or without a location, a type that is not plain, an
//! expression with a call.

mod contents;
mod entry;
mod expression;
mod location;
mod plain;
mod scope;
mod types;
mod value;

pub(crate) use expression::evaluate;
pub use plain::PlainVariable;
pub(crate) use scope::Scope;
pub(crate) use value::Value;
