//! Tasks that the client sees as one thread, and the thread's name.

use std::sync::Arc;

use sdm_debug::reply::{Frame, Stop};
use sdm_idset::{IdSet, set_text};

use crate::references::FrameHandle;
use crate::source::place;

/// Maximum length of a task set in a thread's name, in bytes.
const SET_BYTES_MAX: usize = 24;

/// The common stop of tasks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommonStop {
    /// The stop of the lowest task.
    pub(crate) stop: Stop,
    /// The frames of the user's code, innermost first; not empty if a location is known.
    pub(crate) frames: Vec<Frame>,
    /// gdb's level of the first of these frames, by task set.
    pub(crate) bases: Vec<(IdSet, u32)>,
}

/// Tasks that are shown as one thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) tasks: IdSet,
    /// The common stop of the tasks; `None` while the tasks run.
    pub(crate) standing: Option<CommonStop>,
    /// Number of classes that share this thread, because not each class can have a thread. `standing` is then the stop
    /// of the first class. `None` for a thread of one class.
    pub(crate) folded: Option<usize>,
}

impl CommonStop {
    /// The handle of the frame with this index; 0 is the innermost.
    pub(crate) fn frame_handle(&self, index: usize, thread: Option<u32>) -> Arc<FrameHandle> {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        let levels = self.bases.iter();
        let levels = levels.map(|(tasks, base)| (tasks.clone(), base.saturating_add(index)));
        Arc::new(FrameHandle {
            tasks: IdSet::union_all(self.bases.iter().map(|(tasks, _)| tasks)),
            levels: levels.collect(),
            thread,
        })
    }
}

impl Group {
    /// Name of the thread; `by_rank` selects the form for one thread per rank.
    pub(crate) fn name(&self, by_rank: bool) -> String {
        let what = match (&self.standing, self.folded) {
            (_, Some(classes)) => return self.folded_name(classes),
            (None, None) => "running".to_owned(),
            (Some(standing), None) => described(standing),
        };
        let set = set_text(&self.tasks, SET_BYTES_MAX);
        match self.tasks.len() {
            1 => format!("rank {set}: {what}"),
            _ if by_rank => format!("ranks {set}: {what}"),
            count => format!("[{set}] {count} ranks: {what}"),
        }
    }

    fn folded_name(&self, classes: usize) -> String {
        let set = set_text(&self.tasks, SET_BYTES_MAX);
        let count = self.tasks.len();
        format!("[{set}] {count} ranks: {classes} other stacks")
    }
}

/// The location of the stopped tasks as text: `MPI_Barrier in solve halo.c:44`.
fn described(standing: &CommonStop) -> String {
    let place = standing
        .frames
        .first()
        .map_or_else(|| "stopped".to_owned(), place);
    match &standing.stop.inside {
        Some(inside) => format!("{inside} in {place}"),
        None => place,
    }
}
