//! Scripts of a batch whose programs can run without gdb.

use sdm_debug::Command;

use super::model::job::Stage;
use super::{ScriptLine, SessionHandle, attach};
use crate::commands::{self, Line, SetExpr, UserCommand};

/// True if a script begins with `continue` or `continue &`, and all its other commands need no gdb while the ranks run.
/// The programs can then run from their start: with a gdb they would only stand at `main` until that `continue`.
#[must_use]
pub fn runs_without_gdb(lines: &[ScriptLine]) -> bool {
    let parsed = lines.iter().map(|line| commands::parse(&line.text));
    let Ok(parsed) = parsed.collect::<Result<Vec<Line>, _>>() else {
        return false;
    };
    let mut rest = parsed
        .iter()
        .skip_while(|line| is_of_session(&line.command));
    rest.next().is_some_and(begins) && rest.all(needs_no_gdb)
}

/// True if a line needs no gdb in a session that has started its ranks.
pub(super) fn is_ready(session: &SessionHandle, line: &Line) -> bool {
    let (is_own, has_begun) = session.read(|model| {
        let job = &model.job;
        (job.attachable.is_none(), job.stage == Stage::Begun)
    });
    is_own && (needs_no_gdb(line) || has_begun && begins(line))
}

fn begins(line: &Line) -> bool {
    let continues = |command: &UserCommand| {
        let UserCommand::Run { command, .. } = command else {
            return false;
        };
        *command == Command::Continue
    };
    line.to.is_none() && continues(&line.command)
}

fn needs_no_gdb(line: &Line) -> bool {
    use UserCommand as C;
    let of_thread = line.to.as_ref().and_then(SetExpr::thread).is_some();
    let runs_freely = match &line.command {
        C::Wait { .. } | C::Send { .. } | C::Report(_) | C::Kill => true,
        // These concern gdbs, or bring commands that are not known here.
        C::Breakpoints { .. }
        | C::SetPending(_)
        | C::Attach(_)
        | C::Detach(_)
        | C::Hold { .. }
        | C::Displays
        | C::Undisplay(_)
        | C::Define(_)
        | C::Save(_)
        | C::Load(_)
        | C::Source(_) => false,
        command => attach::needs_no_gdb(command),
    };
    runs_freely && !of_thread
}

/// True for commands before which no rank needs to run.
fn is_of_session(command: &UserCommand) -> bool {
    use UserCommand as C;
    matches!(
        command,
        C::Nothing { .. }
            | C::DefineSet { .. }
            | C::ForgetSet(_)
            | C::Pagination(_)
            | C::Output(_)
            | C::Outside(_)
            | C::System(_)
            | C::Echo(_)
            | C::Help(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scripts_that_look_need_no_gdb() {
        let check = |lines: &[&str], expect| {
            let lines = lines.iter().map(|text| ScriptLine {
                text: (*text).to_owned(),
                ..ScriptLine::default()
            });
            let lines: Vec<ScriptLine> = lines.collect();
            assert_eq!(runs_without_gdb(&lines), expect, "{lines:?}");
        };
        check(&["continue"], true);
        check(
            &[
                "# a look",
                "echo on",
                "continue &",
                "wait 2",
                "stacks",
                "[0] kill",
            ],
            true,
        );
        check(
            &["c &", "send 0 yes", "wait", "diagnose", "info memory"],
            true,
        );
        check(&[], false);
        check(&["stacks"], false);
        check(&["wait", "stacks"], false);
        check(&["[0] continue"], false);
        check(&["focus 0", "continue"], false);
        check(&["continue 2"], false);
        check(&["continue &", "interrupt", "bt"], false);
        check(&["break solve", "continue"], false);
        check(&["continue", "print x"], false);
        check(&["continue", "source more"], false);
        check(&["continue", "define look", "stacks", "end"], false);
    }
}
