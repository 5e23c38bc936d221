//! `info memory`: how much memory the tasks use, added up on the way up the tree.

use sdm_debug::rules::TotalUsage;
use sdm_debug::{Command, wire};
use sdm_idset::IdSet;
use sdm_view::item::Item;

use super::model::open_commands::OpenCommand;
use super::said::Said;
use super::{SessionHandle, Verdict, ask};

/// `info memory`.
pub(super) async fn show_memory(session: &SessionHandle, said: &Said<'_>) -> Verdict {
    let asked = session.ask_quietly(said.line, &said.to, &Command::Usage);
    let (verdict, open) = asked.await;
    let Some(OpenCommand { mut gathered, .. }) = open else {
        return verdict;
    };
    let (mut tasks, mut usage) = (IdSet::new(), TotalUsage::default());
    let own = gathered.ok.iter();
    let own = own.map(|(tasks, reply)| (tasks.clone(), wire::encode(reply)));
    for (of, bytes) in own
        .chain(std::mem::take(&mut gathered.merged))
        .collect::<Vec<_>>()
    {
        if let Ok(part) = TotalUsage::decode(&of, &bytes) {
            usage.join(&part);
            tasks.union_with(&of);
        }
    }
    gathered.ok.retain(|(of, _)| !of.is_subset(&tasks));
    if !tasks.is_empty() {
        session.show(&Item::Usage { tasks, usage });
    }
    ask::show_rest(session, gathered);
    verdict
}
