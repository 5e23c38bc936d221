//! Tests of probes of a task that is stopped deep in an MPI call.

use sdm_debug::command::ProbeSpec;
use sdm_debug::probe::TaskProbe;

use super::*;

const FRAMES: [&str; 5] = ["MPI_Recv", "exchange", "step", "solve", "main"];

impl Scene {
    fn probe(&mut self, id: u64, spec: ProbeSpec) -> TaskProbe {
        self.probe_of(id, spec, |_| frames())
    }

    /// Probes; `frames_after` is gdb's answer after such a line.
    fn probe_of(
        &mut self,
        id: u64,
        spec: ProbeSpec,
        frames_after: impl Fn(&str) -> Vec<String>,
    ) -> TaskProbe {
        let mut before = String::new();
        self.command(id, Command::Probe(spec));
        while let Some((_, line)) = self.sent.first() {
            let answer = match line.split(' ').next() {
                Some("-thread-info") => {
                    "^done,threads=[{id=\"1\",target-id=\"process 77\",state=\"stopped\"}],current-thread-id=\"1\""
                        .to_owned()
                }
                Some("-stack-list-frames") => {
                    format!("^done,stack=[{}]", frames_after(&before).join(","))
                }
                _ => "^done".to_owned(),
            };
            before.clone_from(line);
            if line.contains("backtrace -frame-arguments none -1") {
                self.gdb("~\"Backtrace stopped: previous frame inner to this frame\\n\"");
            }
            self.reply(&answer);
        }
        match &self.answers[&id] {
            Ok(Reply::Probe(probe)) => (**probe).clone(),
            other => panic!("{other:?}"),
        }
    }
}

fn frames() -> Vec<String> {
    let frame = |(level, function): (usize, &&str)| {
        let file = match level {
            0 => "from=\"/usr/lib/libmpi.so\"",
            _ => "file=\"a.c\",fullname=\"/a.c\",line=\"9\"",
        };
        format!("frame={{level=\"{level}\",addr=\"0x{level}00\",func=\"{function}\",{file}}}")
    };
    FRAMES.iter().enumerate().map(frame).collect()
}

/// gdb shows the caller of Fortran's main program at one time, and not at another.
#[test]
fn fortran_main_with_and_without_caller_gives_equal_stacks() {
    let mut scene = Scene::at_main(FakeHost::default());
    let frame = |function: &str, file: &str| {
        format!("frame={{level=\"0\",addr=\"0x100\",func=\"{function}\",{file}}}")
    };
    let listed = |whole: bool| {
        let own = "file=\"ocean.F90\",fullname=\"/ocean.F90\",line=\"9\"";
        let mut frames = vec![
            frame("mpi_waitall__", "from=\"/usr/lib/libmpi.so\""),
            frame("ocean", own),
        ];
        if whole {
            frames.push(frame("main", own));
            frames.push(frame("_start", "from=\"\""));
        }
        frames
    };
    let first = scene.probe_of(1, spec(1), |_| listed(true));
    let past_main = "-gdb-set backtrace past-main on";
    let second = scene.probe_of(2, spec(2), |before| listed(before.ends_with(past_main)));
    assert_eq!(first.stacks, second.stacks);
    assert_eq!(second.inner_changed, Some(false), "{second:?}");
}

/// The probe request of a first, second, third or fourth and last probe.
fn spec(look: u64) -> ProbeSpec {
    ProbeSpec {
        compare: look > 1,
        waits: look == 4,
    }
}

/// A call that takes long because much data is in transit looks like one that waits.
#[test]
fn data_exchanged_within_a_call_is_reported() {
    for registers in [0, 4] {
        let host = FakeHost {
            registers: (registers, Rc::new(())),
            ..FakeHost::default()
        };
        let exchange = Rc::clone(&host.exchange);
        let mut scene = Scene::at_main(host);
        for look in 1..=4 {
            exchange.set(if look < 3 { 7 } else { 8 });
            let probe = scene.probe(look, spec(look));
            assert_eq!(probe.exchanged, look == 3, "{probe:?}");
            assert_eq!(probe.unfollowed, registers == 0 && look > 1);
        }
    }
}

/// A processor has four debug registers, and each probe needs all of them again.
#[test]
fn each_probe_sets_debug_registers_again() {
    let host = FakeHost {
        registers: (4, Rc::new(())),
        ..FakeHost::default()
    };
    let used = Rc::downgrade(&host.registers.1);
    let mut scene = Scene::at_main(host);
    for look in 1..=4 {
        let probe = scene.probe(look, spec(look));
        assert!(
            !probe.partial && !probe.unfollowed,
            "look {look}: {probe:?}"
        );
        // One reference is the host's, the others are those of the registers in use.
        let expect = if look == 4 { 1 } else { 5 };
        assert_eq!(used.strong_count(), expect, "look {look}");
    }
}

/// A thread may stop several times where gdb cannot unwind. A named stack that is cut at one address twice is still
/// cut, and proves nothing.
#[test]
fn stack_cut_twice_at_one_address_stays_incomplete() {
    let mut scene = Scene::at_main(FakeHost::default());
    let cut = |level: usize| frames().drain(..level).collect::<Vec<_>>();
    let mut id = 0;
    let mut is_partial = |frames: Vec<String>| {
        id += 1;
        let probe = scene.probe_of(id, spec(id.min(3)), |_| frames.clone());
        assert_eq!(probe.partial, probe.stacks.is_none(), "{probe:?}");
        probe.partial
    };
    assert!(is_partial(cut(2)) && is_partial(cut(2)));
    assert!(!is_partial(frames()));
    // Nor is one that ends at code without a name, where the thread's other stacks have one.
    let unnamed = || vec![nameless(0, "libmpi.so")];
    assert!(is_partial(unnamed()) && is_partial(unnamed()));
    assert!(!is_partial(frames()));
}

/// The end of a stack of a stripped program has no name, and is always the same.
#[test]
fn unnamed_stack_with_an_unchanged_end_counts_as_complete() {
    let mut scene = Scene::at_main(FakeHost::default());
    let stack = |end: usize| vec![nameless(0, "libmpi.so"), nameless(end, "solver")];
    for (id, end, is_partial) in [(1, 1, true), (2, 1, false), (3, 2, true), (4, 2, false)] {
        let probe = scene.probe_of(id, spec(id), |_| stack(end));
        assert_eq!(probe.partial, is_partial, "{id}: {probe:?}");
    }
}

/// A frame of a file without symbols.
fn nameless(level: usize, file: &str) -> String {
    format!("frame={{level=\"{level}\",addr=\"0x{level}40\",func=\"??\",from=\"/usr/lib/{file}\"}}")
}
