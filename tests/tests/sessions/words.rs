//! gdb's commands at the prompt that need more than one request, on real gdb.

use std::fs;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;

/// A script with `if`, `else` and `while` in the commands of a breakpoint, which continues until `number` is 2.
const COMMANDS: &str = "\
break twice
commands
  silent
  if number == 0
    printf \"none, \"
  else
    set var $i = 0
    while 1
      if $i == number
        loop_break
      end
      set var $i = $i + 1
    end
    printf \"%d, \", $i
  end
  if number < 2
    continue
  end
end
continue
print number
";

#[test]
fn breakpoint_commands_may_contain_blocks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    fs::write(place.path().join("script"), COMMANDS).expect("a file");
    let done = Sdm::run(&place, 2)
        .args(["-x", "script"])
        .lines(&["delete", "continue"])
        .program(&work, &[])
        .finish()
        .code(0);
    let stopped = "ranks 0-1 (2): stopped at breakpoint 1, twice () at work.c:";
    assert!(done.united().contains(stopped), "{done}");
    for printed in ["none,", "1,", "2,"] {
        assert!(done.out.contains(printed), "no {printed} in {done}");
    }
    done.expect("print number", "ranks 0-1 (2): 2\n");
    // An `else` without an `if` is refused, and the earlier lines stay.
    let done = Sdm::run(&place, 2)
        .lines(&["break twice", "commands", "if 1", "end", "else", "end"])
        .program(&work, &[])
        .finish()
        .code(123);
    let refused = "ranks 0-1 (2): `else` is allowed inside a block only\n";
    assert!(done.out.contains(refused), "{done}");
}

#[test]
fn cd_changes_and_pwd_prints_the_directory_of_sdm() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    fs::create_dir(place.path().join("below")).expect("a folder");
    let here = place.path().canonicalize().expect("it is there");
    let here = here.display();
    let done = Sdm::run(&place, 2)
        .lines(&["pwd", "cd below", "!pwd", "cd nosuch"])
        .program("./work".as_ref(), &["exit"])
        .finish()
        .code(123);
    done.expect("pwd", &format!("Working directory {here}.\n"));
    done.expect("cd below", &format!("Working directory {here}/below.\n"));
    done.expect("!pwd", &format!("{here}/below\n"));
    done.expect_part("cd nosuch", "nosuch: No such file or directory");
    // The program is the same, and starts in the new folder.
    let done = Sdm::run(&place, 2)
        .lines(&["continue", "cd below", "start", "gdb pwd"])
        .program("./work".as_ref(), &["exit"])
        .finish()
        .code(0);
    let there = format!("ranks 0-1 (2): Working directory {here}/below.\n");
    done.expect("gdb pwd", &there);
    drop(work);
}

#[test]
fn info_and_list_answers_are_merged_over_ranks() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let mut sdm = Sdm::run(&place, 2).talk().program(&work, &["spin"]).spawn();
    for line in [
        "info sharedlibrary",
        r"gdb pipe print 7 | tr -d '\n'",
        "gdb shell echo one; echo two",
        "gdb shell printf three",
        "output 1 + 2",
        "print 8",
        "p",
        "frame function main",
        "handle SIGINT SIGUSR1 nostop pass",
        "info signals SIGUSR1 SIGFPE",
        "list twice",
        "list",
        "continue &",
    ] {
        sdm.ask(line, &format!("(sdm) {line}\n"));
    }
    sdm.stop("0-1");
    sdm.ask("print leave", ": 0\n");
    let done = sdm.finish().code(0);
    done.expect_part("info sharedlibrary", "Syms Read");
    done.expect_part("info sharedlibrary", "libc.so.6\n");
    done.expect_part(r"gdb pipe print 7 | tr -d '\n'", " = 7\n");
    done.expect_part("gdb shell echo one; echo two", "one\n  two\n");
    done.expect_part("gdb shell printf three", "three\n");
    done.expect("output 1 + 2", "ranks 0-1 (2): 3\n");
    done.expect("p", "ranks 0-1 (2): 8\n");
    done.expect_part("frame function main", "main (");
    done.expect_part(
        "handle SIGINT SIGUSR1 nostop pass",
        "SIGINT     stop no  print yes pass yes",
    );
    let signals = "ranks 0-1 (2):\n  SIGUSR1    stop no  print yes pass yes User defined signal 1\n  \
                   SIGFPE     stop yes print yes pass yes Arithmetic exception\n";
    done.expect("info signals SIGUSR1 SIGFPE", signals);
    let line = Place::line("work.c", "static int twice");
    done.expect_part(
        "list twice",
        &format!("{line}\tstatic int twice(int number)\n"),
    );
    // They are stopped although the program is to have SIGINT: it does not get this one.
    done.expect("print leave", "ranks 0-1 (2): 0\n");
}

/// The numbers of gdb's history differ between ranks.
#[test]
fn values_printed_with_options_have_no_number() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let lines = ["[1] print 1", "print -elements 3 -- 5 + 1", "print $"];
    let done = Sdm::run(&place, 2)
        .lines(&lines)
        .program(&work, &[])
        .finish()
        .code(0);
    done.expect(lines[1], "ranks 0-1 (2): 6\n");
    done.expect(lines[2], "ranks 0-1 (2): 6\n");
}

#[test]
fn types_and_registers_are_shown() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let lines = ["whatis (char)1", "ptype 1 + 1", "info registers pc", "i r"];
    let done = Sdm::run(&place, 2)
        .lines(&lines)
        .program(&work, &[])
        .finish()
        .code(0);
    done.expect("whatis (char)1", "ranks 0-1 (2): type = char\n");
    done.expect("ptype 1 + 1", "ranks 0-1 (2): type = int\n");
    // The program counter is shown with its symbol, other registers in both forms.
    let named = |line: &str| line.contains(" = 0x") && line.contains(" <main+");
    let both = |line: &str| line.contains(" = 0x0  0");
    let shown = |is_it: &dyn Fn(&str) -> bool| done.out.lines().any(is_it);
    assert!(shown(&named) && shown(&both), "{done}");
    let done = Sdm::run(&place, 2)
        .lines(&["info registers nosuch"])
        .program(&work, &[])
        .finish()
        .code(123);
    assert!(done.out.contains("no register nosuch"), "{done}");
}

#[test]
fn break_without_a_location_stops_at_the_current_line() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let inner = Place::line("work.c", "int result = number * 2;");
    let outer = Place::line("work.c", "total += twice(i + rank);");
    let begin = format!("tbreak work.c:{inner}");
    let done = Sdm::run(&place, 2)
        .lines(&[&begin, "continue", "b", "up", "tbreak if i == 1"])
        .lines(&["c", "info breakpoints", "delete 2", "[0-1] continue"])
        .program(&work, &[])
        .finish()
        .code(0);
    let here = |line| format!("ranks 0-1 (2): breakpoint {line}");
    done.expect_part("b", &here(format!("2 at work.c:{inner}")));
    done.expect_part("tbreak if i == 1", &here(format!("3 at work.c:{outer}")));
    // The call before has returned to it without the condition; the next one comes to the breakpoint within.
    let stopped = format!("ranks 0-1 (2): stopped at breakpoint 2, twice () at work.c:{inner}\n");
    done.expect_part("c", &stopped);
    done.expect_part(
        "info breakpoints",
        &format!("current line at work.c:{inner}"),
    );
    done.expect_part("info breakpoints", &format!("at work.c:{outer}"));
    let stopped =
        format!("ranks 0-1 (2): stopped at breakpoint 3, step_through () at work.c:{outer}\n");
    done.expect_part("[0-1] continue", &stopped);
}

#[test]
fn lines_are_drawn_in_the_characters_of_the_locale() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    for (locale, fork, last) in [
        ("C", "+- rank", "`- rank"),
        ("de_DE.ISO-8859-1", "+- rank", "`- rank"),
        ("C.UTF-8", "├─ rank", "└─ rank"),
    ] {
        let done = Sdm::run(&place, 2)
            .env("LC_ALL", locale)
            .lines(&[
                "[1] tbreak twice",
                "[0] tbreak step_through",
                "continue",
                "stacks",
            ])
            .program(&work, &[])
            .finish()
            .code(0);
        done.expect_part("stacks", fork);
        done.expect_part("stacks", last);
        assert_eq!(done.out.is_ascii(), locale != "C.UTF-8", "{done}");
    }
}
