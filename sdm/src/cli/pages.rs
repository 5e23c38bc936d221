//! The examples and exit codes of each command. Its help and its manual page begin with the examples; the codes come
//! after the options.

mod table;

use clap::Command;
use clap::builder::{StyledStr, Styles};

use super::groups;
pub(crate) use table::Page;
use table::{COMMON, PAGES};

impl Page {
    /// The page of `sdm` itself.
    pub(super) const SDM: &'static Self = &PAGES[0];

    /// The page of the command with these words after `sdm`. None for a hidden command.
    pub(crate) fn of(command: &str) -> Option<&'static Self> {
        PAGES.iter().find(|page| page.command == command)
    }

    /// All exit codes, each with its meaning.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_own = |code: &str| self.codes.iter().any(|(own, _)| *own == code);
        let common = COMMON.iter().filter(move |(code, _)| !is_own(code));
        self.codes.iter().chain(common).copied()
    }

    /// The template of the command's help, in the style of clap's own.
    pub(super) fn template(&self) -> StyledStr {
        let mut text = String::from("{about-with-newline}\n");
        text.push_str(&headed("Examples"));
        let width = self.examples.iter().map(|(line, _)| line.len()).max();
        let width = width.unwrap_or_default();
        for (line, purpose) in self.examples {
            text.push_str(&format!("\n  {line:width$}  {purpose}"));
        }
        text.push_str("\n\n{usage-heading} {usage}\n\n{all-args}{after-help}");
        text.into()
    }

    /// The exit codes, for the end of the command's help.
    pub(super) fn exit_status(&self) -> StyledStr {
        let mut text = headed("Exit status");
        for (code, meaning) in self.codes() {
            text.push_str(&format!("\n  {code:5}  {meaning}"));
        }
        text.into()
    }
}

fn headed(heading: &str) -> String {
    let style = *Styles::styled().get_header();
    format!("{style}{heading}:{style:#}")
}

/// A command and its subcommands with grouped options, the examples in front of the usage, and the exit codes at the end
/// of the long help.
pub(super) fn with_pages(command: Command) -> Command {
    let words = command.get_name().to_owned();
    with_page(command, &words)
}

fn with_page(command: Command, words: &str) -> Command {
    let command = groups::in_groups(command).mut_subcommands(|it| {
        let words = format!("{words} {}", it.get_name());
        with_page(it, &words)
    });
    match Page::of(words) {
        Some(page) => command
            .help_template(page.template())
            .after_long_help(page.exit_status()),
        None => command,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, divided, parse};

    /// The words of every visible command, and its definition.
    fn commands(command: &Command, words: &str, found: &mut Vec<(String, Command)>) {
        found.push((words.to_owned(), command.clone()));
        let verbs = command.get_subcommands();
        for verb in verbs.filter(|it| !it.is_hide_set() && it.get_name() != "help") {
            let words = format!("{words} {}", verb.get_name());
            commands(verb, words.trim_start(), found);
        }
    }

    #[test]
    fn every_command_has_one_page_with_parsable_examples() {
        let mut all = Vec::new();
        commands(&Cli::command(), "", &mut all);
        let names: Vec<&str> = all.iter().map(|(words, _)| &**words).collect();
        let pages: Vec<&str> = PAGES.iter().map(|page| page.command).collect();
        assert_eq!(names, pages);
        for page in PAGES {
            assert!(!page.examples.is_empty(), "{}", page.command);
            for (line, _) in page.examples {
                let begin = format!("sdm {}", page.command);
                assert!(line.starts_with(begin.trim_end()), "{line}");
                let line = line.split(" >").next().unwrap();
                let words = shell_words::split(line)
                    .unwrap()
                    .into_iter()
                    .map(Into::into);
                let words = divided(&Cli::command(), words.collect());
                assert!(parse(Cli::command(), words).is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn help_begins_with_examples_and_ends_with_exit_codes() {
        let mut all = Vec::new();
        commands(&Cli::command(), "", &mut all);
        for (words, mut command) in all {
            let text = command.render_long_help().to_string();
            let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{words}: {part}"));
            assert!(place("\nExamples:\n") < place("\nUsage: "), "{words}");
            assert!(place("\nUsage: ") < place("\nExit status:\n"), "{words}");
            let end = place("\nUsage: ");
            let wide = text[..end].lines().skip_while(|line| *line != "Examples:");
            let wide: Vec<_> = wide.filter(|line| line.len() > 80).collect();
            assert!(wide.is_empty(), "{words}: {wide:?}");
            let codes = text[place("\nExit status:\n")..].lines();
            assert!(codes.clone().all(|line| line.len() <= 80), "{words}");
        }
    }
}
