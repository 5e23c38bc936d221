//! `sdm stacks` without gdb: it shows the same as gdb, and stops each process for a moment only.

use std::process::{Child, Command, Stdio};

use nix::libc;
use nix::sys::signal::Signal;
use sdm_tests::fixture;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Sdm};
use sdm_tests::terminal::Terminal;

use crate::old_kernels::without_call;

/// A process that waits for its input, and is killed when this is dropped.
pub(crate) struct Waiting(pub(crate) Child);

impl Waiting {
    pub(crate) fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let process = lower(command).spawn().expect("it is there");
        processes::wait_state(process.id(), "S");
        Self(process)
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.kill().expect("it lives");
        self.0.wait().expect("it is a child");
    }
}

pub(crate) fn stacks(args: &[&str]) -> Done {
    Sdm::new(&Place::new(), "stacks").args(args).finish()
}

#[test]
fn snapshot_without_gdb_shows_the_same_as_gdb() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("work", Compiler::C);
    let start = || Waiting::start(Command::new(&program).arg("echo"));
    let processes = [start(), start(), start()];
    let pids: Vec<String> = processes.iter().map(Waiting::pid).collect();
    let pids = pids.join(",");
    for options in [&["--pids", &pids][..], &["--pids", &pids, "--full"]] {
        let without = [options, &["--gdb", "/no/gdb"]].concat();
        let without = stacks(&without).code(0);
        let by_gdb = stacks(&[options, &["--by", "gdb"]].concat()).code(0);
        assert_eq!(without.out, by_gdb.out);
        assert!(without.out.contains("echo () at work.c:"), "{without}");
    }
    let none = stacks(&["--pids", &pids, "--by", "gdb", "--gdb", "/no/gdb"]).code(2);
    assert!(none.out.contains("/no/gdb"), "{none}");
}

#[test]
fn process_of_too_many_threads_is_refused_by_their_number() {
    let elsewhere = Place::new();
    let program = elsewhere.compile_with("crowd", Compiler::C, &["-pthread"]);
    let process = Waiting::start(Command::new(&program).arg("4096"));
    let threads = || {
        processes::of(process.0.id())
            .thread_ids()
            .map(Iterator::count)
    };
    until("all threads run", || {
        threads().is_ok_and(|count| count == 4097)
    });
    let done = stacks(&[&process.pid()]).code(2);
    let why = "the process has 4097 threads, more than are read without gdb";
    assert!(done.united().contains(why), "{done}");
    assert!(done.united().contains("--by gdb"), "{done}");
    assert!(!done.united().contains("sampling by gdb"), "{done}");
}

/// A process that a signal has stopped has the same stack as the others, but must not share their line.
#[test]
fn process_stopped_by_a_signal_is_shown_apart() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("work", Compiler::C);
    let start = || Waiting::start(Command::new(&program).arg("echo"));
    let processes = [start(), start(), start()];
    let pids: Vec<String> = processes.iter().map(Waiting::pid).collect();
    processes::signal(processes[1].0.id(), Signal::SIGSTOP);
    processes::wait_state(processes[1].0.id(), "T");
    for full in [&[][..], &["--full"]] {
        let done = stacks(&[&["--pids", &pids.join(",")], full].concat()).code(1);
        let halted = "stopped by a signal (SIGSTOP or another stop signal)";
        let apart = format!("pid {}: {halted}", pids[1]);
        let named = done.out.lines().filter(|line| line.contains(halted));
        let named: Vec<&str> = named.collect();
        assert_eq!(named.len(), 1, "{done}");
        assert!(named[0].starts_with(&apart), "{done}");
    }
}

/// gdb cannot attach to a process whose main thread has ended, and says so; the kernel shows it below its living
/// threads only.
#[test]
fn process_without_its_main_thread_is_shown() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("headless", Compiler::C);
    let mut command = Command::new(&program);
    let process = lower(command.stdin(Stdio::piped())).spawn();
    let process = Waiting(process.expect("it is there"));
    processes::wait_state(process.0.id(), "Z");
    let pid = process.pid();
    for target in [pid.as_str(), "headless"] {
        let done = stacks(&[target]).code(0);
        assert!(done.out.contains("reader () at headless.c:"), "{done}");
    }
    let threads = processes::of(process.0.id())
        .thread_ids()
        .expect("it lives");
    let thread = threads.map(|id| id.to_string()).find(|id| *id != pid);
    let thread = thread.expect("the reader");
    let refused = stacks(&[&thread]).code(2);
    let why = format!("{thread} is a thread of headless (pid {pid}): give that pid");
    assert!(refused.err.contains(&why), "{refused}");
    let attach = Sdm::new(&elsewhere, "attach")
        .args([&pid])
        .finish()
        .code(124);
    assert!(
        attach.err.contains("gdb cannot attach to such a process"),
        "{attach}"
    );
}

/// Of a stack of more than 1024 frames only the inner part is read. `sdm stacks` says so with gdb and without.
#[test]
fn stack_of_more_than_1024_frames_is_marked() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("recursion", Compiler::C);
    let deep = Waiting::start(Command::new(&program).args(["20000", "wait"]));
    let shallow = Waiting::start(Command::new(&program).args(["900", "wait"]));
    let pids = format!("{},{}", deep.pid(), shallow.pid());
    for full in [&[][..], &["--full"]] {
        let of = |how: &[&str]| stacks(&[&["--pids", &pids], how, full].concat());
        let without = of(&["--gdb", "/no/gdb"]);
        let marked = format!(
            "pid {}: Backtrace stopped: more than 1024 frames",
            deep.pid()
        );
        assert!(without.out.contains(&marked), "no {marked:?} in {without}");
        let marks = without.out.matches("Backtrace stopped").count();
        assert_eq!(marks, 1, "{without}");
        let by_gdb = of(&["--by", "gdb"]);
        assert_eq!((&without.out, without.code), (&by_gdb.out, by_gdb.code));
    }
}

/// The frames of a very deep stack are read to the depth that is shown, in every sample.
#[test]
fn process_with_a_cut_stack_is_diagnosed() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("recursion", Compiler::C);
    let deep = Waiting::start(Command::new(&program).args(["20000", "wait"]));
    let words = ["--pids", &deep.pid(), "--gdb", "/no/gdb"];
    let done = Sdm::new(&Place::new(), "diagnose").args(words).finish();
    let done = done.code(4);
    for part in [
        "called from bottom () at recursion.c:9; nothing changed",
        "in read, for data written to pipe:",
        "Backtrace stopped: more than 1024 frames",
    ] {
        assert!(done.out.contains(part), "{part}: {done}");
    }
}

#[test]
fn process_of_another_architecture_is_inspected_by_gdb() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("work", Compiler::C);
    let own = Waiting::start(Command::new(&program).arg("echo"));
    let narrow = elsewhere.path().join("narrow");
    let source = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../sdm-inspect/tests/fixtures/narrow.s"
    );
    let options = ["-g", "-Wa,--32", "-Wl,-m,elf_i386", "-nostdlib", "-static"];
    let compiled = Command::new("gcc")
        .args(options)
        .args([source, "-o"])
        .arg(&narrow)
        .status();
    assert!(compiled.expect("gcc is there").success());
    let narrow = Waiting::start(&mut Command::new(&narrow));
    let pids = format!("{},{}", own.pid(), narrow.pid());
    let both = stacks(&["--pids", &pids]).code(1);
    let said = format!("{}{}", both.out, both.err);
    let told = format!(
        "pid {}: sampling by gdb, which takes longer: the process runs on another processor architecture than sdm",
        narrow.pid()
    );
    assert!(said.contains(&told), "{both}");
    assert!(both.out.contains("echo () at work.c:"), "{both}");
    assert!(both.out.contains("narrow.s:"), "{both}");
    drop(stacks(&["--pids", &own.pid(), "--gdb", "/no/gdb"]).code(0));
}

#[test]
fn diagnosis_and_samples_need_no_gdb() {
    let elsewhere = Place::new();
    let program = elsewhere.compile("work", Compiler::C);
    let start = || Waiting::start(Command::new(&program).arg("echo"));
    let processes = [start(), start()];
    let pids: Vec<String> = processes.iter().map(Waiting::pid).collect();
    let pids = pids.join(",");
    let of = |verb: &str, options: &[&str]| {
        let fixed = ["--pids", &pids, "--gdb", "/no/gdb"];
        Sdm::new(&Place::new(), verb)
            .args([&fixed, options].concat())
            .finish()
    };
    let diagnosis = of("diagnose", &[]).code(4);
    assert!(
        diagnosis.out.contains("called from echo () at work.c:"),
        "{diagnosis}"
    );
    let samples = of("stacks", &["--for", "1", "--rate", "20", "--json"]).code(0);
    let records = samples.records();
    let profile = records.iter().find(|record| record["kind"] == "profile");
    let profile = profile.unwrap_or_else(|| panic!("no profile: {samples}"));
    assert_eq!(profile["tasks"], "0-1", "{samples}");
    let nodes = profile["nodes"].as_array().expect("nodes");
    let echo = nodes.iter().find(|node| node["function"] == "echo");
    let echo = echo.unwrap_or_else(|| panic!("no echo: {samples}"));
    assert_eq!(
        (&echo["tasks"], &echo["times"]),
        (&profile["tasks"], &profile["times"])
    );
    assert!(profile["times"].as_u64() > Some(2), "{samples}");
}

/// The output of `info memory` counts three ranks.
fn assert_memory_of_three(shown: &str) {
    for part in ["per rank on average", "rank 0: ", "rank 1: ", "rank 2: "] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
}

/// `process_vm_readv` fails, as on a kernel without this system call, or in a container whose filter forbids it.
#[test]
fn gdb_samples_where_process_vm_readv_is_refused() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = elsewhere.compile("work", Compiler::C);
    let own = Waiting::start(Command::new(&program).arg("echo"));
    let call = libc::SYS_process_vm_readv.to_string();
    let done = without_call(&place, "stacks", &call).args(["--pids", &own.pid()]);
    let done = done.finish().code(0);
    assert!(done.out.contains("echo () at work.c:"), "{done}");
    let told = "sampling by gdb, which takes longer: the kernel refuses process_vm_readv: Function not implemented";
    assert!(done.united().contains(told), "no {told:?} in {done}");
    assert_eq!(processes::tracer(own.0.id()), None);
}

#[test]
fn prompt_attaches_only_ranks_that_a_command_needs() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = elsewhere.compile("work", Compiler::C);
    let start = || Waiting::start(Command::new(&program).arg("echo"));
    let processes = [start(), start(), start()];
    let pids: Vec<String> = processes.iter().map(Waiting::pid).collect();
    let traced = || -> Vec<bool> {
        let ids = processes.iter().map(|it| it.0.id());
        ids.map(|id| processes::tracer(id).is_some()).collect()
    };
    let list = pids.join(",");
    let mut terminal = Terminal::start(&place, &["attach", "--pids", &list], 120);
    let first = terminal.wait("(sdm) ");
    assert!(first.contains("echo () at work.c:"), "{first}");
    assert!(first.contains("[all 3: 3 not attached] (sdm) "), "{first}");
    assert_eq!(traced(), [false; 3]);
    terminal.ask("diagnose", "3 not attached]");
    assert_eq!(traced(), [false; 3]);
    let memory = terminal.ask("info memory", "3 not attached]");
    assert_memory_of_three(&memory);
    assert_eq!(traced(), [false; 3]);
    let backtrace = terminal.ask("[1] bt", "2 not attached, 1 stopped]");
    assert!(backtrace.contains("echo () at work.c:"), "{backtrace}");
    assert_eq!(traced(), [false, true, false]);
    let rows = terminal.ask("ranks", "2 not attached, 1 stopped]");
    let is_row = |line: &str| line.contains(&pids[0]) && line.trim_end().ends_with("not attached");
    assert!(rows.lines().any(is_row), "{rows}");
    let told = "sampling by gdb, which takes longer: gdb is attached already";
    let told = format!("pid {}: {told}", pids[1]);
    for asked in ["stacks", "diagnose 2"] {
        let mixed = terminal.ask(asked, "2 not attached, 1 stopped]");
        assert!(mixed.contains("echo () at work.c:"), "{mixed}");
        assert!(mixed.contains(&told), "no {told:?} in {mixed}");
    }
    let memory = terminal.ask("[all] info memory", "2 not attached, 1 stopped]");
    assert_memory_of_three(&memory);
    terminal.ask("[0] detach", "1 not attached, 1 stopped, 1 detached]");
    let value = terminal.ask("[2] print 6*7", "2 stopped, 1 detached]");
    assert!(value.contains("42"), "{value}");
    assert_eq!(traced(), [false, true, true]);
    terminal.keys("quit\r");
    let (code, shown) = terminal.finish();
    assert_eq!(code, 0, "{shown}");
    assert_eq!(traced(), [false; 3]);
    place.assert_gone();
}

#[test]
fn full_screen_attaches_no_gdb_until_a_command_needs_it() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = elsewhere.compile("work", Compiler::C);
    let process = Waiting::start(Command::new(&program).arg("echo"));
    let words = ["attach", "--tui", "--pids", &process.pid()];
    let mut terminal = Terminal::start(&place, &words, 120);
    terminal.wait_displayed(&[
        "[all 1: 1 not attached]",
        "echo work.c:",
        "gdb is not attached",
    ]);
    assert_eq!(processes::tracer(process.0.id()), None);
    terminal.keys("p");
    terminal.wait_displayed(&["[all 1: 1 stopped]", "1 work.c: echo"]);
    assert!(processes::tracer(process.0.id()).is_some());
    terminal.keys("q");
    let (code, shown) = terminal.finish();
    assert_eq!(code, 0, "{shown}");
    place.assert_gone();
}

/// The main thread waits in a library without source. The lines below its call lock a mutex that it holds.
#[test]
fn lock_in_a_library_is_not_named_by_the_callers_source() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let library = elsewhere.path().join("libenters.so");
    fixture::compile(
        Compiler::C,
        "enters",
        &["-g0", "-shared", "-fPIC"],
        &library,
    );
    let program = elsewhere.path().join("enters");
    let library = library.display().to_string();
    let folder = format!("-Wl,-rpath,{}", elsewhere.path().display());
    let options = [
        "-DMAIN",
        "-Wl,--no-as-needed",
        &library,
        &folder,
        "-pthread",
    ];
    fixture::compile(Compiler::C, "enters", &options, &program);
    let process = Waiting::start(&mut Command::new(&program));
    let main = processes::of(process.0.id()).thread(process.0.id().cast_signed());
    let waits = || processes::sleeps_in(&main).is_some_and(|(call, _)| call == libc::SYS_futex);
    until("the main thread waits for the library's mutex", waits);
    for by in ["snapshot", "gdb"] {
        let words = ["--pids", &process.pid(), "--by", by];
        let done = Sdm::new(&place, "diagnose").args(words).finish().code(4);
        assert!(!done.out.contains("&own"), "{by}: {done}");
        assert!(done.out.contains(", which thread 2 holds"), "{by}: {done}");
        assert!(!done.out.contains("Deadlock"), "{by}: {done}");
    }
}

/// The code of a library that was removed is in no file that could be read.
#[test]
fn stack_in_a_removed_library_names_the_library() {
    let elsewhere = Place::new();
    let library = elsewhere.path().join("libenters.so");
    let shared = ["-g0", "-shared", "-fPIC", "-O1"];
    fixture::compile(Compiler::C, "enters", &shared, &library);
    let program = elsewhere.path().join("enters");
    let folder = format!("-Wl,-rpath,{}", elsewhere.path().display());
    let path = library.display().to_string();
    let options = ["-DMAIN", "-Wl,--no-as-needed", &path, &folder, "-pthread"];
    fixture::compile(Compiler::C, "enters", &options, &program);
    let process = Waiting::start(&mut Command::new(&program));
    let main = processes::of(process.0.id()).thread(process.0.id().cast_signed());
    let waits = || processes::sleeps_in(&main).is_some_and(|(call, _)| call == libc::SYS_futex);
    until("the main thread waits for the library's mutex", waits);
    std::fs::remove_file(&library).expect("it is there");
    let done = stacks(&["--pids", &process.pid(), "--gdb", "/no/gdb"]);
    let told = "Backtrace stopped: libenters.so was removed or replaced after it was loaded";
    assert!(done.out.contains(told), "no {told:?} in {done}");
}

/// The path of the program leads to no file any more, or to another one, as after `make` or a clean-up.
#[test]
fn removed_or_replaced_program_file_is_reported() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = elsewhere.compile("work", Compiler::C);
    let other = elsewhere.compile("numbers", Compiler::C);
    for (name, by) in [("removed", None), ("replaced", Some(&other))] {
        let copy = elsewhere.path().join(name);
        std::fs::copy(&program, &copy).expect("a copy");
        let process = Waiting::start(Command::new(&copy).arg("echo"));
        std::fs::remove_file(&copy).expect("it is there");
        if let Some(other) = by {
            std::fs::copy(other, &copy).expect("a copy");
        }
        let words = ["--pids", &process.pid(), "-c", "bt", "-c", "detach"];
        let done = Sdm::new(&place, "attach").args(words).finish().code(0);
        let told =
            "the program's file was removed or replaced after its start, so gdb has no symbols";
        assert!(done.united().contains(told), "{name}: {done}");
        assert!(!done.out.contains("numbers.c"), "{name}: {done}");
        let looked = stacks(&["--pids", &process.pid()]).code(0);
        assert!(
            looked.out.contains("echo () at work.c:"),
            "{name}: {looked}"
        );
    }
}
