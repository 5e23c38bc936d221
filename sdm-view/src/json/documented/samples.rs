//! Sample items, at least one of every kind.

use std::time::Duration;

use sdm_debug::event::Stream;
use sdm_debug::reply::{
    Access, Backtrace, BreakpointPlace, CatchHit, Frame, FrameView, Library, SignalView,
    StackFrame, Stop, StopReason, TaskStacks, ThreadView, Value as Shown, Variable, WatchHit,
};
use sdm_debug::rules::{Bins, Extreme, Histogram, Number, Parsed, Stats, TotalUsage, Who};
use sdm_debug::{Failure, FailureCode, Reply, TaskState};
use sdm_diagnose::{Cause, Diagnosis, Finding, Guilty, Kind, Step, WaitGraph};
use sdm_idset::{IdSet, TaskId};

use crate::compare::{Comparison, Difference};
use crate::item::{BreakRow, Gathered, Happening, Item, LinkRow, Listing, NodeRow, Plot};
use crate::item::{Problem, RankRow, SetRow, TreeRow};

fn some() -> IdSet {
    IdSet::all_below(2)
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn shown() -> Shown {
    Shown {
        text: text("42"),
        cut: Some((5000, 7)),
    }
}

pub(super) fn frame() -> Frame {
    Frame {
        level: 0,
        function: text("solve"),
        file: text("halo.c"),
        path: text("/src/halo.c"),
        line: 7,
        module: String::new(),
        args: vec![Variable {
            name: text("step"),
            value: shown(),
        }],
    }
}

/// A stop with each reason.
fn stops() -> Vec<Stop> {
    let hit = WatchHit {
        number: 1,
        expression: text("x"),
        old: None,
        new: Some(shown()),
    };
    let caught = |hit| StopReason::Catch { number: 1, hit };
    let mut reasons = vec![
        StopReason::AtMain,
        StopReason::AtEntry,
        StopReason::Breakpoint { number: 1 },
        StopReason::StepEnd,
        StopReason::FunctionFinished { value: None },
        StopReason::Interrupted,
        StopReason::Signal {
            name: text("SIGSEGV"),
            meaning: text("Segmentation fault"),
        },
        StopReason::Internal {
            what: text("abort"),
        },
        StopReason::Finding(Box::new(sdm_debug::reply::Finding {
            tool: text("AddressSanitizer"),
            kind: text("heap-buffer-overflow"),
            access: Some(Access {
                is_write: false,
                size_bytes: 4,
            }),
        })),
        StopReason::Attached,
        StopReason::Other(text("unknown")),
        StopReason::Watchpoint(Box::new(hit)),
        StopReason::WatchpointScope {
            number: 1,
            expression: text("x"),
        },
        StopReason::LocationReached,
        StopReason::NoHistory,
        StopReason::Core {
            signal: text("SIGSEGV"),
            meaning: text("Segmentation fault"),
        },
    ];
    reasons.push(caught(CatchHit::Fork));
    let stop = |reason| Stop {
        reason,
        frame: Some(frame()),
        inside: None,
        source: None,
    };
    reasons.into_iter().map(stop).collect()
}

/// Every kind of event at least once. The `match` fails to compile for a new kind.
fn happenings() -> Vec<Happening> {
    let place = BreakpointPlace {
        number: 1,
        pending: false,
        places: vec![(text("solve"), text("halo.c"), 7)],
    };
    let mut all = vec![
        Happening::Exited {
            code: 3,
            before_finalize: true,
        },
        Happening::Signalled(text("SIGKILL")),
        Happening::Detached,
        Happening::SignalPassed(text("SIGUSR1")),
        Happening::GdbDied(text("gdb exited with 1")),
        Happening::BreakpointPlaced(place),
        Happening::Notice(text("a notice")),
        Happening::Printed {
            number: 1,
            text: text("hit"),
        },
    ];
    all.extend(stops().into_iter().map(Happening::Stopped));
    for what in &all {
        match what {
            Happening::Stopped(_)
            | Happening::Exited { .. }
            | Happening::Signalled(_)
            | Happening::Detached
            | Happening::SignalPassed(_)
            | Happening::GdbDied(_)
            | Happening::BreakpointPlaced(_)
            // Progress only updates the status line, and is not a record.
            | Happening::Progress(_)
            | Happening::Notice(_)
            | Happening::Printed { .. } => {}
        }
    }
    all
}

/// True for replies to commands of the prompt. The end of a run is an event instead, and some replies occur
/// only for users of the library.
fn is_answer(reply: &Reply) -> bool {
    match reply {
        Reply::Done
        | Reply::Value(_)
        | Reply::Variables(_)
        | Reply::Frame(_)
        | Reply::Backtrace(_)
        | Reply::Threads(_)
        | Reply::Stacks(_)
        | Reply::Breakpoint(_)
        | Reply::Text(_)
        | Reply::Libraries(_)
        | Reply::Signals(_) => true,
        Reply::Stopped(_)
        | Reply::Exited { .. }
        | Reply::Signalled { .. }
        | Reply::Detached
        | Reply::Status(_)
        | Reply::Mi { .. }
        | Reply::Breakpoints(_)
        | Reply::Memory(_)
        | Reply::Instructions(_)
        | Reply::Source(_)
        | Reply::VarObject(_)
        | Reply::VarChildren { .. }
        | Reply::Room(_)
        | Reply::Probe(_)
        | Reply::Usage(_)
        | Reply::Queues(_)
        | Reply::Samples(_) => false,
    }
}

fn replies() -> Vec<Reply> {
    let variable = Variable {
        name: text("step"),
        value: shown(),
    };
    let thread = ThreadView {
        number: 1,
        name: text("solver"),
        frame: Some(frame()),
        current: true,
    };
    let library = Library {
        path: text("/lib/libm.so.6"),
        symbols: true,
    };
    let signal = SignalView {
        name: text("SIGINT"),
        stop: true,
        print: true,
        pass: false,
        meaning: text("Interrupt"),
    };
    let replies = vec![
        Reply::Done,
        Reply::Value(shown()),
        Reply::Variables(vec![variable]),
        Reply::Frame(FrameView {
            frame: frame(),
            source: None,
        }),
        Reply::Backtrace(Backtrace {
            frames: vec![frame()],
            more: false,
            folded: 1,
        }),
        Reply::Threads(vec![thread]),
        Reply::Stacks(TaskStacks::of_main(
            vec![StackFrame::own("solve", "halo.c", 7)],
            1,
        )),
        Reply::Breakpoint(BreakpointPlace {
            number: 1,
            pending: false,
            places: vec![(text("solve"), text("halo.c"), 7)],
        }),
        Reply::Text(text("text")),
        Reply::Libraries(vec![library]),
        Reply::Signals(vec![signal]),
    ];
    assert!(replies.iter().all(is_answer));
    replies
}

fn gathered() -> Gathered {
    let failure = Failure::new(FailureCode::Running, "running");
    Gathered {
        command: text("print x"),
        to: some(),
        ok: replies().into_iter().map(|it| (some(), it)).collect(),
        failed: vec![(some(), failure)],
        missing: vec![(some(), text("no answer in time"))],
        ..Gathered::default()
    }
}

fn numbers() -> Stats {
    let who = || Who {
        count: 1,
        tasks: Some(some()),
    };
    let extreme = || Extreme {
        value: Number::Int(1),
        who: who(),
    };
    Stats {
        count: 2,
        int_sum: 2,
        float_sum: 0.0,
        mean: 1.0,
        squares: 0.0,
        min: Some(extreme()),
        max: Some(extreme()),
        not_a_number: who(),
        infinite_up: who(),
        infinite_down: who(),
        histogram: Some(Histogram {
            bins: Bins {
                low: 0.0,
                high: 1.0,
                count: 1,
            },
            counts: vec![2],
            below: 0,
            above: 0,
        }),
    }
}

fn diagnoses() -> Vec<Item> {
    let steps = [
        Step::Deadlock,
        Step::CannotGoOn,
        Step::HeldUp,
        Step::NoHangSeen,
        Step::CannotTell,
    ];
    let of = |(cause, step): (Cause, &Step)| Diagnosis {
        cause,
        step: *step,
        ..diagnosis()
    };
    let all = Cause::ALL.into_iter().zip(steps.iter().cycle());
    all.map(|one| Item::Diagnosis(of(one))).collect()
}

fn diagnosis() -> Diagnosis {
    let kinds = [
        Kind::Suspect,
        Kind::Holds,
        Kind::Gone,
        Kind::Halted,
        Kind::Waits,
        Kind::Runs,
        Kind::Progress,
        Kind::Unknown,
    ];
    let finding = |kind| Finding {
        tasks: some(),
        kind,
        what: text("waits"),
        evidence: vec![text("MPI_Recv")],
    };
    Diagnosis {
        samples: 3,
        span: Duration::from_secs(1),
        conclusion: text("rank 3 is to blame"),
        cause: Cause::Tag,
        guilty: vec![Guilty {
            tasks: some(),
            call: text("MPI_Recv"),
            ..Guilty::default()
        }],
        suspects: some(),
        step: Step::Deadlock,
        held_up_by: some(),
        circle: vec![0, 1],
        graph: WaitGraph::default(),
        doubtful: some(),
        findings: kinds.map(finding).into(),
    }
}

/// The rows of tables.
fn tables() -> Vec<Item> {
    let rank = |health| RankRow {
        program: text("ocean"),
        tasks: some(),
        state: TaskState::Exited(3),
        last: Some(Happening::Detached),
        health,
        place: None,
    };
    let point = BreakRow {
        number: 1,
        tasks: some(),
        location: text("solve"),
        condition: None,
        temporary: false,
        enabled: true,
        pending: IdSet::new(),
        places: vec![(text("solve"), text("halo.c"), 7)],
        hits: vec![(1, some())],
        commands: vec![text("silent")],
    };
    vec![
        Item::Ranks([None, Some("silent"), Some("lost")].map(rank).into()),
        Item::Breakpoints(vec![point]),
        Item::Sets(vec![SetRow {
            name: text("odd"),
            tasks: some(),
            what: String::new(),
        }]),
        Item::Nodes(vec![NodeRow {
            host: text("a"),
            servers: 1,
            tasks: some(),
            states: text("2 stopped"),
        }]),
        Item::Tree(vec![TreeRow {
            server: None,
            host: text("a"),
            depth: 0,
            tasks: some(),
            reach: some(),
            children: 1,
        }]),
        Item::Links(vec![LinkRow {
            parent: None,
            child: 0,
            hosts: (text("a"), text("b")),
            reach: some(),
            health: "reachable",
        }]),
        Item::Listing(Listing {
            tasks: some(),
            file: text("halo.c"),
            lines: vec![(7, text("solve();"), some())],
        }),
        Item::Comparison(Comparison {
            expression: text("x"),
            reference: some(),
            value: text("1"),
            elements: 1,
            others: vec![Difference {
                tasks: some(),
                count: 1,
                of: 4,
                path: text("[3]"),
                reference: None,
                value: None,
            }],
            cut: false,
        }),
    ]
}

fn plot(row: Option<usize>) -> Item {
    let odd = vec![Parsed::NotANumber, Parsed::InfiniteUp, Parsed::InfiniteDown];
    Item::Plot(Plot {
        expression: text("x"),
        over_ranks: row.is_none(),
        row,
        bounds: row.map(|_| text("0:4,2:5")),
        lines: vec![(some(), odd)],
    })
}

/// At least one item of every kind.
pub(super) fn items() -> Vec<Item> {
    let values = || vec![(some(), text("1"))];
    let output = |stream, line: &[u8]| Item::Output {
        tasks: some(),
        stream,
        line: line.to_vec(),
        complete: true,
    };
    let mut items = vec![
        Item::Start {
            session: text("00"),
            tasks: some(),
            programs: vec![(some(), vec![text("./a")])],
            pids: vec![(0, 4711)],
        },
        Item::Echo { line: text("next") },
        Item::Answer(gathered()),
        output(Stream::Stdout, b"text"),
        output(Stream::Stderr, b"\xff"),
        Item::Values {
            expression: text("x"),
            values: values(),
        },
        Item::Display {
            number: 1,
            expression: text("x"),
            values: values(),
        },
        plot(None),
        plot(Some(1)),
        Item::Stats {
            expression: text("x"),
            tasks: some(),
            stats: Box::new(numbers()),
        },
        usage(),
        super::queue_sample::queues(),
        Item::Lost {
            tasks: some(),
            why: text("gone"),
        },
        Item::Silent {
            tasks: some(),
            why: text("quiet"),
        },
        Item::Reachable { tasks: some() },
        Item::LauncherLine(text("a line")),
        Item::LauncherEnded {
            status: text("exited with code 1"),
            last_words: vec![text("a line")],
            lost: some(),
        },
        Item::Notice(text("a notice")),
        Item::Text(text("help")),
        Item::Error(Problem::default()),
        Item::End {
            code: 0,
            reason: None,
        },
    ];
    items.push(Item::Profile(Box::new(crate::profile::tests::four())));
    items.extend(tables());
    items.extend(diagnoses());
    let happened = |what| Item::Happened {
        tasks: some(),
        what,
    };
    items.extend(happenings().into_iter().map(happened));
    items
}

fn usage() -> Item {
    Item::Usage {
        tasks: some(),
        usage: TotalUsage {
            count: 1,
            resident_bytes: 1,
            peak_bytes: 1,
            largest: vec![(1, TaskId(0))],
        },
    }
}
