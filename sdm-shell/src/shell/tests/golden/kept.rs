//! Tests of source, displays, `save` and `load`.

use sdm_debug::reply::{BreakpointPlace, SourceText, StopReason};
use sdm_debug::{Command, FailureCode, Reply};

use super::super::fake::*;
use crate::shell::Options;

fn source() -> Responder {
    Box::new(|id, to, command| match command {
        Command::Continue => {
            let at = |tasks: &str, line| {
                class(
                    tasks,
                    stop(StopReason::Interrupted, "exchange", line, "  swap();"),
                )
            };
            all(id, vec![at("0-2", 40), at("3", 42)])
        }
        Command::List { .. } => {
            let lines = ["void exchange(void)", "  swap();", "", "  wait();"];
            let source = Reply::Source(SourceText {
                file: "halo.c".to_owned(),
                path: "/src/halo.c".to_owned(),
                first: 39,
                lines: lines.map(str::to_owned).to_vec(),
            });
            all(id, vec![class(&to.to_string(), source)])
        }
        Command::Console { .. } => {
            all(id, vec![class(&to.to_string(), Reply::Text(String::new()))])
        }
        Command::Evaluate { expression } | Command::Print { expression, .. }
            if expression == "step" =>
        {
            all(
                id,
                vec![
                    class("0-2", Reply::Value(value("60"))),
                    class("3", Reply::Value(value("59"))),
                ],
            )
        }
        Command::Evaluate { .. } | Command::Print { .. } => all(
            id,
            vec![failed("0-3", FailureCode::Gdb, "No symbol \"nothing\".")],
        ),
        Command::BreakInsert(spec) => {
            let place = Reply::Breakpoint(BreakpointPlace {
                number: spec.number,
                pending: false,
                places: vec![("exchange".to_owned(), "halo.c".to_owned(), 40)],
            });
            all(id, vec![class(&to.to_string(), place)])
        }
        Command::Start(_) => at_main(id, to),
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

const KEPT: &str = "\
ranks 0-3 (4): at main () at halo.c:62
62	  int rank = 0, size = 0;
ranks 0-2 (3): 1: step = 60
rank 3: 1: step = 59  <-- 1 of 4
ranks 0-2 (3): interrupted, exchange () at halo.c:40
40	  swap();
rank 3: interrupted, exchange () at halo.c:42
42	  swap();
ranks 0-2 (3): 1: step = 60
rank 3: 1: step = 59  <-- 1 of 4
ranks 0-3 (4): halo.c
    39	void exchange(void)
3 > 40	  swap();
    41
1 > 42	  wait();
ranks 0-3 (4): breakpoint 1 at halo.c:40
breakpoint 1 ignores the next 4 hits on each rank
ranks 0-1 (2): breakpoint 2 at halo.c:40
ranks 0-3 (4): breakpoint 3 at halo.c:40
breakpoint 3 ignores the next 4 hits on each rank
ranks 0-1 (2): breakpoint 4 at halo.c:40
Num  Disp Enb On / What
3    keep y   ranks 0-3 (4): halo.c:40 at halo.c:40
	stop only if step > 5
	silent
	print step
4    del  n   ranks 0-1 (2): exchange at halo.c:40
ranks 0-3 (4): No symbol \"nothing\".
display: `nothing` has no value in the selected frame
session ended: `display nothing` failed (-c 19)
";

#[test]
fn source_displays_and_saved_commands_match_golden_file() {
    let file = std::env::temp_dir().join(format!("sdm-save-{}", std::process::id()));
    let (save, load) = (
        format!("save {}", file.display()),
        format!("load {}", file.display()),
    );
    let options = Options {
        echo: false,
        ..Options::default()
    };
    let lines = [
        "display step",
        "continue",
        "list",
        "break halo.c:40 if step > 3",
        "commands",
        "silent",
        "print step",
        "end",
        "ignore 1 4",
        "condition 1 step > 5",
        "[0-1] tbreak exchange",
        "disable $bpnum",
        "defset few 0,3",
        &save,
        "delete",
        &load,
        "info breakpoints",
        "undisplay 1",
        "display nothing",
    ];
    let run = run((4, 80), options, &lines, source());
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(
        text.lines().skip(1).collect::<Vec<_>>(),
        [
            "defset few 0,3",
            "[all] break halo.c:40 if step > 5",
            "ignore $bpnum 4",
            "commands",
            "silent",
            "print step",
            "end",
            "[0-1] tbreak exchange",
            "disable $bpnum",
        ]
    );
    assert_eq!(run.screen, KEPT);
}
