//! `info memory`: the memory use of the tasks, summed up in the tree. gdb attaches to no process for it.

use sdm_debug::Command;
use sdm_debug::rules::Merged;
use sdm_view::item::Item;

use super::invocation::Invocation;
use super::model::open_commands::OpenCommand;
use super::{SessionHandle, Verdict, ask};

/// Carries out `info memory`.
pub(super) async fn show_memory(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let (free, spec) = session.read(|model| model.without_gdb(&said.to));
    let command = match free.is_empty() {
        true => Command::Usage,
        false => Command::ProcessUsage { pids: spec.pids },
    };
    let (verdict, open) = session.ask_quietly(said.line, &said.to, &command).await;
    let Some(OpenCommand { mut gathered, .. }) = open else {
        return verdict;
    };
    if let Some((tasks, Merged::Usage(usage))) = gathered.take_merged() {
        session.show(&Item::Usage { tasks, usage });
    }
    ask::show_rest(session, gathered);
    verdict
}
