//! Programs of a batch run without a gdb until something needs one.

use std::path::Path;

use nix::sys::signal::Signal;
use sdm_system::proc::State;
use sdm_tests::binaries;
use sdm_tests::counted_gdb::CountedGdb;
use sdm_tests::leftovers::holding;
use sdm_tests::place::{Compiler, Place, script};
use sdm_tests::processes::{self, signal};
use sdm_tests::relay::{Hold, Relay};
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Running, Sdm, command};

fn batch(place: &Place, gdb: &str, program: &Path, words: &[&str]) -> Done {
    Sdm::run(place, 2)
        .args(["--batch", "--no-report", "--gdb", gdb])
        .program(program, words)
        .finish()
}

/// Pids of the processes of `work spin`.
fn work(place: &Place) -> Vec<u32> {
    let mut pids = place.pids("spin");
    pids.retain(|pid| processes::name(*pid) == "work");
    pids
}

#[test]
fn programs_that_exit_normally_need_no_gdb() {
    let place = Place::new();
    let run = |name: &str, words: &[&str], printed: &str| {
        let program = place.compile_with(name, Compiler::C, &["-g", "-pthread"]);
        let done = batch(&place, "/nosuch/gdb", &program, words).code(0);
        assert!(done.united().contains(printed), "{printed}: {done}");
    };
    run("work", &["steps"], "total 6\n");
    run("forks", &[], "children gave 14, and this 114\n");
    run("handlers", &["live"], "5 faults, 1 probes\n");
    run(
        "children",
        &[],
        "ends: -6 -11 3 4 5, shell 6, threads 100\n",
    );
}

#[test]
fn program_keeps_its_exit_code_without_gdb() {
    let place = Place::new();
    let program = place.compile("execs", Compiler::C);
    let link = place.path().join("nowhere");
    let done = batch(&place, "/nosuch/gdb", &program, &["1", "2", "3"]).code(4);
    assert!(done.out.contains("exited with code 4"), "{done}");
    let done = batch(&place, "/nosuch/gdb", &link, &[]).code(127);
    assert!(done.out.contains("nowhere: no such file"), "{done}");
}

/// A crash is reported without gdb. Each rank gets one when a command needs it, and only then.
#[test]
fn crashing_rank_gets_one_gdb_when_a_command_needs_it() {
    let place = Place::new();
    let gdb = CountedGdb::new(&place);
    let program = place.compile("work", Compiler::C);
    let done = batch(&place, gdb.path(), &program, &["steps"]).code(0);
    assert_eq!(gdb.starts(), 0, "{done}");
    let line = Place::line("work.c", "*pointer = 1");
    let stopped =
        format!("received signal SIGSEGV, Segmentation fault, write_through () at work.c:{line}");
    let bt = (
        "[@crashed] bt",
        "#0  write_through (pointer=0x0) at work.c:",
    );
    let done = batch(&place, gdb.path(), &program, &["segv"]).code(139);
    assert!(done.united().contains(&stopped), "{done}");
    done.expect_part(bt.0, bt.1);
    assert_eq!(gdb.starts(), 0, "{done}");
    let value = "[@crashed] print $_siginfo.si_signo";
    let done = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", gdb.path()])
        .args(["--on-crash", value, "--on-crash", bt.0])
        .program(&program, &["segv"])
        .finish()
        .code(139);
    let told = format!("\nrank 0: {stopped}");
    assert!(!done.out.contains(&told), "only the first line: {done}");
    done.expect_part(value, "11");
    done.expect_part(bt.0, bt.1);
    assert_eq!(gdb.starts(), 1, "{done}");
    place.assert_gone();
}

/// A crash is reported with its signal and its stack although no gdb is available. No process is left.
#[test]
fn crash_is_reported_if_no_gdb_can_be_started() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let none = script(place.path(), "no-gdb", "exit 1");
    let none = none.to_str().expect("text");
    for (gdb, why) in [
        ("/nosuch/gdb", "/nosuch/gdb: no such gdb"),
        (none, "gdb exited with 1"),
    ] {
        let report = place.path().join("report.html");
        let lines = [
            "[@crashed] print 1",
            "[@crashed] bt",
            "[@crashed] info locals",
            "[@stopped] stacks",
        ];
        let done = Sdm::run(&place, 2)
            .args(["--batch", "--gdb", gdb])
            .args(lines.iter().flat_map(|line| ["--on-crash", line]))
            .args(["--report"])
            .args([&report])
            .program(&program, &["segv"])
            .finish()
            .code(139);
        let why = format!("no gdb for SIGSEGV at address 0x0: {why}");
        assert!(done.united().contains(&why), "{done}");
        let signal = "received signal SIGSEGV, Segmentation fault";
        let at = "write_through () at work.c:";
        assert!(done.united().contains(&format!("{signal}, {at}")), "{done}");
        done.expect_part(
            "[@crashed] bt",
            "#0  write_through (pointer=0x0) at work.c:",
        );
        done.expect_part("[@stopped] stacks", at);
        let page = std::fs::read_to_string(&report).expect("the report");
        for text in [signal, &why, "write_through"] {
            assert!(page.contains(text), "{text}: {page}");
        }
        place.assert_gone();
    }
}

/// Frames and plain variables of a crash are the same with a gdb and without.
#[test]
fn crash_has_the_same_plain_variables_without_gdb() {
    let place = Place::new();
    let program = place.compile("plain_values", Compiler::C);
    let asks = [
        "[@crashed] bt",
        "[@crashed] info locals",
        "[@crashed] info args",
    ];
    let [with, without] = ["gdb", "/nosuch/gdb"].map(|gdb| {
        let asks = asks.iter().flat_map(|ask| ["--on-crash", ask]);
        Sdm::run(&place, 1)
            .args(["--batch", "--no-report", "--gdb", gdb])
            .args(asks)
            .program(&program, &[])
            .finish()
            .code(139)
    });
    for ask in asks {
        let expected = with.answer(ask);
        for (line, expected) in without.answer(ask).lines().zip(expected.lines()) {
            let is_plain = !["  pair = ", "  list = "]
                .iter()
                .any(|it| line.starts_with(it));
            assert!(!is_plain || line == expected, "{line}: {with} {without}");
            assert!(
                is_plain || line.ends_with("<not read without gdb>"),
                "{without}"
            );
        }
        let is_value = |line: &&str| !line.contains("no gdb for SIGSEGV");
        let count = |done: &Done| done.answer(ask).lines().filter(is_value).count();
        assert_eq!(count(&without), count(&with), "{with} {without}");
    }
}

/// A rank that crashed without a gdb is kept stopped by its tracer only: no kill of SDM leaves it stopped.
#[test]
fn crashed_rank_without_gdb_ends_with_all_processes_of_sdm() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .args(["--on-crash", "shell exec sleep 600"])
        .program(&program, &["spin"])
        .spawn();
    until_both_spin(&running);
    let ranks = work(&place);
    signal(ranks[0], Signal::SIGSEGV);
    running.out.wait(0, "shell exec sleep 600");
    assert_eq!(processes::of(ranks[0]).state(), Some(State('t')));
    signal(running.pid(), Signal::SIGSTOP);
    let others = holding(place.mark()).into_iter().map(|(pid, _)| pid);
    let others = others.filter(|pid| !ranks.contains(pid));
    others.for_each(processes::kill_if_there);
    for rank in ranks {
        until("it is not stopped", || {
            let state = processes::of(rank).state();
            state.is_none_or(|it| !it.is_stopped() && !it.is_held())
        });
    }
    let _ = running.finish();
    place.assert_gone();
}

/// A gdb that ends while it attaches leaves no rank stopped: the rank runs into its signal.
#[test]
fn crashed_rank_ends_if_gdb_ends_while_it_attaches() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let relay = Relay::new(&place, &Hold::command(1, "-target-attach"));
    let running = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", &relay.gdb()])
        .args(["--on-crash", "[@crashed] print 1"])
        .program(&program, &["segv"])
        .spawn();
    let gdb = relay.wait(&running);
    processes::kill_if_there(gdb);
    relay.release();
    let done = running.finish().code(139);
    for shown in [
        "no gdb for SIGSEGV at address 0x0: ",
        "rank 0: terminated by signal SIGSEGV",
    ] {
        assert!(done.united().contains(shown), "{done}");
    }
    place.assert_gone();
}

/// A crashed rank without a gdb runs into its signal when it is continued, and when it is detached from.
#[test]
fn crashed_rank_without_gdb_runs_on_into_its_signal() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    for line in ["[@crashed] continue", "[@crashed] detach"] {
        let done = Sdm::run(&place, 1)
            .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
            .args(["--on-crash", line])
            .program(&program, &["segv"])
            .finish()
            .code(139);
        let ended =
            line != "[@crashed] continue" || done.united().contains("terminated by signal SIGSEGV");
        assert!(ended, "{done}");
        place.assert_gone();
    }
}

/// The kernel lets nobody attach to this program, but it was traced before it forbade that.
#[test]
fn crash_of_a_protected_program_is_reported() {
    let place = Place::new();
    let program = place.compile("protected", Compiler::C);
    let done = batch(&place, "gdb", &program, &[]).code(139);
    let united = done.united();
    let why = "no gdb for SIGSEGV at address 0x0: ptrace: Operation not permitted";
    assert!(united.contains(why), "{done}");
    place.assert_gone();
}

/// A script that begins with `continue` and only looks at ranks runs as with gdbs, and starts none.
#[test]
fn script_that_only_looks_starts_no_gdb() {
    let place = Place::new();
    let program = place.compile_with("work", Compiler::C, &["-g", "-pthread"]);
    let run = |gdbs: &[&str], words: &[&str], lines: &[&str]| {
        Sdm::run(&place, 2)
            .args(["--batch", "--no-report"])
            .args(gdbs)
            .lines(lines)
            .program(&program, words)
            .finish()
    };
    let (with, without) = (
        ["--gdb-setting", "print elements 10"],
        ["--gdb", "/nosuch/gdb"],
    );
    for (words, lines, shown) in [
        (&["steps"][..], &["continue"][..], "total 6"),
        (&["steps"], &["continue &", "wait", "ranks"], "exited"),
        (
            &["echo"],
            &["continue &", "send 0 hello", "send 0 --eof", "wait"],
            "hello",
        ),
        (&["spin"], &["continue &", "wait 1", "kill"], "SIGKILL"),
    ] {
        let [with, without] = [with, without].map(|gdbs| run(&gdbs, words, lines));
        for done in [&with, &without] {
            assert!(done.united().contains(shown), "{done}");
        }
        assert_eq!(with.code, without.code, "{with} {without}");
    }
    let lines = ["continue &", "wait 2", "stacks", "diagnose", "quit"];
    let done = run(&without, &["spin"], &lines);
    done.expect_part("stacks", "spin () at work.c:");
    done.expect_part("diagnose", "spin () at work.c:");
    // Any other script has gdbs from the start.
    let done = run(&without, &["steps"], &["continue", "print 1"]);
    assert!(done.united().contains("/nosuch/gdb: no such gdb"), "{done}");
    place.assert_gone();
}

#[test]
fn hang_is_diagnosed_without_gdb() {
    let place = Place::new();
    let program = place.compile_with("work", Compiler::C, &["-g", "-pthread"]);
    let running = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .program(&program, &["spin"])
        .spawn();
    until_both_spin(&running);
    signal(running.pid(), Signal::SIGUSR1);
    let done = running.finish().code(120);
    done.expect_part("[@stopped] diagnose", "spin () at work.c:");
    done.expect_part("[@stopped] stacks", "ranks 0-1 (2): main () at work.c:");
    place.assert_gone();
}

fn until_both_spin(running: &Running) {
    until("both spin", || {
        let text = running.out.text();
        let has = |line: &str| text.contains(line);
        has("[0-1] spinning") || has("[0] spinning") && has("[1] spinning")
    });
}

/// Begins a batch of two spinning ranks, with a gdb that starts once the second rank is stopped. Also returns the
/// pids of the ranks.
fn with_patient_gdb<'a>(place: &'a Place, options: &[&str]) -> (Running<'a>, [u32; 2]) {
    let text = "until grep -q '^State:.t' \"/proc/$(cat \"$0.other\")/status\"; do :; done\nexec gdb \"$@\"";
    let gdb = script(place.path(), "patient-gdb", text);
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(place, 2)
        .args(["--batch", "--no-report", "--time-limit", "600", "--gdb"])
        .args([&gdb])
        .args(options)
        .program(&program, &["spin"])
        .spawn();
    until_both_spin(&running);
    let pids = work(place);
    let ranks = [pids[0], pids[1]];
    std::fs::write(gdb.with_extension("other"), ranks[1].to_string()).expect("there is room");
    (running, ranks)
}

#[test]
fn crash_stops_the_other_ranks_while_gdb_reads() {
    let place = Place::new();
    let lines = ["[@crashed] print 1", "[@crashed] bt", "[@stopped] stacks"];
    let options: Vec<&str> = lines.iter().flat_map(|it| ["--on-crash", it]).collect();
    let (running, [crashes, _]) = with_patient_gdb(&place, &options);
    signal(crashes, Signal::SIGSEGV);
    let done = running.finish().code(139);
    done.expect_part("[@crashed] bt", "  spin () at work.c:");
    done.expect_part("[@stopped] stacks", "ranks 0-1 (2): main () at work.c:");
    place.assert_gone();
}

#[test]
fn other_ranks_continue_with_the_continued_rank() {
    let place = Place::new();
    let (running, ranks) = with_patient_gdb(&place, &["--on-crash", "[@crashed] continue"]);
    signal(ranks[0], Signal::SIGINT);
    running.out.wait(0, "(sdm) [@crashed] continue");
    for pid in ranks {
        signal(pid, Signal::SIGTERM);
    }
    running
        .out
        .wait_each(0, "0-1", "terminated by signal SIGTERM");
    let _ = running.finish().code(130);
}

#[test]
fn sigstop_and_sigcont_act_on_a_program_without_gdb() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .args(["--time-limit", "600"])
        .program(&program, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    let pid = work(&place)[0];
    let letter = || processes::of(pid).state().map(|state| state.0);
    signal(pid, Signal::SIGSTOP);
    until("it is stopped", || matches!(letter(), Some('T' | 't')));
    signal(pid, Signal::SIGCONT);
    until("it goes on", || matches!(letter(), Some('S' | 'R')));
    signal(pid, Signal::SIGTERM);
    let done = running.finish().code(143);
    assert!(done.out.contains("terminated by signal SIGTERM"), "{done}");
}

#[test]
fn program_ends_with_its_killed_server() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .program(&program, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    assert_eq!(work(&place).len(), 2);
    for server in processes::servers(place.mark()).into_values() {
        processes::kill_if_there(server);
    }
    let done = running.finish().code(122);
    assert!(done.out.contains("lost"), "{done}");
    place.assert_gone();
}

/// The kernel kills the program together with the process that traces it.
#[test]
fn rank_of_a_killed_shim_is_reported_lost_by_name() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .program(&program, &["spin"])
        .spawn();
    running.out.wait(0, "spinning");
    let shim = processes::tracer(work(&place)[0]).expect("it is seized");
    processes::kill_if_there(shim);
    let done = running.finish().code(122);
    let shown = "(sdm-shim-0) was killed, and the program was killed with it";
    assert!(done.united().contains(shown), "{done}");
    assert!(done.united().contains("lost: rank 0"), "{done}");
    place.assert_gone();
}

#[test]
fn rank_in_state_d_is_named_and_the_batch_ends() {
    let place = Place::new();
    let program = place.compile("vforks", Compiler::C);
    let done = Sdm::run(&place, 1)
        .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
        .args(["--hang-timeout", "1"])
        .program(&program, &[])
        .finish()
        .code(120);
    let why = "in an uninterruptible wait in the kernel (state D";
    done.expect_part("[@stopped] diagnose", why);
    done.expect_part("[@stopped] stacks", why);
}

#[test]
fn ignored_sigpipe_stays_ignored_in_the_program() {
    let place = Place::new();
    for (action, ignored) in [("''", true), ("-", false)] {
        let line = format!("trap {action} PIPE; exec \"$0\" \"$@\"");
        let done = Sdm::behind(&["/bin/sh", "-c", &line], &place, 1)
            .args(["--batch", "--no-report", "--gdb", "/nosuch/gdb"])
            .program(Path::new("/bin/grep"), &["SigIgn", "/proc/self/status"])
            .finish()
            .code(0);
        let text = done.united();
        let mask = text.split_once("SigIgn:\t").expect("it is printed").1;
        let mask = u64::from_str_radix(&mask[..16], 16).expect("16 digits");
        assert_eq!(mask >> 12 & 1 == 1, ignored, "{done}");
    }
}

#[test]
fn batch_ranks_are_sampled_by_another_sdm_command() {
    let (place, elsewhere) = (Place::new(), Place::new());
    let program = place.compile("work", Compiler::C);
    let running = Sdm::run(&place, 2)
        .args(["--batch", "--no-report", "--time-limit", "600"])
        .program(&program, &["spin"])
        .spawn();
    until_both_spin(&running);
    let ranks = work(&place);
    let pids = ranks.iter().map(u32::to_string).collect::<Vec<_>>();
    let pids = pids.join(",");
    let tracers = || ranks.iter().map(|pid| processes::tracer(*pid));
    let before: Vec<_> = tracers().collect();
    // `Sdm` would wait for the end of the batch.
    let ask = |verb: &str, more: &[&str]| {
        let mut sdm = command(&elsewhere, binaries::folder().join("sdm"));
        let asked = sdm.args([verb, "--pids", &pids]).args(more).output();
        let asked = asked.expect("sdm starts");
        let text = [asked.stdout, asked.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (asked.status.code(), text)
    };
    for verb in ["stacks", "stacks", "diagnose"] {
        let (code, text) = ask(verb, &[]);
        assert!(matches!(code, Some(0 | 1 | 4)), "{verb}: {code:?} {text}");
        assert!(text.contains("spin () at work.c"), "{verb}: {text}");
        assert!(tracers().eq(before.iter().copied()), "{verb}: {text}");
    }
    let (code, text) = ask("attach", &["-c", "bt"]);
    let refused = "in a batch session of sdm (sdm-shim-0";
    assert!(code == Some(124) && text.contains(refused), "{text}");
    signal(ranks[0], Signal::SIGSEGV);
    let done = running.finish().code(139);
    done.expect_part("[@crashed] bt", "  spin () at work.c:");
    place.assert_gone();
}
