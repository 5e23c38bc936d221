//! Tests of `until`, `advance` and `jump`, values, memory, registers, source, types, signals and core files.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sdm_debug::command::{BacktraceSpec, CoreSpec, FrameSelect, StepKind, ValueFormat, WatchSpec};
use sdm_debug::reply::{MemoryBlock, SignalView, SourceText, StopReason};
use sdm_debug::{Command, FailureCode, Reply, TaskState};

use crate::harness::{Harness, break_spec, code, in_fortran, place, start_in_caller, stopped};

fn at(location: &str) -> String {
    location.to_owned()
}

#[test]
fn until_advance_and_finish_stop_at_their_location() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    let advance = |location: &str| Command::Advance {
        location: at(location),
    };
    let stop = stopped(harness.ask(advance("late")));
    assert_eq!(
        (stop.reason.clone(), place(&stop)),
        (StopReason::LocationReached, ("late", 31))
    );
    assert_eq!(code(harness.ask(advance("nosuch"))), FailureCode::Gdb);
    assert_eq!(harness.state(), TaskState::Stopped);
    let until = |location: Option<&str>| Command::Until {
        location: location.map(at),
    };
    let stop = stopped(harness.ask(until(Some("33"))));
    assert_eq!(place(&stop), ("late", 33));
    assert_eq!(
        code(harness.ask(until(Some("nosuch.c:1")))),
        FailureCode::Gdb
    );
    let stop = stopped(harness.ask(Command::Finish));
    let StopReason::FunctionFinished { value: Some(value) } = stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(value.text, "4");
    let stop = stopped(harness.ask(until(None)));
    assert_eq!(place(&stop), ("main", 48));
}

#[test]
fn jump_return_and_call_execute_and_refuse_bad_arguments() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    let jump = |location: &str| Command::Jump {
        location: at(location),
    };
    harness.break_at(1, "late").unwrap();
    let stop = stopped(harness.ask(jump("47")));
    assert_eq!(
        (stop.reason.clone(), place(&stop).0),
        (StopReason::Breakpoint { number: 1 }, "late")
    );
    assert_eq!(code(harness.ask(jump("nosuch"))), FailureCode::Gdb);
    let back = |value: &str| Command::Return {
        value: Some(value.to_owned()),
    };
    let Ok(Reply::Frame(view)) = harness.ask(back("77")) else {
        panic!("no frame");
    };
    assert_eq!(
        (view.frame.function.as_str(), view.frame.line),
        ("main", 47)
    );
    assert_eq!(code(harness.ask(back("nosuch"))), FailureCode::Gdb);
    let step = Command::Step {
        kind: StepKind::Over,
        count: 1,
    };
    stopped(harness.ask(step));
    assert_eq!(harness.evaluate("result").unwrap().text, "77");
    let call = |expression: &str| Command::Call {
        expression: expression.to_owned(),
    };
    let Ok(Reply::Value(value)) = harness.ask(call("add (40, 2)")) else {
        panic!("no value");
    };
    assert_eq!(value.text, "42");
    assert_eq!(harness.evaluate("called").unwrap().text, "1");
    assert_eq!(harness.ask(call("reset ()")), Ok(Reply::Done));
    assert_eq!(harness.evaluate("called").unwrap().text, "0");
    // A call that stops at a breakpoint remains there.
    assert_eq!(code(harness.ask(call("late (1)"))), FailureCode::Gdb);
    harness.wait_event(|event| matches!(event, sdm_debug::Event::Stopped(_)));
    let failure = harness.ask(Command::ContinueSignal {
        signal: "NOSUCH".to_owned(),
    });
    assert_eq!(code(failure), FailureCode::Gdb);
    let signal = "SIGTERM".to_owned();
    let end = harness.ask(Command::ContinueSignal {
        signal: signal.clone(),
    });
    assert_eq!(end, Ok(Reply::Signalled { signal }));
    let until = Command::Until { location: None };
    assert_eq!(code(harness.ask(until)), FailureCode::NotRunning);
}

#[test]
fn memory_is_read_and_written() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    let read = |address: &str, length| Command::MemoryRead {
        address: address.to_owned(),
        length,
    };
    let Ok(Reply::Memory(blocks)) = harness.ask(read("&bytes", 6)) else {
        panic!("no memory");
    };
    let [MemoryBlock { start, bytes }] = &blocks[..] else {
        panic!("{blocks:?}");
    };
    assert_eq!(bytes, &[1, 2, 3, 4, 0xff, 0]);
    let write = |bytes: Vec<u8>| Command::MemoryWrite {
        address: format!("{start:#x}"),
        bytes,
    };
    assert_eq!(harness.ask(write(vec![9, 8])), Ok(Reply::Done));
    assert_eq!(harness.evaluate("bytes[1]").unwrap().text, "8 '\\b'");
    assert_eq!(code(harness.ask(read("0", 8))), FailureCode::Gdb);
    assert_eq!(code(harness.ask(read("nosuch", 8))), FailureCode::Gdb);
    assert_eq!(
        code(harness.ask(read("&bytes", 0))),
        FailureCode::BadCommand
    );
    assert_eq!(
        code(harness.ask(read("&bytes", u32::MAX))),
        FailureCode::Limit
    );
    assert_eq!(
        code(harness.ask(write(Vec::new()))),
        FailureCode::BadCommand
    );
    let unmapped = Command::MemoryWrite {
        address: "0".to_owned(),
        bytes: vec![1],
    };
    assert_eq!(code(harness.ask(unmapped)), FailureCode::Gdb);
}

#[test]
fn registers_and_instructions_are_read() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    let registers = |names: &[&str]| Command::Registers {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        format: ValueFormat::Hexadecimal,
    };
    let Ok(Reply::Variables(all)) = harness.ask(registers(&[])) else {
        panic!("no registers");
    };
    assert!(all.len() > 8, "{all:?}");
    let Ok(Reply::Variables(one)) = harness.ask(registers(&["pc"])) else {
        panic!("no register");
    };
    let pc = harness.evaluate("(long)$pc").unwrap().text;
    assert_eq!(
        one[0].value.text,
        format!("{:#x}", pc.parse::<u64>().unwrap())
    );
    assert_eq!(
        code(harness.ask(registers(&["nosuch"]))),
        FailureCode::NoSuchThing
    );
    let disassemble = |address: Option<&str>| Command::Disassemble {
        address: address.map(ToOwned::to_owned),
    };
    let Ok(Reply::Instructions(list)) = harness.ask(disassemble(None)) else {
        panic!("no instructions");
    };
    assert_eq!(list.iter().filter(|one| one.current).count(), 1);
    assert!(list.iter().all(|one| one.function == "main"));
    let Ok(Reply::Instructions(list)) = harness.ask(disassemble(Some("&late"))) else {
        panic!("no instructions");
    };
    assert_eq!((list[0].function.as_str(), list[0].offset), ("late", 0));
    assert_eq!(
        code(harness.ask(disassemble(Some("nosuch")))),
        FailureCode::Gdb
    );
}

#[test]
fn source_types_and_libraries_are_listed() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    let list = |what: &str| Command::List {
        what: what.to_owned(),
    };
    let Ok(Reply::Source(source)) = harness.ask(list("17,19")) else {
        panic!("no source");
    };
    let expect = SourceText {
        file: "values.c".to_owned(),
        path: source.path.clone(),
        first: 17,
        lines: ["", "static int add(int left, int right)", "{"]
            .map(at)
            .to_vec(),
    };
    assert_eq!(source, expect);
    let Ok(Reply::Source(next)) = harness.ask(list("")) else {
        panic!("no source");
    };
    assert_eq!(next.first, 20);
    assert_eq!(code(harness.ask(list("nosuch"))), FailureCode::Gdb);
    assert_eq!(code(harness.ask(list("9999"))), FailureCode::Gdb);
    let type_of = |expression: &str, full| Command::TypeOf {
        expression: expression.to_owned(),
        full,
    };
    let text = |text: &str| Ok(Reply::Text(text.to_owned()));
    assert_eq!(
        harness.ask(type_of("outer", false)),
        text("type = struct outer")
    );
    let members = "type = struct inner {\n    int number;\n    char name[8];\n}";
    assert_eq!(harness.ask(type_of("struct inner", true)), text(members));
    assert_eq!(code(harness.ask(type_of("nosuch", true))), FailureCode::Gdb);
    let Ok(Reply::Libraries(libraries)) = harness.ask(Command::Libraries) else {
        panic!("no libraries");
    };
    assert!(
        libraries
            .iter()
            .any(|library| library.path.contains("libc.so"))
    );
}

#[test]
fn handle_changes_stop_print_and_pass_of_signals() {
    let mut harness = Harness::new();
    let program = harness.compile("crash", &[]);
    harness.start(&program, &["usr1"]);
    let signals = |names: &[&str]| Command::Signals {
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    };
    let Ok(Reply::Signals(list)) = harness.ask(signals(&["SIGUSR1", "int"])) else {
        panic!("no signals");
    };
    let flags = |view: &SignalView| (view.stop, view.print, view.pass);
    assert_eq!(
        list.iter().map(flags).collect::<Vec<_>>(),
        [(false, true, true), (true, true, false)]
    );
    assert_eq!(code(harness.ask(signals(&["NOSUCH"]))), FailureCode::Gdb);
    let handle = |name: &str, stop| Command::SignalHandle {
        names: vec![name.to_owned()],
        stop: Some(stop),
        print: None,
        pass: None,
    };
    let Ok(Reply::Signals(list)) = harness.ask(handle("USR1", true)) else {
        panic!("no signals");
    };
    assert_eq!(flags(&list[0]), (true, true, true));
    for name in ["SIGSTOP", "SIGTRAP"] {
        assert_eq!(
            code(harness.ask(handle(name, false))),
            FailureCode::Unsupported
        );
    }
    assert_eq!(
        code(harness.ask(handle("nosuch; shell", true))),
        FailureCode::Gdb
    );
    let stop = stopped(harness.run_on());
    assert!(matches!(&stop.reason, StopReason::Signal { name, .. } if name == "SIGUSR1"));
    // The program can still be interrupted if SIGINT is to be passed to it.
    let program = harness.compile("spin", &[]);
    harness.ask(Command::Kill).unwrap();
    harness.start(&program, &[]);
    harness.ask(handle("SIGINT", false)).unwrap();
    let run = harness.send(Command::Continue);
    harness.wait_output(sdm_debug::event::Stream::Stdout, "spinning");
    assert_eq!(harness.ask(Command::Interrupt), Ok(Reply::Done));
    assert_eq!(stopped(harness.answer(run)).reason, StopReason::Interrupted);
}

#[test]
fn recorded_run_is_executed_in_reverse() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "overwrite").unwrap();
    stopped(harness.run_on());
    let back = |count| Command::ReverseStep {
        kind: StepKind::Over,
        count,
    };
    assert_eq!(code(harness.ask(back(1))), FailureCode::Gdb);
    let line = "record".to_owned();
    harness.ask(Command::Console { line }).unwrap();
    harness.ask(Command::BreakDelete { number: 1 }).unwrap();
    let step = Command::Step {
        kind: StepKind::Over,
        count: 2,
    };
    stopped(harness.ask(step));
    assert_eq!(harness.evaluate("outer->first.number").unwrap().text, "8");
    let stop = stopped(harness.ask(back(1)));
    assert_eq!(stop.reason, StopReason::StepEnd);
    let stop = stopped(harness.ask(Command::ReverseContinue));
    assert_eq!(stop.reason, StopReason::NoHistory);
    assert_eq!(harness.evaluate("outer->first.number").unwrap().text, "6");
}

/// Writes a core file of the stopped program, and ends it.
fn save_core(harness: &mut Harness) -> PathBuf {
    let core = harness.directory.join("core");
    let line = format!("generate-core-file {}", core.display());
    harness.ask(Command::Console { line }).unwrap();
    harness.ask(Command::Kill).unwrap();
    core
}

fn load(program: &Path, core: &Path) -> Command {
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    Command::LoadCore(CoreSpec {
        cores: vec![(0, bytes(core))],
        program: bytes(program),
        gdb: None,
    })
}

#[test]
fn core_file_of_a_fortran_program_has_its_signal() {
    let at = break_spec(1, "lengths.f90:7");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "lengths", at) else {
        return;
    };
    let program = harness.directory.join("lengths");
    let core = save_core(&mut harness);
    let stop = stopped(harness.ask(load(&program, &core)));
    let StopReason::Core { signal, .. } = &stop.reason else {
        panic!("{stop:?}");
    };
    assert_eq!(signal, "SIGTRAP");
}

#[test]
fn core_file_is_opened_and_inspected() {
    let mut harness = Harness::new();
    let program = harness.compile("values", &[]);
    harness.start(&program, &[]);
    harness.break_at(1, "overwrite").unwrap();
    stopped(harness.run_on());
    let core = save_core(&mut harness);
    let missing = harness.directory.join("nosuch");
    for wrong in [&missing, &program] {
        assert_eq!(code(harness.ask(load(&program, wrong))), FailureCode::Gdb);
    }
    let stop = stopped(harness.ask(load(&program, &core)));
    assert!(matches!(stop.reason, StopReason::Core { .. }), "{stop:?}");
    assert_eq!(place(&stop).0, "overwrite");
    assert_eq!(harness.evaluate("outer->second->number").unwrap().text, "7");
    assert!(matches!(
        harness.ask(Command::Stacks { full: false }),
        Ok(Reply::Stacks(_))
    ));
    for command in [Command::Continue, Command::Kill, Command::Finish] {
        assert_eq!(code(harness.ask(command)), FailureCode::Unsupported);
    }
    assert_eq!(code(harness.break_at(2, "main")), FailureCode::Unsupported);
    assert_eq!(harness.ask(Command::Detach), Ok(Reply::Done));
    assert_eq!(harness.state(), TaskState::Detached);
}

#[test]
fn optimized_out_variables_are_listed() {
    let mut harness = Harness::new();
    let program = harness.compile("optimizer", &["-O2"]);
    start_in_caller(&mut harness, &program, "look");
    for (command, line, parts) in [
        (
            Command::Locals,
            "info locals",
            ["constant = 7", "left_out = <optimized out>", "kept = 6"],
        ),
        (
            Command::Arguments,
            "info args",
            ["used = 1", "unused = 2", "same = 5"],
        ),
    ] {
        let Ok(Reply::Variables(listed)) = harness.ask(command) else {
            panic!("no list for {line}");
        };
        let listed = listed
            .iter()
            .map(|it| format!("{} = {}\n", it.name, it.value.text));
        let listed: String = listed.collect();
        for part in parts {
            assert!(listed.contains(part), "no {part:?} in {listed}");
        }
        let console = Command::Console {
            line: line.to_owned(),
        };
        assert_eq!(harness.ask(console), Ok(Reply::Text(listed)));
    }
    let spec = BacktraceSpec {
        args: true,
        ..BacktraceSpec::default()
    };
    let Ok(Reply::Backtrace(backtrace)) = harness.ask(Command::Backtrace(spec)) else {
        panic!("no backtrace");
    };
    let args = backtrace.frames[1].args.iter();
    let args: Vec<_> = args.map(|arg| (&*arg.name, &*arg.value.text)).collect();
    assert_eq!(args, [("used", "1"), ("unused", "2"), ("same", "5")]);
}

#[test]
fn watchpoint_without_a_value_is_refused_or_reported() {
    let mut harness = Harness::new();
    let program = harness.compile("optimizer", &["-O2"]);
    harness.start(&program, &[]);
    harness.break_at(1, "optimizer.c:19").unwrap();
    let watch = |number, expression: &str| {
        Command::WatchInsert(WatchSpec {
            number,
            expression: expression.to_owned(),
            ..WatchSpec::default()
        })
    };
    stopped(harness.run_on());
    harness.ask(watch(2, "fleeting")).unwrap();
    let stop = stopped(harness.run_on());
    let text = "watchpoint 2 (fleeting) was removed, because its value is optimized out here";
    assert_eq!(stop.reason, StopReason::Other(text.to_owned()));
    let up = Command::SelectFrame(FrameSelect::Move(1));
    harness.ask(up).unwrap();
    let refused = harness.ask(watch(3, "fleeting")).unwrap_err();
    let text = "`fleeting` is optimized out here, so it cannot be watched";
    assert_eq!((refused.code, &*refused.text), (FailureCode::Gdb, text));
}

#[test]
fn gdb_survives_variables_with_undefined_bounds() {
    let at = break_spec(1, "lengths.f90:35");
    let Some((mut harness, _)) = in_fortran(Harness::new(), "lengths", at) else {
        return;
    };
    let Ok(Reply::Variables(locals)) = harness.ask(Command::Locals) else {
        panic!("no locals");
    };
    let whole = locals.iter().find(|local| local.name == "it");
    let value = &whole.expect("it is a local variable").value;
    assert!(value.text.starts_with("( many = (1, 2, "), "{value:?}");
    assert!(value.cut.is_some(), "{value:?}");
    assert_eq!(harness.evaluate("it%many(300)").unwrap().text, "300");
}
