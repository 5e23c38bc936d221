//! Who is meant: `0-3,7`, `0..7`, `all`.

use sdm_idset::IdSet;

use super::CommandError;

/// A set of tasks as it was written; what it means can depend on the session.
#[derive(Clone, Debug, PartialEq)]
pub struct SetExpr {
    text: String,
    at: usize,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    All,
    Ids(IdSet),
}

impl SetExpr {
    /// Reads a set; `at` is where it stands in its line, for errors.
    ///
    /// # Errors
    /// A text that is no set; the error points at the character.
    pub fn parse(text: &str, at: usize) -> Result<Self, CommandError> {
        let kind = if text.eq_ignore_ascii_case("all") {
            Kind::All
        } else {
            Kind::Ids(parse_ids(text, at)?)
        };
        Ok(Self {
            text: text.to_owned(),
            at,
            kind,
        })
    }

    /// The set as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn parse_ids(text: &str, at: usize) -> Result<IdSet, CommandError> {
    if text.is_empty() {
        return Err(CommandError::at(at, "expected a set of ranks"));
    }
    // `0..7` is `0-7`; the text form knows the second only. A dot more or less moves a column.
    let dashed = text.replace("..", "-");
    dashed.parse::<IdSet>().map_err(|error| {
        let mut column = 1;
        let mut left = text;
        let mut shown = error.column;
        while shown > 1 && !left.is_empty() {
            let step = if left.starts_with("..") { 2 } else { 1 };
            left = left.get(step..).unwrap_or("");
            column += step;
            shown -= 1;
        }
        let what = error.to_string();
        let what = what.split(" at column").next().unwrap_or("no set of ranks");
        CommandError::at(at + column - 1, what)
    })
}

/// The tasks that a set means in a session that has `tasks`.
///
/// # Errors
/// A set that names tasks that the session does not have, or nobody.
pub fn resolve(set: &SetExpr, tasks: &IdSet) -> Result<IdSet, CommandError> {
    let ids = match &set.kind {
        Kind::All => return Ok(tasks.clone()),
        Kind::Ids(ids) => ids,
    };
    let beyond = ids.difference(tasks);
    if beyond.is_empty() {
        return Ok(ids.clone());
    }
    let noun = if beyond.len() == 1 { "rank" } else { "ranks" };
    Err(CommandError::at(
        set.at,
        format!(
            "no such {noun}: {} (this session has {})",
            crate::render::set_text(&beyond, 60),
            crate::render::set_text(tasks, 60)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_taken_in_all_its_forms() {
        let tasks = IdSet::all_below(8);
        for (text, expect) in [
            ("all", "0-7"),
            ("ALL", "0-7"),
            ("0-3,7", "0-3,7"),
            ("0..3", "0-3"),
            ("5", "5"),
        ] {
            let set = SetExpr::parse(text, 0).unwrap();
            assert_eq!(resolve(&set, &tasks).unwrap().to_string(), expect, "{text}");
        }
    }

    #[test]
    fn a_set_beyond_the_session_names_who_is_missing() {
        let set = SetExpr::parse("0-3,7-9", 5).unwrap();
        let error = resolve(&set, &IdSet::all_below(4)).unwrap_err();
        assert_eq!(error.message, "no such ranks: 7-9 (this session has 0-3)");
        assert_eq!(error.at, Some(5));
    }

    #[test]
    fn a_broken_set_is_an_error_within_it() {
        for text in ["", "0-", "x", "0..3,x", "-3", "3-1,"] {
            let error = SetExpr::parse(text, 10).unwrap_err();
            let at = error.at.unwrap();
            assert!((10..=10 + text.len()).contains(&at), "{text}: {at}");
        }
    }
}
