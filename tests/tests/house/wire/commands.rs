//! Commands with all that they carry, and the settings of a backend.

use sdm_debug::command::{
    Arrangement, AttachSpec, BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, CoreSpec,
    FrameSelect, LookSpec, PointSpec, ProbeSpec, SampleSpec, StartPoint, StartSpec, StepKind,
    StopAt, ValueFormat, WatchKind, WatchSpec,
};
use sdm_debug::{BackendSettings, Command, GdbOptions, PmixJob};

use super::kept::Entry;
use super::{every, payloads, set};

pub(super) fn entries() -> Vec<Entry> {
    [
        payloads(commands()),
        payloads(points()),
        payloads(catches()),
        payloads(kinds()),
        payloads(every!(WatchKind:
            WatchKind::Write => WatchKind::Write,
            WatchKind::Read => WatchKind::Read,
            WatchKind::Access => WatchKind::Access,
        )),
        payloads(formats()),
        payloads(every!(FrameSelect:
            FrameSelect::Current => FrameSelect::Current,
            FrameSelect::Level(_) => FrameSelect::Level(3),
            FrameSelect::Move(_) => FrameSelect::Move(-1),
        )),
        payloads(every!(StopAt:
            StopAt::Main => StopAt::Main,
            StopAt::Nowhere => StopAt::Nowhere,
        )),
        payloads(every!(Arrangement:
            Arrangement::Auto => Arrangement::Auto,
            Arrangement::PerTask => Arrangement::PerTask,
            Arrangement::Shared => Arrangement::Shared,
        )),
        payloads(settings()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[expect(clippy::too_many_lines, reason = "one list of all commands")]
fn commands() -> Vec<(String, Command)> {
    let (number, expression, location) = (7, text("x + 1"), text("solver.c:120"));
    let name = text("v1");
    every!(Command:
        Command::Start(_) => Command::Start(start()),
        Command::Attach(_) => Command::Attach(AttachSpec {
            pids: vec![(3, 4242)],
            read_only: true,
            held: true,
            gdb: Some(b"/opt/gdb".to_vec()),
            arrangement: Arrangement::Shared,
        }),
        Command::Detach => Command::Detach,
        Command::Kill => Command::Kill,
        Command::BreakInsert(_) => Command::BreakInsert(breakpoint()),
        Command::BreakDelete { .. } => Command::BreakDelete { number },
        Command::BreakEnable { .. } => Command::BreakEnable { number, enabled: true },
        Command::Continue => Command::Continue,
        Command::Step { .. } => Command::Step { kind: StepKind::Over, count: 3 },
        Command::Finish => Command::Finish,
        Command::Interrupt => Command::Interrupt,
        Command::Backtrace(_) => Command::Backtrace(BacktraceSpec { limit: 20, args: true, full: true }),
        Command::Stacks { .. } => Command::Stacks { full: true },
        Command::SelectFrame(_) => Command::SelectFrame(FrameSelect::Level(2)),
        Command::Locals => Command::Locals,
        Command::Arguments => Command::Arguments,
        Command::Threads => Command::Threads,
        Command::SelectThread { .. } => Command::SelectThread { number: 2 },
        Command::Evaluate { .. } => Command::Evaluate { expression: expression.clone() },
        Command::SetVariable { .. } => Command::SetVariable { expression: text("x = 3") },
        Command::Stdin { .. } => Command::Stdin { offset: 300, bytes: b"7\n".to_vec(), eof: true },
        Command::Status => Command::Status,
        Command::Console { .. } => Command::Console { line: text("info line") },
        Command::Mi { .. } => Command::Mi { line: text("-stack-info-depth") },
        Command::BreakCondition { .. } => Command::BreakCondition { number, condition: Some(expression.clone()) },
        Command::BreakIgnore { .. } => Command::BreakIgnore { number, count: 4 },
        Command::BreakCommands { .. } => Command::BreakCommands { number, lines: vec![text("print x")] },
        Command::Breakpoints => Command::Breakpoints,
        Command::WatchInsert(_) => Command::WatchInsert(watch()),
        Command::CatchInsert(_) => Command::CatchInsert(catch()),
        Command::ContinuePast { .. } => Command::ContinuePast { count: 3 },
        Command::Until { .. } => Command::Until { location: Some(location.clone()) },
        Command::Advance { .. } => Command::Advance { location: location.clone() },
        Command::Jump { .. } => Command::Jump { location: location.clone() },
        Command::ContinueSignal { .. } => Command::ContinueSignal { signal: text("SIGUSR1") },
        Command::ReverseContinue => Command::ReverseContinue,
        Command::ReverseStep { .. } => Command::ReverseStep { kind: StepKind::Into, count: 2 },
        Command::Call { .. } => Command::Call { expression: text("reset (grid)") },
        Command::Return { .. } => Command::Return { value: Some(text("3")) },
        Command::MemoryRead { .. } => Command::MemoryRead { address: text("&x"), length: 300 },
        Command::MemoryWrite { .. } => Command::MemoryWrite { address: text("&x"), bytes: vec![1, 2] },
        Command::Registers { .. } => Command::Registers {
            names: vec![text("rip")],
            format: ValueFormat::Hexadecimal,
        },
        Command::Disassemble { .. } => Command::Disassemble { address: Some(text("main")) },
        Command::List { .. } => Command::List { what: text("5,9") },
        Command::Libraries => Command::Libraries,
        Command::Signals { .. } => Command::Signals { names: vec![text("SIGINT")] },
        Command::SignalHandle { .. } => Command::SignalHandle {
            names: vec![text("SIGINT")],
            stop: Some(true),
            print: Some(false),
            pass: None,
        },
        Command::TypeOf { .. } => Command::TypeOf { expression: expression.clone(), full: true },
        Command::VarCreate { .. } => Command::VarCreate { name: name.clone(), expression: expression.clone() },
        Command::VarChildren { .. } => Command::VarChildren { name: name.clone(), from: 10, count: 20 },
        Command::VarAssign { .. } => Command::VarAssign { name: name.clone(), value: text("3") },
        Command::VarDelete { .. } => Command::VarDelete { name: name.clone() },
        Command::LoadCore(_) => Command::LoadCore(CoreSpec {
            cores: vec![(3, b"core.3".to_vec())],
            program: b"./heat".to_vec(),
            gdb: Some(b"/opt/gdb".to_vec()),
        }),
        Command::Room(_) => Command::Room(StartSpec::default()),
        Command::Print { .. } => Command::Print { format: text("x"), expression: expression.clone() },
        Command::Probe(_) => Command::Probe(ProbeSpec { compare: true, waits: true }),
        Command::Usage => Command::Usage,
        Command::Queues => Command::Queues,
        Command::Look(_) => Command::Look(LookSpec { pids: vec![(3, 4711)], full: true, probe: Some(ProbeSpec { compare: true, waits: false }) }),
        Command::Sample(_) => Command::Sample(SampleSpec {
            look: LookSpec { pids: vec![(3, 4711)], full: false, probe: None },
            span_ms: 1000,
            period_ms: 100,
            goes_on: true,
        }),
        Command::Hold => Command::Hold,
        Command::ProcessUsage { .. } => Command::ProcessUsage { pids: vec![(3, 4711)] },
    )
}

fn start() -> StartSpec {
    let word = |text: &str| text.as_bytes().to_vec();
    StartSpec {
        program: word("./heat"),
        args: vec![word("-n"), word("9")],
        environment: vec![(word("A"), Some(word("1"))), (word("B"), None)],
        directory: Some(word("/tmp")),
        stop: StopAt::Nowhere,
        gdb: Some(word("/opt/gdb")),
        stdin_tasks: set("0-3"),
        wrapper: vec![word("numactl")],
        points: vec![StartPoint {
            tasks: set("0-998/2"),
            spec: PointSpec::Break(breakpoint()),
            enabled: true,
        }],
        settings: vec![(set("0-7"), text("set print pretty"))],
        gdb_when_needed: true,
    }
}

fn breakpoint() -> BreakSpec {
    BreakSpec {
        number: 7,
        location: text("solver.c:120"),
        condition: Some(text("x > 3")),
        temporary: true,
        pending: false,
        ignore: 4,
        hardware: true,
        thread: Some(2),
        commands: vec![text("print x")],
        regex: false,
    }
}

fn watch() -> WatchSpec {
    WatchSpec {
        number: 8,
        expression: text("x"),
        kind: WatchKind::Access,
        location: true,
        condition: Some(text("x > 3")),
        ignore: 2,
    }
}

fn catch() -> CatchSpec {
    CatchSpec {
        number: 9,
        event: CatchEvent::Throw,
        condition: Some(text("x > 3")),
        temporary: true,
    }
}

fn points() -> Vec<(String, PointSpec)> {
    every!(PointSpec:
        PointSpec::Break(_) => PointSpec::Break(breakpoint()),
        PointSpec::Watch(_) => PointSpec::Watch(watch()),
        PointSpec::Catch(_) => PointSpec::Catch(catch()),
    )
}

fn catches() -> Vec<(String, CatchEvent)> {
    every!(CatchEvent:
        CatchEvent::Fork => CatchEvent::Fork,
        CatchEvent::Vfork => CatchEvent::Vfork,
        CatchEvent::Exec => CatchEvent::Exec,
        CatchEvent::Syscall(_) => CatchEvent::Syscall(vec![text("write")]),
        CatchEvent::Signal(_) => CatchEvent::Signal(vec![text("SIGUSR1")]),
        CatchEvent::Throw => CatchEvent::Throw,
        CatchEvent::Rethrow => CatchEvent::Rethrow,
        CatchEvent::Catch => CatchEvent::Catch,
        CatchEvent::Load(_) => CatchEvent::Load(text("libm")),
        CatchEvent::Unload(_) => CatchEvent::Unload(text("libm")),
    )
}

fn kinds() -> Vec<(String, StepKind)> {
    every!(StepKind:
        StepKind::Into => StepKind::Into,
        StepKind::Over => StepKind::Over,
        StepKind::Instruction => StepKind::Instruction,
        StepKind::InstructionOver => StepKind::InstructionOver,
    )
}

fn formats() -> Vec<(String, ValueFormat)> {
    every!(ValueFormat:
        ValueFormat::Natural => ValueFormat::Natural,
        ValueFormat::Hexadecimal => ValueFormat::Hexadecimal,
    )
}

/// Backend settings in the session's configuration, for every server.
fn settings() -> Vec<(String, BackendSettings)> {
    every!(BackendSettings:
        BackendSettings::Gdb => BackendSettings::Gdb,
        BackendSettings::Fake { .. } => BackendSettings::Fake { scenario: text("exit 3") },
        BackendSettings::GdbWith(_) => BackendSettings::GdbWith(GdbOptions {
            settings: vec![text("set width 0")],
            system_debug: true,
            debuginfod: false,
            init_files: true,
            no_holds: false,
        }),
        BackendSettings::GdbHosted { .. } => BackendSettings::GdbHosted {
            options: GdbOptions::default(),
            pmix: PmixJob {
                needed: true,
                is_system: false,
                nodes: vec![(text("n1"), set("0-3")), (text("n2"), set("4"))],
                spare: set("5-99"),
            },
        },
    )
}
