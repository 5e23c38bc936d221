//! No foreign text controls the terminal: names in a program, of a process, of files, and typed text.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use sdm_tests::place::Place;
use sdm_tests::terminal::Terminal;

/// A text that sets the terminal's title, clears the screen, and ends in a byte that only some terminals take for a
/// control character.
const STEERING: &str = "\x1b]0;STEERED\x07\x1b[2J\u{9b}31m";

/// Beginning of the text as it is shown.
const SHOWN: &str = r"\x1b]0;STEERED\x07";

/// True if the bytes contain one of the tests' control sequences; those of `sdm` and its line editor are allowed.
fn steers(bytes: &str) -> bool {
    bytes.contains("\x1b]0;STEERED") || bytes.contains("\x1b[2J") || bytes.contains('\u{9b}')
}

/// Builds a program whose file, in its debug information, and one function have such names; it waits.
fn build(place: &Place) -> PathBuf {
    let folder = place.path();
    let octal: String = STEERING
        .bytes()
        .map(|byte| format!("\\{byte:03o}"))
        .collect();
    let source = format!(
        "#include <stdio.h>\n#include <unistd.h>\nvoid plain(void);\n\
         void inner(void) {{ for (;;) pause(); }}\n# 1 \"{octal}.c\"\n\
         int main(int argc, char **argv) {{ setvbuf(stdout, 0, _IONBF, 0);\n\
         printf(\"ready %s\\n\", argv[0]); if (argc > 1) return 0; plain(); return 0; }}\n"
    );
    fs::write(folder.join("steer.c"), source).expect("written");
    fs::write(
        folder.join("plain.c"),
        "void inner(void); void plain(void) { inner(); }\n",
    )
    .expect("written");
    let run = |program: &str, args: &[&str]| {
        let done = Command::new(program)
            .args(args)
            .current_dir(folder)
            .output();
        let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(done.status.success(), "{program} {args:?}: {done:?}");
    };
    run("cc", &["-g", "-c", "steer.c"]);
    run("cc", &["-c", "plain.c"]);
    let renamed = format!("plain=plain{STEERING}");
    run("objcopy", &["--redefine-sym", &renamed, "plain.o"]);
    run("objcopy", &["--redefine-sym", &renamed, "steer.o"]);
    run(
        "cc",
        &["-g", "-rdynamic", "-o", "steer", "steer.o", "plain.o"],
    );
    folder.join("steer")
}

/// A process that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The process is a child of this one that has not been waited for, so the pid is its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that `sdm` sends to a terminal until it ends.
fn raw(place: &Place, args: &[&str]) -> String {
    let terminal = Terminal::start(place, args, 120);
    terminal.leave().1
}

#[track_caller]
fn check(what: &str, text: &str) {
    assert!(!steers(text), "{what}: {text:?}");
    assert!(text.contains(SHOWN), "{what}: not shown: {text:?}");
}

#[test]
fn program_and_process_names_are_shown_escaped() {
    let place = Place::new();
    let program = build(&place);
    let named = place.path().join(format!("named{STEERING}"));
    fs::copy(&program, &named).expect("a copy");
    let mut process = Command::new(&named);
    process
        .arg0(format!("argv{STEERING}"))
        .stdout(Stdio::piped());
    let mut process = Running(process.spawn().expect("it starts"));
    let mut line = String::new();
    let out = process.0.stdout.take().expect("it was asked to be a pipe");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("a line");
    let pid = process.0.id().to_string();
    let told = raw(&place, &["stacks", &pid]);
    check("stacks", &told);
    // A file's name in debug information, and a function's in a table of symbols.
    assert!(
        told.contains(&format!("{SHOWN}\\x1b[2J\\x9b31m.c:")),
        "{told:?}"
    );
    assert!(told.contains(&format!("plain{SHOWN}")), "{told:?}");
    check(
        "stacks --json",
        &raw(&place, &["stacks", &pid, "--json"])
            .replace(r"\u001b", r"\x1b")
            .replace(r"\u0007", r"\x07"),
    );
    check(
        "--match",
        &raw(&place, &["stacks", "--match", &format!("none{STEERING}")]),
    );
    // The program is found by its name; processes with another name are listed.
    assert!(!steers(&raw(&place, &["stacks", "--match", "argv"])));
    let core = place.path().join("core");
    let mut gdb = Command::new("gdb");
    gdb.args([
        "-nx",
        "-batch",
        "-iex",
        "set auto-load off",
        "-iex",
        "set debuginfod enabled off",
    ]);
    gdb.args(["-p", &pid, "-ex"])
        .arg(format!("gcore {}", core.display()));
    let done = gdb.output().expect("gdb runs");
    assert!(core.exists(), "{done:?}");
    let core = core.to_str().expect("a path of text");
    check(
        "core",
        &raw(&place, &["core", named.to_str().unwrap(), core]),
    );
}

fn on_the_command_line(place: &Place, program: &str) {
    check(
        "an option",
        &raw(place, &["run", &format!("--none{STEERING}")]),
    );
    check("a command", &raw(place, &[&format!("none{STEERING}")]));
    check(
        "a program",
        &raw(
            place,
            &[
                "run",
                "-n",
                "1",
                "--launcher",
                "local",
                "-c",
                "where",
                "--",
                &format!("./none{STEERING}"),
            ],
        ),
    );
    check(
        "a target",
        &raw(place, &["attach", "--match", &format!("none{STEERING}")]),
    );
    check(
        "a core file",
        &raw(place, &["core", program, &format!("none{STEERING}")]),
    );
    check(
        "a session",
        &raw(place, &["resume", &format!("none{STEERING}")]),
    );
    check(
        "settings",
        &raw(place, &["settings", &format!("none{STEERING}")]),
    );
}

#[test]
fn typed_and_printed_text_is_shown_escaped() {
    let place = Place::new();
    let program = build(&place);
    let program = program.to_str().expect("a path of text");
    on_the_command_line(&place, program);
    // At the prompt the lines come from a script, as the line editor interprets such keys.
    let run = ["run", "-n", "1", "--launcher", "local"];
    for line in [
        format!("none{STEERING}"),
        format!("print none{STEERING}"),
        format!("break none{STEERING}:1"),
        format!("[none{STEERING}] where"),
        format!("source none{STEERING}"),
        format!("gdb echo {STEERING}\\n"),
        format!("focus @none{STEERING}"),
    ] {
        let args = [&run[..], &["-c", &line, "--", program, "end"]].concat();
        check(&line, &raw(&place, &args));
    }
    // The program's output.
    let args = [
        &run[..],
        &[
            "--batch",
            "--no-report",
            "-c",
            "continue",
            "--",
            program,
            "end",
        ],
    ]
    .concat();
    assert!(!steers(&raw(&place, &args)));
    let named = place.path().join(format!("named{STEERING}"));
    fs::copy(program, &named).expect("a copy");
    let named = named.to_str().expect("a path of text");
    let args = [
        &run[..],
        &["-c", "continue", "-c", "info files", "--", named, "end"],
    ]
    .concat();
    check("what is printed", &raw(&place, &args));
}
