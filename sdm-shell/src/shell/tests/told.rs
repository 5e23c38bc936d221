//! Tests commands that look at a job and are interrupted by a signal. They report the signal, and no
//! failure of tasks that had no time to answer.

use std::sync::mpsc::Sender;
use std::time::Duration;

use sdm_debug::command::AttachSpec;
use sdm_debug::reply::{StackFrame, StopReason, TaskStacks};
use sdm_debug::{Command, EndPolicy, FailureCode, Reply};
use sdm_diagnose::Observed;
use sdm_idset::IdSet;
use sdm_session::Class;

use super::fake::*;

use crate::shell::{Control, Diagnosed, Ending, LookBy, Looks, Options, Script, ScriptLine, Shell};

/// Two tasks carry out all commands, but at the command `when` a signal arrives.
fn until(when: fn(&Command) -> bool, signal: u8) -> Responder {
    Box::new(move |id, to, command| match command {
        command if when(command) => vec![(10, Said::Control(Control::Terminate(signal)))],
        Command::Attach(_) => all(id, stopped(to, StopReason::Attached)),
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

fn stopped(tasks: &IdSet, reason: StopReason) -> Vec<Class> {
    vec![class(
        &tasks.to_string(),
        stop(reason, "main", 70, "  work();"),
    )]
}

fn ended(code: u8) -> Ending {
    Ending {
        code,
        policy: EndPolicy::Detach,
        reason: None,
    }
}

fn stacks(shell: &mut Shell<Fake>) -> Ending {
    ended(shell.show_stacks_of(AttachSpec::default(), false, LookBy::Gdb) as u8)
}

fn diagnose(shell: &mut Shell<Fake>) -> Ending {
    match shell.diagnose_target(
        AttachSpec::default(),
        (Looks::of(1, None), LookBy::Gdb),
        Observed::default(),
    ) {
        Diagnosed::Judged(found) => ended(found.0.step.exit_code()),
        Diagnosed::Unseen => ended(2),
        Diagnosed::Interrupted => ended(130),
    }
}

fn attach(shell: &mut Shell<Fake>) -> Ending {
    match shell.attach(AttachSpec::default(), &IdSet::all_below(2), LookBy::Gdb) {
        true => ended(0),
        false => shell.failed_attach(),
    }
}

/// Attaches, and queries the backtraces.
fn backtrace(shell: &mut Shell<Fake>, controls: Sender<Control>) -> Ending {
    assert_eq!(attach(shell).code, 0);
    let line = ScriptLine {
        text: "bt".to_owned(),
        origin: "-c 1".to_owned(),
    };
    shell.run_lines(&mut Script::new(vec![line], controls))
}

type Deed = fn(&mut Shell<Fake>, Sender<Control>) -> Ending;

#[test]
fn termination_signal_sets_the_exit_code_in_any_wait() {
    let is_attach: fn(&Command) -> bool = |command| matches!(command, Command::Attach(_));
    let is_stacks: fn(&Command) -> bool = |command| matches!(command, Command::Stacks { .. });
    let is_backtrace: fn(&Command) -> bool = |command| matches!(command, Command::Backtrace { .. });
    let is_probe: fn(&Command) -> bool = |command| matches!(command, Command::Probe(_));
    for (signal, code, reason) in [
        (15, 143, "signal 15 (SIGTERM)"),
        (1, 129, "signal 1 (SIGHUP)"),
    ] {
        for (deed, when) in [
            ((|shell, _| stacks(shell)) as Deed, is_attach),
            (|shell, _| stacks(shell), is_stacks),
            (|shell, _| diagnose(shell), is_attach),
            (|shell, _| diagnose(shell), is_probe),
            (|shell, _| attach(shell), is_attach),
            (backtrace, is_backtrace),
        ] {
            let options = Options {
                attached: true,
                ..Options::default()
            };
            let run = act((2, 80), options, until(when, signal), |shell, controls| {
                let ending = deed(shell, controls);
                shell.leave(ending)
            });
            assert_eq!(run.ending.code, code, "{}", run.screen);
            // Neither policy kills an attached process.
            let policies = [EndPolicy::Detach, EndPolicy::KillStarted];
            assert!(policies.contains(&run.ending.policy), "{}", run.screen);
            assert!(
                run.screen.ends_with(&format!("session ended: {reason}\n")),
                "{}",
                run.screen
            );
            assert!(!run.screen.contains("no answer"), "{}", run.screen);
            assert!(!run.screen.contains("tuck"), "{}", run.screen);
        }
    }
}

/// Two tasks that are attached and sampled; Ctrl-C arrives while they run.
fn watched() -> Responder {
    let mut run = None;
    Box::new(move |id, to, command| match command {
        Command::Attach(_) => all(id, stopped(to, StopReason::Attached)),
        Command::Stacks { .. } => {
            let frames = vec![StackFrame::own("main", "halo.c", 70)];
            let stacks = Reply::Stacks(TaskStacks::of_main(frames, 1));
            all(id, vec![class(&to.to_string(), stacks)])
        }
        Command::Continue => {
            run = Some(id);
            vec![(10, Said::Control(Control::Interrupt))]
        }
        Command::Interrupt => {
            let run = run.take().unwrap();
            let mut said = all(id, vec![class(&to.to_string(), Reply::Done)]);
            said.push((2, answer(run, stopped(to, StopReason::Interrupted))));
            said.push((3, complete(run)));
            said
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    })
}

#[test]
fn ctrl_c_ends_an_attach_and_a_watch() {
    let respond: Responder = Box::new(|_, _, _| vec![(10, Said::Control(Control::Interrupt))]);
    let run = act((2, 80), Options::default(), respond, |shell, _| {
        attach(shell)
    });
    assert_eq!(run.ending.code, 130, "{}", run.screen);
    assert!(run.screen.ends_with("interrupted\n"), "{}", run.screen);

    let run = act((2, 80), Options::default(), watched(), |shell, _| {
        let period = Duration::from_secs(2);
        ended(shell.watch_stacks_of(AttachSpec::default(), false, LookBy::Gdb, period) as u8)
    });
    assert_eq!(run.ending.code, 130, "{}", run.screen);
    assert!(
        run.screen.contains("main () at halo.c:70"),
        "{}",
        run.screen
    );
    assert_eq!(run.sent.last().map(String::as_str), Some("0-1 detach"));
}

/// The session ends, and detaches from the tasks that were attached before the interrupt.
#[test]
fn ctrl_c_ends_a_partial_attach() {
    for attached in ["1", "0-1"] {
        let respond: Responder = Box::new(|id, _, _| {
            vec![
                (5, answer(id, stopped(&set(attached), StopReason::Attached))),
                (10, Said::Control(Control::Interrupt)),
            ]
        });
        let options = Options {
            attached: true,
            ..Options::default()
        };
        let run = act((2, 80), options, respond, |shell, _| {
            let ending = attach(shell);
            shell.leave(ending)
        });
        assert_eq!(run.ending.code, 130, "{}", run.screen);
        assert_eq!(run.ending.policy, EndPolicy::Detach);
        assert_eq!(run.sent, ["0-1 attach", "cancel 1"]);
        assert!(run.screen.ends_with("interrupted\n"), "{}", run.screen);
    }
}

#[test]
fn diagnosis_without_samples_says_that_it_cannot_tell() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Attach(_) => all(id, stopped(to, StopReason::Attached)),
        _ => {
            let killed = failed(&to.to_string(), FailureCode::GdbDead, "gdb was killed");
            all(id, vec![killed])
        }
    });
    let run = act((2, 80), Options::default(), respond, |shell, _| {
        let spec = AttachSpec::default();
        let looks = (Looks::of(3, None), LookBy::Gdb);
        let diagnosed = shell.diagnose_target(spec, looks, Observed::default());
        assert_eq!(diagnosed, Diagnosed::Unseen);
        ended(2)
    });
    let said = "Cannot tell: no rank could be sampled twice";
    assert!(run.screen.contains(said), "{}", run.screen);
}

#[test]
fn diagnosis_of_ending_processes_reports_the_end_of_the_job() {
    let respond: Responder = Box::new(|id, to, _| {
        let ended = failed(&to.to_string(), FailureCode::NotRunning, "no such process");
        all(id, vec![ended])
    });
    let run = act((2, 80), Options::default(), respond, |shell, _| {
        let spec = AttachSpec {
            pids: vec![(0, 100), (1, 101)],
            ..AttachSpec::default()
        };
        let looks = (Looks::of(3, None), LookBy::Snapshot);
        let diagnosed = shell.diagnose_target(spec, looks, Observed::default());
        assert!(matches!(diagnosed, Diagnosed::Judged(_)), "{diagnosed:?}");
        ended(0)
    });
    let said = "the job has ended, no process is left";
    assert!(run.screen.contains(said), "{}", run.screen);
}
