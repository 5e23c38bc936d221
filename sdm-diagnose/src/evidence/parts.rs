//! Ranks whose data a collective operation waits for, as text.

use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_idset::IdSet;

use super::Evidence;
use crate::operations::waits_for_root;

impl Evidence<'_> {
    /// The words before the ranks whose data a call waits for. MPI passes the root's data on through other ranks.
    pub(super) fn words_of_data(
        &self,
        call: &Call,
        awaited: &CallArgument,
        tasks: &IdSet,
    ) -> &'static str {
        let is_root = |it: &&CallArgument| it.role == ArgumentRole::Root;
        let root = call.arguments.iter().find(is_root);
        let root = root.and_then(|root| self.value(call, root, tasks));
        match root.filter(|_| waits_for_root(call)) {
            Some(root) if self.value(call, awaited, tasks).as_ref() != Some(&root) => {
                "for the root's data through"
            }
            _ => "for the data of",
        }
    }
}
