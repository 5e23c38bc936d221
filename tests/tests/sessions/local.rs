//! Sessions on this machine: real gdb, no MPI.

use std::collections::BTreeMap;

use sdm_idset::{IdSet, TaskId};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::united::{printed_by, whole};

/// The number of the first line of `work.c` that contains `text`.
fn line(text: &str) -> usize {
    Place::line("work.c", text)
}

#[test]
fn one_four_and_sixteen_processes_step_equally() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let what = line("what = argc");
    let (doubles, returns) = (line("int result"), line("return result"));
    let (adds, calls) = (line("total += twice"), line("step_through();"));
    for (count, who) in [(1, "rank 0"), (4, "ranks 0-3 (4)"), (16, "ranks 0-15 (16)")] {
        let done = Sdm::run(&place, count)
            .lines(&["break twice", "continue", "bt", "next", "print result"])
            .lines(&["finish", "info locals", "step 3", "up", "print i"])
            .lines(&["delete 1", "continue"])
            .program(&work, &[])
            .finish()
            .code(0);
        let text = "const char *what = argc > 1 ? argv[1] : \"steps\";";
        assert_eq!(
            done.beginning(),
            format!("{who}: at main () at work.c:{what}\n{what}\t    {text}\n")
        );
        done.expect(
            "break twice",
            &format!("{who}: breakpoint 1 at work.c:{doubles}\n"),
        );
        let at_twice = format!("twice () at work.c:{doubles}\n{doubles}\t    int result");
        done.expect_part(
            "continue",
            &format!("{who}: stopped at breakpoint 1, {at_twice}"),
        );
        let stack = format!(
            "{who}:\n#0  twice (number=0) at work.c:{doubles}\n#1  step_through () at \
             work.c:{adds}\n#2  main (argc=1, argv=0x"
        );
        done.expect_part("bt", &stack);
        done.expect_part("bt", &format!(") at work.c:{calls}\n"));
        let at_return = format!("twice () at work.c:{returns}\n{returns}\t    return result;\n");
        done.expect("next", &format!("{who}: {at_return}"));
        done.expect("print result", &format!("{who}: 0\n"));
        let back = format!("{who}: finished, step_through () at work.c:{adds}\n");
        done.expect_part("finish", &back);
        done.expect_part("finish", "Value returned: 0\n");
        done.expect_part("info locals", &format!("{who}:\n  i = 0\n  total = 0\n"));
        done.expect("print i", &format!("{who}: 1\n"));
        done.expect("delete 1", "");
        let united = done.united();
        let end = united.rsplit("(sdm) continue\n").next();
        let total = if count == 1 { "[0] " } else { "" };
        let end = end.expect("it is there");
        assert!(end.contains(&format!("{total}total 6\n")), "{done}");
        assert!(
            end.ends_with(&format!("{who}: exited normally\n")),
            "{done}"
        );
        assert_eq!(done.err, "");
    }
}

#[test]
fn stopped_subset_of_ranks_is_stepped() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let (doubles, returns) = (line("int result"), line("return result"));
    let done = Sdm::run(&place, 4)
        .lines(&["[1-3/2] set var rank = 1", "break twice if number == 3"])
        .lines(&["continue", "[1] next", "[3] step 2", "bt", "print number"])
        .lines(&["ranks", "focus 1,3", "continue", "info breakpoints"])
        .program(&work, &[])
        .finish()
        .code(0);
    let stopped = format!("ranks 1,3 (2): stopped at breakpoint 1, twice () at work.c:{doubles}\n");
    done.expect_part("continue", "ranks 0,2 (2): exited normally\n");
    done.expect_part("continue", "total 6\n");
    done.expect_part("continue", &stopped);
    let next = format!("rank 1: twice () at work.c:{returns}\n{returns}\t    return result;\n");
    done.expect("[1] next", &next);
    let end = line("    return result;") + 1;
    let step = format!("rank 3: twice () at work.c:{end}\n{end}\t}}\n");
    done.expect("[3] step 2", &step);
    done.expect_part("bt", "rank 1:\n#0  twice (number=3)");
    done.expect_part("bt", "rank 3:\n#0  twice (number=3)");
    let ended = "ranks 0,2 (2): not running (exited 0)\n";
    done.expect("print number", &format!("ranks 1,3 (2): 3\n{ended}"));
    done.expect_part("ranks", "ranks 0,2 (2)  exited");
    done.expect_part(
        "info breakpoints",
        "1    keep y   ranks 0-3 (4): twice at work.c",
    );
    let hits = "breakpoint already hit 1 time on ranks 1,3 (2)\n";
    done.expect_part("info breakpoints", hits);
}

/// Ranks that exit in the following test, each with its exit code.
const ENDS: [(u32, u32); 4] = [(2, 8), (3, 10), (4, 255), (5, 3)];
/// Answer of the ranks in [`ENDS`] to a command after their end.
const ENDED: &str = "rank 2: not running (exited 8)\nrank 3: not running (exited 10)\n\
                     rank 4: not running (exited 255)\nrank 5: not running (exited 3)\n";

#[test]
fn ranks_run_crash_and_exit_side_by_side() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 6)
        .talk()
        .program(&work, &["spin", "segv", "exit"])
        .spawn();
    sdm.out.wait_each(0, "0-5", "at main ()");
    for line in [
        "next",
        "[1] set var what = argv[2]",
        "[2-5] set var what = argv[3]",
    ] {
        sdm.ask(line, &format!("(sdm) {line}\n"));
    }
    for (rank, code) in ENDS {
        sdm.ask(&format!("[{rank}] set var code = {code}"), "(sdm) ");
    }
    sdm.ask("[0] continue &", "spinning");
    sdm.ask("[1-5] continue", "rank 5: exited with code 3\n");
    sdm.ask("print code", ENDED);
    sdm.ask("[0] interrupt", "work.c:");
    sdm.ask("print code", ENDED);
    sdm.ask("stacks", ENDED);
    sdm.ask("[0] set var leave = 1", "(sdm) ");
    sdm.ask("[0] continue", "rank 0: exited normally\n");
    sdm.ask("[1] continue", "rank 1: terminated by signal SIGSEGV\n");
    sdm.ask("ranks", "rank 5  exited");
    let done = sdm.finish().code(139);
    let crash = line("*pointer = 1");
    let crashed = format!(
        "rank 1: received signal SIGSEGV, Segmentation fault, write_through () at \
         work.c:{crash}\n{crash}\t    *pointer = 1;\n"
    );
    done.expect_part("[1-5] continue", &crashed);
    for (rank, code) in ENDS {
        let said = format!("rank {rank}: exited with code {code}\n");
        done.expect_part("[1-5] continue", &said);
    }
    let running = format!("rank 1: 0\nrunning: rank 0 (interrupt first)\n{ENDED}");
    done.expect("print code", &running);
    done.expect_part("[0] interrupt", "rank 0: interrupted, ");
    done.expect_part("[0] interrupt", "spin () at work.c:");
    done.expect_part("stacks", "rank 0: main () at work.c:");
    done.expect_part("stacks", "spin () at work.c:");
    done.expect_part("stacks", "rank 1: main () at work.c:");
    done.expect_part("stacks", "write_through () at work.c:");
    done.expect_part("ranks", "rank 4  exited     exited with code 255\n");
    done.expect_part("ranks", "rank 1  signalled  terminated by signal SIGSEGV\n");
}

#[test]
fn finish_after_an_interrupt_leaves_the_shown_function() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 1).talk().program(&work, &["spin"]).spawn();
    sdm.out.wait_each(0, "0", "at main ()");
    sdm.ask("continue &", "spinning");
    sdm.ask("interrupt", "spin () at work.c:");
    sdm.ask("set var leave = 1", "(sdm) ");
    sdm.ask("finish", "rank 0: finished, main () at work.c:");
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
}

#[test]
fn sent_input_reaches_only_its_ranks_and_ends() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let long = "x".repeat(6000);
    let send = format!("send 1 {long}");
    let done = Sdm::run(&place, 4)
        .args(["--stdin", "1-2"])
        .lines(&["continue &", "send 1 hello", &send, "send 2 --eof"])
        .lines(&["send 1 --eof", "wait"])
        .program(&work, &["echo"])
        .finish()
        .code(0);
    let printed = printed_by(&done.out, TaskId(1));
    let read = |text: &str| format!("read {text}");
    let end = "end of input after 2 lines".to_owned();
    let expect = [read("hello"), read(&long), end];
    assert!(printed == expect, "{printed:?} in {done}");
    let said = "end of input after 0 lines\n";
    assert!(done.out.contains(said), "no {said:?} in {done}");
    let done = Sdm::run(&place, 2)
        .lines(&["send 1 hello"])
        .program(&work, &["echo"])
        .finish()
        .code(123);
    assert!(done.out.contains("--stdin"), "{done}");
}

#[test]
fn ten_megabytes_of_each_rank_arrive_complete_and_in_order() {
    const BYTES: usize = 10 << 20;
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 4)
        .lines(&["[2-3] set var rank = 2", "continue"])
        .program(&work, &["lines", &BYTES.to_string()])
        .finish()
        .code(0);
    let mut next: BTreeMap<u32, usize> = (0..4).map(|rank| (rank, 0)).collect();
    let mut bytes: BTreeMap<u32, usize> = next.clone();
    let mut last = BTreeMap::new();
    // The shown beginnings of lines whose rest came late.
    let mut begun: BTreeMap<u32, String> = BTreeMap::new();
    for shown in done.answer("continue").lines() {
        let Some((who, text)) = shown
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("] "))
        else {
            continue;
        };
        if let Some(who) = who.strip_suffix(" err") {
            last.extend(ranks(who).map(|rank| (rank, text.to_owned())));
            continue;
        }
        for rank in ranks(who) {
            let Some(text) = whole(begun.entry(rank).or_default(), text) else {
                continue;
            };
            let line = next.get_mut(&rank).expect("a rank");
            let dashes = "-".repeat(*line % 97);
            assert_eq!(
                text,
                format!("{}: line {line} {dashes}", rank / 2),
                "rank {rank}"
            );
            *line += 1;
            *bytes.get_mut(&rank).expect("a rank") += text.len() + 1;
        }
    }
    for rank in 0..4 {
        assert!(bytes[&rank] >= BYTES, "rank {rank}: {} bytes", bytes[&rank]);
        assert_eq!(last[&rank], format!("{}: {} lines", rank / 2, next[&rank]));
    }
}

fn ranks(text: &str) -> impl Iterator<Item = u32> + use<> {
    let set: IdSet = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    set.iter()
        .map(|task| task.0)
        .collect::<Vec<_>>()
        .into_iter()
}
