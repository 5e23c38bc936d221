//! The frames that gdb finds.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::Row;

/// The stacks of this many threads, innermost frame first, beyond `main` too.
pub(crate) fn stacks(pid: i32, threads: usize) -> Vec<Vec<Row>> {
    let mut gdb = Command::new("gdb")
        .args(["-nx", "-q", "-i=mi", "-p", &pid.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = gdb.stdin.take().unwrap();
    writeln!(to, "-gdb-set backtrace past-main on").unwrap();
    for thread in 1..=threads {
        writeln!(to, "-stack-list-frames --thread {thread} 0 1024").unwrap();
    }
    writeln!(to, "-target-detach\n-gdb-exit").unwrap();
    drop(to);
    let said = gdb.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let lists = said.lines().filter_map(|line| line.split_once("stack=["));
    lists.map(|(_, frames)| rows(frames)).collect()
}

fn rows(frames: &str) -> Vec<Row> {
    let frames = frames.split("frame={").skip(1);
    frames
        .map(|frame| {
            let text = |name: &str| text(frame, name).unwrap_or_default();
            let base = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
            let function = Some(text("func")).filter(|name| name != "??");
            let line = text("line").parse().unwrap_or(0);
            let file = base(text("file"));
            (function.unwrap_or_default(), file, line, base(text("from")))
        })
        .collect()
}

/// A field's text, without the backslashes before quotes; `None` if the frame does not have the field.
fn text(frame: &str, name: &str) -> Option<String> {
    let begin = format!("{name}=\"");
    let at = frame.match_indices(&begin).find(|(at, _)| {
        frame[..*at]
            .chars()
            .next_back()
            .is_none_or(|before| before == ',')
    })?;
    let mut text = String::new();
    let mut rest = frame[at.0 + begin.len()..].chars();
    loop {
        match rest.next()? {
            '"' => return Some(text),
            '\\' => text.push(rest.next()?),
            other => text.push(other),
        }
    }
}
