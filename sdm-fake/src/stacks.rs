//! The stacks of one task's threads, its frames, and the selected frame.

use sdm_debug::command::{BacktraceSpec, FrameSelect, LookSpec, SampleSpec};
use sdm_debug::reply::{
    Backtrace, Frame, FrameView, Reply, StackFrame, TaskSamples, TaskStacks, ThreadStack,
    ThreadView,
};
use sdm_debug::{Failure, FailureCode};
use sdm_idset::TaskId;

use super::scenario::{Place, Scenario};
use super::task::{Task, no_such, variables};

impl Task {
    /// The stacks of a process without a debugger. They are those of the scenario, whatever the task's state is.
    pub(super) fn look(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        spec: &LookSpec,
    ) -> Result<Reply, Failure> {
        if !spec.pids.iter().any(|(of, _)| *of == id.0) {
            let text = "no process was given for this rank";
            return Err(Failure::new(FailureCode::AttachFailed, text));
        }
        match spec.probe {
            Some(probe) => self.probe(scenario, id, probe),
            None => Ok(Reply::Stacks(self.stacks(scenario, id, spec.full))),
        }
    }

    /// Like `look`, for several samples over some time. The task does not move.
    pub(super) fn sample(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        spec: &SampleSpec,
    ) -> Result<Reply, Failure> {
        let Reply::Stacks(stacks) = self.look(scenario, id, &spec.look)? else {
            return Ok(Reply::Done);
        };
        let looks = 1 + spec.span_ms.saturating_sub(1) / spec.period_ms.max(1);
        let threads = stacks.threads.into_iter();
        let threads = threads.map(|it| (u64::from(it.count) * u64::from(looks), it.frames));
        Ok(Reply::Samples(Box::new(TaskSamples {
            looks,
            stacks: threads.collect(),
            helpers: u64::from(stacks.helpers) * u64::from(looks),
            ..TaskSamples::default()
        })))
    }

    /// The frames of the selected thread, innermost first.
    pub(super) fn frames(&self, scenario: &Scenario, id: TaskId) -> Vec<Frame> {
        let places = self.places(scenario, id, self.life.thread);
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

    /// The frames of a thread, outermost first, as they are after the steps and finished functions so far.
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
        let left = places
            .len()
            .saturating_sub(self.life.finished as usize)
            .max(1);
        places.truncate(left);
        if let Some(innermost) = places.last_mut()
            && innermost.line > 0
        {
            innermost.line = innermost.line.saturating_add(self.life.steps);
        }
        places
    }

    pub(super) fn thread_count(&self, scenario: &Scenario, id: TaskId) -> u32 {
        let own = u32::try_from(scenario.threads(id).len()).expect("bounded by the text");
        let helpers = scenario.pick(id, |s| s.helpers).unwrap_or(0);
        1 + own + helpers.min(1024)
    }

    pub(super) fn backtrace(&self, scenario: &Scenario, id: TaskId, spec: &BacktraceSpec) -> Reply {
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
        self.life.level = match select {
            FrameSelect::Current => self.life.level.min(outermost),
            FrameSelect::Level(level) if level > outermost => {
                return Err(no_such("No frame at level.".to_owned()));
            }
            FrameSelect::Level(level) => level,
            FrameSelect::Move(by) if by > 0 && self.life.level == outermost => {
                let text = "Initial frame selected; you can't go up.";
                return Err(no_such(text.to_owned()));
            }
            FrameSelect::Move(by) if by < 0 && self.life.level == 0 => {
                let text = "Bottom (innermost) frame selected; you can't go down.";
                return Err(no_such(text.to_owned()));
            }
            FrameSelect::Move(by) => self.life.level.saturating_add_signed(by).min(outermost),
        };
        let frame = frames.into_iter().nth(self.life.level as usize);
        Ok(Reply::Frame(FrameView {
            frame: frame.expect("the level was bounded"),
            source: None,
        }))
    }

    pub(super) fn threads(&self, scenario: &Scenario, id: TaskId) -> Vec<ThreadView> {
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
                current: number == self.life.thread,
            }
        };
        (1..=self.thread_count(scenario, id)).map(view).collect()
    }
}

fn stack_frame(place: Place) -> StackFrame {
    StackFrame::own(place.function, place.file, place.line)
}
