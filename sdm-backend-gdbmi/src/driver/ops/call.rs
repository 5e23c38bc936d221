//! The call that a thread is in, with those of its arguments that say whom it waits for.

use sdm_debug::Failure;
use sdm_debug::calls::{call_arguments, mpi_name, plain, roles, waits_for_requests};
use sdm_debug::probe::{ArgumentRole, Call, CallArgument, Known};
use sdm_debug::reply::{StackFrame, Value, Variable};

use super::evaluate::{evaluate, is_known, number};
use super::frames::GdbFrame;
use super::kept::{Kept, kept};
use super::ranks::{Place, pointer, requests, translate};
use super::threads::ReadThread;
use crate::driver::gdb::Gdb;
use crate::driver::text::variable;
use crate::mpi::{Communicator, Mpich};

/// How many lines of source a call can have.
const CALL_LINES: u32 = 6;
/// MPICH's handle of the communicator of all.
const MPICH_WORLD: &str = "1140850688";

/// The call that a thread is in, which its user's frame of this index has made.
pub(super) async fn call(
    gdb: &Gdb,
    thread: &ReadThread,
    function: &str,
    index: usize,
) -> Result<Option<Call>, Failure> {
    let roles = roles(function);
    let for_requests = waits_for_requests(function);
    let user = thread.frames.get(index);
    let Some(user) = user.filter(|_| for_requests || !roles.is_empty()) else {
        return Ok(None);
    };
    let text = source_from(gdb, user);
    let in_source = call_arguments(&text, function);
    let own = match own_frame(thread, function, index) {
        Some(own) => arguments(gdb, thread, own).await?,
        None => Vec::new(),
    };
    let mut found = Vec::new();
    let mut communicator = None;
    let mut copied = None;
    for (place, role) in roles {
        let expression = in_source.as_ref().and_then(|all| all.get(*place));
        let known = in_callers_frame(gdb, thread, user, (expression, *role)).await?;
        let callee = own.get(*place).filter(|one| is_known(&one.value));
        let callee = callee.map(|one| {
            let name = expression.unwrap_or(&one.name);
            (name.clone(), one.value.clone(), Known::Callee)
        });
        let (mut expression, mut value, mut known) = match (known.or(callee), expression) {
            (Some((expression, value, known)), _) => (expression, Some(value), known),
            (None, Some(expression)) => (expression.clone(), None, Known::Source),
            (None, None) => (String::new(), None, Known::Kept),
        };
        let named = *role == ArgumentRole::Communicator && expression == "MPI_COMM_WORLD";
        if value.is_none() && !named && *role != ArgumentRole::File {
            if copied.is_none() {
                copied = Some(kept(gdb, thread, index).await?);
            }
            if let Some(Some(kept)) = &copied {
                value = from_call(gdb, thread, kept, (*place, *role)).await?;
            }
            if value.is_none() && expression.is_empty() {
                continue;
            }
            if value.is_some() {
                known = Known::Kept;
            }
        }
        if expression.is_empty() {
            expression = "?".to_owned();
        }
        if *role == ArgumentRole::Communicator {
            communicator = value.as_ref().and_then(communicator_of);
            found.extend(communicator.and_then(handle_of));
        }
        found.push(argument(*role, expression, value, known));
    }
    if for_requests && copied.is_none() {
        copied = Some(kept(gdb, thread, index).await?);
    }
    let place = Place {
        gdb,
        thread,
        user,
        kept: copied.as_ref().and_then(Option::as_ref),
    };
    by_ranks_of_the_job(&place, (function, &in_source), communicator, &mut found).await?;
    Ok(Some(Call {
        function: function.to_owned(),
        place: place_of(user),
        source: text.lines().next().unwrap_or_default().trim().to_owned(),
        arguments: found,
    }))
}

/// The communicator of a value: MPICH's handle of one that is not one of its own, by the bits that say what a handle is of, or Open MPI's
/// address.
fn communicator_of(value: &Value) -> Option<Communicator> {
    let number = value.text.parse::<i32>().map(i32::cast_unsigned).ok();
    let address = pointer(value);
    let handle = number.or_else(|| u32::try_from(address?).ok());
    let handle = handle.filter(|handle| Mpich::is_later_communicator(*handle));
    handle
        .map(Communicator::Handle)
        .or(address.map(Communicator::At))
}

/// MPICH's handle, by which it is compared where no more is known.
fn handle_of(communicator: Communicator) -> Option<CallArgument> {
    match communicator {
        Communicator::Handle(handle) => {
            Some(CallArgument::hidden(ArgumentRole::Handle, handle.into()))
        }
        Communicator::At(_) => None,
    }
}

/// The value of an argument as the source has it.
async fn in_callers_frame(
    gdb: &Gdb,
    thread: &ReadThread,
    user: &GdbFrame,
    (expression, role): (Option<&String>, ArgumentRole),
) -> Result<Option<(String, Value, Known)>, Failure> {
    let Some(text) = expression else {
        return Ok(None);
    };
    let value = number(gdb, thread, user, (text, role)).await?;
    Ok(value.map(|value| (text.clone(), value, Known::Source)))
}

/// Reads from the MPI library's memory whom a call means that names no ranks of the job itself.
async fn by_ranks_of_the_job(
    place: &Place<'_>,
    (function, in_source): (&str, &Option<Vec<String>>),
    communicator: Option<Communicator>,
    found: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    if waits_for_requests(function) {
        let count = found.iter().find(|it| it.role == ArgumentRole::Requests);
        let count = count.map(|count| count.number.unwrap_or_default());
        // Where it waits for several their list is the second argument.
        let at = usize::from(!roles(function).is_empty());
        let list = in_source.as_ref().and_then(|all| all.get(at));
        let list = list.map(String::as_str);
        found.extend(requests(place, (list, count), at).await?);
    }
    let is_other = |it: &CallArgument| it.role == ArgumentRole::Communicator && !it.is_world();
    if let Some(communicator) = communicator.filter(|_| found.iter().any(is_other)) {
        translate(place, communicator, found).await?;
    }
    Ok(())
}

/// An argument that lies where the call has put it.
async fn from_call(
    gdb: &Gdb,
    thread: &ReadThread,
    kept: &Kept,
    (place, role): (usize, ArgumentRole),
) -> Result<Option<Value>, Failure> {
    let is_handle = role == ArgumentRole::Communicator;
    let bytes = if is_handle { 8 } else { 4 };
    let Some(number) = kept.argument(gdb, thread, (place, bytes)).await? else {
        return Ok(None);
    };
    let text = |text: String| Value { text, cut: None };
    if !is_handle {
        return Ok(Some(text(number.to_string())));
    }
    // MPICH has numbers of 32 bits, Open MPI addresses, of which gdb knows the names.
    let low = (number & i64::from(u32::MAX)).to_string();
    if low == MPICH_WORLD {
        return Ok(Some(text(low)));
    }
    let Some(innermost) = thread.frames.first() else {
        return Ok(None);
    };
    let named = format!("(void *) {number:#x}");
    evaluate(gdb, thread, innermost, &named).await
}

/// An argument as it travels: what differs from rank to rank and says nothing, an address, is left out.
fn argument(
    role: ArgumentRole,
    expression: String,
    value: Option<Value>,
    known: Known,
) -> CallArgument {
    let number = value.as_ref().and_then(|value| value.text.parse().ok());
    let mut argument = CallArgument {
        role,
        expression,
        value: value.filter(|_| number.is_none()),
        number,
        known,
    };
    if role == ArgumentRole::Communicator {
        let world = argument.is_world();
        (argument.value, argument.number) = (None, None);
        if world {
            argument.expression = "MPI_COMM_WORLD".to_owned();
        }
    }
    argument
}

/// The frame of the runtime's function itself, where it has debug information.
fn own_frame<'a>(thread: &'a ReadThread, function: &str, index: usize) -> Option<&'a GdbFrame> {
    let is_own = |name: &str| match mpi_name(function) {
        Some(wanted) => mpi_name(name) == Some(wanted),
        None => plain(name) == plain(function),
    };
    let at = thread.raw.frames[..index].iter().rposition(|raw| {
        let name = raw.function.as_deref();
        raw.file.is_some() && name.is_some_and(is_own)
    })?;
    thread.frames.get(at)
}

async fn arguments(
    gdb: &Gdb,
    thread: &ReadThread,
    frame: &GdbFrame,
) -> Result<Vec<Variable>, Failure> {
    let (id, level) = (thread.id, frame.level);
    let line = format!("-stack-list-arguments --thread {id} 1 {level} {level}");
    let results = gdb.mi(line).await?;
    let arguments = results
        .tuples("stack-args")
        .flat_map(|frame| frame.tuples("args"));
    Ok(arguments.map(variable).collect())
}

/// Some lines of source from where a frame stands.
pub(super) fn source_from(gdb: &Gdb, frame: &GdbFrame) -> String {
    let lines = frame.source_lines(gdb, CALL_LINES + 1);
    lines.join("\n")
}

pub(super) fn place_of(frame: &GdbFrame) -> StackFrame {
    let raw = frame.raw();
    StackFrame {
        module: raw.module,
        ..StackFrame::own(
            raw.function.unwrap_or_default(),
            raw.file.unwrap_or_default(),
            raw.line,
        )
    }
}
