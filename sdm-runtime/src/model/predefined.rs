//! The attributes that every resource manager has ("Pre-defined Attributes"), as definitions.

use super::states;
use super::value::{AttributeDefinition, AttributeType, Value};
use crate::attribute::{self, Form, PREDEFINED};

/// Number of predefined attributes.
pub(super) const COUNT: usize = PREDEFINED.len();

pub(super) fn definitions() -> Vec<AttributeDefinition> {
    let each = PREDEFINED.iter();
    each.map(|(id, form, name, description)| definition(id, form, name, description))
        .collect()
}

fn definition(id: &str, form: &Form, name: &str, description: &str) -> AttributeDefinition {
    let mut default = None;
    let kind = match form {
        Form::Array => AttributeType::Array,
        Form::Boolean => {
            default = Some(Value::Boolean(false));
            AttributeType::Boolean
        }
        Form::Integer(min) => AttributeType::Integer(*min, i64::MAX),
        Form::Text => AttributeType::String,
        Form::State => {
            let states = states::ALL.iter().find(|it| it.attribute == id);
            let states = states.expect("each attribute of a state has its states");
            default = Some(Value::Enumerated(states.default.to_owned()));
            let words = states.words.iter().map(|word| (*word).to_owned());
            AttributeType::Enumerated(words.collect())
        }
    };
    // Output of a process is displayed elsewhere, and the environment is long.
    let hidden = [
        attribute::PROCESS_STDOUT,
        attribute::PROCESS_STDERR,
        attribute::ENV,
    ];
    AttributeDefinition {
        id: id.to_owned(),
        kind,
        name: name.to_owned(),
        description: description.to_owned(),
        default,
        display: !hidden.contains(&id),
    }
}
