//! Waits that the calls have only because of `sdm run --check=strict`.

use sdm_debug::probe::ArgumentRole;
use sdm_idset::IdSet;
use sdm_mpi::usage::{ROOTED, STRICT_WAITS};
use sdm_mpi::{mpi_name, takes_requests};

use super::Observed;
use super::motion::SamePlace;

const OF_SENDS: &str = "; --check=strict has standard sends wait for their receives: without it MPI may buffer the \
                        messages, which hides this error";
const OF_ROOTS: &str = "; --check=strict has all ranks wait for each other in operations with a root: without it MPI may \
                        not wait, which hides this error";

/// A part of a verdict: the blocked ranks are in calls that strict mode makes wait. Empty without strict mode.
pub(super) fn hidden_without(
    observed: &Observed,
    still: &[SamePlace],
    blocked: &IdSet,
) -> &'static str {
    if !observed.strict_sends {
        return "";
    }
    let there = still.iter().filter(|it| !it.tasks.is_disjoint(blocked));
    let calls: Vec<_> = there.map(|it| (it.wait.call.as_str(), &it.tasks)).collect();
    let is_one = |call: &str, known: &[&str]| {
        let name = mpi_name(call).unwrap_or_default();
        known.iter().any(|it| it.eq_ignore_ascii_case(&name))
    };
    let sends = calls.iter().any(|(call, tasks)| {
        is_one(call, &STRICT_WAITS) || takes_requests(call) && may_send(observed, tasks)
    });
    match () {
        () if sends => OF_SENDS,
        () if calls.iter().any(|(call, _)| is_one(call, &ROOTED)) => OF_ROOTS,
        () => "",
    }
}

/// True unless the requests of all tasks are known, and are receives.
fn may_send(observed: &Observed, tasks: &IdSet) -> bool {
    let waits = observed.samples.last().map(|last| last.waits.iter());
    let waits = waits.into_iter().flatten();
    let mut calls = waits
        .filter(|(who, _)| !who.is_disjoint(tasks))
        .map(|(_, waits)| waits.call.as_ref());
    calls.any(|call| {
        let has = |role| call.is_some_and(|it| it.arguments.iter().any(|one| one.role == role));
        has(ArgumentRole::Destination) || !has(ArgumentRole::Source)
    })
}
