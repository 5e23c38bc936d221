//! Selection of the view: text for a person, or records.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sdm_system::files;
use sdm_view::item::{Item, Problem, View};
use sdm_view::json::JsonView;
use sdm_view::render::{Names, TextView};

use super::error::AppError;
use super::queue::Queue;
use super::screen::Stdout;
use crate::sink::{Records, Sink, complain, complain_of_loss};

/// The view that shows the session's items.
pub(super) fn view(json: bool, names: Names, queue: Option<Arc<Queue>>) -> Box<dyn View> {
    if json {
        Box::new(JsonView::new(Records, pass_beside_records))
    } else {
        if let Some(queue) = &queue {
            queue.full.set_names(names.clone());
        }
        Box::new(TextView::new(Stdout::new(queue), names))
    }
}

/// Prints output that a launcher carries to standard error, because standard output is for records.
fn pass_beside_records(bytes: &[u8]) {
    // A failed write is ignored: the output is not read.
    let _ = Sink::Complaints.pass(bytes);
}

/// Reports why there is no session, and returns the exit code.
pub(super) fn give_up(json: bool, code: u8, message: String) -> u8 {
    if !json {
        complain(format_args!("sdm: {message}"));
        return code;
    }
    let mut view = view(true, Names::ranks(), None);
    let problem = Problem {
        message,
        ..Problem::default()
    };
    view.show(Duration::ZERO, &Item::Error(problem));
    view.show(Duration::ZERO, &Item::End { code, reason: None });
    code
}

/// Writes a file that the user has named, if any. A failure sets the exit code.
pub(super) fn write(path: Option<&Path>, text: impl FnOnce() -> String) {
    let Some(path) = path else { return };
    if let Err(source) = files::replace(path, text().as_bytes()) {
        let path = path.to_owned();
        complain_of_loss(format_args!("sdm: {}", AppError::File { path, source }));
    }
}
