//! Limits for a gdb that cannot write registers. A gdb before 14 cannot do so on a processor with more registers than
//! it knows. SDM's preloaded library would help, but a static or privileged gdb does not load it.
//!
//! Such a gdb fails at the first register that it does not know, with half the work done. A called function has run and
//! its effects on registers stay; a reverse run hangs. So commands that would write registers are refused first.

use sdm_debug::command::ValueFormat;
use sdm_debug::reply::Variable;
use sdm_debug::{Command, Event, Failure, FailureCode, Reply};
use sdm_doctor::gdb::{self as doctor, FIRST_WITH_ALL_REGISTERS, Version};

use super::memory;
use crate::gdb::Gdb;
use crate::state::State;
use crate::text::console_line;
use crate::wording::{Wording, wording};

/// The first argument at a function's entry, in gdb's syntax.
pub(super) const FIRST_ARGUMENT: &str = if cfg!(target_arch = "x86_64") {
    "$rdi"
} else if cfg!(any(target_arch = "aarch64", target_arch = "arm")) {
    if cfg!(target_arch = "arm") {
        "$r0"
    } else {
        "$x0"
    }
} else if cfg!(target_arch = "powerpc64") {
    "$r3"
} else if cfg!(target_arch = "s390x") {
    "$r2"
} else if cfg!(target_arch = "loongarch64") {
    "$r4"
} else {
    "$a0"
};

/// Asks for gdb's version. Refuses a gdb that is too old, and forbids function calls to a gdb that cannot write
/// registers.
pub(crate) async fn look(gdb: &Gdb) -> Result<(), Failure> {
    let (result, printed) = gdb.send("-gdb-version").capture().printed().await;
    result?;
    let version = Version::printed(&printed.into_text());
    if let Some(old) = version.as_ref().filter(|version| version.is_too_old()) {
        let failure = Failure::new(FailureCode::NoGdb, doctor::too_old(&old.text));
        let other_gdbs = gdb.host().other_gdbs();
        return Err(failure.with_hint(format!("{other_gdbs}; `sdm doctor` checks this (gdb)")));
    }
    gdb.edit().lacks.is_before_12 = version.as_ref().is_some_and(|it| it.major < 12);
    if !gdb.get().config.registers_unknown || gdb.host().completes_writes() {
        return Ok(());
    }
    let knows_few = |version: &Version| version.major < FIRST_WITH_ALL_REGISTERS;
    let Some(version) = version.filter(knows_few) else {
        return Ok(());
    };
    gdb.edit().lacks.unwritable = Some(version.text);
    gdb.mi("-gdb-set may-call-functions off").await?;
    Ok(())
}

/// Returns from a frame by the command `line`. If the return value belongs into a register that gdb cannot write, gdb
/// has already left the frame when it fails. The registers are then restored.
pub(crate) async fn leave(gdb: &Gdb, line: String) -> Result<(), Failure> {
    let is_unable = gdb.get().lacks.unwritable.is_some();
    if !is_unable {
        gdb.mi(line).await?;
        return Ok(());
    }
    let selected = gdb.mi("-stack-info-frame").await?;
    let level: u32 = selected
        .tuple("frame")
        .and_then(|frame| frame.number("level"))
        .unwrap_or(0);
    let before = general(gdb).await?;
    gdb.mi(format!("-stack-select-frame {level}")).await?;
    let Err(failure) = gdb.mi(line).await else {
        return Ok(());
    };
    let after = general(gdb).await?;
    for (before, after) in before.iter().zip(&after) {
        if before != after {
            let set = format!("set var ${} = {}", before.name, before.value.text);
            gdb.mi(console_line(&set)).await?;
        }
    }
    gdb.mi(format!("-stack-select-frame {level}")).await?;
    Err(failure)
}

/// The registers of the innermost frame that every gdb can write.
async fn general(gdb: &Gdb) -> Result<Vec<Variable>, Failure> {
    gdb.mi("-stack-select-frame 0").await?;
    match memory::registers(gdb, &[], ValueFormat::Hexadecimal).await? {
        Reply::Variables(registers) => Ok(registers),
        _ => Ok(Vec::new()),
    }
}

/// Reports once that gdb cannot write registers, if `text` is such an error. Such an error can occur while the program
/// runs, for example in a breakpoint's condition.
pub(crate) fn tell(gdb: &Gdb, text: &str) {
    let executing = gdb.get().activity.is_executing();
    let failure = executing.then(|| meaning(gdb, text)).flatten();
    if let Some(Failure { text, .. }) = failure
        && gdb.edit().processes.is_new(&text)
    {
        gdb.tell(Event::Notice { text });
    }
}

/// The failure for a gdb error text that says that gdb cannot write registers, or may not call functions for that
/// reason; `None` for other texts.
pub(crate) fn meaning(gdb: &Gdb, text: &str) -> Option<Failure> {
    let state = gdb.get();
    let unable = match wording(text) {
        Some(Wording::WriteFailed) => true,
        // The user can forbid calls too.
        Some(Wording::MayNotCall) => state.lacks.unwritable.is_some(),
        _ => false,
    };
    unable.then(|| refusal(state.lacks.unwritable.as_deref()))
}

/// The failure of a command that runs backward or starts recording, if gdb cannot write registers; otherwise `None`.
/// gdb itself refuses function calls, as `look` has forbidden them.
pub(crate) fn why_not(state: &State, command: &Command) -> Option<Failure> {
    let version = state.lacks.unwritable.as_deref()?;
    let backward = match command {
        Command::ReverseContinue | Command::ReverseStep { .. } => true,
        Command::Console { line } => is_backward(line),
        Command::Mi { line } => line.split(' ').any(|word| word == "--reverse"),
        _ => false,
    };
    backward.then(|| refusal(Some(version)))
}

fn refusal(version: Option<&str>) -> Failure {
    let gdb = version.map_or("this gdb".to_owned(), |version| format!("gdb {version}"));
    let text = format!(
        "{gdb} cannot write registers on this processor (its register state is larger than this gdb supports); use \
         gdb {FIRST_WITH_ALL_REGISTERS} or later: --gdb PATH"
    );
    Failure::new(FailureCode::Unsupported, text)
}

/// True for a line that starts recording or runs backward.
fn is_backward(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    match first {
        "rc" | "rni" | "rn" | "rsi" | "rs" | "rec" => true,
        "target" => second.starts_with("record"),
        _ => first.starts_with("reverse") || first.starts_with("reco"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverse_execution_commands_are_recognized() {
        for line in [
            "record",
            "record full",
            "rec",
            "target record-full",
            "reverse-next 2",
            "rs",
            " rc",
        ] {
            assert!(is_backward(line), "{line}");
        }
        for line in [
            "",
            "run",
            "return",
            "target core x",
            "refresh",
            "print record",
            "rbreak x",
        ] {
            assert!(!is_backward(line), "{line}");
        }
    }
}
