//! Requests for breakpoints, watchpoints and catchpoints: their text, and the commands that create them.

use super::{BreakSpec, CatchEvent, CatchSpec, Command, PointSpec, WatchKind, WatchSpec};

impl PointSpec {
    /// The front-end's number of the breakpoint, watchpoint or catchpoint. 0 before the front-end has assigned one.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Self::Break(spec) => spec.number,
            Self::Watch(spec) => spec.number,
            Self::Catch(spec) => spec.number,
        }
    }

    /// The same request with this number.
    #[must_use]
    pub fn numbered(self, number: u32) -> Self {
        match self {
            Self::Break(spec) => Self::Break(BreakSpec { number, ..spec }),
            Self::Watch(spec) => Self::Watch(WatchSpec { number, ..spec }),
            Self::Catch(spec) => Self::Catch(CatchSpec { number, ..spec }),
        }
    }

    /// The command to the tasks that inserts it.
    #[must_use]
    pub fn insertion(self) -> Command {
        match self {
            Self::Break(spec) => Command::BreakInsert(spec),
            Self::Watch(spec) => Command::WatchInsert(spec),
            Self::Catch(spec) => Command::CatchInsert(spec),
        }
    }

    /// True if the breakpoint, watchpoint or catchpoint is deleted at its first stop.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Break(spec) => spec.temporary,
            Self::Watch(_) => false,
            Self::Catch(spec) => spec.temporary,
        }
    }

    /// True if the location depends on the tasks' position: `break`, `break 12`, `break +1`.
    #[must_use]
    pub fn is_relative(&self) -> bool {
        match self {
            Self::Break(spec) => {
                let first = spec.location.chars().next();
                !spec.regex && first.is_none_or(|c| c.is_ascii_digit() || "+-".contains(c))
            }
            Self::Watch(_) | Self::Catch(_) => false,
        }
    }

    /// The location as `info breakpoints` shows it: a source location, `watch x`, `catch fork`.
    #[must_use]
    pub fn location(&self) -> String {
        match self {
            Self::Break(spec) if spec.regex => format!("/{}/", spec.location),
            Self::Break(spec) => {
                let location = match &*spec.location {
                    "" => "current line",
                    location => location,
                };
                match spec.thread {
                    None => location.to_owned(),
                    Some(thread) => format!("{location} thread {thread}"),
                }
            }
            Self::Watch(_) | Self::Catch(_) => self.words(),
        }
    }

    /// The text for a created watchpoint or catchpoint: `watchpoint 3: x`, `catchpoint 4 (fork)`. `None` for a
    /// breakpoint, whose location is shown instead.
    #[must_use]
    pub fn made(&self) -> Option<String> {
        let number = self.number();
        Some(match self {
            Self::Break(_) => return None,
            Self::Watch(spec) => {
                let kind = match spec.kind {
                    WatchKind::Write => "",
                    WatchKind::Read => "read ",
                    WatchKind::Access => "access ",
                };
                format!("{kind}watchpoint {number}: {}", spec.expression)
            }
            Self::Catch(spec) => format!("catchpoint {number} ({})", event(&spec.event)),
        })
    }

    /// The condition; `None` for a breakpoint that always stops.
    #[must_use]
    pub fn condition(&self) -> Option<&str> {
        match self {
            Self::Break(spec) => spec.condition.as_deref(),
            Self::Watch(spec) => spec.condition.as_deref(),
            Self::Catch(spec) => spec.condition.as_deref(),
        }
    }

    /// Replaces the condition.
    pub fn set_condition(&mut self, condition: Option<String>) {
        let slot = match self {
            Self::Break(spec) => &mut spec.condition,
            Self::Watch(spec) => &mut spec.condition,
            Self::Catch(spec) => &mut spec.condition,
        };
        *slot = condition;
    }

    /// The gdb commands that run at each stop at this breakpoint, a line each. Empty for watchpoints and catchpoints.
    #[must_use]
    pub fn commands(&self) -> &[String] {
        match self {
            Self::Break(spec) => &spec.commands,
            Self::Watch(_) | Self::Catch(_) => &[],
        }
    }

    /// The command line that creates this breakpoint, without its set of tasks.
    #[must_use]
    pub fn line(&self) -> String {
        match self.condition() {
            None => self.words(),
            Some(condition) => format!("{} if {condition}", self.words()),
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Break(spec) => {
                let word = match (spec.regex, spec.temporary, spec.hardware) {
                    (true, ..) => "rbreak",
                    (_, true, true) => "thbreak",
                    (_, true, false) => "tbreak",
                    (_, false, true) => "hbreak",
                    (_, false, false) => "break",
                };
                let mut line = word.to_owned();
                if !spec.location.is_empty() {
                    line.push_str(&format!(" {}", spec.location));
                }
                if let Some(thread) = spec.thread {
                    line.push_str(&format!(" thread {thread}"));
                }
                line
            }
            Self::Watch(spec) => {
                let word = match spec.kind {
                    WatchKind::Write => "watch",
                    WatchKind::Read => "rwatch",
                    WatchKind::Access => "awatch",
                };
                let location = if spec.location { " -l" } else { "" };
                format!("{word}{location} {}", spec.expression)
            }
            Self::Catch(spec) => {
                let word = if spec.temporary { "tcatch" } else { "catch" };
                format!("{word} {}", event(&spec.event))
            }
        }
    }
}

fn event(event: &CatchEvent) -> String {
    let with = |word: &str, rest: &str| format!("{word} {rest}").trim_end().to_owned();
    match event {
        CatchEvent::Fork => "fork".to_owned(),
        CatchEvent::Vfork => "vfork".to_owned(),
        CatchEvent::Exec => "exec".to_owned(),
        CatchEvent::Syscall(names) => with("syscall", &names.join(" ")),
        CatchEvent::Signal(names) => with("signal", &names.join(" ")),
        CatchEvent::Throw => "throw".to_owned(),
        CatchEvent::Rethrow => "rethrow".to_owned(),
        CatchEvent::Catch => "catch".to_owned(),
        CatchEvent::Load(name) => with("load", name),
        CatchEvent::Unload(name) => with("unload", name),
    }
}
