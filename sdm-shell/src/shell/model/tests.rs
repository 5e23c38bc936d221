//! Tests of the model: events in, states and effects out.
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::event::Phase;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::SessionEvent;
use sdm_view::item::Item;

use super::goal::Goal;
use super::input::{Piece, ProgramInput};
use super::job::Stage;
use super::open_commands::{OpenCommand, RunEnd};
use super::{Break, Effect, Model, Over, Requests};
use crate::shell::tests::fake::{class, failed, set};
use crate::{Control, Options};

fn model() -> (Instant, Model) {
    let now = Instant::now();
    (now, Model::new(now, set("0-3"), Options::default()))
}

fn interrupted() -> Reply {
    Reply::Stopped(Stop {
        reason: StopReason::Interrupted,
        frame: None,
        inside: None,
        source: None,
    })
}

/// Begins a run on these tasks.
fn run(model: &mut Model, id: u64, tasks: &str) -> CommandId {
    let id = CommandId(id);
    let to = set(tasks);
    let mut open = OpenCommand::new("continue", &to);
    open.run = true;
    open.before = model.note_run(&to, &Command::Continue);
    model.open.insert(id, open);
    id
}

fn answer(id: CommandId, classes: Vec<sdm_session::Class>) -> SessionEvent {
    SessionEvent::Answer {
        id,
        classes,
        missing: Vec::new(),
        lost: IdSet::new(),
        late: false,
    }
}

fn standing(model: &mut Model, now: Instant) {
    let stop = Event::Stopped(Stop {
        reason: StopReason::AtMain,
        frame: None,
        inside: None,
        source: None,
    });
    model.handle_event(now, SessionEvent::Events(vec![(set("0-3"), stop)]));
    model.news.take_held();
}

#[test]
fn run_waits_for_all_tasks_and_shows_stops_after_a_delay() {
    let (now, mut model) = model();
    standing(&mut model, now);
    let id = run(&mut model, 1, "0-3");
    let goal = Goal::Run(vec![id]);
    assert_eq!(model.tasks.running(), set("0-3"));
    model.handle_event(now, answer(id, vec![class("0-2", interrupted())]));
    assert_eq!(model.left_of(&goal), set("3"));
    assert!(!model.is_reached(&goal));
    assert!(model.news.take_due(now).is_empty());
    let later = now + Duration::from_millis(300);
    assert_eq!(model.news.take_due(later).len(), 1);
    model.handle_event(now, answer(id, vec![class("3", interrupted())]));
    model.handle_event(now, SessionEvent::Complete { id });
    assert!(model.is_reached(&goal));
    assert_eq!(model.tasks.standing(), set("0-3"));
}

#[test]
fn stop_that_another_front_end_shows_is_only_recorded() {
    let (now, mut model) = model();
    standing(&mut model, now);
    let id = run(&mut model, 1, "0-3");
    model.open.set_run_end(RunEnd::Hidden);
    model.handle_event(now, answer(id, vec![class("0-3", interrupted())]));
    assert_eq!(model.tasks.standing(), set("0-3"));
    assert!(model.news.take_held().is_empty());
}

#[test]
fn sampling_hides_its_own_interrupts_but_shows_crashes() {
    let (now, mut model) = model();
    standing(&mut model, now);
    let id = run(&mut model, 1, "0-3");
    model.open.set_run_end(RunEnd::Looked);
    model.handle_event(now, answer(id, vec![class("0-2", interrupted())]));
    let crash = Reply::Stopped(Stop {
        reason: StopReason::Signal {
            name: "SIGSEGV".to_owned(),
            meaning: "Segmentation fault".to_owned(),
        },
        frame: None,
        inside: None,
        source: None,
    });
    model.handle_event(now, answer(id, vec![class("3", crash)]));
    assert_eq!(model.tasks.standing(), set("0-3"));
    assert_eq!(model.news.take_held().len(), 1);
}

#[test]
fn refused_run_leaves_tasks_stopped() {
    let (now, mut model) = model();
    standing(&mut model, now);
    let id = run(&mut model, 1, "0-3");
    let refused = failed("1", FailureCode::Gdb, "no");
    model.handle_event(now, answer(id, vec![refused]));
    assert_eq!(model.tasks.standing(), set("1"));
    assert_eq!(model.tasks.running(), set("0,2-3"));
}

#[test]
fn late_answer_names_its_command() {
    let (now, mut model) = model();
    let id = CommandId(5);
    model
        .open
        .insert(id, OpenCommand::new("print x", &set("0")));
    model.open.remove(id);
    model.handle_event(now, answer(id, vec![class("0", Reply::Done)]));
    let Some(Effect::Show(item)) = model.poll_effect() else {
        panic!("nothing is shown");
    };
    let Item::Answer(gathered) = *item else {
        panic!("{item:?}");
    };
    assert_eq!(
        (gathered.command.as_str(), gathered.late),
        ("print x", true)
    );
    assert_eq!(model.poll_effect(), None);
}

#[test]
fn job_counts_as_untouched_after_a_query_but_not_after_kill() {
    let (now, mut model) = model();
    standing(&mut model, now);
    model.job.stage = Stage::Untouched;
    model.job.note_sent(&Command::Threads);
    assert!(model.is_untouched());
    model.job.note_sent(&Command::Kill);
    assert!(!model.is_untouched());
}

#[test]
fn ended_job_is_not_lost_with_its_servers() {
    let (now, mut model) = model();
    let gone = || SessionEvent::Ended("server 1 on n2 is gone".to_owned());
    let launcher_ended = SessionEvent::LauncherEnded {
        status: "exited with code 0".to_owned(),
        code: Some(0),
        last_words: Vec::new(),
    };
    model.handle_event(now, launcher_ended);
    model.handle_event(now, gone());
    assert_eq!(
        model.over.take(),
        Some(Over::Ended("server 1 on n2 is gone".to_owned()))
    );
    let all = model.all.clone();
    model.tasks.set(&all, TaskState::Exited(0), None);
    while model.poll_effect().is_some() {}
    model.handle_event(now, gone());
    assert_eq!((model.job.stage, &model.over), (Stage::Over, &None));
    let Some(Effect::Show(item)) = model.poll_effect() else {
        panic!("nothing is shown");
    };
    let text = "the servers are gone: server 1 on n2 is gone";
    assert_eq!(*item, Item::Notice(text.to_owned()));
}

#[test]
fn only_interactive_restartable_job_survives_its_session() {
    let (now, mut model) = model();
    model.job.can_rerun = true;
    let ended = || SessionEvent::Ended("the master has ended".to_owned());
    model.handle_event(now, ended());
    assert_eq!(
        model.over.take(),
        Some(Over::Ended("the master has ended".to_owned()))
    );
    model.options.interactive = true;
    model.handle_event(now, ended());
    assert_eq!((model.job.stage, &model.over), (Stage::Over, &None));
    assert!(matches!(model.poll_effect(), Some(Effect::Show(_))));
}

#[test]
fn input_is_queued_while_no_job_runs() {
    let (_, mut model) = model();
    model.input.own = Some(ProgramInput::default());
    model.handle_control(Control::Input(b"one".to_vec()));
    assert_eq!(
        model.poll_effect(),
        Some(Effect::PassInput(b"one".to_vec()))
    );
    model.job.stage = Stage::Over;
    model.handle_control(Control::Input(b"two".to_vec()));
    assert_eq!(model.poll_effect(), None);
    let piece = &model.input.own.as_ref().unwrap().piece;
    assert_eq!(*piece, Piece::Held(b"two".to_vec()));
}

#[test]
fn ctrl_z_is_queued_and_the_first_termination_signal_counts() {
    let (_, mut model) = model();
    for control in [Control::Suspend, Control::Warned, Control::Terminate(15)] {
        model.handle_control(control);
    }
    assert_eq!(
        std::iter::from_fn(|| model.requests.take_break()).collect::<Vec<_>>(),
        [Break::Suspend, Break::Interrupt]
    );
    assert!(model.requests.warned);
    model.handle_control(Control::Terminate(1));
    assert_eq!(model.over, Some(Over::Terminated(15)));
}

#[test]
fn next_job_keeps_focus_and_named_sets() {
    let (now, mut model) = model();
    model.sets.focus = set("2-3");
    model.sets.named.insert("few".to_owned(), set("3"));
    model.tasks.set(&set("0"), TaskState::Exited(0), None);
    model.forget_job(now, &set("0-2"));
    assert_eq!(model.sets.focus, set("2"));
    assert_eq!(model.sets.named["few"], set("3"));
    assert!(model.tasks.ended().is_empty());
    model.forget_job(now, &set("0-1"));
    assert_eq!(model.sets.focus, set("0-1"));
}

/// A Ctrl-C that ended the previous wait does not interrupt the line that is typed afterwards.
#[test]
fn ctrl_c_before_a_line_is_ignored() {
    let mut requests = Requests::default();
    requests.add_break(Break::Interrupt);
    requests.add_line(Control::Eof);
    requests.add_break(Break::Suspend);
    assert!(requests.take_line().is_some());
    assert_eq!(requests.take_break(), Some(Break::Suspend));
    assert_eq!(requests.take_break(), None);
}

#[test]
fn attach_progress_extends_quiet_time_but_not_last_activity() {
    let (begun, mut model) = model();
    model.job.seized = set("0-3");
    let now = begun + Duration::from_secs(1);
    let attaching = Event::Progress(Phase::Gdb);
    model.handle_event(now, SessionEvent::Events(vec![(set("1"), attaching)]));
    assert_eq!(model.news.activity, now, "no news is from the future");
    assert!(model.news.quiet_since() > now, "a crash is told later");
    standing(&mut model, now);
    assert_eq!(model.news.quiet_since(), now);
}
