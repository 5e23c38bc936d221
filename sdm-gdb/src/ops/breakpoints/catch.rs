//! Catchpoints: the program stops at a fork, an exec, a system call, a signal, an exception or a change of libraries.

use sdm_debug::command::{CatchEvent, CatchSpec, PointSpec};
use sdm_debug::reply::CatchHit;
use sdm_debug::{Failure, FailureCode, Reply};

use super::hit::judge_here;
use super::make::{enter, made_by, refusal, restrict};
use crate::gdb::Gdb;
use crate::text::base_name;
use sdm_mi::Results;

/// Sets a catchpoint. MI has commands for only some kinds, so the command line is used for all; gdb notifies of the
/// new breakpoint's number.
pub(crate) async fn insert(gdb: &Gdb, spec: CatchSpec) -> Result<Reply, Failure> {
    if let Some(failure) = refusal(gdb, spec.number) {
        return Err(failure);
    }
    // gdb deletes a temporary one even if it cannot evaluate the condition.
    let is_gdbs = spec.temporary && spec.condition.is_none();
    let command = if is_gdbs { "tcatch" } else { "catch" };
    let line = format!("{command} {}", words(&spec.event)?);
    let made = made_by(gdb, &line).await?;
    let condition = match gdb.get().origin.scope() {
        Some(scope) => Some(scope.restrict(spec.condition.as_deref())),
        None => spec.condition.clone(),
    };
    restrict(gdb, &made, condition.as_deref(), 0).await?;
    judge_here(gdb, &made, spec.condition.as_deref()).await?;
    Ok(enter(gdb, PointSpec::Catch(spec), made))
}

/// The arguments of gdb's `catch` for this event.
///
/// # Errors
/// A name has characters that gdb's command line would not take for one, or a pattern has several lines.
pub(super) fn words(event: &CatchEvent) -> Result<String, Failure> {
    let with = |name: &str, list: &[String]| {
        let mut text = name.to_owned();
        for word in list {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            if word.is_empty() || !word.chars().all(plain) {
                let text =
                    format!("catch {name}: {word:?} is not a name of letters, digits, `_` and `:`");
                return Err(Failure::new(FailureCode::BadCommand, text));
            }
            text.push(' ');
            text.push_str(word);
        }
        Ok(text)
    };
    let matching = |name: &str, pattern: &str| {
        if pattern.contains(['\n', '\0']) {
            let text = format!("catch {name}: the pattern must be on one line");
            return Err(Failure::new(FailureCode::BadCommand, text));
        }
        Ok(format!("{name} {pattern}").trim_end().to_owned())
    };
    match event {
        CatchEvent::Fork => Ok("fork".to_owned()),
        CatchEvent::Vfork => Ok("vfork".to_owned()),
        CatchEvent::Exec => Ok("exec".to_owned()),
        CatchEvent::Syscall(names) => with("syscall", names),
        CatchEvent::Signal(names) => with("signal", names),
        CatchEvent::Throw => Ok("throw".to_owned()),
        CatchEvent::Rethrow => Ok("rethrow".to_owned()),
        CatchEvent::Catch => Ok("catch".to_owned()),
        CatchEvent::Load(pattern) => matching("load", pattern),
        CatchEvent::Unload(pattern) => matching("unload", pattern),
    }
}

/// The event that a stop at this catchpoint has caught; `None` for a signal, which gdb does not name.
pub(crate) fn hit(event: &CatchEvent, stop: &Results) -> Option<CatchHit> {
    let name = || {
        let name = stop.text("syscall-name").or(stop.text("syscall-number"));
        name.unwrap_or("?").to_owned()
    };
    let stage = |stage: &str| CatchHit::Exception {
        stage: stage.to_owned(),
    };
    Some(match event {
        CatchEvent::Fork => CatchHit::Fork,
        CatchEvent::Vfork => CatchHit::Vfork,
        CatchEvent::Exec => {
            let program = stop.text("new-exec").map(base_name).unwrap_or_default();
            CatchHit::Exec {
                program: program.to_owned(),
            }
        }
        CatchEvent::Syscall(_) if stop.text("reason") == Some("syscall-return") => {
            CatchHit::SyscallReturn { name: name() }
        }
        CatchEvent::Syscall(_) => CatchHit::SyscallEntry { name: name() },
        CatchEvent::Signal(_) => return None,
        CatchEvent::Throw => stage("throw"),
        CatchEvent::Rethrow => stage("rethrow"),
        CatchEvent::Catch => stage("catch"),
        CatchEvent::Load(_) | CatchEvent::Unload(_) => CatchHit::Libraries {
            loaded: libraries(stop, "added"),
            unloaded: libraries(stop, "removed"),
        },
    })
}

fn libraries(stop: &Results, name: &str) -> Vec<String> {
    let paths = stop.items(name).filter_map(|item| item.as_text());
    paths.map(|path| base_name(path).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catch_names_cannot_inject_commands() {
        let syscall = |name: &str| words(&CatchEvent::Syscall(vec![name.to_owned()]));
        assert_eq!(syscall("open").unwrap(), "syscall open");
        for bad in ["", "a b", "open\nshell ls", "if 1"] {
            assert_eq!(syscall(bad).unwrap_err().code, FailureCode::BadCommand);
        }
        assert!(words(&CatchEvent::Load("a\nb".to_owned())).is_err());
        assert_eq!(words(&CatchEvent::Load(String::new())).unwrap(), "load");
    }
}
