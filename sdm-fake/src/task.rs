//! One task of the fake: what it is doing, and its answers to queries.

use std::collections::{BTreeMap, VecDeque};

use sdm_core::CommandId;
use sdm_debug::command::{BacktraceSpec, BreakSpec, FrameSelect, PointSpec, StartPoint};
use sdm_debug::reply::{
    Backtrace, BreakpointPlace, BreakpointView, Frame, FrameView, MemoryLimit, Reply, Room,
    StackFrame, TaskStacks, ThreadStack, ThreadView, Usage, Value, Variable,
};
use sdm_debug::{Command, Failure, FailureCode, TaskState};
use sdm_idset::TaskId;

use super::RunKind;
use super::data::Quiet;
use super::eval::evaluate;
use super::scenario::{Place, Scenario, fill};

/// The most breakpoints of one task.
const BREAKPOINTS_MAX: usize = 4096;

/// One task.
#[derive(Default)]
pub(super) struct Task {
    pub(super) state: TaskState,
    /// True where it was attached to and not started.
    pub(super) attached: bool,
    /// How many times it was started.
    pub(super) life: u32,
    pub(super) run: Option<Run>,
    pub(super) kind: RunKind,
    /// How many runs were opened.
    pub(super) generation: u32,
    /// How many of the script's ends are used up.
    pub(super) runs: usize,
    pub(super) steps: u32,
    pub(super) finished: u32,
    pub(super) level: u32,
    pub(super) thread: u32,
    pub(super) printed: u64,
    /// The command that takes its time.
    pub(super) current: Option<(CommandId, Command)>,
    pub(super) queue: VecDeque<(CommandId, Command)>,
    pub(super) stdin: VecDeque<(CommandId, u64, Vec<u8>)>,
    pub(super) interrupts: Vec<CommandId>,
    /// Commands that are never answered.
    pub(super) silent: Vec<CommandId>,
    /// True where the start under way was cancelled: its end is an event.
    pub(super) disowned: bool,
    /// True once the backend has ended it.
    pub(super) left: bool,
    stdin_taken: u64,
    breakpoints: Vec<Point>,
    values: Vec<(String, String)>,
    /// Watchpoints and catchpoints.
    pub(super) quiet: Vec<Quiet>,
    /// Variable objects: what they stand for, and what was seen last.
    pub(super) objects: BTreeMap<String, (String, String)>,
    /// The variables at the last probe.
    pub(super) probed: Option<Vec<Variable>>,
    /// The line behind those that were listed last; 0 where none were.
    pub(super) listed: u32,
}

/// An open run.
pub(super) struct Run {
    /// Whom its end answers; nobody where the command was cancelled.
    pub(super) id: Option<CommandId>,
}

impl Task {
    /// Moves to another state.
    pub(super) fn become_state(&mut self, next: TaskState) {
        assert!(
            self.state.may_become(&next),
            "the table of moves has no {:?} -> {next:?}",
            self.state
        );
        self.state = next;
    }

    /// A new process stands behind the task.
    pub(super) fn restart(&mut self) {
        self.life += 1;
        self.runs = 0;
        (self.steps, self.finished) = (0, 0);
        (self.level, self.thread) = (0, 1);
        (self.printed, self.stdin_taken) = (0, 0);
        self.values.clear();
        self.objects.clear();
        self.probed = None;
        self.listed = 0;
    }

    /// The breakpoint that a run hits: the enabled one of the lowest number.
    pub(super) fn hit(&mut self) -> Option<u32> {
        let enabled = self.breakpoints.iter_mut().filter(|point| point.enabled);
        let point = enabled.min_by_key(|point| point.spec.number)?;
        point.hits += 1;
        let (number, temporary) = (point.spec.number, point.spec.temporary);
        if temporary {
            self.breakpoints.retain(|point| point.spec.number != number);
        }
        Some(number)
    }

    /// Breakpoints that come with a start; a script knows no other points.
    pub(super) fn insert_points(&mut self, id: TaskId, points: &[StartPoint]) {
        for point in points {
            if let PointSpec::Break(spec) = &point.spec
                && point.tasks.contains(id)
            {
                self.breakpoints.push(Point {
                    spec: spec.clone(),
                    enabled: point.enabled,
                    hits: 0,
                });
            }
        }
    }

    /// Drops a command; true where it was open here.
    pub(super) fn forget(&mut self, id: CommandId) -> bool {
        if let Some(run) = self.run.as_mut().filter(|run| run.id == Some(id)) {
            run.id = None;
            return true;
        }
        // A start cannot be half undone: it stays, and stops without being asked.
        if self.is_starting() && self.current.as_ref().is_some_and(|(start, _)| *start == id) {
            return !std::mem::replace(&mut self.disowned, true);
        }
        let before = self.waiting();
        self.queue.retain(|(waiting, _)| *waiting != id);
        self.stdin.retain(|(waiting, ..)| *waiting != id);
        self.interrupts.retain(|waiting| *waiting != id);
        self.silent.retain(|waiting| *waiting != id);
        self.current.take_if(|(current, _)| *current == id);
        self.waiting() < before
    }

    fn is_starting(&self) -> bool {
        matches!(
            self.current,
            Some((_, Command::Start(_) | Command::Attach(_)))
        )
    }

    /// Ends the start under way; whom that answers, if there is one.
    pub(super) fn take_start(&mut self) -> Option<Option<CommandId>> {
        if !self.is_starting() {
            return None;
        }
        let disowned = std::mem::take(&mut self.disowned);
        let start = self.current.take().map(|(id, _)| id);
        Some(start.filter(|_| !disowned))
    }

    fn waiting(&self) -> usize {
        let lists = self.queue.len() + self.stdin.len();
        lists + self.interrupts.len() + self.silent.len() + usize::from(self.current.is_some())
    }

    /// Everything not answered but an open run, for the end.
    pub(super) fn drain_waiting(&mut self) -> Vec<CommandId> {
        let mut ids: Vec<CommandId> = self.queue.drain(..).map(|(id, _)| id).collect();
        ids.extend(self.stdin.drain(..).map(|(id, ..)| id));
        ids.append(&mut self.silent);
        if !self.is_starting() {
            ids.extend(self.current.take().map(|(id, _)| id));
        }
        ids
    }

    /// What of these bytes is new to the program.
    pub(super) fn take_stdin<'a>(
        &mut self,
        offset: u64,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], Failure> {
        self.state.need_live()?;
        let Some(known) = self.stdin_taken.checked_sub(offset) else {
            let text = format!("input from {offset} on, {} was taken", self.stdin_taken);
            return Err(Failure::new(FailureCode::BadCommand, text));
        };
        let known = usize::try_from(known).unwrap_or(usize::MAX);
        let new = &bytes[known.min(bytes.len())..];
        self.stdin_taken += new.len() as u64;
        Ok(new)
    }

    /// The frames of the selected thread, innermost first.
    pub(super) fn frames(&self, scenario: &Scenario, id: TaskId) -> Vec<Frame> {
        let places = self.places(scenario, id, self.thread);
        let args = scenario.named(id, |s| &s.args);
        let mut frames = Vec::with_capacity(places.len());
        for (level, place) in (0..).zip(places.into_iter().rev()) {
            frames.push(Frame {
                level,
                function: place.function,
                path: match place.file.as_str() {
                    "" => String::new(),
                    file => format!("/fake/{file}"),
                },
                file: place.file,
                line: place.line,
                module: String::new(),
                args: if level == 0 { variables(&args) } else { vec![] },
            });
        }
        frames
    }

    /// The frames of a thread, outermost first; steps and finished functions are taken in.
    fn places(&self, scenario: &Scenario, id: TaskId, thread: u32) -> Vec<Place> {
        if let Some(other) = (thread as usize).checked_sub(2) {
            return match scenario.threads(id).get(other) {
                Some(places) => places.clone(),
                None => vec![Place {
                    function: "epoll_wait".to_owned(),
                    file: String::new(),
                    line: 0,
                }],
            };
        }
        let mut places = scenario.stack(id);
        let left = places.len().saturating_sub(self.finished as usize).max(1);
        places.truncate(left);
        if let Some(innermost) = places.last_mut()
            && innermost.line > 0
        {
            innermost.line = innermost.line.saturating_add(self.steps);
        }
        places
    }

    fn thread_count(&self, scenario: &Scenario, id: TaskId) -> u32 {
        let own = u32::try_from(scenario.threads(id).len()).expect("bounded by the text");
        let helpers = scenario.pick(id, |s| s.helpers).unwrap_or(0);
        1 + own + helpers.min(1024)
    }

    /// The answer to a command that lets nothing run.
    pub(super) fn query(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        command: &Command,
    ) -> Result<Reply, Failure> {
        match command {
            Command::Status => return Ok(Reply::Status(self.state.clone())),
            Command::Usage => {
                self.state.need_live()?;
                // Each scripted task is a megabyte larger than the one before it.
                let resident_bytes = (u64::from(id.0) + 1) << 20;
                return Ok(Reply::Usage(Usage {
                    resident_bytes,
                    peak_bytes: resident_bytes,
                }));
            }
            Command::Room(_) => {
                // What it scripts needs next to nothing.
                return Ok(Reply::Room(Room {
                    gdb_bytes: 0,
                    free_bytes: u64::MAX,
                    limit: MemoryLimit::Host,
                }));
            }
            Command::BreakInsert(_)
            | Command::BreakDelete { .. }
            | Command::BreakEnable { .. }
            | Command::BreakCondition { .. }
            | Command::BreakIgnore { .. }
            | Command::BreakCommands { .. } => {
                self.state.need_live()?;
                return self.change_breakpoint(command);
            }
            Command::WatchInsert(_) | Command::CatchInsert(_) => {
                self.state.need_live()?;
                return self.insert_quiet(command);
            }
            Command::Probe(spec) => return self.probe(scenario, id, *spec),
            Command::Breakpoints => {
                self.state.need_live()?;
                return Ok(Reply::Breakpoints(self.breakpoint_views()));
            }
            _ => self.state.need_stopped()?,
        }
        match command {
            Command::Backtrace(spec) => Ok(self.backtrace(scenario, id, spec)),
            Command::Stacks { full } => Ok(Reply::Stacks(self.stacks(scenario, id, *full))),
            Command::SelectFrame(select) => self.select_frame(scenario, id, *select),
            Command::SelectThread { number } => {
                if !(1..=self.thread_count(scenario, id)).contains(number) {
                    return Err(no_such(format!("Unknown thread {number}.")));
                }
                (self.thread, self.level) = (*number, 0);
                self.select_frame(scenario, id, FrameSelect::Current)
            }
            Command::Locals => Ok(Reply::Variables(self.locals(scenario, id))),
            Command::Arguments => {
                let args = scenario.named(id, |s| &s.args);
                Ok(Reply::Variables(variables(&args)))
            }
            Command::Threads => Ok(Reply::Threads(self.threads(scenario, id))),
            Command::Evaluate { expression } | Command::Print { expression, .. } => {
                let text = self.evaluate(scenario, id, expression)?;
                Ok(Reply::Value(value(&text)))
            }
            Command::SetVariable { expression } => self.set_variable(scenario, id, expression),
            Command::Console { line } => console(line),
            other => self.data(scenario, id, other),
        }
    }

    fn backtrace(&self, scenario: &Scenario, id: TaskId, spec: &BacktraceSpec) -> Reply {
        let mut frames = self.frames(scenario, id);
        let limit = match spec.limit {
            0 => usize::MAX,
            limit => limit as usize,
        };
        let more = frames.len() > limit;
        frames.truncate(limit);
        if !spec.args {
            frames.iter_mut().for_each(|frame| frame.args.clear());
        }
        Reply::Backtrace(Backtrace {
            frames,
            more,
            folded: 0,
        })
    }

    pub(super) fn stacks(&self, scenario: &Scenario, id: TaskId, full: bool) -> TaskStacks {
        let count = self.thread_count(scenario, id);
        let shown = match full {
            true => count,
            false => 1 + u32::try_from(scenario.threads(id).len()).expect("bounded by the text"),
        };
        let mut stacks: Vec<ThreadStack> = Vec::new();
        for thread in 1..=shown {
            let places = self.places(scenario, id, thread);
            let frames = places.into_iter().map(stack_frame).collect();
            match stacks.iter_mut().position(|stack| stack.frames == frames) {
                Some(at) => stacks[at].count += 1,
                None => stacks.push(ThreadStack {
                    count: 1,
                    main: thread == 1,
                    frames,
                }),
            }
        }
        TaskStacks {
            threads: stacks,
            helpers: count - shown,
        }
    }

    pub(super) fn select_frame(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        select: FrameSelect,
    ) -> Result<Reply, Failure> {
        let frames = self.frames(scenario, id);
        let outermost = u32::try_from(frames.len() - 1).expect("bounded by the text");
        self.level = match select {
            FrameSelect::Current => self.level.min(outermost),
            FrameSelect::Level(level) if level > outermost => {
                return Err(no_such("No frame at level.".to_owned()));
            }
            FrameSelect::Level(level) => level,
            FrameSelect::Move(by) if by > 0 && self.level == outermost => {
                let text = "Initial frame selected; you can't go up.";
                return Err(no_such(text.to_owned()));
            }
            FrameSelect::Move(by) if by < 0 && self.level == 0 => {
                let text = "Bottom (innermost) frame selected; you can't go down.";
                return Err(no_such(text.to_owned()));
            }
            FrameSelect::Move(by) => self.level.saturating_add_signed(by).min(outermost),
        };
        let frame = frames.into_iter().nth(self.level as usize);
        Ok(Reply::Frame(FrameView {
            frame: frame.expect("the level was bounded"),
            source: None,
        }))
    }

    fn threads(&self, scenario: &Scenario, id: TaskId) -> Vec<ThreadView> {
        let view = |number| {
            let places = self.places(scenario, id, number);
            let place = places.into_iter().next_back();
            ThreadView {
                number,
                name: "fake".to_owned(),
                frame: place.map(|place| Frame {
                    level: 0,
                    function: place.function,
                    path: String::new(),
                    file: place.file,
                    line: place.line,
                    module: String::new(),
                    args: vec![],
                }),
                current: number == self.thread,
            }
        };
        (1..=self.thread_count(scenario, id)).map(view).collect()
    }

    pub(super) fn locals(&self, scenario: &Scenario, id: TaskId) -> Vec<Variable> {
        let mut locals = scenario.named(id, |s| &s.locals);
        for (name, text) in &mut locals {
            if let Some((_, set)) = self.values.iter().find(|(set, _)| set == name) {
                text.clone_from(set);
            }
        }
        variables(&locals)
    }

    pub(super) fn evaluate(
        &self,
        scenario: &Scenario,
        id: TaskId,
        expression: &str,
    ) -> Result<String, Failure> {
        let scripted = |name: &str| {
            scenario.pick(id, |s| {
                let lists = [&s.values, &s.locals, &s.args];
                let mut all = lists.into_iter().flat_map(|list| list.iter().rev());
                all.find(|(known, _)| known == name).map(|(_, text)| text)
            })
        };
        let lookup = |name: &str| {
            if let Some((_, text)) = self.values.iter().find(|(known, _)| known == name) {
                return Some(text.clone());
            }
            match scripted(name) {
                Some(text) => Some(fill(text, id, 0)),
                None => (name == "rank").then(|| id.0.to_string()),
            }
        };
        evaluate(expression, &lookup)
    }

    pub(super) fn set_variable(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        expression: &str,
    ) -> Result<Reply, Failure> {
        let Some((name, right)) = expression.split_once('=') else {
            self.evaluate(scenario, id, expression)?;
            return Ok(Reply::Done);
        };
        let name = name.trim();
        // Only what is there can be set, as in gdb.
        self.evaluate(scenario, id, name)?;
        let text = self.evaluate(scenario, id, right)?;
        match self.values.iter_mut().find(|(known, _)| known == name) {
            Some(known) => known.1 = text,
            None => self.values.push((name.to_owned(), text)),
        }
        Ok(Reply::Done)
    }

    fn change_breakpoint(&mut self, command: &Command) -> Result<Reply, Failure> {
        let at = |list: &[Point], number: u32| {
            let found = list.iter().position(|point| point.spec.number == number);
            found.ok_or_else(|| no_such(format!("No breakpoint number {number}.")))
        };
        match command {
            Command::BreakInsert(spec) => {
                if self.breakpoints.len() >= BREAKPOINTS_MAX {
                    let text = format!("more than {BREAKPOINTS_MAX} breakpoints");
                    return Err(Failure::new(FailureCode::Limit, text));
                }
                self.breakpoints.push(Point {
                    spec: spec.clone(),
                    enabled: true,
                    hits: 0,
                });
                Ok(Reply::Breakpoint(breakpoint_place(spec)))
            }
            Command::BreakDelete { number } => {
                let quiet = self.quiet.len();
                self.quiet.retain(|quiet| quiet.number != *number);
                if self.quiet.len() < quiet {
                    return Ok(Reply::Done);
                }
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints.remove(index);
                Ok(Reply::Done)
            }
            Command::BreakEnable { number, enabled } => {
                let quiet = self.quiet.iter_mut().find(|quiet| quiet.number == *number);
                if let Some(quiet) = quiet {
                    quiet.enabled = *enabled;
                    return Ok(Reply::Done);
                }
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].enabled = *enabled;
                Ok(Reply::Done)
            }
            Command::BreakCondition { number, condition } => {
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].spec.condition.clone_from(condition);
                Ok(Reply::Done)
            }
            Command::BreakIgnore { number, count } => {
                let index = at(&self.breakpoints, *number)?;
                self.breakpoints[index].spec.ignore = *count;
                Ok(Reply::Done)
            }
            Command::BreakCommands { number, lines } => {
                let index = at(&self.breakpoints, *number)?;
                if has_open_block(lines) {
                    let text = "a block without `end`";
                    return Err(Failure::new(FailureCode::BadCommand, text));
                }
                self.breakpoints[index].spec.commands.clone_from(lines);
                Ok(Reply::Done)
            }
            _ => unreachable!("only the commands of breakpoints come here"),
        }
    }
}

impl Task {
    fn breakpoint_views(&self) -> Vec<BreakpointView> {
        let own = self.breakpoints.iter().map(
            |Point {
                 spec,
                 enabled,
                 hits,
             }| BreakpointView {
                place: breakpoint_place(spec),
                kind: "breakpoint".to_owned(),
                what: spec.location.clone(),
                enabled: *enabled,
                temporary: spec.temporary,
                condition: spec.condition.clone(),
                ignore: spec.ignore,
                hits: *hits,
            },
        );
        let mut all: Vec<_> = own.chain(self.quiet_views()).collect();
        all.sort_by_key(|view| view.place.number);
        all
    }
}

/// True where an `if` or a `while` among a breakpoint's commands has no `end`.
fn has_open_block(lines: &[String]) -> bool {
    let words = lines
        .iter()
        .filter_map(|line| line.split([' ', '(']).find(|word| !word.is_empty()));
    let depth = words.fold(0_i64, |depth, word| match word {
        "if" | "while" => depth + 1,
        "end" => depth - 1,
        _ => depth,
    });
    depth != 0
}

/// A breakpoint of the front-end's.
#[derive(Clone, Debug)]
struct Point {
    spec: BreakSpec,
    enabled: bool,
    /// How many runs it has stopped.
    hits: u64,
}

/// A value that is there whole.
pub(super) fn value(text: &str) -> Value {
    Value {
        text: text.to_owned(),
        cut: None,
    }
}

fn variables(pairs: &[(String, String)]) -> Vec<Variable> {
    let variable = |(name, text): &(String, String)| Variable {
        name: name.clone(),
        value: value(text),
    };
    pairs.iter().map(variable).collect()
}

fn stack_frame(place: Place) -> StackFrame {
    StackFrame::own(place.function, place.file, place.line)
}

fn breakpoint_place(spec: &BreakSpec) -> BreakpointPlace {
    let (file, line) = match spec.location.rsplit_once(':') {
        Some((file, line)) => (file, line.parse().unwrap_or(0)),
        None => ("", 0),
    };
    let function = match file {
        "" => spec.location.clone(),
        _ => String::new(),
    };
    BreakpointPlace {
        number: spec.number,
        pending: false,
        places: vec![(function, file.to_owned(), line)],
    }
}

fn console(line: &str) -> Result<Reply, Failure> {
    match line.trim().split_once(' ').unwrap_or((line.trim(), "")) {
        ("echo", text) => Ok(Reply::Text(text.to_owned())),
        (word, _) => {
            let text = format!("Undefined command: \"{word}\".  Try \"help\".");
            Err(Failure::new(FailureCode::Gdb, text))
        }
    }
}

pub(super) fn no_such(text: String) -> Failure {
    Failure::new(FailureCode::NoSuchThing, text)
}
