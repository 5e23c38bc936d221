//! `queues`: pending MPI messages, merged in the tree.

use sdm_debug::Command;
use sdm_debug::rules::Merged;
use sdm_view::item::Item;
use sdm_view::queues::QueueTable;

use super::invocation::Invocation;
use super::model::open_commands::OpenCommand;
use super::{SessionHandle, Verdict, ask};

/// Carries out `queues`.
pub(super) async fn queues(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let asked = session.ask_quietly(said.line, &said.to, &Command::Queues);
    let (verdict, open) = asked.await;
    let Some(OpenCommand { mut gathered, .. }) = open else {
        return verdict;
    };
    if let Some((_, Merged::Queues(found))) = gathered.take_merged() {
        session.show(&Item::Queues(QueueTable::of(found)));
    }
    ask::show_rest(session, gathered);
    verdict
}
