//! Rules for errors that are not reported.

use std::path::Path;

/// Maximum number of rules.
const RULES_MAX: usize = 1000;
/// The separator between rules.
const BETWEEN: char = '\n';

/// The rules for errors that are not reported: by number, function, file or line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Rule>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rule {
    number: Option<u32>,
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

/// An error in a file of suppression rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSuppression {
    /// A word is not a valid condition.
    #[error(
        "line {line}: {word:?} is not an error number (M301), function=NAME, file=NAME or line=FILE:LINE, or it repeats a condition of the rule"
    )]
    Word {
        /// The line, from 1.
        line: usize,
        /// The invalid word.
        word: String,
    },
    /// There are more rules than are allowed.
    #[error("the file has more than {RULES_MAX} rules")]
    TooMany,
}

impl Suppressions {
    /// Parses the text of a file of suppression rules. Each line is a rule, whose conditions must all hold. `#` begins
    /// a comment.
    ///
    /// # Errors
    ///
    /// [`BadSuppression`] names the first invalid word and its line, or there are too many rules.
    pub fn read(text: &str) -> Result<Self, BadSuppression> {
        let mut rules = Vec::new();
        for (at, line) in text.split(BETWEEN).enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let mut rule = Rule::default();
            for word in line.split_whitespace() {
                let bad = || BadSuppression::Word {
                    line: at + 1,
                    word: word.to_owned(),
                };
                rule.add(word).ok_or_else(bad)?;
            }
            if rule != Rule::default() {
                rules.push(rule);
            }
            if rules.len() > RULES_MAX {
                return Err(BadSuppression::TooMany);
            }
        }
        Ok(Self(rules))
    }

    /// True if an error of this number, in this function of the program at this source line, is not reported.
    #[must_use]
    pub fn hides(&self, number: u32, function: Option<&str>, place: Option<(&str, u32)>) -> bool {
        self.0
            .iter()
            .any(|rule| rule.hides(number, function, place))
    }
}

impl Rule {
    fn add(&mut self, word: &str) -> Option<()> {
        // All words of a rule must hold, so two of a kind would hide nothing.
        fn set<T>(field: &mut Option<T>, value: T) -> Option<()> {
            field.replace(value).is_none().then_some(())
        }
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        if let Some(number) = word.strip_prefix('M') {
            set(&mut self.number, number.parse().ok()?)
        } else if let Some(name) = word.strip_prefix("function=") {
            set(&mut self.function, some(name)?)
        } else if let Some(name) = word.strip_prefix("file=") {
            set(&mut self.file, some(name)?)
        } else {
            let (file, line) = word.strip_prefix("line=")?.rsplit_once(':')?;
            set(&mut self.file, some(file)?)?;
            set(&mut self.line, line.parse().ok()?)
        }
    }

    fn hides(&self, number: u32, function: Option<&str>, place: Option<(&str, u32)>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        // The last components of the path are compared, as a user sees them.
        let in_file = self
            .file
            .as_ref()
            .is_none_or(|wanted| place.is_some_and(|(file, _)| Path::new(file).ends_with(wanted)));
        self.number.is_none_or(|wanted| wanted == number)
            && is(&self.function, function)
            && in_file
            && self
                .line
                .is_none_or(|wanted| place.is_some_and(|(_, line)| line == wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suppressions_hide_matching_errors() {
        let text = "# known\nM301 function=setup\nline=src/a.c:12\n\nfile=b.c M103 # here\n";
        let rules = Suppressions::read(text).expect("they are");
        let check = |number, function, place, expect| {
            assert_eq!(
                rules.hides(number, function, place),
                expect,
                "{number} {function:?} {place:?}"
            );
        };
        check(301, Some("setup"), Some(("/x/c.c", 1)), true);
        check(301, Some("main"), Some(("/x/c.c", 1)), false);
        check(302, Some("setup"), None, false);
        check(105, None, Some(("/p/src/a.c", 12)), true);
        check(105, None, Some(("/p/src/a.c", 13)), false);
        check(103, None, Some(("b.c", 3)), true);
        check(104, None, Some(("b.c", 3)), false);
        assert!(!Suppressions::default().hides(301, None, None));
    }

    #[test]
    fn malformed_suppression_is_named() {
        for bad in [
            "x",
            "M",
            "M3x",
            "function=",
            "line=a.c",
            "line=a.c:x",
            "line=:3",
            "M302 M303",
            "line=a.c:3 file=b.c",
        ] {
            let text = format!("M301\n{bad}");
            let error = Suppressions::read(&text).expect_err(bad);
            let word = bad.rsplit(' ').next().expect("a word").to_owned();
            assert_eq!(error, BadSuppression::Word { line: 2, word });
        }
    }

    proptest::proptest! {
        #[test]
        fn suppression_parser_never_panics(text in "(M[0-9]{0,12}|[a-z=:#\n ]|line=|function=){0,40}") {
            let _ = Suppressions::read(&text);
        }
    }
}
