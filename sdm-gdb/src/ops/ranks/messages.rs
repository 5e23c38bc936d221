//! The messages of a communicator in the memory of the process's MPI library: unexpected messages, and pending
//! receives.

use std::collections::BTreeSet;
use std::ops::Range;

use sdm_debug::Failure;
use sdm_debug::probe::{ArgumentRole, CallArgument};
use sdm_inspect::memory::Memory;
use sdm_inspect::mpi::{
    Communicator, Members, Message, Mpich, OpenMpi, PredefinedObjects, arrived_of_collectives,
};
use sdm_mpi::symbols::OPEN_MPI_COMMUNICATORS;
use sdm_mpi::{is_of_neighbors, mpi_name, needs_all, only_receives, sends_from_root, takes_parts};

use super::{Place, argument, of_process, symbol, text_of, with_mpich, with_text};

/// The MPI library of a process, with what its reader needs.
enum Library {
    /// Its predefined objects, and the address of its list of communicators; `None` if it is not known.
    OpenMpi(PredefinedObjects, Option<u64>),
    Mpich(Vec<Range<u64>>),
}

/// The messages of the communicator that a call names.
struct Messages {
    memory: Box<dyn Memory>,
    library: Library,
    communicator: Option<Communicator>,
    is_world: bool,
}

impl Messages {
    /// The messages of the communicator of a call with these arguments; `None` without a known MPI library.
    async fn of(
        place: &Place<'_>,
        communicator: Option<Communicator>,
        found: &[CallArgument],
    ) -> Result<Option<Self>, Failure> {
        let library = match of_process(place).await? {
            Some((memory, objects)) => {
                let list = symbol(place.gdb, place.thread.id, OPEN_MPI_COMMUNICATORS).await?;
                Some((memory, Library::OpenMpi(objects, list)))
            }
            None => with_mpich(place.gdb, place.thread)
                .await?
                .map(|(memory, variables)| (memory, Library::Mpich(variables))),
        };
        Ok(library.map(|(memory, library)| Self {
            memory,
            library,
            communicator,
            is_world: of(found, ArgumentRole::Communicator).is_some_and(CallArgument::is_world),
        }))
    }

    /// The pending receives of the communicator. `None` if they cannot be read.
    fn posted(&self) -> Option<Vec<Message>> {
        match &self.library {
            Library::OpenMpi(objects, _) => {
                let known = OpenMpi::learn(&*self.memory, *objects)?;
                let address = objects.address(self.communicator, self.is_world)?;
                let posted = known.posted(address)?.into_iter();
                Some(posted.map(|(_, message)| message).collect())
            }
            Library::Mpich(variables) => {
                let known = Mpich::learn(&*self.memory, variables)?;
                known.receives()?.posted(self.context(&known)?)
            }
        }
    }

    /// The pending receives of a collective operation, and the number of ranks of the job. `None` if they cannot be
    /// read.
    fn posted_of_collective(&self) -> Option<(Vec<Message>, usize)> {
        match &self.library {
            Library::OpenMpi(objects, _) => {
                let known = OpenMpi::learn(&*self.memory, *objects)?;
                let address = objects.address(self.communicator, self.is_world)?;
                let posted = known.posted(address)?.into_iter();
                let posted = posted.map(|(_, message)| message);
                // The tags of collective operations are negative.
                let posted = posted.filter(|message| message.tag < sdm_mpi::ANY_TAG_NUMBER);
                Some((posted.collect(), known.size()))
            }
            Library::Mpich(variables) => {
                let known = Mpich::learn(&*self.memory, variables)?;
                let posted = known
                    .receives()?
                    .posted_of_collectives(self.context(&known)?)?;
                Some((posted, known.size()))
            }
        }
    }

    /// The tags of the data of collective operations that has arrived and is not received. `None` if it cannot be read.
    fn arrived_of_collectives(&self) -> Option<BTreeSet<i32>> {
        let Library::OpenMpi(objects, _) = &self.library else {
            return None;
        };
        let known = OpenMpi::learn(&*self.memory, *objects)?;
        let address = objects.address(self.communicator, self.is_world)?;
        arrived_of_collectives(&known, address)
    }

    /// The tags of the messages from this rank that have arrived and are not received. `None` if they cannot be read.
    fn unexpected(&self, source: usize) -> Option<Vec<i32>> {
        match &self.library {
            Library::OpenMpi(objects, _) => {
                let known = OpenMpi::learn(&*self.memory, *objects)?;
                let address = objects.address(self.communicator, self.is_world)?;
                Some(known.unexpected(address, source))
            }
            Library::Mpich(variables) => {
                let known = Mpich::learn(&*self.memory, variables)?;
                let context = self.context(&known)?;
                Some(known.receives()?.unexpected(context, source))
            }
        }
    }

    /// The messages that have arrived in any communicator and are not received, and the call's communicator. `None` if they
    /// cannot be read.
    fn arrived(&self) -> Option<(Vec<Message>, u64)> {
        match &self.library {
            Library::OpenMpi(objects, list) => {
                let known = OpenMpi::learn(&*self.memory, *objects)?;
                let own = objects.address(self.communicator, self.is_world)?;
                let all = list.map_or_else(Vec::new, |list| known.communicators(list));
                let others = all.into_iter().filter(|one| *one != own);
                let all = std::iter::once(own).chain(others);
                let messages = all.flat_map(|one| known.arrived(one));
                Some((messages.collect(), own))
            }
            Library::Mpich(variables) => {
                let known = Mpich::learn(&*self.memory, variables)?;
                let own = u64::try_from(self.context(&known)?).ok()?;
                Some((known.receives()?.arrived(), own))
            }
        }
    }

    /// The rank in the job of a rank in the call's communicator; `None` if it cannot be read.
    fn rank_in_job(&self, rank: usize) -> Option<u32> {
        let members = match (&self.library, self.communicator) {
            _ if self.is_world => return u32::try_from(rank).ok(),
            (Library::OpenMpi(objects, _), Some(Communicator::At(address))) => {
                OpenMpi::learn(&*self.memory, *objects)?.members(address)?
            }
            (Library::Mpich(variables), Some(Communicator::Handle(handle))) => {
                Mpich::learn(&*self.memory, variables)?.members(handle)?
            }
            _ => return None,
        };
        match members {
            Members::Of(ranks) => ranks.get(rank).copied(),
            Members::Between(..) | Members::WithOtherJobs => None,
        }
    }

    /// An unexpected message that shows why a receive waits, as an argument: one with another tag, if the receive takes
    /// messages of any rank, or one in another communicator. `None` if there is none.
    fn other(&self, (source, wanted): (Option<usize>, Option<i64>)) -> Option<CallArgument> {
        let peer = match source {
            Some(source) => Some(self.rank_in_job(source)?),
            None => None,
        };
        let (arrived, own) = self.arrived()?;
        let fits = |message: &&Message| wanted.is_none_or(|tag| tag == i64::from(message.tag));
        let is_own = |message: &&Message| message.within.0 == own;
        let said = |expression: &str, message: &Message| {
            let text = format!("{}{}{}", message.tag, sdm_mpi::FROM_RANK, message.peer);
            with_text(ArgumentRole::Tag, expression, text)
        };
        let its = || {
            arrived
                .iter()
                .filter(|one| peer.is_none_or(|peer| one.peer == peer))
        };
        if its().any(|one| is_own(&one) && fits(&one)) {
            return None;
        }
        let early = its().find(|one| is_own(one) && peer.is_none());
        let early = early.map(|one| said(sdm_mpi::UNEXPECTED, one));
        // Of a receive that takes any message, none of another communicator tells anything.
        let is_told = peer.is_some() || wanted.is_some();
        let mut elsewhere = its().filter(|one| is_told && !is_own(one) && fits(one));
        early.or_else(|| Some(said(sdm_mpi::ELSEWHERE, elsewhere.next()?)))
    }

    /// The context id of a communicator of MPICH; `None` if it is not known.
    fn context(&self, known: &Mpich<'_>) -> Option<i64> {
        match self.communicator {
            Some(Communicator::Handle(handle)) => known.context(handle),
            _ => self.is_world.then_some(0),
        }
    }
}

/// The state of a call's receive, as arguments. They tell whether the receive is pending, if the call also sends, and the
/// tag of a message that has arrived in place of the expected one. `found` has the call's arguments, with ranks of its
/// communicator.
pub(in crate::ops) async fn state_of_receive(
    place: &Place<'_>,
    communicator: Option<Communicator>,
    found: &[CallArgument],
) -> Result<Vec<CallArgument>, Failure> {
    use ArgumentRole as R;
    let source = of(found, R::Source).filter(|source| source.number.is_some());
    let source = source.or(of(found, R::Source).filter(|it| it.expression == sdm_mpi::ANY_SOURCE));
    let wanted = of(found, R::ReceiveTag).or(of(found, R::Tag));
    let wanted = wanted.filter(|tag| tag.number.is_some() || tag.expression == sdm_mpi::ANY_TAG);
    let Some((source, wanted)) = source.zip(wanted) else {
        return Ok(Vec::new());
    };
    let source = source.number.and_then(|rank| usize::try_from(rank).ok());
    let wanted = wanted.number.filter(|tag| *tag >= 0);
    let Some(messages) = Messages::of(place, communicator, found).await? else {
        return Ok(Vec::new());
    };
    // A call that also sends may have received its message, and wait until the other one is sent.
    let sends = of(found, R::Destination).is_some();
    let is_it = |message: &Message| {
        Some(message.within.1) == source && Some(i64::from(message.tag)) == wanted
    };
    let posted = messages.posted().filter(|_| sends);
    let is_posted = posted.map(|all| all.iter().any(is_it));
    let waits = !sends || is_posted == Some(true);
    let tags = source
        .filter(|_| waits)
        .and_then(|it| messages.unexpected(it));
    let tags = tags.unwrap_or_default();
    let tag = wanted.and_then(|wanted| other_tag(&tags, wanted));
    let other = || messages.other((source, wanted)).filter(|_| waits);
    let state = is_posted.and_then(|is_posted| match is_posted {
        true => Some(sdm_mpi::PENDING),
        // Source and tag of the receive must be known.
        false => source.and(wanted).map(|_| sdm_mpi::RECEIVED),
    });
    let state = state.map(|state| argument(R::Source, state, None));
    Ok(state
        .into_iter()
        .chain(tag.map(has_come).or_else(other))
        .collect())
}

/// Finds source and tag of `MPI_Recv`, as far as its arguments do not tell them. They are those of the only pending
/// receive of its communicator that can be its own.
pub(in crate::ops) async fn find_receive(
    place: &Place<'_>,
    (function, communicator): (&str, Option<Communicator>),
    found: &mut Vec<CallArgument>,
) -> Result<(), Failure> {
    use ArgumentRole as R;
    let is_read = |one: &CallArgument| one.number.is_some() || one.expression.starts_with("MPI_");
    let is_told = [R::Source, R::Tag].map(|role| of(found, role).is_some_and(is_read));
    if !only_receives(function) || is_told == [true; 2] {
        return Ok(());
    }
    let source = of(found, R::Source).and_then(|source| source.number);
    let wanted = of(found, R::Tag).and_then(|tag| tag.number);
    let wanted = wanted.filter(|tag| *tag >= 0);
    let messages = Messages::of(place, communicator, found).await?;
    let mut messages = messages.and_then(|it| it.posted()).unwrap_or_default();
    messages.retain(|message| {
        wanted.is_none_or(|wanted| wanted == i64::from(message.tag))
            && source.is_none_or(|source| Ok(source) == i64::try_from(message.within.1))
    });
    let (Some(message), true) = (messages.pop(), messages.is_empty()) else {
        return Ok(());
    };
    let source = i64::try_from(message.within.1).ok();
    let numbers = [(R::Source, source), (R::Tag, Some(message.tag.into()))];
    for (role, number) in numbers {
        match found.iter_mut().find(|one| one.role == role) {
            Some(one) if is_read(one) => {}
            Some(one) => one.number = number,
            None => found.push(argument(role, "its request", number)),
        }
    }
    Ok(())
}

/// The ranks from which a collective operation still waits for data, among neighbors or from a root, as an argument, and
/// the tags of that data. The first argument says so if there are none. Of an operation that needs all ranks: the tags of
/// the data of any operation that has arrived. Empty if they are unknown.
pub(in crate::ops) async fn awaited_ranks(
    place: &Place<'_>,
    (function, communicator): (&str, Option<Communicator>),
    found: &[CallArgument],
) -> Result<Vec<CallArgument>, Failure> {
    let its = match () {
        () if is_of_neighbors(function) => "its neighbors",
        () if sends_from_root(function) || takes_parts(function) => "not received yet",
        () if mpi_name(function).is_some_and(|name| needs_all(&name)) => {
            let messages = Messages::of(place, communicator, found).await?;
            let tags = messages.and_then(|it| it.arrived_of_collectives());
            let tags = tags.map(|tags| tags_as_argument(sdm_mpi::ARRIVED_TAGS, &tags));
            return Ok(tags.into_iter().collect());
        }
        () => return Ok(Vec::new()),
    };
    let messages = Messages::of(place, communicator, found).await?;
    let Some((posted, size)) = messages.and_then(|it| it.posted_of_collective()) else {
        return Ok(Vec::new());
    };
    let peers: Vec<u32> = posted.iter().map(|message| message.peer).collect();
    if peers.is_empty() {
        let nothing = argument(ArgumentRole::Target, sdm_mpi::NOTHING, None);
        return Ok(vec![nothing]);
    }
    let tags: BTreeSet<i32> = posted.iter().map(|message| message.tag).collect();
    let ranks = text_of(&peers, size).map(|text| {
        let ranks = with_text(ArgumentRole::Target, its, text);
        [ranks, tags_as_argument(sdm_mpi::AWAITED_TAGS, &tags)]
    });
    Ok(ranks.into_iter().flatten().collect())
}

/// An argument that stands for several tags.
fn tags_as_argument(expression: &str, tags: &BTreeSet<i32>) -> CallArgument {
    let words: Vec<String> = tags.iter().map(i32::to_string).collect();
    let text = match words.is_empty() {
        true => "none".to_owned(),
        false => words.join(" "),
    };
    with_text(ArgumentRole::Tag, expression, text)
}

/// The argument with this role; `None` if there is none.
fn of(found: &[CallArgument], role: ArgumentRole) -> Option<&CallArgument> {
    found.iter().find(|one| one.role == role)
}

/// The tag of the first message that has arrived. None if one of them has the wanted tag, because that message is about
/// to be received.
pub(super) fn other_tag(tags: &[i32], wanted: i64) -> Option<i32> {
    let is_due = tags.iter().any(|tag| i64::from(*tag) == wanted);
    tags.first().filter(|_| !is_due).copied()
}

/// The argument that stands for a message that has arrived with this tag.
pub(super) fn has_come(tag: i32) -> CallArgument {
    with_text(ArgumentRole::Tag, sdm_mpi::UNEXPECTED, tag.to_string())
}
