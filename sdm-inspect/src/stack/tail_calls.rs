//! Restores tail calls: functions that ended in a jump to the last function that they called. They are not on the
//! stack, but gdb shows them too.
//!
//! The compiler records the target of each call. If a caller called another function than the one on the stack, and a
//! single chain of tail calls connects the two functions, that chain is shown. If there are several chains, their
//! common part is shown.

use crate::address_space::{Place, Space};
use crate::symbols::Target;
use crate::unwind::Frame;

/// Maximum length of a chain of tail calls.
const WAY_MAX: usize = 16;
/// Maximum number of chains that are compared.
const WAYS_MAX: usize = 64;
/// Maximum number of calls that are examined for all chains between two frames.
const CALLS_MAX: usize = 1 << 14;

/// The frames with the tail-calling functions inserted.
pub(super) fn insert(space: &Space, frames: &[Frame]) -> Vec<Frame> {
    let mut all = Vec::with_capacity(frames.len());
    for (at, frame) in frames.iter().enumerate() {
        all.push(*frame);
        if let Some(caller) = frames.get(at + 1)
            && !frame.is_signal
            && !caller.is_signal
        {
            let way = between(space, caller, frame).unwrap_or_default();
            all.extend(way.into_iter().rev().map(|pc| Frame {
                pc,
                lookup: pc.wrapping_sub(1),
                is_tail: true,
                ..*caller
            }));
        }
    }
    all
}

/// The address after each tail jump on the way from a caller to the reached function, the caller's side first.
/// `None` if no chain of tail calls is certain.
fn between(space: &Space, caller: &Frame, callee: &Frame) -> Option<Vec<u64>> {
    let place = space.place(caller.lookup)?;
    let function = place.module.function(place.address)?;
    let after = place.of_process(caller.pc);
    let call = function.calls.iter().find(|call| call.after == after)?;
    let reached = space.place(callee.lookup)?;
    let goal = reached.in_process(reached.module.function(reached.address)?.entry);
    let mut search = Search {
        space,
        reached,
        goal,
        way: Vec::new(),
        open: Vec::new(),
        ways: Vec::new(),
        calls: 0,
    };
    search.follow(place, call.target.as_ref()?)?;
    common(&search.ways)
}

/// The common beginning and the common end of all chains; `None` if there is no chain.
fn common(ways: &[Vec<u64>]) -> Option<Vec<u64>> {
    let (first, others) = ways.split_first()?;
    let (mut start, mut end) = (first.len(), first.len());
    for other in others {
        let same = |(a, b): &(&u64, &u64)| a == b;
        start = start.min(first.iter().zip(other).take_while(same).count());
        let back = first.iter().rev().zip(other.iter().rev());
        end = end.min(back.take_while(same).count());
    }
    if start == first.len() || start + end >= first.len() {
        return Some(first.clone());
    }
    let ends = first.len() - end;
    Some([&first[..start], &first[ends..]].concat())
}

struct Search<'a> {
    space: &'a Space,
    /// The reached function, and its start.
    reached: Place<'a>,
    goal: u64,
    /// The addresses after the jumps so far, and the starts of the functions with these jumps.
    way: Vec<u64>,
    open: Vec<u64>,
    ways: Vec<Vec<u64>>,
    calls: usize,
}

impl Search<'_> {
    /// Continues the search at a call's target. `None` if a target is unknown or a limit is exceeded, so that no chain
    /// is certain.
    fn follow(&mut self, from: Place<'_>, target: &Target) -> Option<()> {
        let entry = match target {
            Target::At(address) => from.in_process(*address),
            Target::Named(name) => {
                let known = [self.reached, from].into_iter().find_map(|place| {
                    let address = place.module.symbols().address_of(name)?;
                    Some(place.in_process(address))
                });
                known?
            }
        };
        if entry == self.goal {
            self.ways.push(self.way.clone());
            return (self.ways.len() <= WAYS_MAX).then_some(());
        }
        if self.open.contains(&entry) {
            return Some(());
        }
        if self.way.len() >= WAY_MAX {
            return None;
        }
        let place = self.space.place(entry)?;
        let function = place.module.function(place.address)?;
        self.open.push(entry);
        for call in function.calls.iter().filter(|call| call.is_tail) {
            self.calls += 1;
            if self.calls > CALLS_MAX {
                return None;
            }
            self.way.push(place.in_process(call.after));
            self.follow(place, call.target.as_ref()?)?;
            self.way.pop();
        }
        self.open.pop();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_beginning_and_end_of_call_chains_are_found() {
        let check = |ways: &[&[u64]], expect: Option<&[u64]>| {
            let ways: Vec<Vec<u64>> = ways.iter().map(|way| way.to_vec()).collect();
            assert_eq!(common(&ways).as_deref(), expect, "{ways:?}");
        };
        check(&[], None);
        check(&[&[]], Some(&[]));
        check(&[&[1, 2]], Some(&[1, 2]));
        check(&[&[1, 2, 3], &[1, 4, 3]], Some(&[1, 3]));
        check(&[&[1, 2], &[3, 4]], Some(&[]));
        check(&[&[1], &[]], Some(&[]));
    }
}
