//! The request `stackTrace`: the call stack of a thread.

use sdm_debug::command::BacktraceSpec;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::arguments::ThreadArguments;
use crate::connection::Connection;
use crate::error::{Handled, RequestError};
use crate::group::CommonStop;
use crate::jobs::{Listing, Purpose};
use crate::locations;
use crate::message::Request;
use crate::source::stack_frame;

/// Maximum number of frames in one response to `stackTrace`.
const FRAMES_MAX: i64 = 1024;
/// Number of frames after the first shown one for which the instruction address is requested.
const ADDRESSES_MAX: u32 = 64;

pub(super) fn stack_trace(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let id = arguments.thread_id;
    let standing = standing(connection, id)?;
    let first = IdSet::union_all(standing.bases.iter().map(|(tasks, _)| tasks)).first();
    let first = first.ok_or(RequestError::Thread(id))?;
    let task = IdSet::single(first);
    let thread = connection.os_threads.number(id);
    let thread = thread.filter(|_| connection.os_threads.are_several());
    let current = connection.os_threads.current();
    let other = thread.filter(|thread| Some(*thread) != current);
    let mut commands = Vec::new();
    let select = |thread: Option<u32>, commands: &mut Vec<(IdSet, Command)>| {
        let select = thread.map(|number| (task.clone(), Command::SelectThread { number }));
        commands.extend(select);
    };
    let mut base = 0;
    // The thread is selected again, as a look at another one's variables has changed the selection.
    select(thread, &mut commands);
    if other.is_some() {
        let spec = BacktraceSpec {
            limit: 0,
            args: false,
            full: false,
        };
        commands.push((task.clone(), Command::Backtrace(spec)));
    } else {
        let of_first = standing
            .bases
            .iter()
            .find(|(tasks, _)| tasks.contains(first));
        base = of_first.map_or(0, |(_, base)| *base);
    }
    let last = base.saturating_add(ADDRESSES_MAX);
    let line = format!("-stack-list-frames 0 {last}");
    commands.push((task.clone(), Command::Mi { line }));
    select(current.filter(|_| other.is_some()), &mut commands);
    let from = usize::try_from(arguments.start_frame.unwrap_or(0)).unwrap_or(0);
    let count = arguments.levels.filter(|levels| *levels > 0);
    let count = count.unwrap_or(FRAMES_MAX).min(FRAMES_MAX);
    let listing = Listing {
        id,
        thread,
        other: other.is_some(),
        base,
        from,
        count: usize::try_from(count).unwrap_or(0),
    };
    let request = request.clone();
    connection.begin_job(Purpose::Frames { request, listing }, commands);
    Ok(None)
}

/// The stop of a thread.
///
/// # Errors
/// The thread runs, or does not exist.
fn standing(connection: &Connection, id: i64) -> Result<CommonStop, RequestError> {
    let row = connection.row(id)?;
    let runs = || RequestError::Runs(format!("thread {id}"));
    if !row.group.tasks.is_disjoint(&connection.tasks.running()) && row.group.folded.is_none() {
        return Err(runs());
    }
    row.group.standing.clone().ok_or_else(runs)
}

/// Answers a `stackTrace` request with gdb's frames.
pub(super) fn finish_frames(
    connection: &mut Connection,
    request: &Request,
    listing: &Listing,
    answers: &[Answers],
) {
    match frames(connection, listing, answers) {
        Ok(body) => connection.write(request.response(body)),
        Err(why) => connection.write(request.refusal(&why)),
    }
}

fn frames(
    connection: &mut Connection,
    listing: &Listing,
    answers: &[Answers],
) -> Result<Value, RequestError> {
    // The thread may have run since.
    let mut standing = standing(connection, listing.id)?;
    let replies = || answers.iter().flat_map(Answers::replies);
    let mut base = listing.base;
    if listing.other {
        let stack = replies().find_map(|(tasks, reply)| match reply {
            Reply::Backtrace(stack) => Some((tasks, stack)),
            _ => None,
        });
        let Some((tasks, stack)) = stack else {
            let why = answers.iter().find_map(Answers::complaint);
            return Err(RequestError::Tasks(why.unwrap_or_default()));
        };
        base = stack.frames.first().map_or(0, |frame| frame.level);
        standing.bases = vec![(tasks.clone(), base)];
        standing.stop.inside = None;
        standing.frames.clone_from(&stack.frames);
    }
    let record = replies().find_map(|(_, reply)| match reply {
        Reply::Mi { result, .. } => Some(result.as_str()),
        _ => None,
    });
    let addresses: Vec<String> = locations::fields(record.unwrap_or_default(), "addr").collect();
    Ok(listed(connection, listing, &standing, (base, &addresses)))
}

/// The response to a request for frames. `addresses` are those of all frames at gdb's levels, innermost first.
fn listed(
    connection: &mut Connection,
    listing: &Listing,
    standing: &CommonStop,
    (base, addresses): (u32, &[String]),
) -> Value {
    let mut frames = Vec::new();
    let handle = |index| standing.frame_handle(index, listing.thread);
    if let Some(inside) = &standing.stop.inside {
        let id = connection.references.add_frame(handle(0));
        let hint = "subtle";
        frames.push(json!({
            "id": id, "name": inside, "line": 0, "column": 0, "presentationHint": hint,
        }));
    }
    let total = standing.frames.len() + frames.len();
    let line_base = connection.line_base();
    let base = usize::try_from(base).unwrap_or(0);
    for (index, frame) in standing.frames.iter().enumerate() {
        if frames.len() >= listing.from.saturating_add(listing.count) {
            break;
        }
        let id = connection.references.add_frame(handle(index));
        let mut shown = stack_frame(id, frame, line_base);
        if let Some(address) = addresses.get(base.saturating_add(index)) {
            shown["instructionPointerReference"] = json!(address);
        }
        frames.push(shown);
    }
    let frames = frames.into_iter().skip(listing.from).take(listing.count);
    json!({"stackFrames": frames.collect::<Vec<_>>(), "totalFrames": total})
}
