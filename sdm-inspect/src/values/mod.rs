//! Variables of a frame and expressions of them, by the debug information, as they stood at one moment.
//!
//! What is not certain has no value: a variable that the compiler keeps in pieces or nowhere, a type that is none of the plain ones, an
//! expression with a call.

mod contents;
mod entry;
mod expression;
mod place;
mod scope;
mod types;
mod value;

pub(crate) use expression::evaluate;
pub(crate) use scope::Scope;
pub(crate) use value::Value;
