//! Phenomena of real programs: each is handled, or reported as unsupported. Real gdb, real
//! sessions; one small program per phenomenon.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};

use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Sdm, command};
use sdm_tests::united::whole;

/// A session of two ranks.
struct Case {
    fixture: &'static str,
    compiler: Compiler,
    options: &'static [&'static str],
    args: &'static [&'static str],
    /// Each command, with a part of its answer.
    commands: &'static [(&'static str, &'static str)],
    /// Texts that are shown at some time: output and notices do not wait for both ranks.
    shown: &'static [&'static str],
    /// The exit code, which is that of the program where that has ended.
    code: i32,
}

const PLAIN: Case = Case {
    fixture: "",
    compiler: Compiler::C,
    options: &["-g"],
    args: &[],
    commands: &[],
    shown: &[],
    code: 0,
};

/// Phenomena of the system: processes, programs, terminals, streams, signals.
const SYSTEM: &[Case] = &[
    Case {
        fixture: "forks",
        commands: &[
            ("break square", "breakpoint 1 at forks.c:"),
            // The children meet no breakpoint.
            ("continue", "stopped at breakpoint 1, square () at forks.c:"),
            ("info locals", "result = "),
            ("finish", "Value returned: 100\n"),
            ("continue", "ranks 0-1 (2): exited normally\n"),
        ],
        shown: &[
            "children gave 14, ",
            "and this 114\n",
            "the process has forked a child that runs without the debugger\n",
        ],
        ..PLAIN
    },
    Case {
        fixture: "forks",
        commands: &[
            ("gdb set follow-fork-mode child", ""),
            ("break square", "breakpoint 1"),
            ("continue", "stopped at breakpoint 1, square () at forks.c:"),
            ("print number", "ranks 0-1 (2): 1\n"),
            ("continue", "ranks 0-1 (2): exited with code 1\n"),
        ],
        shown: &["the debugger now follows the child that the process has forked\n"],
        code: 1,
        ..PLAIN
    },
    Case {
        fixture: "forks",
        commands: &[
            ("gdb set detach-on-fork off", ""),
            ("gdb set schedule-multiple on", ""),
            ("continue", "a child process of the rank has ended, in "),
            ("print sum >= 0", "ranks 0-1 (2): 1\n"),
            ("kill", ""),
            ("ranks", "ranks 0-1 (2)  signalled"),
        ],
        ..PLAIN
    },
    Case {
        fixture: "execs",
        args: &["one", "two"],
        commands: &[
            ("break last", "breakpoint 1"),
            ("continue", "stopped at breakpoint 1, last () at execs.c:"),
            ("bt", "ranks 0-1 (2):\n#0  last (rounds=2) at execs.c:"),
            ("finish", "Value returned: 4\n"),
            ("continue", "ranks 0-1 (2): exited with code 4\n"),
        ],
        shown: &["executes execs now\n"],
        code: 4,
        ..PLAIN
    },
    Case {
        fixture: "terminal",
        commands: &[("continue", "ranks 0-1 (2): exited normally\n")],
        shown: &["cooked, 33 columns\n", "raw, \\x1b[1mbold\\x1b[0m\n"],
        ..PLAIN
    },
    Case {
        fixture: "closes",
        commands: &[
            ("break goes_on", "breakpoint 1"),
            (
                "continue",
                "stopped at breakpoint 1, goes_on () at closes.c:",
            ),
            ("print rounds", "ranks 0-1 (2): 2\n"),
            (
                "continue",
                "ranks 0-1 (2): exited normally
",
            ),
        ],
        shown: &["before\n", " err] went on for 3 rounds\n"],
        ..PLAIN
    },
    Case {
        fixture: "signals",
        args: &["die"],
        commands: &[
            // The program handles the signal, which stops no rank unless the user asks for it.
            ("handle SIGFPE stop", "SIGFPE"),
            (
                "continue",
                "ranks 0-1 (2): received signal SIGFPE, Arithmetic exception, in raise",
            ),
            ("print got[14]", "ranks 0-1 (2): 1\n"),
            (
                "info signals SIGFPE",
                "SIGFPE     stop yes print yes pass yes",
            ),
            ("continue", "ranks 0-1 (2): terminated by signal SIGTERM\n"),
            (
                "ranks",
                "ranks 0-1 (2)  signalled  terminated by signal SIGTERM\n",
            ),
        ],
        shown: &[
            "received signal SIGUSR1, which was passed on to the program\n",
            "received signal SIGTERM, which was passed on to the program\n",
            "got USR1 3, ALRM 1, FPE 1\n",
        ],
        code: 143,
        ..PLAIN
    },
];

/// Phenomena of languages and libraries.
const LANGUAGES: &[Case] = &[
    Case {
        fixture: "containers",
        compiler: Compiler::Cxx,
        args: &["x"],
        commands: &[
            ("break look", "breakpoint 1"),
            ("catch throw", "2"),
            (
                "continue",
                "stopped at breakpoint 1, look () at containers.cc:",
            ),
            ("print grid.name", "ranks 0-1 (2): \"coarse\"\n"),
            (
                "print grid.cells",
                "std::vector of length 3, capacity 3 = {0.5, 1.5, 2.5}\n",
            ),
            (
                "print ages",
                "std::map with 2 elements = {[\"ann\"] = 31, [\"bob\"] = 42}\n",
            ),
            ("print ages.size()", ""),
            ("next 2", "look () at containers.cc:"),
            (
                "print seen",
                "std::set with 3 elements = {[0] = 1, [1] = 2, [2] = 3}\n",
            ),
            ("print owned", "std::unique_ptr<int> = {get() = "),
            (
                "continue",
                "caught exception throw (2), in __cxa_throw, called from parse () at ",
            ),
            ("print text", "ranks 0-1 (2): \"\"\n"),
            ("continue", "caught exception throw (2)"),
            ("continue", "ranks 0-1 (2): about to call abort"),
            ("bt", "parse (text=\"\") at containers.cc:"),
        ],
        shown: &["caught: nothing to parse\n"],
        code: 121,
        ..PLAIN
    },
    Case {
        fixture: "heat",
        compiler: Compiler::Fortran,
        commands: &[
            ("break step", "breakpoint 1"),
            (
                "continue",
                "ranks 0-1 (2): stopped at breakpoint 1, heat::step () at heat.f90:",
            ),
            (
                "info args",
                "  values = (0.5, 1.5, 2.5, 3.5)\n  number = 1\n",
            ),
            ("up", "heat () at heat.f90:"),
            ("print cells(-1)", "ranks 0-1 (2): 0.5\n"),
            ("print hot", "( id = 7, heat = 99.5 )\n"),
            ("print name", "'coarse'\n"),
            ("print done .eqv. .false.", ".TRUE.\n"),
            ("ptype hot", "real(kind=8) :: heat\n"),
            ("set var hot%id = 8", ""),
            ("delete", ""),
            ("continue", "ranks 0-1 (2): exited normally\n"),
        ],
        shown: &["coarse  14.00 8 T\n"],
        ..PLAIN
    },
    Case {
        fixture: "openmp",
        options: &["-g", "-fopenmp"],
        commands: &[
            ("break compute if member == 2", "breakpoint 1"),
            (
                "continue",
                "stopped at breakpoint 1, compute () at openmp.c:",
            ),
            ("bt", "#0  compute (member=2) at openmp.c:"),
            ("info threads", "compute () at openmp.c:"),
            ("stacks", " main [OpenMP region 0] () at openmp.c:"),
            ("continue", "ranks 0-1 (2): exited normally\n"),
        ],
        shown: &["sum 60\n"],
        ..PLAIN
    },
    Case {
        fixture: "recursion",
        commands: &[
            ("break bottom", "breakpoint 1"),
            (
                "continue",
                "stopped at breakpoint 1, bottom () at recursion.c:",
            ),
            ("bt 2", "#1  down (depth=20000, end=20000) at recursion.c:"),
            (
                "stacks",
                "ranks 0-1 (2): Backtrace stopped: more than 1024 frames",
            ),
            (
                "up 19999",
                "#19999 down (depth=2, end=20000) at recursion.c:",
            ),
            ("continue", "ranks 0-1 (2): exited normally\n"),
        ],
        shown: &["depth 40000\n"],
        ..PLAIN
    },
    Case {
        fixture: "numbers",
        commands: &[
            ("break look", "breakpoint 1"),
            ("continue", "look () at numbers.c:"),
            ("next 2", "look () at numbers.c:"),
            (
                "print odd",
                "{nan(0x8000000000000), -nan(0x8000000000000), inf, -inf, 0, -0, 1}\n",
            ),
            ("stats nan", "  nan     on ranks 0-1 (2)\n"),
            ("stats infinity", "  inf     on ranks 0-1 (2)\n"),
            ("stats -infinity", "  -inf    on ranks 0-1 (2)\n"),
            ("compare nan", "nan: the same on ranks 0-1 (2)\n"),
            ("[0] set var zero = nan", ""),
            ("compare zero", "nan(0x8000000000000)"),
        ],
        ..PLAIN
    },
];

fn check(case: &Case) {
    let place = Place::new();
    let program = place.compile_with(case.fixture, case.compiler, case.options);
    let lines: Vec<&str> = case.commands.iter().map(|(line, _)| *line).collect();
    let done = Sdm::run(&place, 2)
        .lines(&lines)
        .program(&program, case.args)
        .finish();
    assert_eq!(done.code, Some(case.code), "{}: {done}", case.fixture);
    let united = done.united();
    let mut answers = united.split("(sdm) ").skip(1);
    for (line, part) in case.commands {
        let answer = answers.next().and_then(|answer| answer.strip_prefix(line));
        assert!(
            answer.is_some_and(|answer| answer.contains(part)),
            "{}: `{line}` without {part:?} in {done}",
            case.fixture
        );
    }
    for part in case.shown {
        assert!(
            done.out.contains(part),
            "{}: no {part:?} in {done}",
            case.fixture
        );
    }
}

#[test]
fn programs_that_fork_exec_or_take_signals_are_debugged() {
    SYSTEM.iter().for_each(check);
}

#[test]
fn programs_of_several_languages_and_libraries_are_debugged() {
    LANGUAGES.iter().for_each(check);
}

#[test]
fn forked_daemon_runs_undebugged_and_is_reported() {
    let place = Place::new();
    let program = place.compile("daemonise", Compiler::C);
    let mut sdm = Sdm::run(&place, 1).talk().program(&program, &[]).spawn();
    sdm.out.wait(0, "rank 0: at main ()");
    let said = sdm.ask("continue", "rank 0: exited normally\n");
    let forked = "rank 0: the process has forked a child that runs without the debugger\n";
    assert!(said.contains(forked), "{said}");
    // The daemon lives until it wants to end, whatever has happened to the session's task.
    assert!(!place.pids("daemonise").is_empty());
    File::create(place.path().join("leave")).expect("a file");
    let _done = sdm.finish().code(0);
}

#[test]
fn a_hundred_megabytes_arrive_complete_and_in_order() {
    const BYTES: usize = 100_000_000;
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let path = place.path().join("out");
    let status = command(&place, binaries::folder().join("sdm"))
        .args(["run", "-n", "1", "-c", "continue", "--"])
        .arg(&work)
        .args(["lines", &BYTES.to_string()])
        .stdout(File::create(&path).expect("a file"))
        .status()
        .expect("sdm starts");
    assert!(status.success(), "{status}");
    let out = BufReader::new(File::open(&path).expect("just written"));
    let (mut line, mut bytes, mut rest, mut begun) = (0, 0, Vec::new(), String::new());
    for shown in out.lines().map(|shown| shown.expect("it is text")) {
        let Some(text) = shown.strip_prefix("[0] ") else {
            rest.push(shown);
            continue;
        };
        let Some(text) = whole(&mut begun, text) else {
            continue;
        };
        assert_eq!(text, format!("0: line {line} {}", "-".repeat(line % 97)));
        line += 1;
        bytes += text.len() + 1;
    }
    assert!(bytes >= BYTES, "{bytes}");
    let last = [
        format!("[0 err] 0: {line} lines"),
        "rank 0: exited normally".to_owned(),
    ];
    assert!(rest.ends_with(&last), "{rest:?}");
    fs::remove_file(&path).expect("it is there");
}
