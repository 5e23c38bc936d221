//! `sdm man DIR`: a manual page for each command, and one for the language of the prompt. Each begins with examples.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use sdm_shell::commands::{Chapter, chapters};
use sdm_text::printable_name;

use crate::cli::{Cli, Page};
use crate::sink::complain;

/// Lines of the prompt, each with its purpose.
const PROMPT_EXAMPLES: &[(&str, &str)] = &[
    ("break exchange", "all ranks in focus stop in this function"),
    ("continue", "continue them, and wait for their stops"),
    (
        "[0-3] print x",
        "the value of x on four ranks, equal values once",
    ),
    (
        "outliers x",
        "the ranks whose x is unlike that of the others",
    ),
    ("focus @stopped", "further commands go to the stopped ranks"),
    ("bt", "their backtraces, equal ones once"),
    ("diagnose", "the reason why the job hangs"),
];

/// The rules of the language, a paragraph each.
const PROMPT_RULES: &[&str] = &[
    "A line is a command of gdb or of SDM. It goes to the ranks in focus, or to the set of ranks in brackets before it. \
     Equal answers are printed once, with the ranks that gave them.",
    "Unique prefixes of names and gdb's abbreviations work. An empty line repeats the last command. `#` begins a \
     comment. `&` after a command that continues ranks returns to the prompt at once.",
    "Ctrl-C stops the ranks of the running command. Ctrl-Z returns to the prompt and lets them run.",
    "Options -c and -x of `sdm run`, `attach`, `emulate` and `core` read the same language. A script ends at the first \
     command that fails; the exit code is then 123.",
];

/// Carries out `sdm man DIR`. Returns the exit code.
pub(super) fn man(directory: &Path) -> u8 {
    match write_pages(directory) {
        Ok(()) => 0,
        Err(error) => {
            complain(format_args!("sdm: {}: {error}", printable_name(directory)));
            1
        }
    }
}

/// Writes all pages. The page of section 7 goes to the folder man7 beside a folder man1, where `man` looks for it.
fn write_pages(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_command(&command, directory)?;
    let of_section = match directory.file_name() {
        Some(name) if name == "man1" => directory.with_file_name("man7"),
        _ => directory.to_owned(),
    };
    fs::create_dir_all(&of_section)?;
    write(&of_section, "sdm-prompt.7", prompt_page().as_bytes())
}

fn write_command(command: &Command, directory: &Path) -> io::Result<()> {
    for verb in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_command(verb, directory)?;
    }
    let man = Man::new(command.clone()).source(version());
    write(
        directory,
        &man.get_filename(),
        &command_page(command, &man)?,
    )
}

/// Writes a page with the permissions of new files, since other users read it too.
fn write(directory: &Path, name: &str, page: &[u8]) -> io::Result<()> {
    fs::write(directory.join(name), page)
}

fn version() -> String {
    format!("sdm {}", env!("CARGO_PKG_VERSION"))
}

/// The page of a command: name, examples, synopsis, description, options in their groups, exit status.
fn command_page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let words = command.get_bin_name().unwrap_or_default();
    let page = Page::of(words.strip_prefix("sdm").unwrap_or(words).trim_start());
    let page = page.expect("each visible command has a page");
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    let mut roff = Roff::new();
    add_rows(&mut roff, "EXAMPLES", page.examples.iter().copied());
    roff.to_writer(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::new();
    add_rows(&mut roff, "EXIT STATUS", page.codes());
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("sdm(1), sdm-prompt(7)")]);
    roff.to_writer(&mut text)?;
    Ok(text)
}

/// A section with a row for each word: the word, and its meaning indented below.
fn add_rows<T: Into<String>>(roff: &mut Roff, title: &str, rows: impl IntoIterator<Item = (T, T)>) {
    roff.control("SH", [title]);
    for (word, meaning) in rows {
        roff.control("TP", []);
        roff.text([bold(word)]);
        let meaning: String = meaning.into();
        for (at, line) in meaning.lines().enumerate() {
            if at > 0 {
                roff.control("br", []);
            }
            roff.text([roman(line)]);
        }
    }
}

/// The page about the language of the prompt.
fn prompt_page() -> String {
    let mut roff = Roff::new();
    roff.control("TH", ["sdm-prompt", "7", "", &version(), ""]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(
        "sdm-prompt - the command language of the prompt of sdm",
    )]);
    add_rows(&mut roff, "EXAMPLES", PROMPT_EXAMPLES.iter().copied());
    roff.control("SH", ["DESCRIPTION"]);
    for rule in PROMPT_RULES {
        roff.control("PP", []);
        roff.text([roman(*rule)]);
    }
    for Chapter { title, rows } in chapters() {
        add_rows(&mut roff, &title.to_uppercase(), rows);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("sdm(1), sdm-run(1), sdm-attach(1), gdb(1)")]);
    roff.to_roff()
}

#[cfg(test)]
mod tests {
    use sdm_shell::commands::parse;

    use super::*;

    #[test]
    fn examples_of_the_prompt_page_are_commands() {
        for (line, _) in PROMPT_EXAMPLES {
            assert!(parse(line).is_ok(), "{line}");
        }
    }

    #[test]
    fn prompt_page_begins_with_examples_and_describes_each_command() {
        let page = prompt_page();
        let sections: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .collect();
        assert_eq!(sections[..3], ["NAME", "EXAMPLES", "DESCRIPTION"]);
        for chapter in chapters() {
            let title = format!("\"{}\"", chapter.title.to_uppercase());
            let title = title.trim_matches(|c| c == '"' && !title.contains(' '));
            assert!(sections.contains(&title), "{title}: {sections:?}");
            assert!(!chapter.rows.is_empty(), "{title}");
        }
    }
}
