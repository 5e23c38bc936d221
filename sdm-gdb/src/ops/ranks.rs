//! The ranks of the job that a call waits for: in a communicator that is a part of the job, and through requests.

pub(super) mod requests;

use std::ops::Range;

use sdm_debug::calls::is_harmless;
use sdm_debug::probe::{ArgumentRole, CallArgument, Known, WindowLock};
use sdm_debug::reply::Value;
use sdm_debug::{Failure, FailureCode};
use sdm_idset::{IdSet, TaskId};
use sdm_inspect::memory::Memory;
use sdm_inspect::mpi::{Communicator, Members, Message, Mpich, OpenMpi, OwnObjects};
use sdm_mpi::symbols;

use super::call_registers::CallRegisters;
use super::evaluate::unchecked;
use super::frame_states::{STACK_POINTER, read_registers};
use super::frames::GdbFrame;
use super::threads::ReadThread;
use crate::gdb::Gdb;
use crate::text::value;

/// Most communicators of the process that are searched by ranks.
const COMMUNICATORS_MAX: usize = 256;
/// Maximum length of the text of a communicator's ranks, in bytes.
const TEXT_BYTES_MAX: usize = 1024;

/// The frames in which a call's arguments can be read.
pub(super) struct Place<'a> {
    pub(super) gdb: &'a Gdb,
    pub(super) thread: &'a ReadThread,
    /// The user's frame, by which the source is read.
    pub(super) user: &'a GdbFrame,
    /// Level of the function's caller.
    pub(super) level: u32,
    pub(super) kept: Option<&'a CallRegisters>,
}

/// The address in `0x55d0 <ompi_mpi_comm_world>` or `(MPI_Comm) 0x55d0`.
pub(super) fn pointer(value: &Value) -> Option<u64> {
    let mut words = value.text.split(' ');
    let digits = words.find_map(|word| word.strip_prefix("0x"))?;
    u64::from_str_radix(digits, 16).ok()
}

/// The Open MPI variable with all windows.
const WINDOWS_OF_OPEN_MPI: &str = "ompi_mpi_windows";

/// The communicator or the window that a call names.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Communicator(Communicator),
    Window(Communicator),
}

/// A communicator or window, with the facts that were read from an MPI library.
#[derive(Default)]
struct Told {
    /// The context id: equal at all ranks of the communicator.
    context: Option<i64>,
    members: Option<Members>,
    /// Number of ranks in the job.
    size: usize,
}

impl Told {
    /// Reads a communicator or window from the memory of Open MPI.
    async fn by_open_mpi(
        place: &Place<'_>,
        (address, is_window): (u64, bool),
    ) -> Result<Self, Failure> {
        let process = of_process(place).await?;
        let known = process.as_ref().and_then(|(memory, objects)| {
            let known = OpenMpi::learn(&**memory, *objects)?;
            let (context, members) = match is_window {
                true => known.window(address).unzip(),
                false => (known.context(address), known.members(address)),
            };
            Some(Self {
                context,
                members,
                size: known.size(),
            })
        });
        Ok(known.unwrap_or_default())
    }

    /// Reads a communicator or window from the memory of MPICH.
    async fn by_mpich(
        place: &Place<'_>,
        (handle, is_window): (u32, bool),
    ) -> Result<Self, Failure> {
        let process = with_mpich(place.gdb, place.thread).await?;
        let known = process.as_ref().and_then(|(memory, variables)| {
            let known = Mpich::learn(&**memory, variables)?;
            let (context, members) = match is_window {
                true => known.window(handle).unzip(),
                false => (known.context(handle), known.members(handle)),
            };
            Some(Self {
                context,
                members,
                size: known.size(),
            })
        });
        Ok(known.unwrap_or_default())
    }
}

/// Replaces ranks of a sub-communicator by ranks of the job, and adds its members and its context id.
pub(super) async fn translate(
    place: &Place<'_>,
    named: Named,
    arguments: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    use ArgumentRole as R;
    let (by, is_window) = match named {
        Named::Communicator(by) => (by, false),
        Named::Window(by) => (by, true),
    };
    let known = match by {
        Communicator::At(address) => Told::by_open_mpi(place, (address, is_window)).await?,
        Communicator::Handle(handle) => Told::by_mpich(place, (handle, is_window)).await?,
    };
    if let Some(context) = known.context {
        // The handle can differ between ranks.
        arguments.retain(|one| one.role != R::Handle);
        arguments.push(CallArgument::hidden(R::Context, context));
    }
    // The ranks that a call can name, and all members.
    let (named, all) = match known.members {
        Some(Members::Of(ranks)) => (ranks.clone(), ranks),
        Some(Members::Between(ours, theirs)) => (theirs.clone(), [ours, theirs].concat()),
        Some(Members::WithOtherJobs) => {
            arguments.push(CallArgument::hidden(R::OtherJobs, 1));
            return Ok(());
        }
        None => return Ok(()),
    };
    if all.len() * COMMUNICATORS_MAX < known.size {
        return Ok(());
    }
    let all: IdSet = all.into_iter().map(TaskId).collect();
    let text = all.to_string();
    if text.len() > TEXT_BYTES_MAX {
        return Ok(());
    }
    for argument in arguments {
        match argument.role {
            R::Source | R::Destination | R::Root | R::Target => {
                let rank = argument.number.and_then(|it| usize::try_from(it).ok());
                let rank = rank.and_then(|rank| named.get(rank));
                argument.number = rank.map(|rank| i64::from(*rank)).or(argument.number);
            }
            R::Communicator | R::Window => {
                let text = text.clone();
                argument.value = Some(Value { text, cut: None });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The tag of a message that has arrived from the rank that a receive waits for, with another tag than the receive's.
/// `found` has the call's arguments, with ranks of its communicator.
pub(super) async fn unexpected(
    place: &Place<'_>,
    communicator: Option<Communicator>,
    found: &[CallArgument],
) -> Result<Option<CallArgument>, Failure> {
    use ArgumentRole as R;
    let of = |role| found.iter().find(|one| one.role == role);
    let number = |argument: Option<&CallArgument>| argument?.number;
    let source = number(of(R::Source)).and_then(|rank| usize::try_from(rank).ok());
    let wanted = number(of(R::ReceiveTag).or(of(R::Tag)));
    let Some((source, wanted)) = source.zip(wanted.filter(|tag| *tag >= 0)) else {
        return Ok(None);
    };
    let is_world = of(R::Communicator).is_some_and(CallArgument::is_world);
    // A call that also sends may have received its message, and wait until the other one is sent.
    let sends = of(R::Destination).is_some();
    let is_it = |message: &Message| message.within.1 == source && i64::from(message.tag) == wanted;
    let tags = if let Some((memory, objects)) = of_process(place).await? {
        let known = OpenMpi::learn(&*memory, objects);
        let known = known.zip(objects.address(communicator, is_world));
        let known = known.filter(|(known, address)| {
            !sends || known.posted(*address).iter().any(|(_, it)| is_it(it))
        });
        known.map(|(known, address)| known.unexpected(address, source))
    } else if let Some((memory, variables)) = with_mpich(place.gdb, place.thread).await? {
        let known = Mpich::learn(&*memory, &variables);
        known.as_ref().and_then(|known| {
            let context = context_of(known, communicator, is_world)?;
            let receives = known.receives()?;
            let waits = !sends || receives.posted(context).iter().any(is_it);
            waits.then(|| receives.unexpected(context, source))
        })
    } else {
        None
    };
    let tag = other_tag(&tags.unwrap_or_default(), wanted);
    Ok(tag.map(has_come))
}

/// The context id of a communicator of MPICH.
fn context_of(
    known: &Mpich<'_>,
    communicator: Option<Communicator>,
    is_world: bool,
) -> Option<i64> {
    match communicator {
        Some(Communicator::Handle(handle)) => known.context(handle),
        _ => is_world.then_some(0),
    }
}

/// The tag of the first of the messages that have come. None where one of them has the wanted tag, as that is about to be
/// received.
fn other_tag(tags: &[i32], wanted: i64) -> Option<i32> {
    let is_due = tags.iter().any(|tag| i64::from(*tag) == wanted);
    tags.first().filter(|_| !is_due).copied()
}

fn has_come(tag: i32) -> CallArgument {
    CallArgument {
        value: Some(Value {
            text: tag.to_string(),
            cut: None,
        }),
        ..argument(ArgumentRole::Tag, sdm_mpi::UNEXPECTED, None)
    }
}

/// Gives MPICH's negative numbers of a source the meaning of Open MPI's, in which -1 is any source and -2 no rank.
pub(super) async fn number_sources(
    place: &Place<'_>,
    found: &mut [CallArgument],
) -> Result<(), Failure> {
    let mut found = found
        .iter_mut()
        .filter(|it| it.role == ArgumentRole::Source);
    let source = found.find_map(|it| it.number.as_mut().filter(|number| **number < 0));
    if let Some(number) = source
        && objects(place.gdb, place.thread.id).await?.is_none()
    {
        *number = -3 - *number;
    }
    Ok(())
}

fn argument(role: ArgumentRole, expression: &str, number: Option<i64>) -> CallArgument {
    CallArgument {
        role,
        expression: expression.to_owned(),
        value: None,
        number,
        known: Known::Source,
    }
}

/// The memory of a process with Open MPI, and the addresses of its predefined objects.
async fn of_process(place: &Place<'_>) -> Result<Option<(Box<dyn Memory>, OwnObjects)>, Failure> {
    let Some((_, memory)) = memory(place.gdb) else {
        return Ok(None);
    };
    let objects = objects(place.gdb, place.thread.id).await?;
    Ok(objects.map(|objects| (memory, objects)))
}

async fn objects(gdb: &Gdb, thread: u32) -> Result<Option<OwnObjects>, Failure> {
    let Some(world) = symbol(gdb, thread, symbols::OPEN_MPI_WORLD).await? else {
        return Ok(None);
    };
    let Some(alone) = symbol(gdb, thread, symbols::OPEN_MPI_SELF).await? else {
        return Ok(None);
    };
    let empty = symbol(gdb, thread, symbols::OPEN_MPI_EMPTY_GROUP).await?;
    Ok(Some(OwnObjects {
        world,
        alone,
        empty,
    }))
}

/// The rank of a process in `MPI_COMM_WORLD`, and its size; `None` before `MPI_Init`, or if it cannot be read.
pub(super) async fn world(gdb: &Gdb, thread: u32) -> Result<Option<(u32, u32)>, Failure> {
    let Some((_, memory)) = memory(gdb) else {
        return Ok(None);
    };
    if let Some(objects) = objects(gdb, thread).await? {
        return Ok(OpenMpi::world(&*memory, objects));
    }
    let variables = variables_of_mpich(gdb, thread).await?;
    let known = variables.and_then(|variables| Mpich::world(&*memory, &variables));
    Ok(known)
}

/// The locks of windows that a process has.
pub(super) async fn window_locks(gdb: &Gdb, thread: u32) -> Result<Vec<WindowLock>, Failure> {
    let Some((_, memory)) = memory(gdb) else {
        return Ok(Vec::new());
    };
    if let Some(windows) = symbol(gdb, thread, WINDOWS_OF_OPEN_MPI).await? {
        let objects = objects(gdb, thread).await?;
        let known = objects.and_then(|objects| OpenMpi::learn(&*memory, objects));
        return Ok(known.map_or_else(Vec::new, |known| known.window_locks(windows)));
    }
    let variables = variables_of_mpich(gdb, thread).await?;
    let known = variables.and_then(|variables| Mpich::learn(&*memory, &variables));
    Ok(known.map_or_else(Vec::new, |known| known.window_locks()))
}

/// The memory of a process with MPICH, and the ranges of its variables.
pub(super) async fn with_mpich(
    gdb: &Gdb,
    thread: &ReadThread,
) -> Result<Option<(Box<dyn Memory>, Vec<Range<u64>>)>, Failure> {
    let Some((_, memory)) = memory(gdb) else {
        return Ok(None);
    };
    let variables = variables_of_mpich(gdb, thread.id).await?;
    Ok(variables.map(|variables| (memory, variables)))
}

async fn variables_of_mpich(gdb: &Gdb, thread: u32) -> Result<Option<Vec<Range<u64>>>, Failure> {
    let Some(pid) = gdb.get().pid() else {
        return Ok(None);
    };
    for name in symbols::MPICH_VERSIONS {
        if let Some(address) = symbol(gdb, thread, name).await? {
            return Ok(Some(gdb.host().variables(pid, address)));
        }
    }
    Ok(None)
}

pub(super) fn memory(gdb: &Gdb) -> Option<(i32, Box<dyn Memory>)> {
    let pid = gdb.get().pid()?;
    Some((pid, gdb.host().process_memory(pid)?))
}

/// Address of a symbol; `None` if there is none of this name.
pub(super) async fn symbol(gdb: &Gdb, thread: u32, name: &str) -> Result<Option<u64>, Failure> {
    let at = format!("--thread {thread} --frame 0");
    let line = format!("-data-evaluate-expression {at} \"(void *) &{name}\"");
    match gdb.mi(line).await {
        Ok(results) => Ok(results.text("value").map(value).as_ref().and_then(pointer)),
        Err(failure) if failure.code == FailureCode::Gdb => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Address of the first request.
async fn list_of(place: &Place<'_>, list: Option<&str>, at: usize) -> Result<Option<u64>, Failure> {
    let Place {
        gdb, thread, user, ..
    } = place;
    if let Some(list) = list.filter(|list| is_harmless(list)) {
        let first = format!("(void *) &({list})[0]");
        if let Some(value) = unchecked(gdb, thread, user, &first).await? {
            return Ok(pointer(&value));
        }
    }
    let Some(kept) = place.kept else {
        return Ok(None);
    };
    let copied = kept.argument(gdb, thread, (at, 8)).await?;
    Ok(copied.map(i64::cast_unsigned))
}

/// The range of the stack that belongs to the call.
async fn stack(place: &Place<'_>) -> Result<Range<u64>, Failure> {
    let Place { gdb, thread, .. } = place;
    let mut ends = [0; 2];
    for (end, level) in ends.iter_mut().zip([0, place.level]) {
        let pointer = read_registers(gdb, thread, level, &[STACK_POINTER]).await?;
        let number = pointer
            .first()
            .and_then(|text| text.trim().strip_prefix("0x"));
        *end = number
            .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            .unwrap_or_default();
    }
    Ok(ends[0]..ends[1])
}
