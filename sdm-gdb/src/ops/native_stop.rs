//! Answers about a program that its parent keeps stopped, from what was read without gdb.

use sdm_debug::command::{BacktraceSpec, ValueFormat};
use sdm_debug::fold::{FoldRules, RawFrame};
use sdm_debug::reply::{Backtrace, Frame, Value, Variable};
use sdm_debug::{Command, Failure, FailureCode, Reply};
use sdm_inspect::stack::{FrameDetail, PlainVariable, StackFrame, StoppedThread};

use super::native_stacks::{raw_frame, shown_count, stop_reason};
use super::stack::shown_frames;

/// A stopped thread, and the frames that are shown of it.
pub(crate) struct NativeStop<'a> {
    frames: &'a [StackFrame],
    details: &'a [FrameDetail],
    pub(crate) raw: Vec<RawFrame>,
    /// Levels of the innermost shown frame, and of the one outside the outermost shown one.
    pub(crate) shown: (usize, usize),
    /// The reason for a stack that was not read to its end.
    end: Option<String>,
}

impl<'a> NativeStop<'a> {
    pub(crate) fn new(thread: &'a StoppedThread, rules: &FoldRules) -> Self {
        let StoppedThread {
            program,
            stack,
            details,
        } = thread;
        let frames = &stack.frames[..shown_count(&stack.frames)];
        let raw = frames.iter().cloned().map(|it| raw_frame(it, program));
        let raw: Vec<RawFrame> = raw.collect();
        Self {
            shown: shown_frames(&raw, rules),
            raw,
            frames,
            details,
            end: stop_reason(&stack.removed_file, stack.is_whole, frames),
        }
    }

    /// A frame; with `with_args` it has its parameters.
    pub(crate) fn frame(&self, level: usize, with_args: bool) -> Option<Frame> {
        let (frame, raw) = (self.frames.get(level)?, self.raw.get(level)?);
        let name = frame.function.clone().or_else(|| frame.called.clone());
        let path = self.details.get(level).and_then(|it| it.path.clone());
        Some(Frame {
            level: u32::try_from(level).unwrap_or(u32::MAX),
            function: name.unwrap_or_else(|| raw.place.clone()),
            file: frame.file.clone().unwrap_or_default(),
            path: path.unwrap_or_default(),
            line: frame.line,
            module: raw.module.clone(),
            args: match with_args {
                true => self.arguments(level),
                false => Vec::new(),
            },
        })
    }

    fn plain(&self, level: usize, parameters: bool) -> impl Iterator<Item = &PlainVariable> {
        let all = self.details.get(level).map(|it| it.variables.as_slice());
        let all = all.unwrap_or_default().iter();
        all.filter(move |it| it.is_parameter == parameters)
    }

    fn variables(&self, level: usize, parameters: bool) -> Vec<Variable> {
        let wanted = self.plain(level, parameters);
        wanted
            .map(|it| variable(&it.name, it.value.clone()))
            .collect()
    }

    /// The parameters of a frame in a backtrace, in which gdb leaves out what is not scalar.
    fn arguments(&self, level: usize) -> Vec<Variable> {
        let text = |it: &PlainVariable| match it.is_aggregate {
            true => "...".to_owned(),
            false => it.value.clone(),
        };
        let all = self.plain(level, true);
        all.map(|it| variable(&it.name, text(it))).collect()
    }

    fn backtrace(&self, spec: &BacktraceSpec) -> Backtrace {
        let total = self.raw.len();
        let (first, last) = if spec.full { (0, total) } else { self.shown };
        let limit = match spec.limit {
            0 => total,
            limit => usize::try_from(limit).unwrap_or(total),
        };
        let end = last.min(first.saturating_add(limit));
        let more = end < last;
        let stopped = self.end.clone().filter(|_| !more).map(|reason| Frame {
            level: u32::try_from(total).unwrap_or(u32::MAX),
            function: reason,
            ..Frame::default()
        });
        let folded = if more { first } else { first + (total - last) };
        let shown = (first..end).filter_map(|level| self.frame(level, spec.args));
        Backtrace {
            frames: shown.chain(stopped).collect(),
            more,
            folded: u32::try_from(folded).unwrap_or(u32::MAX),
        }
    }

    fn registers(&self, names: &[String], format: ValueFormat) -> Result<Vec<Variable>, Failure> {
        let known = self.details.get(self.shown.0);
        let known = known.map(|it| it.registers.as_slice()).unwrap_or_default();
        let text = |value: u64| match format {
            ValueFormat::Natural => format!("{value:#x}  {}", value.cast_signed()),
            _ => format!("{value:#x}"),
        };
        let register = |(name, value): &(String, u64)| variable(name, text(*value));
        if names.is_empty() {
            return Ok(known.iter().map(register).collect());
        }
        let named = names.iter().map(|name| {
            let found = known.iter().find(|(known, _)| known == name);
            found.map(register).ok_or_else(|| {
                let text = format!("the register {name} is not read without gdb");
                Failure::new(FailureCode::Unsupported, text)
            })
        });
        named.collect()
    }
}

/// True if gdb would answer a native command with no more than [`stopped_reply`].
pub(crate) fn shows_all(command: &Command, thread: &StoppedThread, rules: &FoldRules) -> bool {
    let stop = NativeStop::new(thread, rules);
    let (first, last) = stop.shown;
    let is_whole = |it: &PlainVariable| it.is_whole;
    match command {
        Command::Backtrace(spec) => {
            let is_shown = |it: &PlainVariable| it.is_whole || it.is_aggregate;
            let mut levels = if spec.full {
                0..stop.raw.len()
            } else {
                first..last
            };
            !spec.args || levels.all(|level| stop.plain(level, true).all(is_shown))
        }
        Command::Locals => stop.plain(first, false).all(is_whole),
        Command::Arguments => stop.plain(first, true).all(is_whole),
        _ => false,
    }
}

/// True for a command that [`stopped_reply`] answers.
pub(crate) fn is_native(command: &Command) -> bool {
    matches!(
        command,
        Command::Backtrace(_)
            | Command::Locals
            | Command::Arguments
            | Command::Registers {
                format: ValueFormat::Natural | ValueFormat::Hexadecimal,
                ..
            }
    )
}

/// Answers a command from a thread of a program that stays stopped.
///
/// # Errors
/// [`Failure`] if the command needs gdb.
pub(crate) fn stopped_reply(
    command: &Command,
    thread: &StoppedThread,
    rules: &FoldRules,
) -> Result<Reply, Failure> {
    let stop = NativeStop::new(thread, rules);
    let selected = stop.shown.0;
    Ok(match command {
        Command::Backtrace(spec) => Reply::Backtrace(stop.backtrace(spec)),
        Command::Locals => Reply::Variables(stop.variables(selected, false)),
        Command::Arguments => Reply::Variables(stop.variables(selected, true)),
        Command::Registers { names, format } => Reply::Variables(stop.registers(names, *format)?),
        _ => {
            let text = "the command needs gdb";
            return Err(Failure::new(FailureCode::Unsupported, text));
        }
    })
}

fn variable(name: &str, text: String) -> Variable {
    Variable {
        name: name.to_owned(),
        value: Value { text, cut: None },
    }
}
