//! Showing of delayed notices and output, in which equal ones are merged.
use sdm_idset::IdSet;
use sdm_view::item::{Happening, Item};

use super::SessionHandle;

/// Shows the notices and output whose delay is over.
pub(super) fn show_due(session: &SessionHandle) {
    let now = session.now();
    let due = session.edit(|model| model.news.take_due(now));
    if !due.is_empty() {
        session.show_group(&due);
    }
}

/// Shows all delayed output and events of tasks.
pub(super) fn show_held(session: &SessionHandle) {
    let held = session.edit(|model| model.news.take_held());
    session.show_group(&held);
}

/// Shows the positions of these tasks, together with all delayed output and events.
pub(super) fn show_places(session: &SessionHandle, tasks: &IdSet) {
    let now = session.now();
    session.edit(|model| {
        for row in model.tasks.rows_of(tasks) {
            if let Some(what) = row.last {
                model.news.notices.push(now, &row.tasks, what);
            }
        }
    });
    show_held(session);
}

/// Shows delayed notices only, and drops other delayed events, which no longer matter.
pub(super) fn show_told(session: &SessionHandle) {
    let told = |item: &Item| {
        let what = match item {
            Item::Happened { what, .. } => Some(what),
            _ => None,
        };
        matches!(what, Some(Happening::Notice(_)))
    };
    let happened = session.edit(|model| model.news.notices.take_happened());
    for item in happened.into_iter().filter(told) {
        session.show(&item);
    }
}

/// Shows silent and lost tasks, the launcher's lines and its end without further delay.
pub(super) fn show_gone(session: &SessionHandle) {
    for item in session.edit(|model| model.news.notices.take_gone()) {
        session.show(&item);
    }
}
