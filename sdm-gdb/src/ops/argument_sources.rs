//! The sources from which the arguments of a call are read: the program's source, debug information, and the places to
//! which the call has put them.

use sdm_debug::Failure;
use sdm_debug::calls::{fortran_argument, roles};
use sdm_debug::probe::{ArgumentRole, CallArgument, Known};
use sdm_debug::reply::{Value, Variable};
use sdm_inspect::mpi::Communicator;
use sdm_mpi::{
    COMM_SELF, COMM_WORLD, MPICH_SELF, MPICH_WORLD, is_of_file, is_of_group, is_of_two_groups,
};

use super::call_registers::{CallRegisters, kept};
use super::evaluate::{evaluate, is_known, number};
use super::frames::GdbFrame;
use super::ranks::Named;
use super::ranks::files::of_file;
use super::threads::ReadThread;
use crate::gdb::Gdb;

/// Position of the argument `peer_comm` of `MPI_Intercomm_create`: the remote leader is a rank of this communicator.
const PEER_COMMUNICATOR: usize = 2;

/// The objects of the MPI library that a call names.
#[derive(Default)]
pub(super) struct NamedObjects {
    pub(super) communicator: Option<Communicator>,
    /// The windows and groups that the call names.
    pub(super) others: Vec<Named>,
    /// The argument `peer_comm` of `MPI_Intercomm_create`, as read; `None` in other calls, or if it could not be read.
    pub(super) peers: Option<ReadArgument>,
}

/// An argument: its expression, its value, and the source of the value.
pub(super) type ReadArgument = (String, Option<Value>, Known);

/// The sources from which the arguments of a call can be read.
pub(super) struct ArgumentSources<'a> {
    pub(super) user: &'a GdbFrame,
    /// The argument expressions from the program's source line; `None` if they could not be read there.
    pub(super) in_source: Option<&'a [String]>,
    /// The arguments from the function's own debug information.
    pub(super) own: &'a [Variable],
    /// Index of the function's frame, as in [`CallFrames`]; `None` if there is none.
    pub(super) innermost: Option<usize>,
}

impl ArgumentSources<'_> {
    /// Reads the arguments of all roles into `found`.
    pub(super) async fn read_all(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
        function: &str,
        (found, copied): (&mut Vec<CallArgument>, &mut Option<Option<CallRegisters>>),
    ) -> Result<NamedObjects, Failure> {
        let mut objects = NamedObjects::default();
        for (place, role) in roles(function) {
            let read = self.read(gdb, thread, (*place, *role), copied).await?;
            let Some((expression, value, known)) = read else {
                continue;
            };
            if *role == ArgumentRole::Communicator && is_of_group(function) {
                objects.others.extend(value.as_ref().and_then(Named::group));
            } else if *role == ArgumentRole::Communicator {
                // `MPI_COMM_SELF` is not a variable in MPICH.
                let alone = (expression == COMM_SELF).then_some(Communicator::Handle(MPICH_SELF));
                let named = value.as_ref().and_then(Named::communicator);
                let named = match is_of_file(function) {
                    true => of_file(gdb, thread, (function, named)).await?,
                    false => named,
                };
                objects.communicator = named.or(alone);
                found.extend(objects.communicator.and_then(handle_of));
            }
            if *role == ArgumentRole::Window {
                objects
                    .others
                    .extend(value.as_ref().and_then(Named::window));
            }
            found.push(argument(*role, expression, value, known));
        }
        if is_of_two_groups(function) {
            let peers = (PEER_COMMUNICATOR, ArgumentRole::Communicator);
            objects.peers = self.read(gdb, thread, peers, copied).await?;
        }
        Ok(objects)
    }

    /// Reads the argument of a role: its expression, its value, and the source of the value; `None` if nothing is known
    /// of it. `copied` caches the search for the call's copies of its arguments.
    async fn read(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
        (place, role): (usize, ArgumentRole),
        copied: &mut Option<Option<CallRegisters>>,
    ) -> Result<Option<ReadArgument>, Failure> {
        let user = self.user;
        let is_fortran = user.is_fortran();
        let expression = self.in_source.and_then(|all| match is_fortran {
            true => fortran_argument(all, place, role),
            false => all.get(place).cloned(),
        });
        // Open MPI's handles for Fortran differ from its own.
        let is_handle = is_fortran && is_object(role);
        let in_source = (expression.as_ref(), role);
        let known = match is_handle {
            true => None,
            false => in_callers_frame(gdb, thread, user, in_source).await?,
        };
        let callee = self.own.get(place).filter(|one| is_known(&one.value));
        let callee = callee.map(|one| {
            let name = expression.as_ref().unwrap_or(&one.name);
            (name.clone(), one.value.clone(), Known::Callee)
        });
        let (mut name, mut value, mut known) = match (known.or(callee), &expression) {
            (Some((name, value, known)), _) => (name, Some(value), known),
            (None, Some(expression)) => (expression.clone(), None, Known::Source),
            (None, None) => (String::new(), None, Known::Kept),
        };
        let named = role == ArgumentRole::Communicator && name == COMM_WORLD;
        if value.is_none() && !named && role != ArgumentRole::File {
            if copied.is_none() {
                *copied = Some(kept(gdb, thread, self.innermost).await?);
            }
            if let Some(Some(kept)) = &*copied {
                value = from_call(gdb, thread, kept, (place, role)).await?;
            }
            if value.is_some() {
                known = Known::Kept;
            } else if is_handle {
                // MPICH's handles are the same in Fortran and C.
                let source = in_callers_frame(gdb, thread, user, in_source).await?;
                value = source.map(|(_, value, _)| value);
            }
            if value.is_none() && name.is_empty() {
                return Ok(None);
            }
        }
        if name.is_empty() {
            name = "?".to_owned();
        }
        Ok(Some((name, value, known)))
    }
}

/// True for arguments that name an object of the MPI library: numbers in MPICH, addresses in Open MPI.
fn is_object(role: ArgumentRole) -> bool {
    matches!(role, ArgumentRole::Communicator | ArgumentRole::Window)
}

/// MPICH's handle as an argument that is compared between tasks and not shown; used if nothing else is known. `None` in
/// Open MPI, which has addresses.
fn handle_of(communicator: Communicator) -> Option<CallArgument> {
    match communicator {
        Communicator::Handle(handle) => {
            Some(CallArgument::hidden(ArgumentRole::Handle, handle.into()))
        }
        Communicator::At(_) => None,
    }
}

/// Evaluates an argument by the source's expression, in the caller's frame; `None` if it has no value there.
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

/// Reads an argument from the place to which the call has put it; `None` if it is lost.
async fn from_call(
    gdb: &Gdb,
    thread: &ReadThread,
    kept: &CallRegisters,
    (place, role): (usize, ArgumentRole),
) -> Result<Option<Value>, Failure> {
    let is_handle = is_object(role);
    let number = match is_handle {
        // Of MPICH's handle, which has 4 bytes, a copy can have no more.
        true => match kept.argument(gdb, thread, (place, 8)).await? {
            Some(number) => Some(number),
            None => {
                let half = kept.argument(gdb, thread, (place, 4)).await?;
                half.map(|half| half & i64::from(u32::MAX))
            }
        },
        false => kept.argument(gdb, thread, (place, 4)).await?,
    };
    let Some(number) = number else {
        return Ok(None);
    };
    let text = |text: String| Value { text, cut: None };
    if !is_handle {
        return Ok(Some(text(number.to_string())));
    }
    // MPICH's handles are 32-bit numbers. Open MPI's are addresses, whose names gdb knows.
    let low = number & i64::from(u32::MAX);
    if low == i64::from(MPICH_WORLD) {
        return Ok(Some(text(low.to_string())));
    }
    let Some(innermost) = thread.frames.first() else {
        return Ok(None);
    };
    let named = format!("(void *) {number:#x}");
    evaluate(gdb, thread, innermost, &named).await
}

/// An argument in the form of a reply. The value of an MPI object is left out: it is an address or a handle, which
/// differs between ranks.
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
    if is_object(role) {
        let world = role == ArgumentRole::Communicator && argument.is_world();
        (argument.value, argument.number) = (None, None);
        if world {
            argument.expression = COMM_WORLD.to_owned();
        }
    }
    argument
}
