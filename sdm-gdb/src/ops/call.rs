//! The call that a thread is in, with those arguments that identify the ranks it waits for.

use sdm_debug::Failure;
use sdm_debug::calls::{call_arguments, fortran_arguments, is_sleep, plain, roles};
use sdm_debug::fold::RawFrame;
use sdm_debug::probe::{ArgumentRole, Call, CallArgument};
use sdm_debug::reply::{StackFrame, Variable};
use sdm_inspect::mpi::Communicator;
use sdm_mpi::{
    TORCH_PREFIX, fortran_name, is_of_two_groups, mpi_name, started_collective, takes_requests,
    waiting_function, waits_for_any_request, waits_for_requests,
};

use super::argument_sources::{ArgumentSources, NamedObjects};
use super::call_registers::kept;
use super::frames::GdbFrame;
use super::operation::operations;
use super::other_jobs::{add_possible, beginning};
use super::ranks::messages::{awaited_ranks, find_receive, state_of_receive};
use super::ranks::requests::{alternatives, requests};
use super::ranks::{Named, Place, number_sources, remote_leader, translate};
use super::threads::ReadThread;
use super::torch::torch_call;
use super::variables;
use crate::gdb::Gdb;
use crate::text::variable;

/// Maximum number of source lines that a call expression may span after its first line.
const CALL_LINES: u32 = 6;
/// The function by which a thread yields the processor between two polls.
const YIELD: &str = "sched_yield";

/// The call that a thread is in; `index` is that of the user's frame that has made it. `None` if the thread is in no
/// call whose arguments matter.
pub(super) async fn call(
    gdb: &Gdb,
    thread: &ReadThread,
    function: &str,
    index: usize,
) -> Result<Option<Call>, Failure> {
    if function.starts_with(TORCH_PREFIX) {
        return torch_call(gdb, thread, function, index).await;
    }
    let Some(user) = thread.frames.get(index) else {
        return Ok(None);
    };
    let frames = CallFrames::of(thread, function, index);
    let text = match frames.is_direct {
        true => source_from(gdb, user),
        false => String::new(),
    };
    read_call(gdb, thread, (function, index), (frames, text)).await
}

/// The polling call of a thread that sleeps or yields between two polls, in the function of this frame or in one that
/// it calls. In the frame's function it has the arguments that its request or its source names. None if the source
/// shows no polling loop.
pub(super) async fn polled_call(
    gdb: &Gdb,
    thread: &ReadThread,
    function: &str,
    index: usize,
) -> Result<Option<Call>, Failure> {
    let user = thread.frames.get(index).filter(|user| user.is_native());
    let between_polls = is_sleep(function) || function == YIELD;
    let Some(user) = user.filter(|_| between_polls) else {
        return Ok(None);
    };
    let Some((polls, line, text)) = user.polled_in_loop(gdb) else {
        return Ok(user.polled_by_callee(gdb).map(|function| Call {
            function,
            place: user.stack_frame(),
            source: user.source(gdb).unwrap_or_default(),
            arguments: Vec::new(),
        }));
    };
    let Some(waits) = waiting_function(&polls) else {
        return Ok(None);
    };
    let frames = CallFrames {
        innermost: None,
        is_direct: true,
        level: thread.frames[index].level,
    };
    // The source has the name of the polling function.
    let text = text.replacen(&polls, &waits, 1);
    let call = read_call(gdb, thread, (&waits, index), (frames, text)).await?;
    Ok(call.map(|call| Call {
        source: call.source.replacen(&waits, &polls, 1),
        function: polls,
        place: StackFrame { line, ..call.place },
        ..call
    }))
}

/// Reads a call that the user's frame with this index has made. `text` is the source from the call on.
async fn read_call(
    gdb: &Gdb,
    thread: &ReadThread,
    (function, index): (&str, usize),
    (frames, text): (CallFrames, String),
) -> Result<Option<Call>, Failure> {
    let for_requests = takes_requests(function);
    let user = &thread.frames[index];
    let is_known = for_requests || !roles(function).is_empty();
    let Some(mut found) = beginning(gdb, thread, (function, is_known)).await? else {
        return Ok(None);
    };
    let in_source = match user.is_fortran() {
        true => fortran_arguments(&text, function),
        false => call_arguments(&text, function),
    };
    let own = match own_frame(thread, function, index) {
        Some(own) => arguments(gdb, thread, own).await?,
        None => Vec::new(),
    };
    let mut copied = None;
    let told = ArgumentSources {
        user,
        in_source: in_source.as_deref(),
        own: &own,
        innermost: frames.innermost,
    };
    let NamedObjects {
        communicator,
        others,
        peers,
    } = told
        .read_all(gdb, thread, function, (&mut found, &mut copied))
        .await?;
    if for_requests && copied.is_none() {
        copied = Some(kept(gdb, thread, frames.innermost).await?);
    }
    let place = Place {
        gdb,
        thread,
        user,
        level: frames.level,
        kept: copied.as_ref().and_then(Option::as_ref),
    };
    for named in others {
        translate(&place, named, &mut found).await?;
    }
    if is_of_two_groups(function) {
        remote_leader(&place, peers, &mut found).await?;
    }
    by_ranks_of_the_job(&place, (function, &in_source), communicator, &mut found).await?;
    let shown = shown_source(gdb, user, &text);
    Ok(Some(Call {
        function: function.to_owned(),
        place: user.stack_frame(),
        source: shown.lines().next().unwrap_or_default().trim().to_owned(),
        arguments: found,
    }))
}

/// The frames of a thread that belong to a call.
struct CallFrames {
    /// Index of the innermost frame of the function that takes its arguments by value; `None` if there is none. Frames
    /// of the same name outside it can be a Fortran binding, or a wrapper between the program and MPI.
    innermost: Option<usize>,
    /// True if the user's own frame has called the function, with no frame in between.
    is_direct: bool,
    /// Level of the frame that has called the function.
    level: u32,
}

impl CallFrames {
    /// Finds the frames of `function`, which the user's frame with this index has called directly or indirectly.
    fn of(thread: &ReadThread, function: &str, index: usize) -> Self {
        let user = &thread.frames[index];
        let inside = &thread.raw.frames[..index];
        let is_it = |name: &str| match mpi_name(function) {
            Some(wanted) => mpi_name(name) == Some(wanted),
            None => plain(name) == plain(function),
        };
        let is_own = |raw: &&RawFrame| raw.function.as_deref().is_some_and(is_it);
        let by_value = |raw: &RawFrame| {
            let name = raw.function.as_deref().unwrap_or_default();
            is_it(name) && !name.ends_with('_') && fortran_name(name).is_none()
        };
        let outermost = inside.iter().rposition(|raw| is_own(&raw));
        let innermost = inside.iter().position(by_value);
        let is_direct = match outermost {
            Some(at) => user.is_native() && thread.frames[at].level + 1 == user.level,
            // The function's own frame is missing, as it has ended in a jump to another one.
            None => user.is_native(),
        };
        let last = index.checked_sub(1).filter(|_| is_direct);
        let callee = innermost.or(outermost).or(last);
        Self {
            innermost: innermost.or(last.filter(|_| outermost.is_none())),
            is_direct,
            level: callee.map_or(user.level, |at| thread.frames[at].level + 1),
        }
    }
}

/// The source line to show: the call's own, or else the current one of the user's frame.
fn shown_source(gdb: &Gdb, user: &GdbFrame, text: &str) -> String {
    match text {
        "" => user.source(gdb).unwrap_or_default(),
        text => text.to_owned(),
    }
}

/// Finds the peers of a call in the MPI library's memory, if its arguments do not name them as ranks of the job.
async fn by_ranks_of_the_job(
    place: &Place<'_>,
    (function, in_source): (&str, &Option<Vec<String>>),
    mut communicator: Option<Communicator>,
    found: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    if takes_requests(function) {
        let count = found.iter().find(|it| it.role == ArgumentRole::Requests);
        let count = count.map(|count| count.number.unwrap_or_default());
        // A call that waits for several requests has their list as its second argument.
        let at = usize::from(!roles(function).is_empty());
        let list = in_source.as_ref().and_then(|all| all.get(at));
        let list = list.map(String::as_str);
        if waits_for_any_request(function) {
            found.extend(alternatives(place, (list, count), at).await?);
            return add_possible(place, found).await;
        }
        let (pending, of_collective) = requests(place, (list, count), at).await?;
        let is_collective = matches!(&pending[..], [one] if one.role == ArgumentRole::Communicator);
        found.extend(pending);
        communicator = communicator.or(of_collective);
        if is_collective {
            found.extend(operations(place, list));
            let started = started_operation(found);
            let started = started.as_deref().unwrap_or_default();
            found.extend(awaited_ranks(place, (started, communicator), found).await?);
        }
    }
    found.extend(awaited_ranks(place, (function, communicator), found).await?);
    number_sources(place, found).await?;
    find_receive(place, (function, communicator), found).await?;
    let receives = found.iter().any(|it| it.role == ArgumentRole::Source);
    if receives && !waits_for_requests(function) {
        let state = state_of_receive(place, communicator, found).await?;
        found.extend(state);
    }
    let is_other = |it: &CallArgument| it.role == ArgumentRole::Communicator && !it.is_world();
    if let Some(communicator) = communicator.filter(|_| found.iter().any(is_other)) {
        translate(place, Named::Communicator(communicator), found).await?;
    }
    add_possible(place, found).await
}

/// The blocking function of the nonblocking collective operation that a call waits for: `MPI_bcast`. `None` unless
/// exactly one such operation is known.
fn started_operation(found: &[CallArgument]) -> Option<String> {
    let all = found.iter();
    let mut started = all.filter(|one| one.role == ArgumentRole::Operation);
    let (one, None) = (started.next()?, started.next()) else {
        return None;
    };
    started_collective(&one.expression).map(|name| format!("MPI_{name}"))
}

/// The frame of the runtime function itself; `None` if it has no debug information.
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
    let line = format!("-stack-list-arguments --thread {id} --frame {level} 1 {level} {level}");
    let results = variables::list(gdb, variables::SCALARS, &line).await?;
    let arguments = results
        .tuples("stack-args")
        .flat_map(|frame| frame.tuples("args"));
    Ok(arguments.map(variable).collect())
}

/// Source lines from a frame's current line on; in Fortran the statement that contains the line.
pub(super) fn source_from(gdb: &Gdb, frame: &GdbFrame) -> String {
    if let Some(statement) = frame.statement(gdb) {
        return statement;
    }
    let lines = frame.source_lines(gdb, CALL_LINES + 1);
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use sdm_debug::fold::RawThread;

    use super::*;
    use sdm_inspect::python::{PythonFrame, PythonState};

    /// A thread with these frames, innermost first. Levels rise by one, except at Python functions.
    fn thread(frames: &[(u32, &str, &str)]) -> ReadThread {
        let frame = |(level, name, module): &(u32, &str, &str)| match *module {
            "python" => {
                let own = PythonFrame {
                    function: (*name).to_owned(),
                    path: "/a.py".to_owned(),
                    line: 7,
                    state: PythonState::default(),
                };
                GdbFrame::python(*level, &own, "")
            }
            module => GdbFrame::native(*level, name, module),
        };
        let frames: Vec<GdbFrame> = frames.iter().map(frame).collect();
        ReadThread {
            id: 1,
            number: 1,
            kernel_id: None,
            raw: RawThread {
                frames: frames.iter().map(GdbFrame::raw).collect(),
                ..RawThread::default()
            },
            frames,
            has_interpreter: false,
            missing: None,
        }
    }

    #[test]
    fn mpi_call_frame_is_found_in_the_stack() {
        type Frames<'a> = &'a [(u32, &'a str, &'a str)];
        let check = |function: &str, frames: Frames<'_>, expect: (Option<usize>, bool, u32)| {
            let found = CallFrames::of(&thread(frames), function, frames.len() - 1);
            let found = (found.innermost, found.is_direct, found.level);
            assert_eq!(found, expect, "{function} {frames:?}");
        };
        let (mpi, fortran) = ("libmpi.so.40", "libmpi_mpifh.so.40");
        let c = [
            (0, "poll", "libc.so.6"),
            (1, "PMPI_Recv", mpi),
            (2, "main", ""),
        ];
        check("MPI_Recv", &c, (Some(1), true, 2));
        // Functions of mpi4py and of the interpreter are between MPI and the user's frame.
        let python = [
            (0, "opal_progress", mpi),
            (1, "PMPI_Scatter", mpi),
            (2, "__pyx_f_scatter", "MPI.so"),
            (9, "hand_out", "python"),
        ];
        check("MPI_Scatter", &python, (Some(1), false, 2));
        // A library has made the call, not one of the user's lines.
        let library = [
            (0, "PMPI_Allreduce", mpi),
            (1, "VecNorm", "libpetsc.so.3"),
            (2, "main", ""),
        ];
        check("MPI_Allreduce", &library, (Some(0), false, 1));
        // The function of the Fortran binding is between, so the arguments are those of MPI's own function.
        let bound = [
            (0, "poll", "libc.so.6"),
            (1, "PMPI_Ssend", mpi),
            (2, "mpi_ssend__", fortran),
            (3, "exchange", ""),
        ];
        check("MPI_Ssend", &bound, (Some(1), true, 2));
        let profiled = [
            (0, "PMPI_Recv", mpi),
            (1, "MPI_Recv", "libprofile.so"),
            (2, "main", ""),
        ];
        check("MPI_Recv", &profiled, (Some(0), true, 1));
        // The function's frame is missing.
        let jumped = [(0, "futex_wait", "libc.so.6"), (1, "main", "")];
        check("sem_wait", &jumped, (Some(0), true, 1));
        // With the Fortran function alone all arguments are addresses.
        let alone = [(0, "mpi_recv_", fortran), (1, "MAIN__", "")];
        check("MPI_Recv", &alone, (None, true, 1));
    }
}
