//! Verdicts on jobs that end during the observation.

use sdm_idset::IdSet;

use super::collective_order::NAMED_MAX;
use super::verdict::{Verdict, in_number, ranks};
use super::{Cause, Observed, Step};

/// The verdict if a rank crashes or aborts the job; None if none does. The waits of the other ranks add nothing to it.
pub(super) fn aborts(observed: &Observed) -> Option<Verdict> {
    let aborting = &observed.aborting;
    let (first, what) = aborting.first()?;
    let who = IdSet::union_all(aborting.iter().map(|(tasks, _)| tasks));
    let named = match first.len() {
        count if count <= NAMED_MAX => ranks(first),
        count => format!("{count} ranks"),
    };
    // The ranks to blame are named before the text.
    let text = match who.len() - first.len() {
        0 => what.clone(),
        more => {
            let more = in_number(&format!("{more} more [rank ends|ranks end] as well"), more);
            format!("{named}: {what}; {more}")
        }
    };
    let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Aborted);
    Some(verdict.blaming(who))
}

/// The verdict if the end of every rank was observed; None otherwise.
pub(super) fn over(observed: &Observed, all: &IdSet) -> Option<Verdict> {
    let gone = &observed.gone;
    let ended = IdSet::union_all(gone.iter().map(|(tasks, _)| tasks));
    // Ranks whose server or gdb is lost may still run.
    let is_seen = gone.iter().all(|(_, how)| how.starts_with("ended"));
    let is_over = is_seen && !ended.is_empty() && all.is_subset(&ended);
    is_over.then(|| {
        let ends: Vec<&str> = gone.iter().map(|(_, how)| how.as_str()).collect();
        let ends = ends.join("; ");
        let text = format!("the job has ended, no process is left: {ends}");
        Verdict::new(Step::NoHangSeen, text)
    })
}
