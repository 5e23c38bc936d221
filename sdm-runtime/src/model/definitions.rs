//! Definitions of attributes ("PTP runtime platform, Attributes"): those that every manager has, those that an agent
//! announces, and those made of an undefined key, which PTP takes as texts.

use std::collections::HashMap;

use super::predefined;
use super::value::{AttributeDefinition, AttributeType, DateBounds, ValueError, cut};
use crate::wire::definition::Definition;

/// Maximum number of definitions of one resource manager.
pub const DEFINITIONS_MAX: usize = 4096;
/// Maximum length of a definition's id, in bytes.
pub const ID_BYTES_MAX: usize = 256;

/// Fault of a definition that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The type is unknown.
    #[error("attribute {0} is defined with the unknown type `{1}`")]
    NoType(String, String),
    /// The bounds, date styles or words of the type are invalid.
    #[error("attribute {0} is defined with invalid bounds, date styles or words")]
    BadExtra(String),
    /// The default is not a value of the type.
    #[error("attribute {0} is defined with an invalid default: {1}")]
    BadDefault(String, ValueError),
    /// The attribute is defined already, with another type or other bounds.
    #[error("attribute {0} is already defined with another type")]
    Otherwise(String),
    /// There are [`DEFINITIONS_MAX`] already.
    #[error("the agent defines more than {DEFINITIONS_MAX} attributes")]
    TooMany,
    /// The id is empty or longer than [`ID_BYTES_MAX`].
    #[error("`{0}` is not a valid attribute id")]
    BadId(String),
}

impl AttributeDefinition {
    /// Parses a definition as the protocol transmits it.
    ///
    /// # Errors
    /// The id, the type, the further fields of the type, or the default is invalid.
    pub fn read(wire: &Definition) -> Result<Self, DefinitionError> {
        if wire.id.is_empty() || wire.id.len() > ID_BYTES_MAX {
            return Err(DefinitionError::BadId(cut(&wire.id)));
        }
        let id = || cut(&wire.id);
        let bad = || DefinitionError::BadExtra(id());
        let extra: Vec<&str> = wire.extra.iter().map(String::as_str).collect();
        let kind = match wire.kind.as_str() {
            "ARRAY" => AttributeType::Array,
            "BOOLEAN" => AttributeType::Boolean,
            "DATE" => AttributeType::Date(date(&extra).ok_or_else(bad)?),
            "DOUBLE" => {
                let (min, max) = bounds(&extra, f64::MIN, f64::MAX, &str::parse).ok_or_else(bad)?;
                AttributeType::Double(min, max)
            }
            "ENUMERATED" if extra.is_empty() => return Err(bad()),
            "ENUMERATED" => AttributeType::Enumerated(wire.extra.clone()),
            "INTEGER" | "BIGINTEGER" => {
                let (min, max) = bounds(&extra, i64::MIN, i64::MAX, &str::parse).ok_or_else(bad)?;
                AttributeType::Integer(min, max)
            }
            "STRING" => AttributeType::String,
            other => return Err(DefinitionError::NoType(id(), cut(other))),
        };
        let default = match wire.default.as_str() {
            "" => None,
            text => {
                let value = kind.read(text);
                Some(value.map_err(|why| DefinitionError::BadDefault(id(), why))?)
            }
        };
        Ok(Self {
            id: wire.id.clone(),
            kind,
            name: wire.name.clone(),
            description: wire.description.clone(),
            default,
            display: wire.display,
        })
    }

    /// The definition of an attribute that was not announced: a text.
    fn unannounced(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            kind: AttributeType::String,
            name: id.to_owned(),
            description: String::new(),
            default: None,
            display: true,
        }
    }
}

/// The bounds in a type's further fields; `min` and `max` if there are no such fields, and `None` if they are invalid.
fn bounds<T: PartialOrd, E>(
    extra: &[&str],
    min: T,
    max: T,
    parse: &dyn Fn(&str) -> Result<T, E>,
) -> Option<(T, T)> {
    match extra {
        [] => Some((min, max)),
        [low, high] => {
            let (low, high) = (parse(low).ok()?, parse(high).ok()?);
            (low <= high).then_some((low, high))
        }
        _ => None,
    }
}

/// Parses the further fields of the type DATE: none, or `dateStyle timeStyle locale [min max]`. `None` if they are
/// invalid.
fn date(extra: &[&str]) -> Option<DateBounds> {
    const STYLES: [&str; 4] = ["SHORT", "MEDIUM", "LONG", "FULL"];
    const LOCALES: [&str; 9] = [
        "CANADA", "CHINA", "FRANCE", "GERMANY", "ITALY", "JAPAN", "TAIWAN", "UK", "US",
    ];
    let [day, time, locale, limits @ ..] = extra else {
        return extra.is_empty().then(|| DateBounds::new(None));
    };
    if !STYLES.contains(day) || !STYLES.contains(time) || !LOCALES.contains(locale) {
        return None;
    }
    let mut dates = DateBounds::new(Some([day, time, locale]));
    let read = |text: &str| dates.read(text).ok_or(());
    (dates.min, dates.max) = bounds(limits, dates.min, dates.max, &read)?;
    Some(dates)
}

/// The attribute definitions of one resource manager.
#[derive(Clone, Debug)]
pub struct Definitions {
    all: Vec<AttributeDefinition>,
    index: HashMap<String, usize>,
}

impl Default for Definitions {
    /// The definitions of the predefined attributes.
    fn default() -> Self {
        let all = predefined::definitions();
        let index = all.iter().zip(0..).map(|(one, at)| (one.id.clone(), at));
        let index = index.collect();
        Self { all, index }
    }
}

impl Definitions {
    /// The definition of this id; `None` if there is none.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&AttributeDefinition> {
        self.index.get(id).and_then(|at| self.all.get(*at))
    }

    /// All definitions: the predefined ones first, then all further ones in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &AttributeDefinition> {
        self.all.iter()
    }

    /// Adds an agent's definition. It replaces an earlier one with the same type and bounds. A predefined one stays as
    /// it is.
    ///
    /// # Errors
    /// The definition is malformed, or exceeds the maximum number. Or the attribute exists with another type, or with
    /// other bounds and not as a predefined one.
    pub fn announce(&mut self, wire: &Definition) -> Result<(), DefinitionError> {
        let new = AttributeDefinition::read(wire)?;
        match self.index.get(&new.id) {
            Some(&at) if self.all[at].kind.word() != new.kind.word() => {
                Err(DefinitionError::Otherwise(cut(&new.id)))
            }
            Some(&at) if at < predefined::COUNT => Ok(()),
            Some(&at) if self.all[at].kind != new.kind => {
                Err(DefinitionError::Otherwise(cut(&new.id)))
            }
            Some(&at) => {
                self.all[at] = new;
                Ok(())
            }
            None => self.add(new).map(drop),
        }
    }

    /// Index of the definition of this key, which is created if it does not exist.
    pub(super) fn index_of(&mut self, id: &str) -> Result<usize, DefinitionError> {
        match self.index.get(id) {
            Some(at) => Ok(*at),
            None if id.is_empty() || id.len() > ID_BYTES_MAX => {
                Err(DefinitionError::BadId(cut(id)))
            }
            None => self.add(AttributeDefinition::unannounced(id)),
        }
    }

    /// Index of the definition of this key; `None` if it does not exist.
    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// The definition at an index that [`index_of`](Self::index_of) has returned.
    pub(super) fn at(&self, at: usize) -> &AttributeDefinition {
        &self.all[at]
    }

    fn add(&mut self, new: AttributeDefinition) -> Result<usize, DefinitionError> {
        let at = self.all.len();
        if at >= DEFINITIONS_MAX {
            return Err(DefinitionError::TooMany);
        }
        self.index.insert(new.id.clone(), at);
        self.all.push(new);
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::value::Value;
    use super::*;

    fn announced(kind: &str, default: &str, extra: &str) -> Definition {
        Definition {
            id: "it".to_owned(),
            kind: kind.to_owned(),
            name: "It".to_owned(),
            description: "what it is".to_owned(),
            display: false,
            default: default.to_owned(),
            extra: extra.split_whitespace().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn attribute_definitions_of_all_types_are_parsed() {
        for (kind, default, extra) in [
            ("ARRAY", "", ""),
            ("BOOLEAN", "false", ""),
            ("DATE", "", "SHORT SHORT US"),
            (
                "DATE",
                "2010-01-01",
                "SHORT LONG JAPAN 2009-01-01 2011-01-01",
            ),
            ("DOUBLE", "0.5", "0 1"),
            ("ENUMERATED", "B", "A B"),
            ("INTEGER", "3", "0 9"),
            ("BIGINTEGER", "12345678901", ""),
            ("STRING", "x", ""),
        ] {
            let mut definitions = Definitions::default();
            let wire = announced(kind, default, extra);
            definitions.announce(&wire).expect("a sound definition");
            let it = definitions.find("it").expect("it was announced");
            assert_eq!(it.kind.word(), kind.trim_start_matches("BIG"));
            let shown = it.default.as_ref().map(Value::to_string);
            let shown = shown.unwrap_or_default();
            assert!(shown.starts_with(default), "{kind}: {shown}");
            assert!(!it.display && it.name == "It");
        }
    }

    #[test]
    fn malformed_definitions_are_refused() {
        for (kind, default, extra) in [
            ("BLOB", "", ""),
            ("DATE", "", "SHORT SHORT"),
            ("DATE", "", "SHORT SHORT MARS"),
            ("DATE", "2012-01-01", "SHORT SHORT US 2009-01-01 2011-01-01"),
            ("DOUBLE", "", "1 0"),
            ("ENUMERATED", "", ""),
            ("ENUMERATED", "C", "A B"),
            ("INTEGER", "10", "0 9"),
            ("INTEGER", "", "0"),
        ] {
            let wire = announced(kind, default, extra);
            assert!(AttributeDefinition::read(&wire).is_err(), "{kind} {extra}");
        }
        let mut definitions = Definitions::default();
        let mut state = announced("STRING", "", "");
        state.id = "jobState".to_owned();
        let refused = definitions.announce(&state);
        assert_eq!(
            refused,
            Err(DefinitionError::Otherwise("jobState".to_owned()))
        );
    }

    #[test]
    fn unknown_keys_become_bounded_string_attributes() {
        let mut definitions = Definitions::default();
        let at = definitions.index_of("fakeStr").expect("there is room");
        assert_eq!(definitions.at(at).kind, AttributeType::String);
        let refused =
            (0..DEFINITIONS_MAX).find_map(|at| definitions.index_of(&at.to_string()).err());
        assert_eq!(refused, Some(DefinitionError::TooMany));
        assert!(definitions.index_of("").is_err());
        assert!(definitions.index_of(&"x".repeat(ID_BYTES_MAX + 1)).is_err());
    }
}
