//! Runs every session that the documentation shows. `UPDATE_GOLDEN=1` rewrites the output of changed ones.
//!
//! A block marked `console` holds commands after `$ `, lines for prompts after `(sdm) `, and the output of both.
//! The blocks of a file are one session, in one folder that holds the programs of `tests/fixtures`. A line `...`
//! matches any lines; times, addresses and pids are not compared.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binaries;
use crate::place::Place;
use crate::sdm::command;
use crate::united::united;

/// Separator between the outputs of two commands.
const MARK: &str = "@@ next @@";

/// A command with the lines typed at its prompt, and its output.
#[derive(Debug)]
struct Step {
    command: String,
    lines: Vec<String>,
    expect: String,
}

/// A document with blocks of sessions.
struct Page {
    path: PathBuf,
    /// Text that is not of a session, and sessions, in turn.
    parts: Vec<Piece>,
}

enum Piece {
    Text(String),
    Session(Vec<Step>),
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).expect("the page is there");
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("```console\n") {
            let (session, after) = after.split_once("```\n").expect("a block ends");
            parts.push(Piece::Text(format!("{before}```console\n")));
            parts.push(Piece::Session(steps(session)));
            rest = after;
        }
        parts.push(Piece::Text(rest.to_owned()));
        Self { path, parts }
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts.iter().flat_map(|part| match part {
            Piece::Session(steps) => &steps[..],
            Piece::Text(_) => &[],
        })
    }

    /// The page's text with the actual outputs of its commands.
    fn with(&self, answers: &[String]) -> String {
        let mut answers = answers.iter();
        let mut text = String::new();
        for part in &self.parts {
            let steps = match part {
                Piece::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Piece::Session(steps) => steps,
            };
            for step in steps {
                let answer = answers.next().expect("one for each");
                let shown = match is_like(&step.expect, answer) {
                    true => &step.expect,
                    false => answer,
                };
                write!(text, "$ {}\n{shown}", step.command).expect("a string takes all");
            }
            text.push_str("```\n");
        }
        text
    }
}

fn steps(session: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in session.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                command: command.to_owned(),
                lines: Vec::new(),
                expect: String::new(),
            });
            continue;
        }
        let step = steps.last_mut().expect("a session begins with a command");
        if let Some(said) = line
            .strip_prefix("(sdm) ")
            .filter(|_| !step.command.contains(" -c "))
        {
            step.lines.push(said.to_owned());
        }
        step.expect.push_str(line);
        step.expect.push('\n');
    }
    steps
}

/// The whole page as one script.
fn script(page: &Page) -> String {
    let mut script = String::from("status=0\n");
    for (index, step) in page.steps().enumerate() {
        let Step { command, lines, .. } = step;
        let input = match lines.is_empty() {
            true => " </dev/null".to_owned(),
            false => format!(" <<'END{index}'\n{}\nEND{index}", lines.join("\n")),
        };
        write!(
            script,
            "echo '{MARK}'\n(exit $status)\n{command}{input}\nstatus=$?\n"
        )
        .expect("a string");
    }
    script
}

fn run(page: &Page, place: &Place, prepare: impl FnOnce(&mut Command)) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in fs::read_dir(root.join("fixtures")).expect("there are fixtures") {
        let source = source.expect("it can be read").path();
        // The sessions are about programs, which are files.
        if source.is_dir() {
            continue;
        }
        let name = source.file_name().expect("it has a name");
        fs::copy(&source, place.path().join(name)).expect("there is room");
    }
    // `mpicc` and `mpirun` are Open MPI's, whatever else is installed.
    let bin = place.path().join("bin");
    fs::create_dir_all(&bin).expect("there is room");
    for name in ["mpicc", "mpirun"] {
        symlink(format!("/usr/bin/{name}.openmpi"), bin.join(name)).expect("there is room");
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{path}", bin.display(), binaries::folder().display());
    let mut bash = command(place, "bash");
    bash.args(["-c", &format!("exec 2>&1\n{}", script(page))])
        .env("PATH", path)
        .env("COLUMNS", "100");
    prepare(&mut bash);
    let output = bash.output().expect("bash runs");
    place.assert_gone();
    let text = String::from_utf8_lossy(&output.stdout);
    // These lines are printed for root alone.
    let lines = text
        .lines()
        .filter(|line| !line.ends_with("sets OMPI_ALLOW_RUN_AS_ROOT"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let mark = format!("{MARK}\n");
    let answers = text.split(&mark).skip(1);
    answers.map(united).collect()
}

/// True for the characters of a time or a duration: `2026-11-23T13:40:02Z`, `0:07`.
fn in_a_time(c: char) -> bool {
    c.is_ascii_digit() || "-:TZ".contains(c)
}

/// A line without the parts that differ between two runs.
fn normal(line: &str) -> String {
    let mut normal = String::new();
    let mut rest = line.trim_end();
    while let Some(c) = rest.chars().next() {
        let digits = |text: &str| {
            text.len()
                - text
                    .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
                    .len()
        };
        let time = rest.len() - rest.trim_start_matches(in_a_time).len();
        if c.is_ascii_digit() && rest[..time].contains(':') {
            normal.push('#');
            rest = &rest[time..];
        } else if let Some(after) = rest.strip_prefix("0x") {
            normal.push_str("0x#");
            rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        } else if c.is_ascii_digit()
            && [" s", " %", " to "]
                .iter()
                .any(|unit| rest[digits(rest)..].starts_with(unit))
        {
            normal.push('#');
            rest = &rest[digits(rest)..];
        } else {
            normal.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    normal
}

/// True if a text matches the expected one, in which `...` matches any lines.
fn is_like(expect: &str, text: &str) -> bool {
    let expect: Vec<String> = expect.lines().map(normal).collect();
    let text: Vec<String> = text.lines().map(normal).collect();
    matches(&expect, &text)
}

fn matches(expect: &[String], text: &[String]) -> bool {
    match expect.split_first() {
        None => text.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=text.len()).any(|skip| matches(rest, &text[skip..]))
        }
        Some((line, rest)) => text.first() == Some(line) && matches(rest, &text[1..]),
    }
}

/// Runs the sessions of a documentation page in a place, and compares their output. `prepare` may change the shell's
/// command.
///
/// # Panics
/// If an output differs from the page.
pub fn check(name: &str, place: &Place, prepare: impl FnOnce(&mut Command)) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = Page::read(docs.join(name));
    let count = page.steps().count();
    assert!(count > 0, "{name} shows no session");
    let answers = run(&page, place, prepare);
    assert_eq!(answers.len(), count, "{name}: {answers:#?}");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page.path, page.with(&answers)).expect("the page is there");
        return;
    }
    for (step, answer) in page.steps().zip(&answers) {
        let Step {
            command, expect, ..
        } = step;
        assert!(
            is_like(expect, answer),
            "{name}: $ {command}\n-- expected:\n{expect}-- came:\n{answer}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_output_may_differ_only_in_addresses_and_times() {
        assert!(is_like("a\n...\nd\n", "a\nb\nc\nd\n"));
        assert!(!is_like("a\n...\nd\n", "a\nb\n"));
        assert!(is_like("rank 3 (0x55ab, 1.5 s)\n", "rank 3 (0x77, 22 s)\n"));
        assert!(!is_like("rank 3\n", "rank 4\n"));
    }
}
