//! Exact screens on narrow and wide terminals, and the same output in a script. The expected texts are in
//! `tests/golden`.

use sdm_tests::golden;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;
use sdm_tests::united::united;

const WIDTHS: [u16; 2] = [80, 200];

/// Everyday commands of gdb's users, to four ranks under Open MPI.
const EVERYDAY: &[&str] = &[
    "break solve",
    "tbreak diffuse if rod->rank >= 0",
    "info breakpoints",
    "run",
    "bt",
    "info args",
    "next",
    "print heat",
    "print *rod",
    "print/x rod->rank",
    "print rod->cells[1]@3",
    "ptype rod",
    "display step",
    "display/x rod->left_neighbour",
    "info display",
    "continue",
    "info breakpoints",
    "up",
    "down",
    "[2] next",
    "finish",
    "delete display 1",
    "until 114",
    "watch heat",
    "info watchpoints",
    "delete 1 3",
    "condition 9",
];

/// Commands that concern the prompt rather than the program.
const PROMPT: &[&str] = &[
    "watch no_such_thing",
    "thread apply 7 bt",
    "info watchpoints",
    "catch syscall write",
    "tcatch fork",
    "watch code",
    "ignore 3 2",
    "condition 3 code > 1",
    "condition 3",
    "info breakpoints",
    "x/4dw &code",
    "printf \"%d and %s\\n\", code, \"text\"",
    "echo a\\tb\\n",
    "!echo from here; exit 3",
    "frobnicate",
    "run < file",
    "set args 1 'two words'",
    "show args",
    "info sets",
    "focus 1",
    "ranks",
    "help display",
];

/// Each line that was typed with its answer, from a screen that begins with a prompt.
fn story(place: &Place, screen: &str, lines: &[&str]) -> String {
    let mut rest = screen;
    let mut story = String::new();
    for line in lines {
        let typed = format!("(sdm) {line}\n");
        let Some((_, after)) = rest.split_once(&typed) else {
            panic!("no {typed:?} in {rest}");
        };
        rest = after;
        let end = rest.find("(sdm) ").unwrap_or(rest.len());
        let end = rest[..end].rfind('\n').map_or(0, |end| end + 1);
        story.push_str(&typed);
        story.push_str(&rest[..end]);
    }
    golden::normalised(&united(&story), place)
}

fn typed(place: &Place, terminal: &mut Terminal<'_>, lines: &[&str]) -> String {
    for line in lines {
        terminal.ask(line, "");
    }
    story(place, &terminal.shown(), lines)
}

#[test]
fn gdb_commands_print_the_same_at_prompt_and_in_script() {
    let place = Place::new();
    let program = place.compile("halo", Compiler::OpenMpi);
    let line = [
        "run",
        "-n",
        "4",
        "--launcher",
        "mpirun",
        "--",
        "./halo",
        "100",
    ];
    for width in WIDTHS {
        let mut terminal = Terminal::start(&place, &line, width);
        terminal.wait("(sdm) ");
        let seen = typed(&place, &mut terminal, EVERYDAY);
        golden::check(&format!("everyday.{width}"), &seen);
        terminal.keys("quit\ny\n");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{screen}");
        // The last line fails, which ends a script.
        let done = Sdm::run(&place, 4)
            .args(["--launcher", "mpirun"])
            .env("COLUMNS", width.to_string())
            .lines(EVERYDAY)
            .program(&program, &["100"])
            .finish()
            .code(123);
        let lines = &EVERYDAY[..EVERYDAY.len() - 1];
        let script = story(&place, &done.out, lines);
        assert!(
            seen.starts_with(&script),
            "typed:\n{seen}\nin a script:\n{script}"
        );
    }
}

#[test]
fn errors_are_shown_on_narrow_and_wide_terminals() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    for width in WIDTHS {
        let line = ["run", "-n", "2", "--", "./work"];
        let mut terminal = Terminal::start(&place, &line, width);
        terminal.wait("(sdm) ");
        let seen = typed(&place, &mut terminal, PROMPT);
        golden::check(&format!("prompt.{width}"), &seen);
        terminal.keys("quit\ny\n");
        let (code, screen) = terminal.finish();
        assert_eq!(code, 0, "{screen}");
    }
}
