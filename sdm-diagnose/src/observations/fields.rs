//! The fields of a JSON object, taken one by one. Fields that remain at the end are unknown.

use sdm_idset::IdSet;
use serde_json::{Map, Value};

use super::{ObservationsError, RANKS_MAX};

/// The fields of an object that were not read yet, with the object's path in the file.
pub(super) struct Fields {
    at: String,
    left: Map<String, Value>,
}

/// Parses an object: `read` takes all of its fields.
pub(super) fn object<T>(
    at: &str,
    value: Value,
    read: impl FnOnce(&mut Fields) -> Result<T, ObservationsError>,
) -> Result<T, ObservationsError> {
    let Value::Object(left) = value else {
        return Err(wrong(at.to_owned(), "an object"));
    };
    let mut fields = Fields {
        at: at.to_owned(),
        left,
    };
    let found = read(&mut fields)?;
    match fields.left.into_iter().next() {
        None => Ok(found),
        Some((field, _)) => Err(ObservationsError::Unknown {
            at: fields.at,
            field,
        }),
    }
}

fn wrong(at: String, expected: &'static str) -> ObservationsError {
    ObservationsError::Value { at, expected }
}

impl Fields {
    /// The error for a value that is not allowed in a field.
    pub(super) fn wrong(&self, field: &str, expected: &'static str) -> ObservationsError {
        wrong(self.place(field), expected)
    }

    fn place(&self, field: &str) -> String {
        format!("{}.{field}", self.at)
    }

    /// Takes the raw value of a field; None if the field is missing.
    pub(super) fn take(&mut self, field: &str) -> Option<Value> {
        self.left.remove(field)
    }

    /// The value of a required field that was taken; an error if the field is missing.
    pub(super) fn need<T>(
        &self,
        field: &'static str,
        found: Option<T>,
    ) -> Result<T, ObservationsError> {
        found.ok_or_else(|| ObservationsError::Missing {
            at: self.at.clone(),
            field,
        })
    }

    /// Takes a number. None if the field is missing.
    pub(super) fn number<T: TryFrom<i128>>(
        &mut self,
        field: &'static str,
    ) -> Result<Option<T>, ObservationsError> {
        let Some(value) = self.take(field) else {
            return Ok(None);
        };
        let number = value.as_i64().map(i128::from);
        let number = number.or(value.as_u64().map(i128::from));
        let number = number.and_then(|number| T::try_from(number).ok());
        let wrong = || self.wrong(field, "a whole number in the range of this field");
        number.map(Some).ok_or_else(wrong)
    }

    /// Takes a flag; false if the field is missing.
    pub(super) fn flag(&mut self, field: &'static str) -> Result<bool, ObservationsError> {
        match self.take(field) {
            None => Ok(false),
            Some(Value::Bool(is)) => Ok(is),
            Some(_) => Err(self.wrong(field, "true or false")),
        }
    }

    /// Takes a text; empty if the field is missing.
    pub(super) fn text(&mut self, field: &'static str) -> Result<String, ObservationsError> {
        match self.take(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.wrong(field, "a text")),
        }
    }

    /// Takes a text of exactly one character.
    pub(super) fn letter(&mut self, field: &'static str) -> Result<char, ObservationsError> {
        let text = self.text(field)?;
        let mut all = text.chars();
        match (all.next(), all.next()) {
            (Some(letter), None) => Ok(letter),
            _ => Err(self.wrong(field, "one character")),
        }
    }

    /// Takes a set of ranks; empty if the field is missing.
    pub(super) fn set(&mut self, field: &'static str) -> Result<IdSet, ObservationsError> {
        let text = self.text(field)?;
        if text.is_empty() {
            return Ok(IdSet::new());
        }
        let set: Option<IdSet> = text.parse().ok();
        let is_bounded = |set: &IdSet| set.last().is_none_or(|last| last.0 < RANKS_MAX);
        let wrong = || self.wrong(field, "a set of ranks, as `0-3,7`, below 4,194,304");
        set.filter(is_bounded).ok_or_else(wrong)
    }

    /// Takes a list of objects; empty if the field is missing.
    pub(super) fn list<T>(
        &mut self,
        field: &'static str,
        mut read: impl FnMut(&mut Fields) -> Result<T, ObservationsError>,
    ) -> Result<Vec<T>, ObservationsError> {
        let list = match self.take(field) {
            None => Vec::new(),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(self.wrong(field, "a list")),
        };
        let mut found = Vec::new();
        for (number, value) in list.into_iter().enumerate() {
            let at = format!("{}[{number}]", self.place(field));
            found.push(object(&at, value, &mut read)?);
        }
        Ok(found)
    }

    /// Takes an object. None if the field is missing.
    pub(super) fn object<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Fields) -> Result<T, ObservationsError>,
    ) -> Result<Option<T>, ObservationsError> {
        let at = self.place(field);
        let value = self.take(field);
        value.map(|value| object(&at, value, read)).transpose()
    }

    /// The names of the fields that were not taken.
    pub(super) fn names(&self) -> Vec<String> {
        self.left.keys().cloned().collect()
    }
}
