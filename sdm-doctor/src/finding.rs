//! The result of a check, and its form for transfer between hosts.

use sdm_text::{printable, without_numbers};

use crate::Check;

/// Prefix of a line with a finding.
const MARK: &str = "sdm-doctor";
/// Maximum length of a line that is read, in bytes.
const LINE_BYTES_MAX: usize = 16 << 10;

/// The rating of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The state is good.
    Good,
    /// An operation will fail.
    Bad,
    /// The state cannot be determined from here.
    Unknown,
}

impl Verdict {
    /// The rating as a word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The check that gave the finding.
    pub check: Check,
    /// The rating.
    pub verdict: Verdict,
    /// A description of the present state.
    pub found: String,
    /// Advice for the user; empty if there is nothing to do.
    pub remedy: String,
}

impl Finding {
    /// A finding whose state is good.
    pub fn good(check: Check, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Good, found.into(), String::new())
    }

    /// A bad finding, with advice.
    pub fn bad(check: Check, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, Verdict::Bad, found.into(), remedy.into())
    }

    /// A finding that cannot be rated from here, with advice.
    pub fn unknown(check: Check, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(check, Verdict::Unknown, found.into(), remedy.into())
    }

    fn new(check: Check, verdict: Verdict, found: String, remedy: String) -> Self {
        Self {
            check,
            verdict,
            found: without_numbers(&found).into_owned(),
            remedy,
        }
    }

    /// The finding as one line of tab-separated fields, without a newline.
    #[must_use]
    pub fn line(&self) -> String {
        // Printable text has no tabs.
        let shown = |text: &str| printable(text.as_bytes()).replace('\t', " ");
        format!(
            "{MARK}\t{}\t{}\t{}\t{}",
            self.check.name(),
            self.verdict.word(),
            shown(&self.found),
            shown(&self.remedy)
        )
    }

    /// Parses a line made by [`Self::line`]. `None` for another or a too long line, and for a check that is unknown
    /// here.
    #[must_use]
    pub fn of_line(line: &str) -> Option<Self> {
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        let mut fields = line.trim_end().splitn(5, '\t');
        if fields.next()? != MARK {
            return None;
        }
        let check = Check::of_name(fields.next()?)?;
        let word = fields.next()?;
        let verdicts = [Verdict::Good, Verdict::Bad, Verdict::Unknown];
        let verdict = verdicts.into_iter().find(|it| it.word() == word)?;
        let text = |field: Option<&str>| printable(field.unwrap_or_default().as_bytes());
        let found = text(fields.next());
        let remedy = text(fields.next());
        Some(Self::new(check, verdict, found, remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_line_is_parsed_back() {
        for check in Check::ALL {
            for finding in [
                Finding::good(check, "all is well"),
                Finding::bad(check, "gdb 7.6", "take a newer one"),
                Finding::unknown(check, "", ""),
            ] {
                let read = Finding::of_line(&finding.line());
                assert_eq!(read, Some(finding));
            }
            assert_eq!(Check::of_name(check.name()), Some(check));
        }
        let odd = Finding::bad(Check::Gdb, "a\tb\nc\x1b[2J", "d");
        let read = Finding::of_line(&odd.line()).unwrap();
        assert_eq!((read.check, &*read.remedy), (Check::Gdb, "d"));
        assert!(!read.found.contains('\x1b'), "{read:?}");
        let numbered = Finding::bad(Check::Gdb, "x: No such file or directory (os error 2)", "");
        assert_eq!(numbered.found, "x: No such file or directory");
    }

    #[test]
    fn other_lines_contain_no_finding() {
        for line in [
            "",
            "Welcome to node7",
            "sdm-doctor",
            "sdm-doctor\tgdb\tfine\tx\t",
            "sdm-doctor\tmoon\tgood\tfull\t",
        ] {
            assert_eq!(Finding::of_line(line), None, "{line}");
        }
    }
}
