//! The requests that a call waits for: their peers and their operations.

use sdm_debug::Failure;
use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_idset::{IdSet, TaskId};
use sdm_inspect::mpi::{Communicator, Direction, Message, Mpich, OpenMpi, Receives};
use sdm_mpi::MPICH_NO_REQUEST;
use sdm_mpi::symbols::OPEN_MPI_NO_REQUEST;

use super::messages::{has_come, other_tag};
use super::{
    Place, TEXT_BYTES_MAX, argument, list_of, of_process, stack, symbol, with_mpich, with_text,
};
use crate::ops::operation::operations;

/// Maximum number of requests of one call that are examined.
const REQUESTS_MAX: u64 = 4096;

/// A request that a call waits for.
enum PendingRequest {
    Message(PendingMessage),
    /// A nonblocking collective operation, with its communicator; `None` for `MPI_COMM_WORLD`.
    Collective(Option<Communicator>),
}

/// A message that a call waits for, and the tag of a message that its sender has sent in its place; `None` if there is
/// none.
type PendingMessage = (Message, Option<i32>);

/// The message of a request of Open MPI; `None` for a request without a message.
fn of_open_mpi(known: &OpenMpi<'_>, request: u64) -> Option<PendingMessage> {
    let message = known.message(request)?;
    let (communicator, source) = message.within;
    Some(pending(message, || known.unexpected(communicator, source)))
}

/// The message of a request of MPICH; `None` for a request without a message.
fn of_mpich(known: &Receives<'_>, request: u32) -> Option<PendingMessage> {
    let message = known.message(request)?;
    let (context, source) = message.within;
    let context = i64::try_from(context).ok()?;
    Some(pending(message, || known.unexpected(context, source)))
}

/// A message that a call waits for; `unexpected` has the tags of the messages that have arrived from its peer.
fn pending(message: Message, unexpected: impl FnOnce() -> Vec<i32>) -> PendingMessage {
    let receives = message.direction == Some(Direction::Received) && message.tag >= 0;
    let other = receives.then(|| other_tag(&unexpected(), message.tag.into()));
    (message, other.flatten())
}

/// Of several requests that a call waits for, the first in whose place another message has arrived. Without one, the
/// first of a collective operation, if `needs_all` says that all ranks are needed there. Otherwise the first request;
/// `None` if there is no request.
fn most_telling(
    pending: impl Iterator<Item = PendingRequest>,
    needs_all: bool,
) -> Option<PendingRequest> {
    let rank = |one: &PendingRequest| match one {
        PendingRequest::Message((_, Some(_))) => 0,
        PendingRequest::Collective(_) if needs_all => 1,
        _ => 2,
    };
    pending.min_by_key(rank)
}

/// The peer or collective operation of a request that a call certainly waits for, as arguments. The second value is the
/// communicator of a non-blocking collective operation. A call that waits for all of several requests needs each one,
/// so any pending one will do.
pub(in crate::ops) async fn requests(
    place: &Place<'_>,
    (list, count): (Option<&str>, Option<i64>),
    at: usize,
) -> Result<(Vec<CallArgument>, Option<Communicator>), Failure> {
    let count = count.map_or(Some(1), |count| u64::try_from(count).ok());
    let count = count.unwrap_or_default().min(REQUESTS_MAX);
    let started = operations(place, list);
    let needs_all = matches!(&started[..], [one] if is_of_all(&one.expression));
    let Some(list) = list_of(place, list, at).await? else {
        return Ok((Vec::new(), None));
    };
    let pending = if let Some((memory, objects)) = of_process(place).await? {
        let stack = stack(place).await?;
        OpenMpi::learn(&*memory, objects).and_then(|known| {
            let pending = (0..count).filter_map(|index| {
                let mut word = [0; 8];
                memory.read(list.wrapping_add(8 * index), &mut word)?;
                let request = u64::from_ne_bytes(word);
                // If there is only one request, the call waits for it.
                let waits = count == 1 || known.is_waited_for(request, stack.clone());
                let message = of_open_mpi(&known, request).map(PendingRequest::Message);
                let pending = message.or_else(|| {
                    let communicator = known.collective(request)?;
                    let other = Some(communicator).filter(|it| *it != objects.world);
                    Some(PendingRequest::Collective(other.map(Communicator::At)))
                });
                pending.filter(|_| waits)
            });
            most_telling(pending, needs_all)
        })
    } else if let Some((memory, variables)) = with_mpich(place.gdb, place.thread).await? {
        let known = Mpich::learn(&*memory, &variables);
        let receives = known.as_ref().and_then(Mpich::receives);
        receives.and_then(|known| {
            let pending = (0..count).filter_map(|index| {
                let mut handle = [0; 4];
                memory.read(list.wrapping_add(4 * index), &mut handle)?;
                let request = u32::from_ne_bytes(handle);
                let message = of_mpich(&known, request).map(PendingRequest::Message);
                message.or_else(|| {
                    let handle = known.collective(request)?;
                    let other = Some(handle).filter(|it| Mpich::is_later_communicator(*it));
                    Some(PendingRequest::Collective(other.map(Communicator::Handle)))
                })
            });
            most_telling(pending, needs_all)
        })
    } else {
        return Ok((Vec::new(), None));
    };
    Ok(match pending {
        Some(PendingRequest::Message(message)) => (of_message(message), None),
        Some(PendingRequest::Collective(None)) => (vec![all_ranks()], None),
        Some(PendingRequest::Collective(communicator)) => {
            let its = argument(ArgumentRole::Communicator, "its communicator", None);
            (vec![its], communicator)
        }
        None => (Vec::new(), None),
    })
}

/// The peers of several requests of which a call waits for any one, as arguments. If a single request is left, its peer
/// and tag. Empty unless the peer of each is known.
pub(in crate::ops) async fn alternatives(
    place: &Place<'_>,
    (list, count): (Option<&str>, Option<i64>),
    at: usize,
) -> Result<Vec<CallArgument>, Failure> {
    let count = count.and_then(|count| u64::try_from(count).ok());
    let count = count.filter(|count| (1..=REQUESTS_MAX).contains(count));
    let list = list_of(place, list, at).await?;
    let Some((list, count)) = list.zip(count) else {
        return Ok(Vec::new());
    };
    let messages: Option<Vec<PendingMessage>> =
        if let Some((memory, objects)) = of_process(place).await? {
            let none = symbol(place.gdb, place.thread.id, OPEN_MPI_NO_REQUEST).await?;
            OpenMpi::learn(&*memory, objects).and_then(|known| {
                let request = |index| {
                    let mut word = [0; 8];
                    memory.read(list.wrapping_add(8 * index), &mut word)?;
                    Some(u64::from_ne_bytes(word)).filter(|it| Some(*it) != none)
                };
                let requests = (0..count).filter_map(request);
                requests
                    .map(|request| of_open_mpi(&known, request))
                    .collect()
            })
        } else if let Some((memory, variables)) = with_mpich(place.gdb, place.thread).await? {
            let known = Mpich::learn(&*memory, &variables);
            let receives = known.as_ref().and_then(Mpich::receives);
            receives.and_then(|known| {
                let request = |index| {
                    let mut handle = [0; 4];
                    memory.read(list.wrapping_add(4 * index), &mut handle)?;
                    Some(u32::from_ne_bytes(handle)).filter(|it| *it != MPICH_NO_REQUEST)
                };
                let requests = (0..count).filter_map(request);
                requests.map(|request| of_mpich(&known, request)).collect()
            })
        } else {
            None
        };
    let messages = messages.unwrap_or_default();
    match messages[..] {
        [] => return Ok(Vec::new()),
        // The call waits for the only one that is left.
        [message] => return Ok(of_message(message)),
        _ => {}
    }
    let peers = messages.iter().map(|(message, _)| TaskId(message.peer));
    let text = peers.collect::<IdSet>().to_string();
    if text.len() > TEXT_BYTES_MAX {
        return Ok(Vec::new());
    }
    let mut each = vec![with_text(ArgumentRole::Target, "one of its requests", text)];
    // In place of each message another one has arrived.
    let come = messages.iter().map(|(message, other)| {
        let text = format!("{}{}{}", (*other)?, sdm_mpi::FROM_RANK, message.peer);
        Some(with_text(ArgumentRole::Tag, sdm_mpi::UNEXPECTED, text))
    });
    let come: Option<Vec<CallArgument>> = come.collect();
    each.extend(come.and_then(|come| come.into_iter().next()));
    each.push(all_ranks());
    Ok(each)
}

/// True for a function that starts an operation which no rank leaves before all have entered it.
fn is_of_all(function: &str) -> bool {
    sdm_mpi::started_collective(function).is_some_and(|name| sdm_mpi::needs_all(&name))
}

/// The peer and the tag of a message, as arguments. The peer is a rank of the job.
fn of_message((message, other): PendingMessage) -> Vec<CallArgument> {
    let its = "its request";
    let role = match message.direction {
        Some(Direction::Received) => ArgumentRole::Source,
        Some(Direction::Sent) => ArgumentRole::Destination,
        None => ArgumentRole::Target,
    };
    let tag = match message.tag {
        sdm_mpi::ANY_TAG_NUMBER => argument(ArgumentRole::Tag, sdm_mpi::ANY_TAG, None),
        tag => argument(ArgumentRole::Tag, its, Some(i64::from(tag))),
    };
    let mut arguments = vec![argument(role, its, Some(i64::from(message.peer))), tag];
    arguments.extend(other.map(has_come));
    arguments.push(all_ranks());
    arguments
}

fn all_ranks() -> CallArgument {
    argument(ArgumentRole::Communicator, sdm_mpi::COMM_WORLD, None)
}
