//! The record of a diagnosis that `--json` prints.

use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::Diagnosis;

/// Maximum number of listed ranks of a cycle.
const CIRCLE_MAX: usize = 1000;

fn set(tasks: &IdSet) -> Value {
    tasks.to_string().into()
}

impl Diagnosis {
    /// The record of the diagnosis, as `--json` prints it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let findings = self.findings.iter().map(|finding| {
            json!({
                "tasks": set(&finding.tasks),
                "count": finding.tasks.len(),
                "kind": finding.kind.name(),
                "what": finding.what,
                "evidence": finding.evidence,
            })
        });
        let guilty = self.guilty.iter().map(|one| {
            json!({
                "tasks": set(&one.tasks),
                "call": one.call,
                "communicator": one.communicator,
                "place": one.place,
            })
        });
        json!({
            "step": self.step.name(),
            "stuck": self.step.is_proved(),
            "cause": self.cause.name(),
            "guilty": guilty.collect::<Vec<_>>(),
            "conclusion": self.conclusion,
            "suspects": set(&self.suspects),
            "held_up_by": set(&self.held_up_by),
            "circle": self.circle.iter().take(CIRCLE_MAX).collect::<Vec<_>>(),
            "circle_length": self.circle.len(),
            "samples": self.samples,
            "span_ms": u64::try_from(self.span.as_millis()).unwrap_or(u64::MAX),
            "findings": findings.collect::<Vec<_>>(),
        })
    }
}
