//! Formats a diagnosis as lines of text for a terminal: the conclusion, then the findings.

use sdm_diagnose::{Diagnosis, Finding, Kind, Step};
use sdm_text::{counted, printable};

use super::page::Page;

/// Maximum number of findings that are shown.
const FINDINGS_MAX: usize = 16;
/// Maximum number of lines of evidence of one finding.
const EVIDENCE_MAX: usize = 8;

/// The lines of a diagnosis: the conclusion, the findings, and the number of samples.
pub(super) fn lines(page: &Page<'_>, found: &Diagnosis) -> Vec<String> {
    let style = &page.style;
    let mut lines = Vec::new();
    let conclusion = printable(found.conclusion.as_bytes());
    let line = match (found.step, &found.suspects, &found.held_up_by) {
        (Step::HeldUp, _, holders) if !holders.is_empty() => {
            let who = page.label(holders);
            style.wrap(&format!("Held up by {who}: {conclusion}"), 2)
        }
        (step, suspects, _) if suspects.is_empty() => {
            style.wrap(&format!("{}: {conclusion}", step.word()), 2)
        }
        (step, suspects, _) => {
            let who = page.label(suspects);
            let text = format!("{}: likely to blame: {who}: {conclusion}", step.word());
            style.odd(&style.wrap(&text, 2))
        }
    };
    lines.push(line);
    let (shown, rest) = found
        .findings
        .split_at(found.findings.len().min(FINDINGS_MAX));
    for finding in shown {
        lines.extend(one(page, finding));
    }
    if !rest.is_empty() {
        lines.push(format!(
            "({}, not shown; `stacks` shows all)",
            counted(rest.len(), "more group")
        ));
    }
    // Ranks that were stopped before the diagnosis have no samples.
    if found.samples > 0 {
        lines.push(style.faint(&format!(
            "({} in {:.1} s; the ranks ran between the samples)",
            counted(found.samples, "sample"),
            found.span.as_secs_f64()
        )));
    }
    lines
}

fn one(page: &Page<'_>, finding: &Finding) -> Vec<String> {
    let bad = matches!(finding.kind, Kind::Suspect | Kind::Gone | Kind::Halted);
    let what = printable(finding.what.as_bytes());
    let mut lines = vec![page.said(&finding.tasks, &what, bad)];
    for text in finding.evidence.iter().take(EVIDENCE_MAX) {
        let text = format!("    {}", printable(text.as_bytes()));
        lines.push(page.style.wrap(&text, 6));
    }
    lines
}
