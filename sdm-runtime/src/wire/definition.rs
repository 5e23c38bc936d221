//! Definitions of attributes and filters ("Attribute Definition"): `ndefs { nargs id TYPE ... }`.
//!
//! The document lists id, type, name, description and default; PTP puts a display flag before the default, and both its
//! clients and agents need it. PTP's C helpers count 5 fields where they write 6; a single definition is read
//! nevertheless. PTP has no filter definitions.

use super::groups::{count, next};
use super::{Dialect, MessageError, bad};

/// A definition in the form of the wire protocol; the model interprets types and bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Id of the attribute: the key in events and commands.
    pub id: String,
    /// The name of the type: `STRING`, `INTEGER`, `ENUMERATED`, ...
    pub kind: String,
    /// A short name for the user.
    pub name: String,
    /// A description for the user.
    pub description: String,
    /// True if the attribute is to be shown to users. The document's dialect does not transmit it; it is then true.
    pub display: bool,
    /// The default value.
    pub default: String,
    /// Further fields of the type: values of ENUMERATED, bounds, a date's styles.
    pub extra: Vec<String>,
}

pub(super) fn encode(dialect: Dialect, all: &[Definition], args: &mut Vec<String>) {
    args.push(all.len().to_string());
    for one in all {
        let fixed = if dialect == Dialect::Ptp { 6 } else { 5 };
        args.push((fixed + one.extra.len()).to_string());
        // The document has no BIGINTEGER: its INTEGER has no bounds.
        let kind = match (dialect, one.kind.as_str()) {
            (Dialect::Document, "BIGINTEGER") => "INTEGER",
            (_, kind) => kind,
        };
        for field in [&one.id, kind, &one.name, &one.description] {
            args.push(field.to_owned());
        }
        if dialect == Dialect::Ptp {
            args.push(one.display.to_string());
        }
        args.push(one.default.clone());
        args.extend(one.extra.iter().cloned());
    }
}

pub(super) fn decode(
    dialect: Dialect,
    args: &mut std::vec::IntoIter<String>,
) -> Result<Vec<Definition>, MessageError> {
    let mut all = Vec::new();
    let many = count(args, 6)?;
    for _ in 0..many {
        let mut fields = count(args, 1)?;
        if dialect == Dialect::Ptp && many == 1 && fields == 5 && args.len() == 6 {
            fields = 6;
        }
        let mut fields = args.take(fields).collect::<Vec<_>>().into_iter();
        let [id, kind, name] = [next(&mut fields)?, next(&mut fields)?, next(&mut fields)?];
        let description = next(&mut fields)?;
        let display = match dialect {
            Dialect::Document => true,
            Dialect::Ptp => {
                let text = next(&mut fields)?;
                text.parse().map_err(|_| bad("display flag", &text))?
            }
        };
        // PTP takes a definition of five fields, which has no default.
        let default = match dialect {
            Dialect::Document => next(&mut fields)?,
            Dialect::Ptp => fields.next().unwrap_or_default(),
        };
        let extra = fields.collect();
        all.push(Definition {
            id,
            kind,
            name,
            description,
            display,
            default,
            extra,
        });
    }
    match args.len() {
        0 => Ok(all),
        more => Err(MessageError::TooMany("a definition", more)),
    }
}
