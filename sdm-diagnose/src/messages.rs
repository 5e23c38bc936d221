//! Matching of sends with receives: which messages should pass, and which do not match.

use std::collections::{BTreeMap, BTreeSet};

use sdm_debug::probe::{ArgumentRole as R, CallArgument};
use sdm_debug::rules::Probes;
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::{takes_requests, waits_for_several};

use super::operations::is_rank_of_the_job;
use super::verdict::{Verdict, circle_text, in_number, ranks};
use super::wait::WaitKind;
use super::wait_for::{Class, Needs, argument, known};
use super::{Cause, Step};

/// Maximum number of elements of a message that is delivered at once when both sides have called.
const SHORT_MAX: i64 = 4096;

/// Maximum number of pairs of sender and receiver that are printed; for messages with different tags, of pairs after
/// the first.
const PAIRS_SHOWN: usize = 4;

/// A send that a rank is in.
struct Sent {
    tag: Option<i64>,
    /// True if the receiver is known as a rank of the job.
    to_rank: bool,
    communicator: Option<Within>,
    /// True if the message may have been received already: its sender also receives in the same call, and may wait for
    /// that.
    may_be_old: bool,
    /// True if the message may be long, so that it may be in transit to a matching receive.
    may_be_long: bool,
}

/// A message that has arrived at ranks and that their call does not receive: its tag or its communicator is another one.
#[derive(Debug)]
pub(super) struct Stray {
    pub(super) from: TaskId,
    pub(super) to: IdSet,
    tag: i64,
    cause: Cause,
}

impl Stray {
    fn of_class(class: &Class<'_>) -> Vec<Self> {
        let arguments = class.known.iter().flat_map(|call| &call.arguments);
        let come = arguments.filter_map(|one| Self::of(&class.tasks, one));
        come.collect()
    }

    /// The unexpected message that an argument of a call of these ranks stands for. None for other arguments.
    fn of(to: &IdSet, argument: &CallArgument) -> Option<Self> {
        let cause = match argument.expression.as_str() {
            sdm_mpi::UNEXPECTED => Cause::Tag,
            sdm_mpi::ELSEWHERE => Cause::Communicator,
            _ => return None,
        };
        let text = &argument.value.as_ref()?.text;
        let (tag, from) = text.split_once(sdm_mpi::FROM_RANK)?;
        Some(Self {
            from: TaskId(from.parse().ok()?),
            to: to.clone(),
            tag: tag.parse().ok()?,
            cause,
        })
    }
}

/// The communicator of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// `MPI_COMM_WORLD`.
    World,
    /// A communicator with this context id, which is the same at all its ranks.
    Context(i64),
}

impl Within {
    fn of(probes: &Probes, class: &Class<'_>, task: TaskId) -> Option<Self> {
        // A request gives its peers as ranks of the job, without its communicator.
        if takes_requests(class.call) {
            return None;
        }
        let is_world = argument(class, R::Communicator).is_some_and(CallArgument::is_world);
        let context = known(probes, class, R::Context, task).map(Self::Context);
        is_world.then_some(Self::World).or(context)
    }
}

impl Needs {
    /// Matches sends with receives. A matching pair counts as live, because it is unknown why it does not
    /// complete.
    pub(super) fn match_messages(&mut self, probes: &Probes, classes: &[Class<'_>]) {
        let classes = classes.iter();
        let classes: Vec<_> = classes
            .filter(|class| class.kind == WaitKind::Message)
            .collect();
        let sends = sends(probes, &classes);
        self.strays(probes, &classes, &sends);
        let mut fit = BTreeMap::new();
        let ones = self.only_peers();
        for class in classes {
            let tag_role = match argument(class, R::ReceiveTag) {
                Some(_) => R::ReceiveTag,
                None => R::Tag,
            };
            for task in class.tasks.iter() {
                let from = known(probes, class, R::Source, task).map(u32::try_from);
                let Some(Ok(from)) = from else { continue };
                let is_known = names_rank(class, R::Source);
                let wanted = known(probes, class, tag_role, task);
                let other = come(class).zip(wanted);
                let other = other.filter(|(come, wanted)| *wanted >= 0 && come != wanted);
                // A sender that waits for the message of another rank may send the expected message later.
                let is_last =
                    || !self.messages.contains(TaskId(from)) || ones.contains(&(from, task.0));
                if let Some((come, wanted)) = other.filter(|_| is_known) {
                    let is_last = is_last();
                    let list = match is_last {
                        true => &mut self.mismatched,
                        false => &mut self.early,
                    };
                    list.push((from, task.0, come, wanted));
                    if is_last {
                        continue;
                    }
                }
                let Some(sent) = sends.get(&(from, task.0)) else {
                    continue;
                };
                let tags = sent.tag.zip(wanted);
                let other = tags.filter(|(sent, wanted)| *wanted >= 0 && sent != wanted);
                // With several requests, another one may match the sent message.
                let other = other.filter(|_| !waits_for_several(class.call));
                let both = [TaskId(from), task];
                // Nothing is proved by numbers that may be ranks of other communicators.
                if !is_known || !sent.to_rank {
                    if other.is_none() {
                        self.matched.extend(both);
                    }
                    continue;
                }
                let within = sent.communicator.zip(Within::of(probes, class, task));
                let is_apart = within.is_some_and(|(own, others)| own != others);
                if is_apart && !waits_for_several(class.call) {
                    self.apart.extend(both);
                    continue;
                }
                match other {
                    None if sent.may_be_long => self.matched.extend(both),
                    _ if sent.may_be_old => {
                        self.graph.by_request.extend(both);
                        if other.is_none() {
                            fit.insert(from, task.0);
                        }
                    }
                    Some((sent, wanted)) => self.mismatched.push((from, task.0, sent, wanted)),
                    None => self.matched.extend(both),
                }
            }
        }
        let both_ways = sends.iter().filter(|(_, sent)| sent.may_be_old);
        let both_ways = both_ways.map(|((from, _), _)| *from);
        self.matched.union_with(&all_fitting(both_ways, &fit));
        self.graph.live.union_with(&self.matched);
    }

    /// Notes the unexpected messages, and the ranks that receive from another rank than the only one that sends to them.
    ///
    /// A receiver that takes the messages of several ranks in turn looks the same. So the source must be written as a
    /// number in the call, or its turn must come after the sender's.
    fn strays(
        &mut self,
        probes: &Probes,
        classes: &[&Class<'_>],
        sends: &BTreeMap<(u32, u32), Sent>,
    ) {
        let come = classes.iter().flat_map(|class| Stray::of_class(class));
        self.come.extend(come);
        let simple = classes.iter().filter(|class| {
            let is_both_ways = argument(class, R::Destination).is_some();
            !is_both_ways && !waits_for_several(class.call) && names_rank(class, R::Source)
        });
        for class in simple {
            let source = argument(class, R::Source).map(|source| source.expression.as_str());
            let is_written = source.is_some_and(|source| source.parse::<u32>().is_ok());
            for task in class.tasks.iter() {
                let wanted = known(probes, class, R::Source, task).map(u32::try_from);
                let Some(Ok(wanted)) = wanted else { continue };
                let tag = known(probes, class, R::Tag, task);
                let within = Within::of(probes, class, task);
                let mut theirs = sends.iter().filter(|((_, to), _)| *to == task.0);
                let (Some(((from, _), sent)), None) = (theirs.next(), theirs.next()) else {
                    continue;
                };
                let is_tag = sent
                    .tag
                    .zip(tag)
                    .is_some_and(|(sent, tag)| tag < 0 || sent == tag);
                let is_within = sent.communicator.is_some() && sent.communicator == within;
                let is_expected = *from == wanted || *from > wanted && !is_written;
                if is_tag && is_within && sent.to_rank && !sent.may_be_old && !is_expected {
                    self.strays.push([*from, task.0, wanted]);
                }
            }
        }
    }

    /// Pairs of a rank that waits for a message to or from one other rank only, and that other rank.
    fn only_peers(&self) -> BTreeSet<(u32, u32)> {
        let both = self.graph.either.iter();
        let both = both.filter(|(_, [from, to])| from == to);
        let both = both.map(|(who, [peer, _])| (*who, *peer));
        self.graph.ones.iter().copied().chain(both).collect()
    }
}

/// The tag of an unexpected message from the rank that a call waits for. None if there is none.
fn come(class: &Class<'_>) -> Option<i64> {
    let mut arguments = class.known?.arguments.iter();
    let come = arguments.find(|one| one.role == R::Tag && one.expression == sdm_mpi::UNEXPECTED)?;
    come.value.as_ref()?.text.parse().ok()
}

/// True if the argument with this role is a rank of the job.
fn names_rank(class: &Class<'_>, role: R) -> bool {
    class
        .known
        .is_some_and(|call| is_rank_of_the_job(call, role))
}

/// The sends that ranks are in, by sender and receiver.
fn sends(probes: &Probes, classes: &[&Class<'_>]) -> BTreeMap<(u32, u32), Sent> {
    let mut sends = BTreeMap::new();
    for class in classes {
        let receives = argument(class, R::Source).is_some();
        for task in class.tasks.iter() {
            let to = known(probes, class, R::Destination, task).map(u32::try_from);
            let Some(Ok(to)) = to else { continue };
            let count = known(probes, class, R::Count, task);
            let sent = Sent {
                tag: known(probes, class, R::Tag, task),
                to_rank: names_rank(class, R::Destination),
                communicator: Within::of(probes, class, task),
                may_be_old: receives,
                may_be_long: count.is_none_or(|count| count > SHORT_MAX),
            };
            sends.insert((task.0, to), sent);
        }
    }
    sends
}

/// Finds the ranks of a chain of short send-receive calls that all match.
///
/// `both_ways` are the ranks in such calls, `fit` the matching messages from sender to receiver. A rank without a match
/// on one side is removed, and so are the ranks to which it leads. Of the remaining ranks, the one with the fewest
/// iterations done has the message that it waits for.
fn all_fitting(both_ways: impl Iterator<Item = u32>, fit: &BTreeMap<u32, u32>) -> IdSet {
    let from: BTreeMap<u32, u32> = fit.iter().map(|(from, to)| (*to, *from)).collect();
    let mut found: BTreeSet<u32> = fit.keys().chain(fit.values()).copied().collect();
    let is_open = |task: &u32| !fit.contains_key(task) || !from.contains_key(task);
    let mut open: Vec<u32> = both_ways.filter(is_open).collect();
    while let Some(task) = open.pop() {
        if found.remove(&task) {
            let partners = [fit.get(&task), from.get(&task)];
            open.extend(partners.into_iter().flatten());
        }
    }
    found.into_iter().map(TaskId).collect()
}

/// The verdict on messages that do not match, because their tags or communicators differ. None if there are none.
pub(super) fn misdirected(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let apart = needs.apart.intersection(blocked);
    if !apart.is_empty() {
        let text = "a message is sent in one communicator, but its receiver waits in another";
        let verdict = Verdict::new(Step::CannotGoOn, text);
        return Some(verdict.of(Cause::Communicator).between(apart));
    }
    let is_blocked = |rank: &u32| blocked.contains(TaskId(*rank));
    let mismatched = needs.mismatched.iter();
    let mismatched: Vec<_> = mismatched
        .filter(|(from, to, ..)| is_blocked(from) && is_blocked(to))
        .collect();
    let (text, both) = texts(&mismatched)?;
    let verdict = Verdict::new(Step::CannotGoOn, text).of(Cause::Tag);
    Some(verdict.between(both))
}

/// The verdict with the cause that an unexpected message shows. The message is one of a blocked rank for a rank that the
/// verdict names. The verdict stays as it is if its cause is known, or if there is no such message.
pub(super) fn explained(verdict: Verdict, needs: &Needs, blocked: &IdSet) -> Verdict {
    let named = match verdict.suspects.is_empty() {
        true => &verdict.between,
        false => &verdict.suspects,
    };
    let is_it = |one: &&Stray| blocked.contains(one.from) && !named.is_disjoint(&one.to);
    let found = needs.come.iter().filter(is_it).min_by_key(|one| one.cause);
    let Some(one) = found.filter(|_| verdict.cause == Cause::CallOrdering) else {
        return verdict;
    };
    let to = one.to.intersection(named);
    let text = format!(
        "{}; a message with tag {} from rank {} has arrived at {}, which {}",
        verdict.text,
        one.tag,
        one.from,
        ranks(&to),
        match one.cause {
            Cause::Tag => in_number("[waits|wait] for another tag", to.len()),
            _ => in_number("[waits|wait] in another communicator", to.len()),
        }
    );
    Verdict { text, ..verdict }.of(one.cause)
}

/// The verdict on ranks that receive from another rank than the only one that sends to them. That other rank is in a
/// collective operation, and waits for no message. None if there are none.
pub(super) fn from_another_source(needs: &Needs, blocked: &IdSet) -> Option<Verdict> {
    let is_stray = |[from, to, wanted]: &&[u32; 3]| {
        let is_blocked = [*from, *to]
            .map(TaskId)
            .iter()
            .all(|rank| blocked.contains(*rank));
        let wanted = TaskId(*wanted);
        let mut there = needs.gatherings.iter();
        is_blocked && there.any(|one| one.tasks.contains(wanted))
    };
    let strays: Vec<_> = needs.strays.iter().filter(is_stray).collect();
    strays.first()?;
    let texts = strays.iter().take(PAIRS_SHOWN).map(|[from, to, wanted]| {
        format!("rank {from} sends to rank {to}, which waits for rank {wanted}")
    });
    let pairs = texts.collect::<Vec<_>>().join("; ");
    let text = format!("{pairs}: the sender is not the rank that the receiver waits for");
    let both = strays
        .iter()
        .flat_map(|[from, to, _]| [*from, *to].map(TaskId));
    let verdict = Verdict::new(Step::CannotGoOn, text);
    Some(verdict.between(both.collect()))
}

/// The verdict on a cycle in which a rank has received a message with another tag than it waits for. None for other
/// cycles.
///
/// If only some ranks have, such a message can be due later: then the order of the messages is wrong.
pub(super) fn tags_of_circle(needs: &Needs, circle: &[u32]) -> Option<Verdict> {
    let next = circle.iter().cycle().skip(1);
    let found = circle.iter().zip(next).filter_map(|(rank, next)| {
        let mut early = needs.early.iter();
        early.find(|(from, to, ..)| (from, to) == (next, rank))
    });
    let found: Vec<_> = found.collect();
    let (text, both) = texts(&found)?;
    let text = match found.len() == circle.len() {
        true => format!(
            "the ranks wait for each other's messages in a cycle, with other tags than are sent: {text}"
        ),
        false => format!(
            "the ranks wait for each other's messages in a cycle ({circle}), and {text}: the tags differ by mistake, or \
             messages are sent and received in different orders",
            circle = circle_text(circle)?
        ),
    };
    let verdict = Verdict::new(Step::Deadlock, text).of(Cause::Tag);
    Some(verdict.between(both))
}

/// The text about messages whose tags differ, and the ranks of these messages. None without such a message.
fn texts(mismatched: &[&(u32, u32, i64, i64)]) -> Option<(String, IdSet)> {
    let (from, to, sent, wanted) = mismatched.first()?;
    let mut text =
        format!("rank {from} sends tag {sent} to rank {to}, which waits for tag {wanted} from it");
    let more = mismatched.len() - 1;
    for (from, to, sent, wanted) in mismatched.iter().skip(1).take(PAIRS_SHOWN) {
        text +=
            &format!("; rank {from} sends tag {sent} to rank {to}, which waits for tag {wanted}");
    }
    if more > PAIRS_SHOWN {
        text += &format!("; and {} more", more - PAIRS_SHOWN);
    }
    let both = mismatched.iter().flat_map(|(from, to, ..)| [from, to]);
    Some((text, both.map(|rank| TaskId(*rank)).collect()))
}
