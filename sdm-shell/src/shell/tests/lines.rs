//! Tests of lines: repeated, refused and user-defined commands, questions at the prompt, and breakpoints of a set.
use sdm_debug::command::StartSpec;
use sdm_debug::reply::{Finding, FrameView, StopReason};
use sdm_debug::{Command, EndPolicy, FailureCode, Reply};

use super::fake::*;
use super::waiting::{one_runs_on, prompt};
use crate::shell::model::dialogue::{Confirm, Question};
use crate::shell::{Options, Script, ScriptLine};

/// Rank 0 waits for rank 1, which stops at an error in the use of MPI. It would stop by itself after an hour.
#[test]
fn script_of_a_checked_batch_continues_ranks_at_mpi_errors() {
    let at = |tasks: &str, reason| class(tasks, stop(reason, "main", 70, "  work();"));
    for passes_mpi_errors in [true, false] {
        let mut first = None;
        let respond: Responder = Box::new(move |id, to, command| match (command, first) {
            (Command::Start(_), _) => at_main(id, to),
            (Command::Continue, None) => {
                first = Some(id);
                let error = StopReason::Finding(Box::new(Finding {
                    tool: Finding::MPI_CHECK.to_owned(),
                    kind: "M103 MPI_Send: count is -1".to_owned(),
                    access: None,
                }));
                vec![
                    (10, answer(id, vec![at("1", error)])),
                    (
                        3_600_000,
                        answer(id, vec![at("0", StopReason::Interrupted)]),
                    ),
                    (3_600_001, complete(id)),
                ]
            }
            (Command::Continue, Some(run)) => vec![
                (5, answer(id, vec![at("1", StopReason::Interrupted)])),
                (5, complete(id)),
                (6, answer(run, vec![at("0", StopReason::Interrupted)])),
                (6, complete(run)),
            ],
            _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
        });
        let options = Options {
            passes_mpi_errors,
            ..Options::default()
        };
        let run = run((2, 100), options, &["continue", "print x"], respond);
        let mut sent = vec!["0-1 start", "0-1 continue", "0-1 print"];
        if passes_mpi_errors {
            sent.insert(2, "1 continue");
        }
        assert_eq!(run.sent, sent, "{}", run.screen);
    }
}

#[test]
fn empty_line_repeats_and_quit_asks_only_at_the_prompt() {
    let respond = || one_runs_on(Vec::new());
    let lines = [
        "print x", "", "quit", "other", "n", "quit", "detach", "never",
    ];
    let asked = run((2, 80), prompt(), &lines, respond());
    assert_eq!(asked.sent, ["0-1 start", "0-1 print", "0-1 print"]);
    assert!(asked.screen.contains("Please answer y, n or detach.\n"));
    assert!(asked.screen.contains("not ended\n"));
    assert_eq!(asked.ending.policy, EndPolicy::Detach);
    let script = run(
        (2, 80),
        Options::default(),
        &["print x", "", "quit"],
        respond(),
    );
    assert_eq!(script.sent, ["0-1 start", "0-1 print"]);
    assert_eq!(script.ending.code, 0);
}

#[test]
fn refused_run_keeps_the_task_states() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        _ => all(
            id,
            vec![failed(
                "0-1",
                FailureCode::Gdb,
                "Cannot insert breakpoint 1.",
            )],
        ),
    });
    let run = run((2, 80), prompt(), &["continue", "ranks"], respond);
    assert!(
        run.screen
            .ends_with("ranks 0-1 (2)  stopped  at main () at halo.c:62\n"),
        "{}",
        run.screen
    );
}

/// The screen after these lines, of which `continue` ends some ranks of two.
fn after_an_end(ended: &'static str, options: Options, lines: &[&str]) -> String {
    let respond: Responder = Box::new(move |id, to, command| {
        let exited = Reply::Exited {
            code: 0,
            before_finalize: false,
        };
        let rank_1 = match command {
            Command::Start(_) => return at_main(id, to),
            Command::Continue if ended == "0-1" => return all(id, vec![class(ended, exited)]),
            Command::Continue => {
                let still = stop(StopReason::Interrupted, "main", 70, "  work();");
                return all(id, vec![class("0", exited), class("1", still)]);
            }
            _ if ended == "0-1" => failed("1", FailureCode::NotRunning, "not running (exited 3)"),
            _ => class("1", Reply::Value(value("7"))),
        };
        let rank_0 = failed("0", FailureCode::NotRunning, "not running (exited 0)");
        all(id, vec![rank_0, rank_1])
    });
    let lines = lines.iter().map(|text| ScriptLine {
        text: (*text).to_owned(),
        origin: String::new(),
    });
    let lines = lines.collect();
    let run = act((2, 100), options, respond, |shell, controls| {
        shell.set_restart(Box::new(|_| Ok(None)));
        shell.start(vec![(set("0-1"), StartSpec::default())]);
        shell.run_lines(&mut Script::new(lines, controls))
    });
    run.screen
}

#[test]
fn commands_after_the_programs_end_name_start_once() {
    let hint = "  `start` starts the job again and stops it at main; `run` starts it\n";
    let said = format!("rank 0: not running (exited 0)\nrank 1: not running (exited 3)\n{hint}");
    let screen = after_an_end("0-1", prompt(), &["continue", "next", "break f"]);
    assert_eq!(screen.matches(&said).count(), 2, "{screen}");
    assert_eq!(screen.matches(hint).count(), 2, "{screen}");
    for (ended, options) in [("0", prompt()), ("0-1", Options::default())] {
        let screen = after_an_end(ended, options, &["continue", "print x"]);
        let said = "rank 0: not running (exited 0)\n";
        assert!(screen.contains(said) && !screen.contains(hint), "{screen}");
    }
}

#[test]
fn breakpoint_applies_to_its_set() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::BreakInsert(spec) if spec.location == "nowhere" => all(
            id,
            vec![failed(
                &to.to_string(),
                FailureCode::NoSuchPlace,
                "Function \"nowhere\" not defined.",
            )],
        ),
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    });
    let lines = [
        "break nowhere",
        "n",
        "[0-2] break a.c:1",
        "break a.c:2",
        "[1] delete 1",
        "disable 1",
        "delete",
        "n",
        "delete",
        "y",
        "delete 1",
        "info breakpoints",
    ];
    let run = run((4, 80), prompt(), &lines, respond);
    let expect = [
        "0-3 start",
        "0-3 break_insert",
        "0-2 break_insert",
        "0-3 break_insert",
        "1 break_delete",
        "0,2 break_enable",
        "0,2 break_delete",
        "0-3 break_delete",
    ];
    assert_eq!(run.sent, expect);
    let said = "not deleted\nNo breakpoint number 1.\nNo breakpoints.\n";
    assert!(run.screen.ends_with(said), "{}", run.screen);
}

#[test]
fn return_asks_only_at_the_prompt() {
    let respond = || -> Responder {
        Box::new(|id, to, command| match command {
            Command::Start(_) => at_main(id, to),
            Command::SelectFrame(_) => {
                let (frame, source) = (frame("exchange", 40), None);
                let reply = Reply::Frame(FrameView { frame, source });
                all(id, vec![class(&to.to_string(), reply)])
            }
            _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
        })
    };
    let lines = ["[0-1] return 3", "n", "[0-1] return 3", "y", "quit", "y"];
    let asked = run((4, 80), prompt(), &lines, respond());
    let frame = "0-1 select_frame";
    assert_eq!(asked.sent, ["0-3 start", frame, frame, "0-1 return"]);
    let script = run((4, 80), Options::default(), &["return"], respond());
    assert_eq!(script.sent, ["0-3 start", "0-3 return"]);
    let question = Question::Confirm(Confirm {
        line: String::new(),
        text: "Kill the program on rank 3".to_owned(),
        refused: "not killed",
    });
    assert_eq!(question.text(4), "Kill the program on rank 3? (y or n) ");
}

#[test]
fn kill_and_undisplay_ask_only_at_the_prompt() {
    let respond = || -> Responder {
        Box::new(|id, to, command| match command {
            Command::Start(_) => at_main(id, to),
            Command::Kill => {
                let signal = "SIGKILL".to_owned();
                all(
                    id,
                    vec![class(&to.to_string(), Reply::Signalled { signal })],
                )
            }
            Command::Evaluate { .. } | Command::Print { .. } => {
                all(id, vec![class(&to.to_string(), Reply::Value(value("1")))])
            }
            _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
        })
    };
    let lines = [
        "display x",
        "undisplay",
        "n",
        "info display",
        "undisplay",
        "y",
        "undisplay",
        "info display",
        "[2] kill",
        "n",
        "[2] kill",
        "y",
    ];
    let asked = run((4, 80), prompt(), &lines, respond());
    let said = "not deleted\n1: x\nThere are no auto-display expressions now.\nnot killed\n";
    let shown = asked
        .screen
        .find("not deleted")
        .map(|at| &asked.screen[at..]);
    assert!(
        shown.is_some_and(|it| it.starts_with(said)),
        "{}",
        asked.screen
    );
    let killed = |sent: &[String]| sent.iter().filter(|it| it.ends_with("kill")).count();
    assert_eq!(killed(&asked.sent), 1, "{:?}", asked.sent);
    let script = run((4, 80), Options::default(), &["[2] kill"], respond());
    assert_eq!(killed(&script.sent), 1, "{:?}", script.sent);
}

/// Answers each evaluation with its own expression.
fn echoes() -> Responder {
    Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Evaluate { expression } | Command::Print { expression, .. } => {
            let reply = Reply::Value(value(expression));
            all(id, vec![class(&to.to_string(), reply)])
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

#[test]
fn user_defined_commands_run_for_their_set() {
    let lines = [
        "define both",
        "print $arg0 + $argc",
        "define inner",
        "print 7",
        "end",
        "[1] print $arg1",
        "end",
        "[0-2] both x y",
        "inner",
        "define print",
    ];
    let ended = run((4, 100), Options::default(), &lines, echoes());
    for part in [
        "ranks 0-2 (3): x + 2\n",
        "rank 1: y\n",
        "ranks 0-3 (4): 7\n",
        "define: `print` is a command of sdm",
    ] {
        assert!(
            ended.screen.contains(part),
            "no {part:?} in {}",
            ended.screen
        );
    }
    assert_eq!(ended.ending.code, 123);
    let lines = [
        "define again",
        "again",
        "end",
        "again",
        "show user",
        "quit",
        "y",
    ];
    let ended = run((1, 100), prompt(), &lines, echoes());
    let deep = "again: user-defined commands are nested too deeply";
    assert_eq!(ended.screen.matches(deep).count(), 1, "{}", ended.screen);
    let shown = "User command \"again\":\n  again\n";
    assert!(ended.screen.contains(shown), "{}", ended.screen);
    assert_eq!(ended.ending.code, 0);
}
