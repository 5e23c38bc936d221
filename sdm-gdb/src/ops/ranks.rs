//! The ranks of the job that a call waits for: in a communicator that is a part of the job, and through requests.

pub(super) mod files;
pub(super) mod messages;
pub(super) mod requests;

use std::ops::Range;

use sdm_debug::calls::is_harmless;
use sdm_debug::probe::{ArgumentRole, CallArgument, Known, WindowLock};
use sdm_debug::reply::Value;
use sdm_debug::{Failure, FailureCode};
use sdm_idset::{IdSet, TaskId};
use sdm_inspect::memory::Memory;
use sdm_inspect::mpi::{Communicator, Members, Mpich, OpenMpi, PredefinedObjects};
use sdm_mpi::symbols;

use super::call_registers::CallRegisters;
use super::evaluate::unchecked;
use super::frame_states::{STACK_POINTER, read_registers};
use super::frames::GdbFrame;
use super::threads::ReadThread;
use crate::gdb::Gdb;
use crate::text::value;

/// Maximum number of different texts of ranks in a job; see [`text_of`]. A communicator with too few ranks for this
/// bound has no text.
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

/// The address in `0x55d0 <ompi_mpi_comm_world>` or `(MPI_Comm) 0x55d0`; `None` without an address.
fn pointer(value: &Value) -> Option<u64> {
    let mut words = value.text.split(' ');
    let digits = words.find_map(|word| word.strip_prefix("0x"))?;
    u64::from_str_radix(digits, 16).ok()
}

/// The communicator, the window or the group that a call names.
#[derive(Clone, Copy)]
pub(super) enum Named {
    Communicator(Communicator),
    Window(Communicator),
    Group(Communicator),
}

impl Named {
    /// The object in a value: MPICH's handle of this kind, recognised by its kind bits, or Open MPI's address. `None`
    /// for another value.
    fn of(
        value: &Value,
        is_handle: fn(u32) -> bool,
        named: fn(Communicator) -> Self,
    ) -> Option<Self> {
        let number = value.text.parse::<i32>().map(i32::cast_unsigned).ok();
        let address = pointer(value);
        let handle = number.or_else(|| u32::try_from(address?).ok());
        let handle = handle.filter(|handle| is_handle(*handle));
        let by = handle.map(Communicator::Handle);
        by.or(address.map(Communicator::At)).map(named)
    }

    /// The communicator in a value, other than MPICH's `MPI_COMM_WORLD`; `None` for another value.
    pub(super) fn communicator(value: &Value) -> Option<Communicator> {
        match Self::of(value, Mpich::is_of_some, Self::Communicator)? {
            Self::Communicator(by) | Self::Window(by) | Self::Group(by) => Some(by),
        }
    }

    /// The window in a value; `None` for another value.
    pub(super) fn window(value: &Value) -> Option<Self> {
        Self::of(value, Mpich::is_window, Self::Window)
    }

    /// The group in a value; `None` for another value.
    pub(super) fn group(value: &Value) -> Option<Self> {
        Self::of(value, Mpich::is_group, Self::Group)
    }

    fn by(self) -> Communicator {
        match self {
            Self::Communicator(by) | Self::Window(by) | Self::Group(by) => by,
        }
    }
}

/// A communicator, window or group, with the facts that were read from an MPI library.
#[derive(Default)]
struct ObjectFacts {
    /// The context id, which is equal at all ranks of the communicator; `None` for a group, or if unknown.
    context: Option<i64>,
    members: Option<Members>,
    /// Number of ranks in the job.
    size: usize,
}

impl ObjectFacts {
    /// Reads an object from the memory of Open MPI; `None` if the library's variables cannot be read.
    async fn by_open_mpi(
        place: &Place<'_>,
        named: Named,
        address: u64,
    ) -> Result<Option<Self>, Failure> {
        let process = of_process(place).await?;
        Ok(process.as_ref().and_then(|(memory, objects)| {
            let known = OpenMpi::learn(&**memory, *objects)?;
            let (context, members) = match named {
                Named::Window(_) => known.window(address).unzip(),
                Named::Communicator(_) => (known.context(address), known.members(address)),
                Named::Group(_) => (None, known.ranks_of_group(address).map(Members::Of)),
            };
            Some(Self {
                context,
                members,
                size: known.size(),
            })
        }))
    }

    /// Reads an object from the memory of MPICH; `None` if the library's variables cannot be read.
    async fn by_mpich(
        place: &Place<'_>,
        named: Named,
        handle: u32,
    ) -> Result<Option<Self>, Failure> {
        let process = with_mpich(place.gdb, place.thread).await?;
        Ok(process.as_ref().and_then(|(memory, variables)| {
            let known = Mpich::learn(&**memory, variables)?;
            let (context, members) = match named {
                Named::Window(_) => known.window(handle).unzip(),
                Named::Communicator(_) => (known.context(handle), known.members(handle)),
                Named::Group(_) => (None, known.group(handle)),
            };
            Some(Self {
                context,
                members,
                size: known.size(),
            })
        }))
    }
}

/// Replaces the ranks that a call names in this communicator, window or group by ranks of the job. Adds the members of
/// the object and its context id. If it has processes of other jobs, only that fact and the context id are added.
pub(super) async fn translate(
    place: &Place<'_>,
    named: Named,
    arguments: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    use ArgumentRole as R;
    let is_window = matches!(named, Named::Window(_));
    let known = match named.by() {
        Communicator::At(address) => ObjectFacts::by_open_mpi(place, named, address).await?,
        Communicator::Handle(handle) => ObjectFacts::by_mpich(place, named, handle).await?,
    };
    let known = known.unwrap_or_default();
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
    let Some(text) = text_of(&all, known.size) else {
        return Ok(());
    };
    for argument in arguments {
        match argument.role {
            R::Target if !is_window => {}
            R::Source | R::Destination | R::Root | R::Target => {
                let rank = argument.number.and_then(|it| usize::try_from(it).ok());
                let rank = rank.and_then(|rank| named.get(rank));
                argument.number = rank.map(|rank| i64::from(*rank)).or(argument.number);
            }
            R::Communicator | R::Window if (argument.role == R::Window) == is_window => {
                let text = text.clone();
                argument.value = Some(Value { text, cut: None });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Translates the remote leader of `MPI_Intercomm_create` from a rank of the communicator `peers` to a rank of the job.
/// A leader whose rank in the job is unknown is dropped.
pub(super) async fn remote_leader(
    place: &Place<'_>,
    peers: Option<(String, Option<Value>, Known)>,
    found: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    use ArgumentRole as R;
    let Some(at) = found.iter().position(|one| one.role == R::Target) else {
        return Ok(());
    };
    let (name, value) = peers.map_or_else(Default::default, |(name, value, _)| (name, value));
    let named = value.as_ref().and_then(Named::communicator);
    let peers = CallArgument {
        value,
        ..argument(R::Communicator, &name, None)
    };
    if peers.is_world() {
        return Ok(());
    }
    let leader = CallArgument {
        role: R::Destination,
        ..found.remove(at)
    };
    let mut both = vec![leader, argument(R::Communicator, &name, None)];
    if let Some(named) = named {
        translate(place, Named::Communicator(named), &mut both).await?;
    }
    let is_told = both.iter().any(CallArgument::is_known_communicator);
    let leader = both.into_iter().find(|one| one.role == R::Destination);
    found.extend(leader.filter(|_| is_told).map(|leader| CallArgument {
        role: R::Target,
        ..leader
    }));
    Ok(())
}

/// Text of the ranks that an object of the MPI library names. None if it is empty or too long, or if a job of `size`
/// ranks can have too many different texts.
pub(super) fn text_of(ranks: &[u32], size: usize) -> Option<String> {
    if ranks.is_empty() || ranks.len() * COMMUNICATORS_MAX < size {
        return None;
    }
    let ranks: IdSet = ranks.iter().copied().map(TaskId).collect();
    Some(ranks.to_string()).filter(|text| text.len() <= TEXT_BYTES_MAX)
}

/// An argument whose value is a text.
pub(super) fn with_text(role: ArgumentRole, expression: &str, text: String) -> CallArgument {
    CallArgument {
        value: Some(Value { text, cut: None }),
        ..argument(role, expression, None)
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

pub(super) fn argument(role: ArgumentRole, expression: &str, number: Option<i64>) -> CallArgument {
    CallArgument {
        role,
        expression: expression.to_owned(),
        value: None,
        number,
        known: Known::Source,
    }
}

/// The memory of a process with Open MPI, and the addresses of its predefined objects; `None` without Open MPI.
async fn of_process(
    place: &Place<'_>,
) -> Result<Option<(Box<dyn Memory>, PredefinedObjects)>, Failure> {
    let Some((_, memory)) = memory(place.gdb) else {
        return Ok(None);
    };
    let objects = objects(place.gdb, place.thread.id).await?;
    Ok(objects.map(|objects| (memory, objects)))
}

async fn objects(gdb: &Gdb, thread: u32) -> Result<Option<PredefinedObjects>, Failure> {
    let Some(world) = symbol(gdb, thread, symbols::OPEN_MPI_WORLD).await? else {
        return Ok(None);
    };
    let Some(alone) = symbol(gdb, thread, symbols::OPEN_MPI_SELF).await? else {
        return Ok(None);
    };
    let empty = symbol(gdb, thread, symbols::OPEN_MPI_EMPTY_GROUP).await?;
    Ok(Some(PredefinedObjects {
        world,
        alone,
        empty,
    }))
}

/// The rank of a process in `MPI_COMM_WORLD`, and the size of that communicator. `None` before `MPI_Init`, or if they
/// cannot be read.
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

/// The locks on windows that a process holds, and its open epochs between groups of ranks, as arguments of its call.
pub(super) async fn window_locks(
    gdb: &Gdb,
    thread: u32,
) -> Result<(Vec<WindowLock>, Vec<CallArgument>), Failure> {
    let nothing = (Vec::new(), Vec::new());
    let Some((_, memory)) = memory(gdb) else {
        return Ok(nothing);
    };
    let (locks, epochs, size) =
        if let Some(windows) = symbol(gdb, thread, symbols::OPEN_MPI_WINDOWS).await? {
            let objects = objects(gdb, thread).await?;
            let known = objects.and_then(|objects| OpenMpi::learn(&*memory, objects));
            let Some(known) = known else {
                return Ok(nothing);
            };
            let epochs = known.group_epochs(windows);
            (known.window_locks(windows), epochs, known.size())
        } else {
            let variables = variables_of_mpich(gdb, thread).await?;
            let known = variables.and_then(|variables| Mpich::learn(&*memory, &variables));
            let Some(known) = known else {
                return Ok(nothing);
            };
            (known.window_locks(), known.group_epochs(), known.size())
        };
    let epochs = epochs.into_iter().filter_map(|epoch| {
        let text = text_of(&epoch.partners, size)?;
        let window = epoch.window.to_string();
        Some(with_text(epoch.role, &window, text))
    });
    Ok((locks, epochs.collect()))
}

/// The memory of a process with MPICH, and the address ranges of its variables; `None` without MPICH.
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

/// Address of the first of the requests that a call waits for; `None` if it is not known.
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

/// The stack memory of an MPI call: from the stack pointer of frame 0 to that of the call's caller. An end is 0 if its
/// register cannot be read.
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
