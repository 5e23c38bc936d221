//! The frame in which a step, a `finish` or an `until` begins.

use super::output;
use crate::gdb::Gdb;
use crate::state::activity::{Began, StackFrame};
use crate::text::console_line;

/// Notes the frame in which steps begin, `level` frames out, if a breakpoint may interrupt a step, or if the way out of
/// a runtime may end one. Returns the number of steps that gdb is to make at once.
pub(super) async fn note(gdb: &Gdb, level: u32, count: u32) -> u32 {
    let began = match level > 0 || may_break(gdb) {
        true => began(gdb, level, count.saturating_sub(1)).await,
        false => None,
    };
    let singly = began.is_some();
    gdb.edit().breakpoints.began = began;
    if singly { 1 } else { count }
}

/// Notes the frame in which an `until` begins. With `is_bare` it has no location; otherwise no frame is noted.
pub(super) async fn note_until(gdb: &Gdb, is_bare: bool) {
    let began = match is_bare && may_break(gdb) {
        true => began(gdb, 0, 0).await,
        false => None,
    };
    gdb.edit().breakpoints.began = began.map(|it| Began {
        is_until: true,
        ..it
    });
}

/// The level of the selected frame; 0 if no frame has to be noted.
pub(super) async fn selected(gdb: &Gdb) -> u32 {
    match may_break(gdb) {
        true => level(gdb).await,
        false => 0,
    }
}

/// The level of the selected frame; 0 if gdb does not tell it.
pub(super) async fn level(gdb: &Gdb) -> u32 {
    let frame = gdb.mi("-stack-info-frame").await.unwrap_or_default();
    let level = frame.tuple("frame").and_then(|frame| frame.number("level"));
    level.unwrap_or(0)
}

/// True if the driver may resume the task at a stop in the middle of a step.
fn may_break(gdb: &Gdb) -> bool {
    let state = gdb.get();
    state.breakpoints.may_go_on() || state.handling.own_handlers
}

async fn began(gdb: &Gdb, level: u32, left: u32) -> Option<Began> {
    Some(Began {
        thread: thread(gdb).await?,
        frame: frame(gdb, level).await?,
        left,
        is_until: false,
    })
}

pub(super) async fn thread(gdb: &Gdb) -> Option<String> {
    let printed = output::unchecked(gdb, "", "$_gthread").await.ok()?;
    Some(printed.trim().to_owned())
}

pub(super) async fn frame(gdb: &Gdb, level: u32) -> Option<StackFrame> {
    let line = console_line(&format!("frame apply level {level} -q info frame"));
    let (result, printed) = gdb.send(line).capture().printed().await;
    result.ok()?;
    parsed(&printed)
}

/// The frame in the output of `info frame`: `Stack level 0, frame at 0x7ffe3c0:`, ` rip = 0x1149 in work (a.c:3); ...`.
/// `None` for other output.
fn parsed(printed: &str) -> Option<StackFrame> {
    let address = printed.split("frame at 0x").nth(1)?;
    let digits = address.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    let line = printed.split(" in ").nth(1).unwrap_or_default();
    Some(StackFrame {
        address: u64::from_str_radix(digits, 16).ok()?,
        line: line.split(';').next().unwrap_or_default().to_owned(),
        is_inline: printed.contains(" inlined into frame "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_parsed_from_info_frame_output() {
        let printed = "Stack level 1, frame at 0x7fffffffe3c0:\n rip = 0x555555555149 in work (a.c:3); \
                       saved rip = 0x5555555551a0\n called by frame at 0x7fffffffe3e0\n";
        let expect = StackFrame {
            address: 0x7fff_ffff_e3c0,
            line: "work (a.c:3)".to_owned(),
            is_inline: false,
        };
        assert_eq!(parsed(printed), Some(expect));
        assert_eq!(parsed("No stack.\n"), None);
    }
}
