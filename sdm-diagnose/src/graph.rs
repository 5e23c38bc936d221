//! The wait-for graph of a job, and its reduction to the ranks that can never go on.
//!
//! A waiting task needs one other task, one of two, all of a set, or any of a set. These are AND and OR
//! waits, as in the wait-for graphs of MUST. A task that can go on by itself frees the tasks that need it,
//! and they free others. The remaining tasks are blocked for good. Each waits only for other blocked tasks
//! (a cycle, or a knot with OR waits), or for an event that cannot come any more.
//!
//! The result is a proof as far as the waits were read correctly. So an unknown wait counts as a wait for
//! any of all others, which proves the least.
//!
//! Edges to a single task are a list. Edges to many are one per class of tasks that wait alike, so a
//! hundred thousand ranks are reduced in about as many steps.

use sdm_idset::{IdSet, TaskId};

/// Tasks that wait for the same set of peers in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct SetNeed {
    /// The tasks that wait.
    pub who: IdSet,
    /// The tasks that they wait for.
    pub peers: IdSet,
    /// True if all peers are needed; false if one of them is enough.
    pub all: bool,
    /// True if the peers are an assumption because the real ones are unknown.
    pub guessed: bool,
}

/// The waits of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitGraph {
    /// Tasks that can go on by themselves, as far as is known.
    pub live: IdSet,
    /// Tasks that cannot go on whatever others do: ended, stopped by a signal, or stuck on something in their own
    /// process.
    pub never: IdSet,
    /// Pairs of a task and the one task it waits for.
    pub ones: Vec<(u32, u32)>,
    /// Tasks that wait for a request, or that send and receive in one call. Their message may be in transit.
    pub by_request: IdSet,
    /// Tasks that wait for one of two tasks, with these two. Each of the two can end the wait.
    pub either: Vec<(u32, [u32; 2])>,
    /// Tasks that wait for sets of tasks.
    pub sets: Vec<SetNeed>,
}

/// The result of a reduction: the tasks that remain after all tasks that can go on have done so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reduced {
    /// The tasks that are blocked for good.
    pub blocked: IdSet,
    /// The tasks that wait, and can go on once others do.
    pub held_up: IdSet,
    /// The tasks at the ends of the wait chains of `held_up`, which can go on by themselves.
    pub holders: IdSet,
    /// True if `holders` is an assumption: some tasks wait for any of several tasks, and it is unknown for which.
    pub holders_guessed: bool,
    /// Tasks in `never` that the blocked tasks wait for.
    pub lost_on: IdSet,
    /// A cycle of blocked tasks, without its first task again at the end. Empty if none was found.
    pub circle: Vec<u32>,
    /// Further cycles, of tasks that each wait for one other task.
    pub circles: Vec<Vec<u32>>,
}

/// The state of a task during a reduction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Outside,
    Waits,
    Free,
    Live,
    Never,
}

/// The waits, indexed by task.
struct Table<'a> {
    graph: &'a WaitGraph,
    marks: Vec<Mark>,
    /// Pairs of a peer and a task that waits for it, sorted.
    wanted: Vec<(u32, u32)>,
    /// Pairs of a task and a peer it waits for, sorted.
    wants: Vec<(u32, u32)>,
    /// For each task the index of the set that it waits for; [`NONE`] if it waits for no set.
    in_set: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl WaitGraph {
    /// Frees all tasks that can go on, and describes the rest.
    #[must_use]
    pub fn reduce(&self) -> Reduced {
        let mut table = Table::of(self);
        table.free();
        let mut reduced = Reduced::default();
        for (task, mark) in (0..).zip(&table.marks) {
            match mark {
                Mark::Waits => reduced.blocked.insert(TaskId(task)),
                Mark::Free => reduced.held_up.insert(TaskId(task)),
                _ => continue,
            };
        }
        (reduced.holders, reduced.holders_guessed) = table.reached(&reduced.held_up, Mark::Live);
        reduced.lost_on = table.reached(&reduced.blocked, Mark::Never).0;
        reduced.circles = table.circles(&reduced.blocked);
        if !reduced.circles.is_empty() {
            reduced.circle = reduced.circles.remove(0);
        }
        reduced
    }
}

impl<'a> Table<'a> {
    fn of(graph: &'a WaitGraph) -> Self {
        let mut wants: Vec<(u32, u32)> = graph.ones.clone();
        for (who, peers) in &graph.either {
            wants.extend(peers.map(|peer| (*who, peer)));
        }
        // Of two the first stays the first.
        wants.sort_by_key(|(who, _)| *who);
        let mut wanted: Vec<(u32, u32)> = wants.iter().map(|(who, peer)| (*peer, *who)).collect();
        wanted.sort_unstable();
        let sets = graph.sets.iter();
        let all = [&graph.live, &graph.never].into_iter();
        let all = all.chain(sets.flat_map(|set| [&set.who, &set.peers]));
        let last = all.filter_map(IdSet::last).map(|task| task.0).max();
        let ends = wants.iter().map(|(who, peer)| (*who).max(*peer)).max();
        let count = last.max(ends).map_or(0, |last| last as usize + 1);
        let mut table = Self {
            graph,
            marks: vec![Mark::Outside; count],
            wanted,
            wants,
            in_set: vec![NONE; count],
        };
        for (index, set) in (0..).zip(&graph.sets) {
            for task in set.who.iter() {
                table.marks[task.0 as usize] = Mark::Waits;
                table.in_set[task.0 as usize] = index;
            }
        }
        for (who, _) in &table.wants {
            table.marks[*who as usize] = Mark::Waits;
        }
        for (tasks, mark) in [(&graph.live, Mark::Live), (&graph.never, Mark::Never)] {
            for task in tasks.iter() {
                table.marks[task.0 as usize] = mark;
            }
        }
        table
    }

    fn can_go_on(&self, task: u32) -> bool {
        matches!(self.marks[task as usize], Mark::Free | Mark::Live)
    }

    fn free(&mut self) {
        let mut ready: Vec<u32> = self.graph.live.iter().map(|task| task.0).collect();
        let mut open: Vec<usize> = (0..self.graph.sets.len()).collect();
        loop {
            while let Some(task) = ready.pop() {
                let from = self.wanted.partition_point(|(peer, _)| *peer < task);
                let them = self.wanted[from..].iter();
                let them = them.take_while(|(peer, _)| *peer == task);
                for (_, who) in them.copied().collect::<Vec<_>>() {
                    self.free_one(who, &mut ready);
                }
            }
            let before = open.len();
            open.retain(|index| {
                let set = &self.graph.sets[*index];
                let mut peers = set.peers.iter().map(|task| task.0);
                let comes = match set.all {
                    true => peers.all(|task| self.can_go_on(task)),
                    false => peers.any(|task| self.can_go_on(task)),
                };
                if comes {
                    for task in set.who.iter() {
                        self.free_one(task.0, &mut ready);
                    }
                }
                !comes
            });
            if open.len() == before {
                return;
            }
        }
    }

    fn free_one(&mut self, task: u32, ready: &mut Vec<u32>) {
        let mark = &mut self.marks[task as usize];
        if *mark == Mark::Waits {
            *mark = Mark::Free;
            ready.push(task);
        }
    }

    /// The single tasks that a task waits for.
    fn wants_of(&self, task: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.wants.partition_point(|(who, _)| *who < task);
        let them = self.wants[from..].iter();
        them.take_while(move |(who, _)| *who == task)
            .map(|(_, peer)| *peer)
    }

    fn set_of(&self, task: u32) -> Option<&'a SetNeed> {
        self.graph.sets.get(self.in_set[task as usize] as usize)
    }

    /// Finds the tasks with the mark `wanted` at the ends of the wait chains from some tasks. Assumed waits are
    /// followed only if the known waits lead nowhere. The flag is true if they were followed.
    fn reached(&self, from: &IdSet, wanted: Mark) -> (IdSet, bool) {
        let mut found = IdSet::new();
        for guesses in [false, true] {
            let mut seen = vec![false; self.marks.len()];
            let mut seen_sets = vec![false; self.graph.sets.len()];
            let mut open: Vec<u32> = from.iter().map(|task| task.0).collect();
            while let Some(task) = open.pop() {
                if std::mem::replace(&mut seen[task as usize], true) {
                    continue;
                }
                if self.marks[task as usize] == wanted {
                    found.insert(TaskId(task));
                    continue;
                }
                open.extend(self.wants_of(task));
                let index = self.in_set[task as usize] as usize;
                let set = self.set_of(task).filter(|set| guesses || !set.guessed);
                if let Some(set) = set
                    && !std::mem::replace(&mut seen_sets[index], true)
                {
                    open.extend(set.peers.iter().map(|task| task.0));
                }
            }
            if !found.is_empty() {
                return (found, guesses);
            }
        }
        (found, false)
    }

    /// The next task on a path of waits through blocked tasks. None if the peer is unknown or not blocked.
    fn next(&self, task: u32) -> Option<u32> {
        let blocked = |task: &u32| self.marks[*task as usize] == Mark::Waits;
        let one = self.wants_of(task).find(blocked);
        one.or_else(|| {
            let set = self.set_of(task).filter(|set| !set.guessed)?;
            let mut peers = set.peers.iter().map(|task| task.0);
            peers.find(blocked)
        })
    }

    /// True for a task that waits for exactly one other task, and for no set.
    fn waits_for_one(&self, task: u32) -> bool {
        self.set_of(task).is_none() && self.wants_of(task).count() == 1
    }

    /// The cycles of blocked tasks: the first that is found, and then those of tasks that each wait for one other task.
    fn circles(&self, blocked: &IdSet) -> Vec<Vec<u32>> {
        let mut circles: Vec<Vec<u32>> = Vec::new();
        // The number of the walk that reached each task, from 1. A task that no walk has reached has 0.
        let mut walks = vec![0_u32; self.marks.len()];
        // Walks begin at tasks that wait for exactly one other task: their cycles are the simplest.
        let ones = self.wants.iter().map(|(who, _)| *who);
        let ones = ones.filter(|who| blocked.contains(TaskId(*who)));
        let rest = blocked.iter().map(|task| task.0);
        for (walk, start) in (1..).zip(ones.chain(rest)) {
            let mut at = start;
            while walks[at as usize] == 0 {
                walks[at as usize] = walk;
                match self.next(at) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            if walks[at as usize] == walk && self.next(at).is_some() {
                let mut circle = vec![at];
                while let Some(next) = self.next(circle[circle.len() - 1])
                    && next != at
                {
                    circle.push(next);
                }
                let least = (0..circle.len()).min_by_key(|index| circle[*index]);
                circle.rotate_left(least.unwrap_or_default());
                let is_told = || circle.iter().all(|task| self.waits_for_one(*task));
                if circles.is_empty() || is_told() {
                    circles.push(circle);
                }
            }
        }
        circles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    fn need(who: &str, peers: &str, all: bool) -> SetNeed {
        SetNeed {
            who: set(who),
            peers: set(peers),
            all,
            guessed: false,
        }
    }

    #[test]
    fn ring_is_blocked_but_chain_to_a_live_rank_is_not() {
        let mut graph = WaitGraph {
            ones: (0..9).map(|task| (task, (task + 1) % 9)).collect(),
            ..WaitGraph::default()
        };
        let found = graph.reduce();
        assert_eq!(found.blocked, set("0-8"));
        assert_eq!(found.circle, (0..9).collect::<Vec<_>>());
        graph.ones.pop();
        graph.live = set("8");
        let found = graph.reduce();
        assert_eq!((found.blocked, found.held_up), (set(""), set("0-7")));
        assert_eq!((found.holders, found.circle), (set("8"), vec![]));
        graph.live = set("");
        graph.never = set("8");
        let found = graph.reduce();
        assert_eq!((found.blocked, found.lost_on), (set("0-7"), set("8")));
        assert_eq!(found.circle, Vec::<u32>::new());
    }

    #[test]
    fn wait_for_all_or_any_of_several_ranks_is_evaluated() {
        // 3 waits for 0, which needs all that are not in its operation.
        let mut graph = WaitGraph {
            ones: vec![(3, 0)],
            sets: vec![need("0-2", "3-4", true)],
            live: set("4"),
            ..WaitGraph::default()
        };
        let found = graph.reduce();
        assert_eq!(found.blocked, set("0-3"));
        assert_eq!(found.circle, [0, 3]);
        graph.sets[0].all = false;
        let found = graph.reduce();
        assert_eq!((found.blocked, found.held_up), (set(""), set("0-3")));
        assert_eq!(found.holders, set("4"));
    }

    #[test]
    fn cycle_is_blocked_unless_a_rank_waits_for_a_live_one() {
        let mut graph = WaitGraph {
            either: vec![(0, [1, 2]), (1, [0, 2]), (2, [0, 1])],
            ..WaitGraph::default()
        };
        assert_eq!(graph.reduce().blocked, set("0-2"));
        graph.either[2] = (2, [1, 3]);
        graph.live = set("3");
        let found = graph.reduce();
        assert_eq!((found.blocked, found.holders), (set(""), set("3")));
    }

    #[test]
    fn rank_with_unknown_peers_is_blocked_only_if_all_peers_are() {
        let guess = |who: &str, peers: &str| SetNeed {
            guessed: true,
            ..need(who, peers, false)
        };
        let mut graph = WaitGraph {
            sets: vec![guess("0-3", "")],
            ..WaitGraph::default()
        };
        assert_eq!(graph.reduce().blocked, set("0-3"));
        graph.sets = vec![guess("0-2", "3-5")];
        graph.ones = vec![(3, 4)];
        graph.live = set("4-5");
        let found = graph.reduce();
        assert_eq!((found.blocked, found.held_up), (set(""), set("0-3")));
        assert_eq!(found.holders, set("4"), "what is known comes first");
    }

    /// Graphs with the shapes of real programs at full size. The test is that the reduction ends; `benches`
    /// measures its time.
    #[test]
    fn wait_graph_of_a_hundred_thousand_ranks_is_reduced() {
        const COUNT: u32 = 100_000;
        let ring = WaitGraph {
            ones: (0..COUNT).map(|task| (task, (task + 1) % COUNT)).collect(),
            ..WaitGraph::default()
        };
        let found = ring.reduce();
        assert_eq!(found.blocked.len(), u64::from(COUNT));
        assert_eq!(found.circle.len(), COUNT as usize);
        let chain = WaitGraph {
            ones: (1..COUNT).map(|task| (task, task - 1)).collect(),
            live: set("0"),
            ..WaitGraph::default()
        };
        assert_eq!(chain.reduce().holders, set("0"));
        let odd = WaitGraph {
            ones: vec![(7, 8)],
            sets: vec![SetNeed {
                who: IdSet::all_below(COUNT).difference(&set("7")),
                peers: set("7"),
                all: true,
                guessed: false,
            }],
            ..WaitGraph::default()
        };
        assert_eq!(odd.reduce().circle, [7, 8]);
    }
}
