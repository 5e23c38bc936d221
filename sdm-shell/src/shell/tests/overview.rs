//! Tests of the overview of the session's state that a full-screen view gets.
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use sdm_debug::command::StartSpec;
use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_debug::{Command, Reply};
use sdm_view::item::{Item, View};
use sdm_view::overview::Overview;

use super::fake::*;
use crate::{Control, LineSource, Options, Script, ScriptLine};

/// Notes of each state that is shown whether it is stale, and whether it has stacks.
#[derive(Clone, Default)]
struct Boards(Rc<RefCell<Vec<(bool, bool)>>>);

impl View for Boards {
    fn show(&mut self, _at: Duration, _item: &Item) {}

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, _bytes: &[u8]) {}

    fn wants_board(&self) -> bool {
        true
    }

    fn show_board(&mut self, board: &Overview) {
        let shown = (board.is_stale, board.sight.stacks.is_some());
        self.0.borrow_mut().push(shown);
    }
}

/// Notes the running tasks of each state that is shown.
#[derive(Clone, Default)]
struct RunningSets(Rc<RefCell<Vec<String>>>);

impl View for RunningSets {
    fn show(&mut self, _at: Duration, _item: &Item) {}

    fn status(&mut self, _line: Option<&str>) {}

    fn pass(&mut self, _stderr: bool, _bytes: &[u8]) {}

    fn wants_board(&self) -> bool {
        true
    }

    fn show_board(&mut self, board: &Overview) {
        self.0.borrow_mut().push(board.running.to_string());
    }
}

#[test]
fn view_shows_ranks_as_running_while_a_command_runs() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => at_main(id, to),
        Command::Continue => {
            let said = at_main(id, to).into_iter();
            said.map(|(at, said)| (at + 5000, said)).collect()
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    });
    let boards = RunningSets::default();
    let shown = Box::new(boards.clone());
    let text = "[1-3] continue".to_owned();
    let line = ScriptLine {
        text,
        origin: "-c 1".to_owned(),
    };
    act_in(shown, 4, Options::default(), respond, |shell, controls| {
        shell.start(vec![(set("0-3"), StartSpec::default())]);
        shell.run_lines(&mut Script::new(vec![line], controls))
    });
    let seen = boards.0.take();
    assert!(seen.contains(&"1-3".to_owned()), "{seen:?}");
}

/// A line source without lines: the test gives them itself.
struct Nobody;

impl LineSource for Nobody {
    fn request(&mut self, _prompt: &str, _question: bool) {}

    fn set_prompt(&mut self, _prompt: &str) {}
}

#[test]
fn state_is_stale_until_the_first_stacks_have_come() {
    let respond: Responder = Box::new(|id, to, command| match command {
        Command::Start(_) => {
            let text = "quit".to_owned();
            let quit = Control::Line(ScriptLine {
                text,
                origin: String::new(),
            });
            let mut said = at_main(id, to);
            said.push((5000, Said::Control(quit)));
            said
        }
        Command::Stacks { .. } => {
            let frames = vec![StackFrame::own("main", "halo.c", 70)];
            let stacks = Reply::Stacks(TaskStacks::of_main(frames, 1));
            let stacks = class(&to.to_string(), stacks);
            vec![(900, answer(id, vec![stacks])), (901, complete(id))]
        }
        _ => all(id, vec![class(&to.to_string(), Reply::Done)]),
    });
    let boards = Boards::default();
    let shown = Box::new(boards.clone());
    act_in(shown, 4, Options::default(), respond, |shell, _| {
        shell.start(vec![(set("0-3"), StartSpec::default())]);
        shell.run_lines(&mut Nobody)
    });
    let mut seen = boards.0.take();
    seen.dedup();
    assert_eq!(seen, [(true, false), (false, true)]);
}
