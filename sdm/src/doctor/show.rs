//! Findings as text and as JSON.

use sdm_doctor::{Finding, Verdict};
use sdm_text::printable;
use serde_json::{Value, json};

use super::section::Section;

/// Width of text if standard output is not a terminal, in columns.
const WIDTH: usize = 100;
/// Indent of a finding's text after the verdict and the check's name, in columns.
const INDENT: usize = 25;

/// The findings as text: a line for each, with the remedy below it.
pub(super) fn text(sections: &[Section], columns: Option<usize>) -> String {
    let width = columns.unwrap_or(WIDTH).max(INDENT + 20);
    let mut text = String::new();
    for section in sections {
        text.push_str(&format!("{}\n", printable(section.place.as_bytes())));
        for finding in &section.findings {
            let head = format!(
                "  {:<8}{:<15}",
                finding.verdict.word(),
                finding.check.name()
            );
            text.push_str(&head);
            push_words(&mut text, &finding.found, width);
            if !finding.remedy.is_empty() {
                text.push_str(&format!("{:INDENT$}", ""));
                push_words(&mut text, &format!("-> {}", finding.remedy), width);
            }
        }
    }
    let count = |verdict| {
        let all = sections.iter().flat_map(|it| &it.findings);
        all.filter(|it: &&Finding| it.verdict == verdict).count()
    };
    let (good, bad, unknown) = (
        count(Verdict::Good),
        count(Verdict::Bad),
        count(Verdict::Unknown),
    );
    text.push_str(&format!(
        "checks: {good} good, {bad} bad, {unknown} unknown\n"
    ));
    text
}

/// Appends text with an indent, broken into lines.
fn push_words(text: &mut String, words: &str, width: usize) {
    let mut column = INDENT;
    for word in printable(words.as_bytes()).split(' ') {
        let length = word.chars().count() + 1;
        if column > INDENT && column + length > width {
            text.push_str(&format!("\n{:INDENT$}", ""));
            column = INDENT;
        }
        if column > INDENT {
            text.push(' ');
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

/// The findings as one JSON document.
pub(super) fn json(sections: &[Section]) -> String {
    format!("{}\n", value(sections))
}

/// The findings as a JSON value, for use in a larger document.
pub(super) fn value(sections: &[Section]) -> Value {
    let findings = |section: &Section| -> Value {
        let findings = section.findings.iter();
        findings
            .map(|it| {
                json!({
                    "check": it.check.name(),
                    "verdict": it.verdict.word(),
                    "found": it.found,
                    "remedy": Some(&it.remedy).filter(|it| !it.is_empty()),
                })
            })
            .collect()
    };
    let places = sections.iter();
    let places: Value = places
        .map(|it| json!({ "place": it.place, "findings": findings(it) }))
        .collect();
    json!({ "version": env!("CARGO_PKG_VERSION"), "places": places })
}

#[cfg(test)]
mod tests {
    use sdm_doctor::Check;

    use super::*;

    #[test]
    fn findings_are_shown_with_their_remedy() {
        let findings = vec![
            Finding::good(Check::Gdb, "gdb 13.1 is /usr/bin/gdb"),
            Finding::bad(
                Check::PtraceScope,
                "it is 1",
                "have root set it to 0, and then some more words",
            ),
        ];
        let sections = [Section::new("this machine", findings)];
        assert_eq!(
            text(&sections, Some(60)),
            "this machine\n  good    gdb            gdb 13.1 is /usr/bin/gdb\n  bad     ptrace-scope   it is 1\n\
             \x20                        -> have root set it to 0, and then\n\
             \x20                        some more words\nchecks: 1 good, 1 bad, 0 unknown\n"
        );
        let value: Value = serde_json::from_str(&json(&sections)).unwrap();
        assert_eq!(value["places"][0]["findings"][0]["remedy"], Value::Null);
        assert_eq!(value["places"][0]["findings"][1]["check"], "ptrace-scope");
    }
}
