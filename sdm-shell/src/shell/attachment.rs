//! The first attachment of `sdm attach`: by gdb, or by a snapshot of the stacks without gdb.

use sdm_debug::command::AttachSpec;
use sdm_debug::{Failure, FailureCode};
use sdm_idset::IdSet;

use super::attach::{among, announce, attach_unannounced};
use super::look::{Look, LookBy};
use super::{SessionHandle, notices, run};

/// Attaches to the `first` of these processes, or reads their stacks and has gdb attach when a command needs it.
/// Returns false if that succeeded for none, if the user has interrupted it, or if the session is over. The other
/// processes have a server, for `attach SET`.
pub(super) async fn attach(
    session: &SessionHandle,
    spec: AttachSpec,
    first: &IdSet,
    by: LookBy,
) -> bool {
    announce(session, &among(&spec, first), first);
    let (unattached, attached) = match by {
        LookBy::Snapshot => look_first(session, &spec, first).await,
        LookBy::Gdb => {
            let attached = attach_unannounced(session, among(&spec, first), first).await;
            (IdSet::new(), attached.1)
        }
    };
    if session.interrupted_since(0) {
        return false;
    }
    let there = attached.union(&unattached);
    session.edit(|model| {
        model.job.attachable = Some(spec);
        model.job.unattached = unattached;
        if there != model.all && !there.is_empty() {
            model.sets.focus.clone_from(&there);
        }
    });
    notices::show_places(session, &attached);
    !there.is_empty() && !session.is_over()
}

/// Shows the stacks of the `first` processes that can be read. Returns the tasks that were read without gdb, and those
/// that gdb is attached to because they cannot be read without it.
async fn look_first(session: &SessionHandle, spec: &AttachSpec, first: &IdSet) -> (IdSet, IdSet) {
    let mut look = Look::of(spec.clone(), first.clone(), false);
    let Some(mut gathered) = look.take(session).await else {
        return Default::default();
    };
    let is_ended = |failure: &Failure| failure.code == FailureCode::NotRunning;
    let refused = gathered.failed.iter().filter(|(_, why)| !is_ended(why));
    let refused = IdSet::union_all(refused.map(|(tasks, _)| tasks));
    // Attaching reports the failures of the other tasks, so they are not shown here.
    gathered.failed.retain(|(_, why)| is_ended(why));
    session.show(&run::answer(gathered, false));
    let mut attached = look.attached().clone();
    if !refused.is_empty() && !session.is_over() {
        let tried = attach_unannounced(session, among(spec, &refused), &refused).await;
        attached.union_with(&tried.1);
    }
    (look.free().difference(&refused), attached)
}
