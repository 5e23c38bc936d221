//! Expected findings of `sdm doctor --json`.

use sdm_doctor::{Check, Verdict};
use serde_json::Value;

use crate::sdm::Done;

/// Expected finding of one check; texts are parts of the real ones.
pub struct Expected<'a> {
    check: Check,
    verdict: Verdict,
    found: &'a str,
    remedy: &'a str,
}

/// Expects a good finding.
#[must_use]
pub fn good(check: Check, found: &str) -> Expected<'_> {
    Expected {
        check,
        verdict: Verdict::Good,
        found,
        remedy: "",
    }
}

/// Expects a bad finding with this remedy.
#[must_use]
pub fn bad<'a>(check: Check, found: &'a str, remedy: &'a str) -> Expected<'a> {
    let verdict = Verdict::Bad;
    Expected {
        verdict,
        remedy,
        ..good(check, found)
    }
}

/// Expects an unknown finding with this remedy.
#[must_use]
pub fn unknown<'a>(check: Check, found: &'a str, remedy: &'a str) -> Expected<'a> {
    Expected {
        verdict: Verdict::Unknown,
        ..bad(check, found, remedy)
    }
}

/// Asserts that a finding of the check, on any of the hosts, is the expected one. For a bad finding the exit code must
/// be 1.
///
/// # Panics
/// If the finding is missing or differs, or the exit code is wrong.
pub fn assert_found(done: &Done, expected: &Expected<'_>) {
    let report: Value =
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done}"));
    let places = report["places"].as_array().expect("places");
    let all = places
        .iter()
        .flat_map(|it| it["findings"].as_array().expect("findings"));
    let of_check: Vec<_> = all
        .filter(|it| it["check"] == expected.check.name())
        .collect();
    let has = |finding: &Value, key: &str, part: &str| {
        finding[key].as_str().unwrap_or_default().contains(part)
    };
    let is_it = of_check.iter().any(|it| {
        it["verdict"] == expected.verdict.word()
            && has(it, "found", expected.found)
            && has(it, "remedy", expected.remedy)
            && it["remedy"].is_null() == (expected.verdict == Verdict::Good)
    });
    let (found, remedy) = (expected.found, expected.remedy);
    assert!(
        is_it,
        "no {found:?} with {remedy:?} in {of_check:#?}, {done}"
    );
    if expected.verdict == Verdict::Bad {
        assert_eq!(done.code, Some(1), "{done}");
    }
}
