//! The command `help`: a list of all commands, and a text for each.

use super::spec::Spec;
use super::table;
use super::words::{GROUPS, Group};
use super::{CommandError, PREDEFINED};

/// The text of `help`, or of `help WORD`: a command, `all`, `sets`, or one of gdb's classes of commands.
///
/// # Errors
/// The word names no command and no class.
pub fn help(command: Option<&str>) -> Result<String, CommandError> {
    match command.map(str::trim) {
        None => Ok(overview()),
        Some("all") => Ok(everything()),
        Some("sets" | "set expressions") => Ok(sets()),
        Some(word) => {
            let word = word.split_whitespace().next().unwrap_or(word);
            if let Some(group) = GROUPS.iter().find(|group| group.classes.contains(&word)) {
                return Ok(lines_of(group).join("\n"));
            }
            if table::find(word, 0).is_err() && (table::is_gdbs(word) || word == "|") {
                let text = "A command of gdb";
                return Ok(format!(
                    "{text}: `gdb {word} ...` runs it in each gdb, `gdb help {word}` explains it."
                ));
            }
            let spec = table::find(word, 0).map_err(|error| CommandError::new(error.message))?;
            Ok(describe(spec))
        }
    }
}

fn describe(spec: &Spec) -> String {
    let mut text = format!("{}\n  {}.", spec.usage, spec.what);
    for line in spec.more.lines() {
        text.push_str("\n  ");
        text.push_str(line);
    }
    if !spec.short.is_empty() {
        text.push_str(&format!("\n  Also: {}.", spec.short.join(", ")));
    }
    text
}

fn overview() -> String {
    let mut text = String::from(
        "A command goes to the ranks in focus, or to the ranks in brackets: [0-3,7] print x\n\n",
    );
    for group in GROUPS {
        text.push_str(&format!("{}:\n", group.title));
        let names: Vec<_> = group.commands.iter().map(|spec| spec.name).collect();
        let mut line = String::from(" ");
        for name in names {
            if line.len() + name.len() > 76 {
                text.push_str(&line);
                text.push_str("\n ");
                line.clear();
            }
            line.push(' ');
            line.push_str(name);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(
        "\n`help COMMAND` explains a command, `help all` lists all, `help sets` explains how to name ranks.\nUnique prefixes and gdb's abbreviations work. An empty line repeats the last command.\nCtrl-C stops the ranks of the running command; Ctrl-Z returns to the prompt and lets them run.",
    );
    text
}

fn everything() -> String {
    let lines: Vec<_> = GROUPS.iter().flat_map(lines_of).collect();
    lines.join("\n")
}

fn lines_of(group: &Group) -> Vec<String> {
    let commands = group.commands.iter();
    let commands = commands.map(|spec| format!("  {:<33} {}", spec.usage, spec.what));
    let title = format!("{}:", group.title);
    std::iter::once(title).chain(commands).collect()
}

/// The forms of a set of ranks, each with its meaning.
const SETS: [(&str, &str); 9] = [
    ("0-3,7   0..7   0-998/2   all", "ranks; every other one"),
    (
        ", ! & ^ ( )",
        "either, without, both, one of both; left to right",
    ),
    ("!3", "all but 3"),
    ("3.2", "thread 2 of rank 3"),
    ("@NAME", "a set of `defset NAME SET`"),
    ("@1 @2 ...", "the classes of the last answer"),
    ("@host:n[01-04]", "on these hosts"),
    (
        "@at:exchange  @halo.c:120  @bp:3",
        "stopped in a function, at a line, at a breakpoint",
    ),
    (
        "@if:(x > 3)",
        "where the condition holds; each rank evaluates it",
    ),
];

/// The forms of a set of ranks, those with a name at the end.
fn set_rows() -> impl Iterator<Item = (String, &'static str)> {
    let forms = SETS.iter().map(|(form, what)| ((*form).to_owned(), *what));
    let named = PREDEFINED.iter();
    forms.chain(named.map(|(name, what)| (format!("@{name}"), *what)))
}

fn sets() -> String {
    let mut text =
        String::from("Sets of ranks, in brackets before a command, or after focus, wait, send:");
    for (form, what) in set_rows() {
        text.push_str(&format!("\n  {form:<33} {what}"));
    }
    text
}

/// A chapter of the manual page about the language of the prompt.
pub struct Chapter {
    /// The title, as `help` shows it.
    pub title: &'static str,
    /// Forms of commands or sets, each with its meaning.
    pub rows: Vec<(String, String)>,
}

/// The chapters of the manual page about the language of the prompt: the sets of ranks, then the commands in the groups
/// of `help`.
pub fn chapters() -> impl Iterator<Item = Chapter> {
    let sets = set_rows().map(|(form, what)| (form, what.to_owned()));
    let sets = Chapter {
        title: "Sets of ranks",
        rows: sets.collect(),
    };
    let groups = GROUPS.iter().map(|group| Chapter {
        title: group.title,
        rows: group.commands.iter().map(manual_row).collect(),
    });
    std::iter::once(sets).chain(groups)
}

/// A command's usage, and its whole help without the usage.
fn manual_row(spec: &Spec) -> (String, String) {
    let text = describe(spec);
    let what = text.split_once('\n').map_or("", |(_, what)| what);
    let lines: Vec<&str> = what.lines().map(str::trim).collect();
    (spec.usage.to_owned(), lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_help_line() {
        let text = help(Some("all")).unwrap();
        for spec in table::commands() {
            assert!(spec.usage.len() <= 33, "{}", spec.name);
            assert!(
                !spec.what.is_empty() && !spec.what.ends_with('.'),
                "{}",
                spec.name
            );
            let named = spec.usage.starts_with(spec.name)
                || spec.short.iter().any(|short| spec.usage.starts_with(short));
            assert!(named, "{}: {}", spec.name, spec.usage);
        }
        assert!(text.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn help_fits_a_screen_and_names_every_command() {
        let text = help(None).unwrap();
        assert!(text.lines().count() <= 30, "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        for spec in table::commands() {
            let words: Vec<_> = text.split_whitespace().collect();
            assert!(words.contains(&spec.name), "{}", spec.name);
        }
    }

    #[test]
    fn help_of_one_command_shows_its_usage() {
        let text = help(Some("foc")).unwrap();
        assert!(text.starts_with("focus [SET]\n"), "{text}");
        assert!(help(Some("sets")).unwrap().contains("@stopped"));
        assert!(help(Some("nonsense")).is_err());
        for (word, part) in [
            ("breakpoints", "tbreak"),
            ("running", "finish"),
            ("data", "print[/FORMAT]"),
            ("stack", "frame [N"),
            ("pipe", "`gdb help pipe`"),
            ("dprintf", "`gdb help dprintf`"),
        ] {
            let text = help(Some(word)).unwrap();
            assert!(text.contains(part), "{word}: {text}");
        }
    }
}
