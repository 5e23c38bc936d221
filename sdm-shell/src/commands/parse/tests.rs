//! Parses lines, each to its command or to its error.

use sdm_debug::Command;
use sdm_debug::command::{
    BacktraceSpec, BreakSpec, CatchEvent, CatchSpec, FrameSelect, PointSpec, StepKind, ValueFormat,
    WatchKind, WatchSpec,
};

use super::*;
use crate::commands::{Displayed, JobCommand, Topic, ValuesCommand};
use UserCommand as C;

fn check(line: &str, expect: UserCommand) {
    match parse(line) {
        Ok(parsed) => assert_eq!(parsed.command, expect, "{line}"),
        Err(error) => panic!("{line}: {error}"),
    }
}

fn check_error(line: &str, at: Option<usize>, part: &str) {
    let error = parse(line).expect_err(line);
    assert_eq!(error.at, at, "{line}: {error}");
    assert!(error.message.contains(part), "{line}: {error}");
}

fn step(kind: StepKind, count: u32, background: bool) -> UserCommand {
    run(Command::Step { kind, count }, background)
}

fn run(command: Command, background: bool) -> UserCommand {
    C::Run {
        command,
        background,
    }
}

fn frame(select: FrameSelect) -> UserCommand {
    C::Ask(Command::SelectFrame(select))
}

fn gdb(line: &str) -> UserCommand {
    C::Ask(Command::Console {
        line: line.to_owned(),
    })
}

#[test]
fn gdb_words_and_abbreviations_are_parsed() {
    for line in ["continue", "c", "cont", "  c  "] {
        check(line, run(Command::Continue, false));
    }
    check("c&", run(Command::Continue, true));
    check("continue &", run(Command::Continue, true));
    check("n", step(StepKind::Over, 1, false));
    check("next 3", step(StepKind::Over, 3, false));
    check("s 2 &", step(StepKind::Into, 2, true));
    check("si", step(StepKind::Instruction, 1, false));
    check("nexti 4&", step(StepKind::InstructionOver, 4, true));
    check("fin", run(Command::Finish, false));
    check("k", C::Kill);
    check("q", C::Quit);
    check("interrupt", C::Interrupt);
    check("up", frame(FrameSelect::Move(1)));
    check("down 2", frame(FrameSelect::Move(-2)));
    check("f", frame(FrameSelect::Current));
    check("frame 3", frame(FrameSelect::Level(3)));
    check("thread 2", C::Ask(Command::SelectThread { number: 2 }));
}

#[test]
fn breakpoint_commands_with_locations_and_conditions_are_parsed() {
    let expect = |location: &str, condition: Option<&str>, temporary| {
        C::Point(PointSpec::Break(BreakSpec {
            location: location.to_owned(),
            condition: condition.map(str::to_owned),
            temporary,
            ..BreakSpec::default()
        }))
    };
    check("b halo.c:40", expect("halo.c:40", None, false));
    check(
        "break exchange if rank == 3",
        expect("exchange", Some("rank == 3"), false),
    );
    check("tb main", expect("main", None, true));
    check("delete 1 3-5", C::Delete(vec![1, 3, 4, 5]));
    check("d", C::Delete(vec![]));
    check("clear halo.c:40", C::Clear("halo.c:40".to_owned()));
    for line in ["delete 5", "delete tracepoints", "d display"] {
        let console = Command::Console {
            line: line.to_owned(),
        };
        check(&format!("gdb {line}"), C::Ask(console));
    }
    check_error("clear", Some(5), "expected a location");
    check_error("gdb del", Some(7), "the breakpoints are sdm's: write `del`");
    check_error(
        "gdb clear main",
        Some(14),
        "write `clear main` without `gdb`",
    );
    check(
        "disable 2",
        C::Enable {
            numbers: vec![2],
            enabled: false,
        },
    );
    check("i b", C::Breakpoints { watchpoints: false });
    check("i wat", C::Breakpoints { watchpoints: true });
    check("info display", C::Displays);
    check("set breakpoint pending on", C::SetPending(Some(true)));
    check("set breakpoint pending auto", C::SetPending(None));
}

#[test]
fn inspection_commands_are_parsed() {
    let print = |format: &str, expression: &str| {
        C::Ask(Command::Print {
            format: format.to_owned(),
            expression: expression.to_owned(),
        })
    };
    let call = |expression: &str| {
        C::Ask(Command::Call {
            expression: expression.to_owned(),
        })
    };
    check("print x + 1", print("", "x + 1"));
    check("p/x mask", print("x", "mask"));
    check("p*ptr", print("", "*ptr"));
    check("p (int)x", print("", "(int)x"));
    check("call f(2)", call("f(2)"));
    check("call/x f(2)", print("x", "f(2)"));
    let set = |expression: &str| {
        C::Ask(Command::SetVariable {
            expression: expression.to_owned(),
        })
    };
    check("set var x = 3", set("x = 3"));
    check("set variable y=4", set("y=4"));
    check("info locals", C::Ask(Command::Locals));
    check("i lo", C::Ask(Command::Locals));
    check("info args", C::Ask(Command::Arguments));
    check("info th", C::Ask(Command::Threads));
    check("info tree", C::About(Topic::Tree));
    check("info memory", C::Memory);
    let bt = |limit, full| {
        C::Ask(Command::Backtrace(BacktraceSpec {
            limit,
            args: true,
            full,
        }))
    };
    check("bt", bt(0, false));
    check("where 5", bt(5, false));
    check("bt --full", bt(0, true));
    check("stacks --full", C::Stacks { full: true });
    check("ranks", C::Ranks(None));
}

#[test]
fn ptype_whatis_and_registers_become_typed_commands() {
    let type_of = |expression: &str, full| {
        C::Ask(Command::TypeOf {
            expression: expression.to_owned(),
            full,
        })
    };
    check("ptype struct cell", type_of("struct cell", true));
    check("whatis x + 1", type_of("x + 1", false));
    let registers = |names: &[&str]| {
        C::Ask(Command::Registers {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            format: ValueFormat::Natural,
        })
    };
    check("info registers", registers(&[]));
    check("i r rip $sp", registers(&["rip", "$sp"]));
}

#[test]
fn other_gdb_commands_are_passed_through() {
    for (line, expect) in [
        ("gdb info line 3", "info line 3"),
        ("info registers float", "info registers float"),
        ("info record", "info record"),
        ("ptype/o struct cell", "ptype /o struct cell"),
        ("whatis", "whatis"),
        ("x/4xw p", "x/4xw p"),
        ("set print pretty on", "set print pretty on"),
        ("bt full", "backtrace full"),
        ("bt -3", "backtrace -3"),
        ("info locals x", "info locals x"),
    ] {
        check(line, gdb(expect));
    }
}

#[test]
fn sdm_commands_are_parsed() {
    let set = |text: &str, at| SetExpr::parse(text, at).unwrap();
    check("focus 0-3", C::Focus(Some(set("0-3", 6))));
    check("focus", C::Focus(None));
    let send = |text: &str, eof| C::Send {
        to: set("2", 5),
        text: text.to_owned(),
        eof,
    };
    check("send 2 hello  world", send("hello  world", false));
    check("send 2", send("", false));
    check("send 2 --eof", send("", true));
    check("output off", C::Output(Some(false)));
    for line in [
        "output ctx.rank",
        "output /x 3",
        "frame function main",
        "frame apply all p x",
        "thread name one",
        "thread find ma",
        "print -elements 3 -- values",
        "print -pretty -- point",
        "print -- -x",
    ] {
        check(line, gdb(line));
    }
    for (line, format) in [("p", ""), ("print/x", "x")] {
        let (format, expression) = (format.to_owned(), "$".to_owned());
        check(line, C::Ask(Command::Print { format, expression }));
    }
    check("l 40", C::List("40".to_owned()));
    check(
        "outliers x + 1",
        C::Values(ValuesCommand::Outliers("x + 1".to_owned())),
    );
    check(
        "defset odd @if:(r % 2)",
        C::DefineSet {
            name: "odd".to_owned(),
            set: set("@if:(r % 2)", 11),
        },
    );
    let wait = |to: Option<SetExpr>, seconds| C::Wait { to, seconds };
    check("wait", wait(None, None));
    check("wait 10", wait(None, Some(10)));
    check("wait 0-3", wait(Some(set("0-3", 5)), None));
    check("wait 3 10", wait(Some(set("3", 5)), Some(10)));
    check("ranks 0-3", C::Ranks(Some(set("0-3", 6))));
    let parsed = parse("[0-3,7] print x").unwrap();
    assert_eq!(parsed.to, Some(set("0-3,7", 1)));
    check("# a comment", C::Nothing { comment: true });
    check("", C::Nothing { comment: false });
}

#[test]
fn parse_errors_name_the_fault_and_position() {
    check_error("[0-3 print x", Some(5), "expected `,`");
    check_error("[0-3", Some(4), "expected `]`");
    check_error("defset stopped 0-3", Some(7), "a predefined set");
    check_error("[0-3]", Some(5), "expected a command");
    check_error("[] print x", Some(1), "expected a set");
    check_error("frob", Some(0), "Undefined command: \"frob\"");
    check_error("[0] de 1", Some(4), "Ambiguous command");
    check_error("next x", Some(5), "expected a count");
    check_error("next 0", Some(5), "1 or more");
    check_error("finish 3", Some(7), "takes no argument");
    check_error("catch sneeze", Some(6), "expected an event");
    check_error("watch", Some(5), "expected an expression");
    check_error("break f thread x", None, "bad thread number");
    check_error("condition x y", Some(10), "bad breakpoint number");
    check_error("call", Some(4), "expected an expression");
    check_error("| p 1 | cat", Some(0), "gdb pipe COMMAND | SHELL");
    check_error("delete x", Some(7), "bad breakpoint number 'x'");
    check_error(
        "enable once 1",
        Some(7),
        "`tbreak` sets a breakpoint that stops once",
    );
    check_error(
        "disable display 1",
        Some(8),
        "disable display: not supported",
    );
    check_error("thread 0", Some(7), "from 1");
    check_error("ranks now", Some(6), "expected a set of ranks");
    check_error("@now", Some(0), "expected a command");
    check_error("kill now", Some(5), "unexpected argument");
    check_error("wait 0", Some(5), "1 second or more");
}

#[test]
fn command_is_spelled_out_for_the_status_line() {
    for (line, expect) in [
        ("c", "continue"),
        (" [0-3] c & ", "continue &"),
        ("p/x mask", "print/x mask"),
        ("n 3", "next 3"),
        ("frob it", "frob it"),
    ] {
        assert_eq!(spelled_out(line), expect, "{line}");
    }
}

#[test]
fn breakpoint_commands_are_formatted_as_parsed() {
    for line in [
        "break halo.c:40",
        "break exchange if rank == 3",
        "tbreak main",
        "hbreak f",
        "thbreak f if x",
        "break",
        "tbreak if x > 3",
        "hbreak thread 2 if x",
        "break f thread 2 if x",
        "rbreak ^exchange_",
        "watch rod.rank",
        "watch -l *p if x > 3",
        "rwatch x",
        "awatch x",
        "catch fork",
        "catch syscall write read",
        "tcatch signal SIGUSR1 if x",
        "catch load libm",
    ] {
        let Ok(Line {
            command: C::Point(point),
            ..
        }) = parse(line)
        else {
            panic!("{line}: {:?}", parse(line));
        };
        assert_eq!(point.line(), line);
        assert!(matches!(
            point.numbered(7).insertion(),
            Command::BreakInsert(BreakSpec { number: 7, .. })
                | Command::WatchInsert(WatchSpec { number: 7, .. })
                | Command::CatchInsert(CatchSpec { number: 7, .. })
        ));
    }
    let watch = WatchSpec {
        expression: "x".to_owned(),
        kind: WatchKind::Access,
        ..WatchSpec::default()
    };
    check("awatch x", C::Point(PointSpec::Watch(watch)));
    let catch = CatchSpec {
        number: 0,
        event: CatchEvent::Throw,
        condition: None,
        temporary: false,
    };
    check("catch throw", C::Point(PointSpec::Catch(catch)));
}

#[test]
fn all_resuming_commands_of_gdb_are_parsed() {
    let place = "halo.c:40".to_owned();
    check("until", run(Command::Until { location: None }, false));
    check("u", run(Command::Until { location: None }, false));
    let location = Some(place.clone());
    check("until halo.c:40", run(Command::Until { location }, false));
    let location = place.clone();
    check(
        "advance halo.c:40 &",
        run(Command::Advance { location }, true),
    );
    check("j halo.c:40", run(Command::Jump { location: place }, false));
    check("c 3", run(Command::ContinuePast { count: 3 }, false));
    let kind = StepKind::Over;
    check("rn 2", run(Command::ReverseStep { kind, count: 2 }, false));
    check("rc", run(Command::ReverseContinue, false));
    let signal = "SIGUSR1".to_owned();
    check(
        "signal SIGUSR1",
        run(Command::ContinueSignal { signal }, false),
    );
}

#[test]
fn trace_command_is_parsed_as_print_and_continue() {
    let Ok(Line {
        command: C::Point(PointSpec::Break(spec)),
        ..
    }) = parse("trace halo.c:60 step, f(a, b)")
    else {
        panic!("no breakpoint");
    };
    assert_eq!(spec.location, "halo.c:60");
    let expect = [
        "silent",
        "echo step = \\",
        "output step",
        "echo , f(a, b) = \\",
        "output f(a, b)",
        "echo \\n",
        "continue",
    ];
    assert_eq!(spec.commands, expect);
}

#[test]
fn run_command_takes_new_arguments() {
    let again = |arguments: Option<&[&str]>, to_main, background| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        C::Job(JobCommand::Run {
            arguments: arguments.map(words),
            to_main,
            background,
        })
    };
    check("run", again(None, false, false));
    check("r &", again(None, false, true));
    check("run&", again(None, false, true));
    check("start", again(None, true, false));
    check("run 5 'b c' &", again(Some(&["5", "b c"]), false, true));
    check(r"start '*' a\ b", again(Some(&["*", "a b"]), true, false));
    let set = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        C::Job(JobCommand::Arguments(words))
    };
    check("set args", set(&[]));
    check("set args 1 -x=2", set(&["1", "-x=2"]));
    check("show args", C::Job(JobCommand::ShowArguments));
    check("show args x", gdb("show args x"));
    check("set confirm off", C::Job(JobCommand::Confirm(false)));
    check_error("run < in.txt", Some(4), "`<` has no meaning here");
    check_error("set args a $HOME", Some(11), "`$` has no meaning here");
    check_error("run 'a", Some(4), "not closed");
}

#[test]
fn everyday_gdb_commands_are_parsed() {
    let displayed = |format: &str, expression: &str| {
        C::Display(Some(Displayed {
            format: format.to_owned(),
            expression: expression.to_owned(),
        }))
    };
    check("display", C::Display(None));
    check("display x + 1", displayed("", "x + 1"));
    check("display/i $pc", displayed("i", "$pc"));
    check("delete display 1 3", C::Undisplay(vec![1, 3]));
    check("delete breakpoints 2", C::Delete(vec![2]));
    check("printf \"%d\\n\", x", gdb("printf \"%d\\n\", x"));
    check(r"echo a\tb\n", C::Echo("a\tb".to_owned()));
    check("shell ls -l", C::System("ls -l".to_owned()));
    check("!ls", C::System("ls".to_owned()));
    check("! ls -l", C::System("ls -l".to_owned()));
    check("make -j2 all", C::System("make -j2 all".to_owned()));
    let applied = |threads: &[u32], command| C::ThreadApply {
        threads: threads.to_vec(),
        command: Box::new(command),
    };
    let console = |line| applied(&[], gdb(line));
    check("thread apply all info frame", console("info frame"));
    check("t apply 1 3-4 p x", applied(&[1, 3, 4], print("x")));
    check_error("thread apply", Some(12), "expected thread numbers");
    check_error("thread apply 1", Some(14), "expected a command");
    check_error("thread apply all nonsense", Some(17), "Undefined command");
}

fn print(expression: &str) -> UserCommand {
    C::Ask(Command::Print {
        format: String::new(),
        expression: expression.to_owned(),
    })
}
