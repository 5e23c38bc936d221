//! Sample values of every answer and event with all its fields.

use sdm_debug::event::{Phase, Stream};
use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, Holder, JoinWait, Known, LockWait, ProcessState,
    ResourceWait, TaskProbe, TaskWaits, ThreadWait, WaitFor, WindowLock, Within,
};
use sdm_debug::queues::{MessageKind, QueueMessage, QueueName, TaskQueues};
use sdm_debug::reply::{
    Access, Backtrace, BreakpointPlace, BreakpointView, CatchHit, Cost, Finding, Frame, FrameView,
    Instruction, Library, MemoryBlock, MemoryLimit, Room, SignalView, SourceText, StackFrame, Stop,
    StopReason, TaskSamples, TaskStacks, ThreadStack, ThreadView, Usage, Value, VarObject,
    Variable, WatchHit,
};
use sdm_debug::{Event, Joined, Reply, TaskState};

use super::kept::Entry;
use super::{every, payloads};

pub(super) fn entries() -> Vec<Entry> {
    [
        payloads(replies()),
        payloads(reasons()),
        payloads(catches()),
        payloads(states()),
        payloads(every!(MemoryLimit:
            MemoryLimit::Host => MemoryLimit::Host,
            MemoryLimit::Group => MemoryLimit::Group,
        )),
        payloads(events()),
        payloads(roles()),
        payloads(known()),
        payloads(waits()),
        payloads(every!(Stream:
            Stream::Stdout => Stream::Stdout,
            Stream::Stderr => Stream::Stderr,
        )),
        payloads(every!(Phase:
            Phase::Gdb => Phase::Gdb,
            Phase::Symbols => Phase::Symbols,
            Phase::Running => Phase::Running,
        )),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[expect(clippy::too_many_lines, reason = "one list of all answers")]
fn replies() -> Vec<(String, Reply)> {
    let view = FrameView {
        frame: frame(),
        source: Some(text("x = 3;")),
    };
    every!(Reply:
        Reply::Done => Reply::Done,
        Reply::Stopped(_) => Reply::Stopped(stop()),
        Reply::Exited { .. } => Reply::Exited { code: 3, before_finalize: true },
        Reply::Signalled { .. } => Reply::Signalled { signal: text("SIGSEGV") },
        Reply::Detached => Reply::Detached,
        Reply::Breakpoint(_) => Reply::Breakpoint(place()),
        Reply::Backtrace(_) => Reply::Backtrace(Backtrace { frames: vec![frame()], more: true, folded: 4 }),
        Reply::Frame(_) => Reply::Frame(view.clone()),
        Reply::Variables(_) => Reply::Variables(vec![variable()]),
        Reply::Threads(_) => Reply::Threads(vec![ThreadView {
            number: 2,
            name: text("worker"),
            frame: Some(frame()),
            current: true,
        }]),
        Reply::Value(_) => Reply::Value(value()),
        Reply::Stacks(_) => Reply::Stacks(TaskStacks {
            threads: vec![ThreadStack { count: 2, main: true, frames: vec![stack_frame()] }],
            helpers: 3,
        }),
        Reply::Status(_) => Reply::Status(TaskState::Running),
        Reply::Text(_) => Reply::Text(text("a text")),
        Reply::Mi { .. } => Reply::Mi { result: text("^done"), printed: text("printed") },
        Reply::Breakpoints(_) => Reply::Breakpoints(vec![BreakpointView {
            place: place(),
            kind: text("breakpoint"),
            what: text("solve"),
            condition: Some(text("x > 3")),
            enabled: true,
            temporary: false,
            hits: 300,
            ignore: 2,
        }]),
        Reply::Memory(_) => Reply::Memory(vec![MemoryBlock { start: 0x5555_0000, bytes: vec![1, 2, 3] }]),
        Reply::Instructions(_) => Reply::Instructions(vec![Instruction {
            address: 0x5555_0000,
            function: text("solve"),
            offset: 300,
            text: text("ret"),
            current: true,
        }]),
        Reply::Source(_) => Reply::Source(SourceText {
            file: text("solver.c"),
            path: text("/src/solver.c"),
            first: 119,
            lines: vec![text("x = 3;")],
        }),
        Reply::Libraries(_) => Reply::Libraries(vec![Library { path: text("/lib/libm.so"), symbols: true }]),
        Reply::Signals(_) => Reply::Signals(vec![SignalView {
            name: text("SIGINT"),
            stop: true,
            print: false,
            pass: true,
            meaning: text("Interrupt"),
        }]),
        Reply::VarObject(_) => Reply::VarObject(object()),
        Reply::VarChildren { .. } => Reply::VarChildren { children: vec![object()], more: true },
        Reply::Usage(_) => Reply::Usage(Usage {
            resident_bytes: 300 << 20,
            peak_bytes: 1 << 40,
        }),
        Reply::Queues(_) => Reply::Queues(queues()),
        Reply::Room(_) => Reply::Room(Room {
            gdb_bytes: 80 << 20,
            free_bytes: 1 << 30,
            limit: MemoryLimit::Group,
        }),
        Reply::Probe(_) => Reply::Probe(Box::new(probe())),
        Reply::Samples(_) => Reply::Samples(Box::new(samples())),
    )
}

pub(super) fn queues() -> TaskQueues {
    let message = |queue, peer| QueueMessage {
        kind: MessageKind {
            queue,
            is_matched: true,
            communicator: text("halves"),
            is_remote: false,
            any_peer: false,
            tag: Some(-3),
            length_bytes: 1 << 20,
        },
        world_peer: Some(peer),
        peer: Some(peer / 2),
        buffer: 0x7fff_0000,
    };
    let all = [QueueName::Sends, QueueName::Receives, QueueName::Unexpected];
    TaskQueues {
        messages: all.map(|queue| message(queue, 6)).to_vec(),
        more: 2,
        knows_unexpected: true,
    }
}

pub(super) fn probe() -> TaskProbe {
    TaskProbe {
        stacks: Some(TaskStacks::of_main(vec![stack_frame()], 3)),
        inner_changed: Some(true),
        partial: true,
        outer_changed: Some(false),
        within: Some(Within {
            depth: 1,
            frame: stack_frame(),
            changed: true,
            noted: true,
        }),
        starved: true,
        exchanged: true,
        unfollowed: true,
        waits: Some(TaskWaits {
            call: Some(Call {
                function: text("MPI_Recv"),
                place: stack_frame(),
                source: text("MPI_Recv(x, 1, MPI_INT, left, 0, comm, 0);"),
                arguments: roles()
                    .into_iter()
                    .map(|(_, role)| argument(role))
                    .collect(),
            }),
            threads: vec![ThreadWait {
                thread: 2,
                what: WaitFor::SystemCall(text("futex")),
            }],
            window_locks: vec![WindowLock {
                window: 480,
                target: Some(3),
            }],
        }),
        cpu_ms: Some(470),
        process: Some(ProcessState {
            letter: 'D',
            wait_channel: text("nfs_wait"),
        }),
    }
}

fn argument(role: ArgumentRole) -> CallArgument {
    CallArgument {
        role,
        expression: text("left"),
        value: Some(value()).filter(|_| role == ArgumentRole::File),
        number: Some(-3).filter(|_| role != ArgumentRole::File),
        known: Known::Callee,
    }
}

fn known() -> Vec<(String, Known)> {
    every!(Known:
        Known::Source => Known::Source,
        Known::Callee => Known::Callee,
        Known::Kept => Known::Kept,
    )
}

fn roles() -> Vec<(String, ArgumentRole)> {
    every!(ArgumentRole:
        ArgumentRole::Count => ArgumentRole::Count,
        ArgumentRole::Destination => ArgumentRole::Destination,
        ArgumentRole::Tag => ArgumentRole::Tag,
        ArgumentRole::Source => ArgumentRole::Source,
        ArgumentRole::ReceiveTag => ArgumentRole::ReceiveTag,
        ArgumentRole::Communicator => ArgumentRole::Communicator,
        ArgumentRole::File => ArgumentRole::File,
        ArgumentRole::Root => ArgumentRole::Root,
        ArgumentRole::Requests => ArgumentRole::Requests,
        ArgumentRole::Target => ArgumentRole::Target,
        ArgumentRole::Context => ArgumentRole::Context,
        ArgumentRole::OtherJobs => ArgumentRole::OtherJobs,
        ArgumentRole::Handle => ArgumentRole::Handle,
        ArgumentRole::Window => ArgumentRole::Window,
        ArgumentRole::Operation => ArgumentRole::Operation,
        ArgumentRole::Access => ArgumentRole::Access,
        ArgumentRole::Exposure => ArgumentRole::Exposure,
    )
}

fn waits() -> Vec<(String, WaitFor)> {
    every!(WaitFor:
        WaitFor::Lock(_) => WaitFor::Lock(LockWait {
            mutex: text("&first"),
            place: stack_frame(),
            holder: Some(2),
            orphaned: false,
        }),
        WaitFor::Join(_) => WaitFor::Join(JoinWait {
            thread: 2,
            place: stack_frame(),
        }),
        WaitFor::Polling => WaitFor::Polling,
        WaitFor::Nobody => WaitFor::Nobody,
        WaitFor::SystemCall(_) => WaitFor::SystemCall(text("futex")),
        WaitFor::Resource(_) => WaitFor::Resource(ResourceWait {
            call: text("flock"),
            what: text("the lock on /scratch/x"),
            holders: vec![Holder {
                pid: 4711,
                name: text("solver"),
                letter: 'S',
            }],
        }),
    )
}

fn reasons() -> Vec<(String, StopReason)> {
    let number = 7;
    every!(StopReason:
        StopReason::AtMain => StopReason::AtMain,
        StopReason::AtEntry => StopReason::AtEntry,
        StopReason::Breakpoint { .. } => StopReason::Breakpoint { number },
        StopReason::StepEnd => StopReason::StepEnd,
        StopReason::FunctionFinished { .. } => StopReason::FunctionFinished { value: Some(value()) },
        StopReason::Interrupted => StopReason::Interrupted,
        StopReason::Signal { .. } => StopReason::Signal {
            name: text("SIGSEGV"),
            meaning: text("Segmentation fault"),
        },
        StopReason::Internal { .. } => StopReason::Internal { what: text("MPI_Abort") },
        StopReason::Attached => StopReason::Attached,
        StopReason::Other(_) => StopReason::Other(text("fork")),
        StopReason::Watchpoint(_) => StopReason::Watchpoint(Box::new(WatchHit {
            number,
            expression: text("x"),
            old: Some(value()),
            new: Some(value()),
        })),
        StopReason::WatchpointScope { .. } => StopReason::WatchpointScope { number, expression: text("x") },
        StopReason::Catch { .. } => StopReason::Catch { number, hit: CatchHit::Fork },
        StopReason::LocationReached => StopReason::LocationReached,
        StopReason::NoHistory => StopReason::NoHistory,
        StopReason::Core { .. } => StopReason::Core {
            signal: text("SIGSEGV"),
            meaning: text("Segmentation fault"),
        },
        StopReason::Finding(_) => StopReason::Finding(Box::new(Finding {
            tool: text("AddressSanitizer"),
            kind: text("heap-buffer-overflow"),
            access: Some(Access { is_write: true, size_bytes: 4 }),
        })),
    )
}

fn catches() -> Vec<(String, CatchHit)> {
    let name = text("write");
    every!(CatchHit:
        CatchHit::Fork => CatchHit::Fork,
        CatchHit::Vfork => CatchHit::Vfork,
        CatchHit::Exec { .. } => CatchHit::Exec { program: text("heat") },
        CatchHit::SyscallEntry { .. } => CatchHit::SyscallEntry { name: name.clone() },
        CatchHit::SyscallReturn { .. } => CatchHit::SyscallReturn { name: name.clone() },
        CatchHit::Signal { .. } => CatchHit::Signal { name: text("SIGUSR1") },
        CatchHit::Exception { .. } => CatchHit::Exception { stage: text("throw") },
        CatchHit::Libraries { .. } => CatchHit::Libraries {
            loaded: vec![text("libm.so")],
            unloaded: vec![text("libz.so")],
        },
    )
}

fn states() -> Vec<(String, TaskState)> {
    every!(TaskState:
        TaskState::Absent => TaskState::Absent,
        TaskState::Starting => TaskState::Starting,
        TaskState::Stopped => TaskState::Stopped,
        TaskState::Running => TaskState::Running,
        TaskState::Exited(_) => TaskState::Exited(-1),
        TaskState::Signalled(_) => TaskState::Signalled(text("SIGSEGV")),
        TaskState::Detached => TaskState::Detached,
        TaskState::GdbDead => TaskState::GdbDead,
    )
}

fn events() -> Vec<(String, Event)> {
    every!(Event:
        Event::Output { .. } => Event::Output { stream: Stream::Stderr, bytes: b"step 3\n".to_vec() },
        Event::OutputEnd { .. } => Event::OutputEnd { stream: Stream::Stdout },
        Event::Stopped(_) => Event::Stopped(stop()),
        Event::Exited { .. } => Event::Exited { code: 3 },
        Event::Signalled { .. } => Event::Signalled { signal: text("SIGSEGV") },
        Event::SignalPassed { .. } => Event::SignalPassed { name: text("SIGUSR1") },
        Event::GdbDied { .. } => Event::GdbDied { text: text("killed") },
        Event::Progress(_) => Event::Progress(Phase::Symbols),
        Event::BreakpointPlaced(_) => Event::BreakpointPlaced(place()),
        Event::Notice { .. } => Event::Notice { text: text("a notice") },
        Event::Printed { .. } => Event::Printed { number: 7, text: text("x = 3\n") },
        Event::OutputComplete { .. } => Event::OutputComplete { command: 300 },
        Event::BreakpointRefused { .. } => Event::BreakpointRefused { number: 7, text: text("no symbol") },
        Event::Aborted { .. } => Event::Aborted { by: 2, status: 42, text: text("no input") },
        Event::Joined(_) => Event::Joined(Joined {
            by: Some(2),
            like: 0,
            program: text("worker").into(),
            args: vec![text("-v").into()],
        }),
        Event::World { .. } => Event::World { rank: 0, size: 1 },
        Event::Unchecked => Event::Unchecked,
    )
}

fn value() -> Value {
    Value {
        text: text("42"),
        cut: Some((900, 0x1122_3344_5566_7788)),
    }
}

fn variable() -> Variable {
    Variable {
        name: text("x"),
        value: value(),
    }
}

fn frame() -> Frame {
    Frame {
        level: 2,
        function: text("solve"),
        file: text("solver.c"),
        path: text("/src/solver.c"),
        line: 120,
        module: text("libheat.so"),
        args: vec![variable()],
    }
}

fn stop() -> Stop {
    Stop {
        reason: StopReason::Breakpoint { number: 7 },
        frame: Some(frame()),
        inside: Some(text("MPI_Recv")),
        source: Some(text("x = 3;")),
    }
}

fn place() -> BreakpointPlace {
    BreakpointPlace {
        number: 7,
        pending: true,
        places: vec![(text("solve"), text("solver.c"), 120)],
    }
}

pub(super) fn stack_frame() -> StackFrame {
    StackFrame {
        module: text("libheat.so"),
        function: text("solve"),
        file: text("solver.c"),
        line: 120,
        repeat: 50,
    }
}

fn object() -> VarObject {
    VarObject {
        name: text("v1"),
        expression: text("grid"),
        type_name: text("int [4]"),
        value: value(),
        children: 4,
        more: true,
        pretty: true,
    }
}

pub(super) fn samples() -> TaskSamples {
    TaskSamples {
        looks: 10,
        moves: 3,
        stacks: vec![(300, vec![stack_frame()]), (7, vec![stack_frame(); 2])],
        helpers: 20,
        cost: Cost {
            stood_us: 2100,
            longest_us: 900,
            processor_us: 50_000,
        },
    }
}
