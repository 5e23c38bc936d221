//! The command line with settings as defaults, its errors and help, and `sdm settings`.

use std::ffi::OsString;
use std::io;

use clap::error::ContextValue;
use clap::{Command, CommandFactory};
use sdm_text::{printable, printable_name};

use crate::cli::Cli;
use crate::settings::{self, Origin, Settings, SettingsError};
use crate::sink::{Sink, complain};

/// The definition of the command line, with the settings that apply to its command as defaults.
///
/// # Errors
/// A setting is invalid.
pub(super) fn definition(command: Command, args: &[OsString]) -> Result<Command, SettingsError> {
    let verb = args.get(1).and_then(|word| word.to_str());
    // These commands report errors of the settings themselves, or use no settings.
    let plain = |verb: &str| {
        verb.starts_with('-') || ["help", "settings", "completions", "man"].contains(&verb)
    };
    if verb.is_none_or(plain) {
        return Ok(command);
    }
    load(&command)?.apply(command, settings::asked_for(args))
}

fn load(command: &Command) -> Result<Settings, SettingsError> {
    Settings::load(command, |name| std::env::var_os(name))
}

/// Prints the error of a command line, or the requested help.
pub(super) fn explain(error: clap::Error) {
    let error = &on_one_line(error);
    let sink = match error.use_stderr() {
        true => Sink::Complaints,
        false => Sink::Output,
    };
    let text = error.render();
    let text = match sink.is_coloured() {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    // A failed write is ignored: there is no reader.
    let _ = sink.show(&quoted_on_one_line(text, words));
}

/// Escapes line feeds in words of the command line that a text quotes.
fn quoted_on_one_line(mut text: String, words: impl Iterator<Item = String>) -> String {
    for word in words.filter(|word| word.contains('\n')) {
        let value = word.split_once('=').map(|(_, value)| value);
        for quoted in [Some(&*word), value].into_iter().flatten() {
            text = text.replace(quoted, &printable(quoted.as_bytes()));
        }
    }
    text
}

/// Escapes line feeds in words of the command line that an error quotes.
fn on_one_line(mut error: clap::Error) -> clap::Error {
    let quoted = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => {
            let text = printable(text.as_bytes());
            Some((kind, ContextValue::String(text)))
        }
        _ => None,
    });
    for (kind, value) in quoted.collect::<Vec<_>>() {
        error.insert(kind, value);
    }
    error
}

/// `sdm settings`: all settings of a command, or the changed ones of all commands.
pub(super) fn settings(verb: Option<&str>) -> u8 {
    let command = Cli::command();
    let known = verb.is_none_or(|verb| command.find_subcommand(verb).is_some());
    if let Some(verb) = verb.filter(|_| !known) {
        complain(format_args!("sdm: settings: sdm has no command `{verb}`"));
        return 2;
    }
    let settings = load(&command).and_then(|settings| {
        settings.apply(command.clone(), None)?;
        Ok(settings)
    });
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            return 2;
        }
    };
    let mut text = String::new();
    for path in [settings.file(), settings.site_file()]
        .into_iter()
        .flatten()
    {
        let absent = match path.is_file() {
            true => "",
            false => " (this file does not exist)",
        };
        text.push_str(&format!("# {}{absent}\n", printable_name(path)));
    }
    let mut of = "";
    let rows = settings.rows(&command, verb);
    for it in &rows {
        if verb.is_none() && it.origin == Origin::Definition {
            continue;
        }
        if of != it.verb {
            text.push_str(&format!("{}\n", it.verb));
            of = &it.verb;
        }
        let place = settings.place(&it.origin);
        text.push_str(&row(&it.key, &it.value, &place));
    }
    let profiles = settings.profiles();
    for name in profiles.iter().filter(|_| verb.is_none()) {
        text.push_str(&format!("profile {}\n", printable_name(name)));
        for (key, value, origin) in settings.of_profile(name) {
            text.push_str(&row(key, &value, &settings.place(origin)));
        }
    }
    if verb.is_none() && of.is_empty() && profiles.is_empty() {
        text.push_str("no setting is set; `sdm settings run` lists the settings of `sdm run`\n");
    }
    written(Sink::Output.show(&text))
}

fn row(key: &str, value: &str, place: &str) -> String {
    format!("  {key:<18} {:<24} {place}\n", printable_name(value))
}

/// The exit code after a write.
pub(super) fn written(result: io::Result<()>) -> u8 {
    u8::from(result.is_err())
}
