//! The state of a task at its last complete probe: stacks, processor time and data exchange. `diagnose` compares the
//! next probe with it.

use sdm_debug::probe::Within;
use sdm_debug::reply::StackFrame;

use super::return_tracking::{Followed, Returns};

/// The last complete probe, with which the next one is compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probed {
    /// The user's frames of the main thread, outermost first; of a deep stack only both ends.
    pub(crate) frames: Vec<FrameState>,
    /// The frames of other threads in MPI calls, by kernel thread id.
    pub(crate) beside: Vec<(Option<i32>, Vec<FrameState>)>,
    /// The calls whose returns are tracked since this probe.
    pub(crate) followed: Followed,
    /// True once a complete stack of the main thread was read.
    pub(crate) is_whole: bool,
    /// The kernel thread id of the main thread; `None` if unknown.
    pub(crate) thread: Option<i32>,
    /// Address in the outermost frame of the main thread, by which a stack without symbols is recognised as complete;
    /// `None` if unknown.
    pub(crate) outermost: Option<u64>,
    /// True once the main thread's stack was read to a named function in which stacks end.
    pub(crate) has_named_end: bool,
    /// The processor time of the process up to the probe, in milliseconds; `None` if unknown.
    pub(crate) cpu_ms: Option<u64>,
    /// Time that the main thread has run on a processor, in nanoseconds; `None` if unknown.
    pub(crate) ran_ns: Option<u64>,
    /// Fingerprint of the process's data exchange, if one of its threads is in MPI.
    pub(crate) exchange: Option<u128>,
}

/// A saved probe, which is restored if the probe after it does not count.
pub struct SavedProbe(pub(crate) Option<Probed>);

/// One activation of a user's function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FrameState {
    /// Number of the user's functions outside this one.
    pub(crate) depth: u32,
    /// The function of the frame, with line 0.
    pub(crate) place: StackFrame,
    /// The stack pointer, which tells one call of the function from the next; `None` if unknown.
    pub(crate) stack_pointer: Option<u64>,
    /// The program counter in this frame.
    pub(crate) address: u64,
    /// Fingerprint of the function's variables.
    pub(crate) variables: u128,
    /// Fingerprint of the function's part of the stack and of its callee-saved registers. They exist without debug
    /// information too.
    pub(crate) raw: u128,
}

impl FrameState {
    fn is_same_activation(&self, other: &Self) -> bool {
        (self.depth, &self.place, self.stack_pointer)
            == (other.depth, &other.place, other.stack_pointer)
    }
}

/// The difference between two probes of a task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) inner_changed: bool,
    pub(crate) outer_changed: bool,
    pub(crate) within: Option<Within>,
}

impl Probed {
    /// Compares this probe with the one before it, using the returns tracked in between.
    pub(crate) fn since(&self, before: &Self, followed: &Followed) -> Compared {
        let (now, was) = (&self.frames, &before.frames);
        let same_thread = self.thread == before.thread;
        let pairs = now.iter().zip(was);
        let common = pairs
            .take_while(|(now, was)| same_thread && now == was)
            .count();
        // A frame that looks unchanged belongs to a new call if the earlier call has returned.
        let addresses: Vec<u64> = was.iter().map(|frame| frame.address).collect();
        let returned = followed.main.outermost(&addresses);
        let returned = returned.filter(|at| *at < common);
        let around = now.len().saturating_sub(1);
        let main_changed = returned.is_some() || common < now.len() || now.len() != was.len();
        let mut beside = followed.beside.iter();
        let within = match returned {
            Some(at) => Some((at, false)),
            None => (self.within(before, common, followed)).filter(|_| main_changed),
        };
        let within = within.map(|(at, changed)| Within {
            depth: now[at].depth,
            frame: now[at].place.clone(),
            changed,
            noted: at == 0 || followed.main.has_followed(addresses[at - 1]),
        });
        Compared {
            inner_changed: main_changed
                || self.beside != before.beside
                || beside.any(Returns::is_out),
            outer_changed: common < around
                || now.len() != was.len()
                || returned.is_some_and(|at| at < around),
            within,
        }
    }

    /// Index of the innermost frame that appears to be the same activation as before; `None` if there is none. The
    /// second value is true if its variables changed, or variables of outer functions that it modifies. The first
    /// `common` frames are unchanged.
    fn within(&self, before: &Self, common: usize, followed: &Followed) -> Option<(usize, bool)> {
        let pairs = self.frames.iter().zip(&before.frames).enumerate();
        let mut found = None;
        let mut changed = false;
        for (at, (now, was)) in pairs.skip(common) {
            if !now.is_same_activation(was) {
                break;
            }
            changed |= now.variables != was.variables;
            found = Some((at, changed));
            // The frame inside is the same call only if tracking shows that it has not returned.
            let is_inside = now.address == was.address && followed.main.stays_below(was.address);
            if !is_inside {
                break;
            }
        }
        // The innermost common frame is unchanged, and its callee is a new one.
        found.or_else(|| Some((common.checked_sub(1)?, false)))
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use sdm_inspect::return_counter::Arrival;

    /// Makes a probe from text such as `main:1:x work:2:y`: function, address, variables.
    fn probed(text: &str) -> Probed {
        let frame = |(depth, text): (u32, &str)| {
            let mut parts = text.split(':');
            let mut next = || parts.next().unwrap_or_default();
            FrameState {
                depth,
                place: StackFrame::own(next(), "a.c", 0),
                stack_pointer: Some(1000 - u64::from(depth)),
                address: next().parse().unwrap(),
                variables: next().len() as u128,
                raw: 0,
            }
        };
        Probed {
            frames: (0..).zip(text.split_whitespace()).map(frame).collect(),
            ..Probed::default()
        }
    }

    fn check(before: &str, now: &str, changed: (bool, bool), within: Option<(&str, bool)>) {
        let found = probed(now).since(&probed(before), &Followed::default());
        let said = (found.inner_changed, found.outer_changed);
        assert_eq!(said, changed, "{before} / {now}");
        let place = found
            .within
            .as_ref()
            .map(|within| (within.frame.function.as_str(), within.changed));
        assert_eq!(place, within, "{before} / {now}");
    }

    #[test]
    fn innermost_function_that_did_not_return_is_found() {
        check("main:1 f:2:x", "main:1 f:2:x", (false, false), None);
        check(
            "main:1 f:2:x",
            "main:1 f:3:x",
            (true, false),
            Some(("f", false)),
        );
        check(
            "main:1 f:2:x",
            "main:1 f:2:xy",
            (true, false),
            Some(("f", true)),
        );
        // A loop that calls functions.
        check(
            "main:1 f:2:x g:9",
            "main:1 f:3:x h:9",
            (true, true),
            Some(("f", false)),
        );
        check(
            "main:1 f:2 g:9",
            "main:1 f:2 h:9",
            (true, false),
            Some(("f", false)),
        );
        check(
            "main:1 f:2 g:9",
            "main:1 f:2",
            (true, true),
            Some(("f", false)),
        );
        check(
            "main:1 f:2",
            "main:2 f:2",
            (true, true),
            Some(("main", false)),
        );
    }

    #[test]
    fn change_in_another_thread_in_mpi_counts_as_progress() {
        let with = |text| Probed {
            beside: vec![(Some(8), probed(text).frames)],
            ..probed("main:1 f:2:x")
        };
        let found = with("g:4").since(&with("g:3"), &Followed::default());
        assert!(found.inner_changed && !found.outer_changed);
        assert_eq!(found.within, None);
        assert!(
            !with("g:3")
                .since(&with("g:3"), &Followed::default())
                .inner_changed
        );
    }

    #[derive(Debug)]
    struct NotYet;

    impl Arrival for NotYet {
        fn has_happened(&self) -> bool {
            false
        }
    }

    #[derive(Debug)]
    struct Happened;

    impl Arrival for Happened {
        fn has_happened(&self) -> bool {
            true
        }
    }

    #[test]
    fn equal_stack_after_a_tracked_return_counts_as_changed() {
        let after = |text, main| {
            let beside = Vec::new();
            let found = probed(text).since(&probed(text), &Followed { main, beside });
            let within = found.within.map(|within| within.frame.function);
            (found.inner_changed, found.outer_changed, within)
        };
        let text = "main:1 f:2 g:3 g:3 g:4";
        let none = Returns::default();
        assert_eq!(after(text, none), (false, false, None));
        let of_mpi = || Returns {
            call: Some(Rc::new(Happened)),
            ..Returns::default()
        };
        let inner = (true, false, Some("g".to_owned()));
        assert_eq!(after("main:1 f:2 g:3", of_mpi()), inner);
        let of = |address: u64| Returns {
            frames: vec![(address, Rc::new(Happened))],
            ..of_mpi()
        };
        let outer = |function: &str| (true, true, Some(function.to_owned()));
        assert_eq!(after(text, of(2)), outer("f"));
        assert_eq!(after(text, of(3)), outer("g"));
        assert_eq!(after(text, of(1)), outer("main"));
        let beside = Followed {
            beside: vec![of_mpi()],
            ..Followed::default()
        };
        let found = probed(text).since(&probed(text), &beside);
        assert!(found.inner_changed && !found.outer_changed);
    }

    #[test]
    fn function_is_known_unreturned_only_if_its_return_is_tracked() {
        let noted = |address: u64, now| {
            let main = Returns {
                frames: vec![(address, Rc::new(NotYet) as Rc<dyn Arrival>)],
                ..Returns::default()
            };
            let beside = Vec::new();
            let found = probed(now).since(&probed("main:1 f:2 g:3"), &Followed { main, beside });
            let within = found.within.unwrap();
            (within.frame.function, within.noted)
        };
        assert_eq!(noted(2, "main:1 f:2 g:4"), ("g".to_owned(), true));
        assert_eq!(noted(1, "main:1 f:2 g:4"), ("g".to_owned(), false));
        assert_eq!(noted(1, "main:1 f:2"), ("f".to_owned(), true));
        assert_eq!(noted(9, "main:1"), ("main".to_owned(), true));
        // The callee changes a variable of its caller through an address.
        assert_eq!(noted(1, "main:1:x f:4 g:3"), ("f".to_owned(), true));
        assert_eq!(noted(9, "main:1:x f:4 g:3"), ("main".to_owned(), true));
        let main = Returns {
            frames: vec![(1, Rc::new(Happened))],
            ..Returns::default()
        };
        let beside = Vec::new();
        let before = probed("main:1 f:2 g:3");
        let found = probed("main:1:x f:4 g:3").since(&before, &Followed { main, beside });
        assert_eq!(found.within.unwrap().frame.function, "main");
    }

    #[test]
    fn stack_of_another_thread_counts_as_changed() {
        let mut now = probed("main:1");
        now.thread = Some(7);
        let found = now.since(&probed("main:1"), &Followed::default());
        assert!(found.inner_changed);
    }
}
