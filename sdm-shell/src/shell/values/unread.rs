//! Answers without a value, because gdb cannot read it. Ranks with equal answers of this kind do not count as equal.

use sdm_debug::quotes::unread_part;
use sdm_debug::{Failure, FailureCode, Reply};
use sdm_view::item::Gathered;

use super::advice::is_owned_array;
use crate::shell::Verdict;

/// Makes failures of the answers to an expression that are no values. An array or a structure stays an answer, but its
/// ranks also fail by the first part that gdb cannot read.
pub(super) fn refuse(gathered: &mut Gathered, expression: &str, verdict: &mut Verdict) {
    let answers = std::mem::take(&mut gathered.ok);
    for (tasks, reply) in answers {
        let part = match &reply {
            Reply::Value(value) => unread_part(&value.text).map(|part| (part, &*value.text)),
            _ => None,
        };
        let Some((part, text)) = part else {
            gathered.ok.push((tasks, reply));
            continue;
        };
        let has_parts = text.starts_with(['{', '(']);
        let what = match has_parts {
            true => {
                format!("`{expression}` has a part without a value, which is not compared: {part}")
            }
            false => format!("`{expression}` has no value: {text}"),
        };
        let mut failure = Failure::new(FailureCode::Gdb, what);
        if is_owned_array(text) && !has_parts {
            let hint = "the length of the array is unknown: ask for a slice, as in";
            failure = failure.with_hint(format!("{hint} `{expression}[0:9]`"));
        }
        gathered.failed.push((tasks.clone(), failure));
        if has_parts {
            gathered.ok.push((tasks, reply));
        }
        if *verdict == Verdict::Done {
            *verdict = Verdict::Failed;
        }
    }
}
