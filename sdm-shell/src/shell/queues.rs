//! `queues`: the messages of MPI that have not completed, merged on the way up the tree.

use sdm_debug::rules::MergedQueues;
use sdm_debug::{Command, wire};
use sdm_idset::IdSet;
use sdm_view::item::Item;
use sdm_view::queues::QueueTable;

use super::model::open_commands::OpenCommand;
use super::said::Said;
use super::{SessionHandle, Verdict, ask};

/// `queues`.
pub(super) async fn queues(session: &SessionHandle, said: &Said<'_>) -> Verdict {
    let asked = session.ask_quietly(said.line, &said.to, &Command::Queues);
    let (verdict, open) = asked.await;
    let Some(OpenCommand { mut gathered, .. }) = open else {
        return verdict;
    };
    let (mut tasks, mut found) = (IdSet::new(), MergedQueues::default());
    let own = gathered.ok.iter();
    let own = own.map(|(tasks, reply)| (tasks.clone(), wire::encode(reply)));
    for (of, bytes) in own
        .chain(std::mem::take(&mut gathered.merged))
        .collect::<Vec<_>>()
    {
        if let Ok(part) = MergedQueues::decode(&of, &bytes) {
            found.absorb(part);
            tasks.union_with(&of);
        }
    }
    gathered.ok.retain(|(of, _)| !of.is_subset(&tasks));
    if !tasks.is_empty() {
        session.show(&Item::Queues(QueueTable::of(found)));
    }
    ask::show_rest(session, gathered);
    verdict
}
