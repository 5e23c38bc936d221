//! Defaults of options from the environment, the user's file, and the site's file.
//!
//! Every option about the way a command works can be set, but not its subject: `SDM_TIMEOUT=60`, or
//! `timeout = 60` in the file. A table in the file applies to the command of its name (`[run]`).
//!
//! Precedence, highest first: command line, environment, the command's table, the rest of the file. A
//! setting becomes the option's default in the definition of the command line. So `--help` shows it, and
//! all rules for defaults apply to it. The site's file, `/etc/sdm/config.toml`, has the same format and is
//! below the user's file.
//!
//! A launch configuration (`[profile.NAME]`) has settings that apply with `--profile NAME`: options of `sdm
//! run` and `sdm submit`, the program and its arguments. Only the command line takes precedence over it.

mod file;
mod profile;
#[cfg(test)]
mod tests;

pub use profile::{asked_for, known_profiles};
use sdm_text::printable_name;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// Options that cannot be set: they are about the subject of a command, or are meant for a single call of it.
const NO_SETTINGS: [&str; 16] = [
    "bundle",
    "help",
    "profile",
    "json",
    "watch",
    "version",
    "command",
    "command-file",
    "interactive",
    "keep",
    "batch",
    "no-report",
    "ranks",
    "pids",
    "match",
    "roundtrips",
];
/// The variable with the path of the user's file, if it is not at the default path.
const FILE_VARIABLE: &str = "SDM_CONFIG";
/// The site's file, for all users.
const SITE_FILE: &str = "/etc/sdm/config.toml";
/// The variable with the path of the site's file, if it is not at the default path. An empty value means that there is
/// no such file.
const SITE_VARIABLE: &str = "SDM_SITE_CONFIG";

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The default in the definition of the command line.
    Definition,
    /// The site's file, outside of tables. The number is the line.
    SiteFile(usize),
    /// The site's file, in the command's table.
    SiteTable(usize),
    /// The user's file, outside of tables.
    File(usize),
    /// The user's file, in the command's table.
    Table(usize),
    /// An environment variable.
    Variable(String),
    /// The site's file, in the table of a profile.
    SiteProfile(usize),
    /// The user's file, in the table of a profile.
    Profile(usize),
}

impl Origin {
    /// Converts the origin of a value in the user's file to the same origin in the site's file.
    fn of_site(self) -> Self {
        match self {
            Self::File(line) => Self::SiteFile(line),
            Self::Table(line) => Self::SiteTable(line),
            Self::Profile(line) => Self::SiteProfile(line),
            other => other,
        }
    }
}

/// A value for an option.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    /// The command. None: all commands with the option.
    verb: Option<String>,
    /// The profile, if the setting is part of one: it then applies only with `--profile`. None for other settings.
    profile: Option<String>,
    /// The option's long name.
    key: String,
    values: Vec<String>,
    origin: Origin,
}

/// An error in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct SettingsError {
    /// The file and line, or the variable.
    pub place: String,
    /// The option, and the error.
    pub what: String,
}

/// An option with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The command that has the option.
    pub verb: String,
    /// The option's long name.
    pub key: String,
    /// The value; empty if there is none.
    pub value: String,
    /// The origin of the value.
    pub origin: Origin,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    files: Files,
    settings: Vec<Setting>,
}

/// The paths of the files, whether they exist or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Files {
    site: Option<PathBuf>,
    own: Option<PathBuf>,
}

impl Settings {
    /// Loads the settings from the files and the environment.
    ///
    /// # Errors
    /// A file cannot be read, or a setting has no matching option. A missing file is not an error.
    pub fn load(
        command: &Command,
        lookup: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SettingsError> {
        let files = Files {
            site: site_path(&lookup),
            own: file_path(&lookup),
        };
        let read = |path: &Option<PathBuf>, variable: &str| match path {
            Some(path) => file::read(path, lookup(variable).is_some()),
            None => Ok(Vec::new()),
        };
        let mut settings = read(&files.site, SITE_VARIABLE)?;
        for setting in &mut settings {
            setting.origin = setting.origin.clone().of_site();
        }
        settings.extend(read(&files.own, FILE_VARIABLE)?);
        let place = |origin: &Origin| place(&files, origin);
        for setting in &settings {
            let error = |what: UnknownSetting| SettingsError {
                place: place(&setting.origin),
                what: what.to_string(),
            };
            check_name(command, setting).map_err(error)?;
        }
        let mut keys: Vec<&str> = verbs(command)
            .flat_map(options)
            .map(|(key, _)| key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let variable = variable_of(key);
            let Some(value) = lookup(&variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let value = value.into_string().map_err(|_| SettingsError {
                place: variable.clone(),
                what: "the value is not UTF-8".to_owned(),
            })?;
            settings.push(Setting {
                verb: None,
                profile: None,
                key: key.to_owned(),
                values: value.split_whitespace().map(str::to_owned).collect(),
                origin: Origin::Variable(variable),
            });
        }
        Ok(Self { files, settings })
    }

    /// The path of the user's file, whether it exists or not. None if no home directory is known.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.files.own.as_deref()
    }

    /// The path of the site's file, whether it exists or not. None if `SDM_SITE_CONFIG` is empty.
    #[must_use]
    pub fn site_file(&self) -> Option<&Path> {
        self.files.site.as_deref()
    }

    /// The definition of the command line with these settings as its defaults.
    ///
    /// # Errors
    /// A value is invalid for its option, or there is no profile of this name.
    pub fn apply(&self, command: Command, profile: Option<&str>) -> Result<Command, SettingsError> {
        if let Some(name) = profile {
            self.check_profile(name)?;
        }
        let names: Vec<String> = verbs(&command)
            .map(|verb| verb.get_name().to_owned())
            .collect();
        let mut applied = command;
        for name in names {
            let verb = applied.find_subcommand(&name).expect("it is one of them");
            let mut defaults = Vec::new();
            for (key, arg) in options(verb) {
                let Some(setting) = self.of(&name, key, profile) else {
                    continue;
                };
                let values = self.checked(verb, arg, setting)?;
                if !values.is_empty() {
                    defaults.push((arg.get_id().clone(), values));
                }
            }
            let program = profile.map(|profile| self.program(&name, profile));
            let program = program.filter(|words| !words.is_empty());
            applied = applied.mut_subcommand(name, |verb| {
                let set = |verb: Command, (id, values): (clap::Id, Vec<String>)| {
                    verb.mut_arg(id, |arg| arg.default_values(values))
                };
                let verb = defaults.into_iter().fold(verb, set);
                match program {
                    Some(words) => verb.mut_arg(profile::PROGRAM, |arg| {
                        arg.required(false).default_values(words)
                    }),
                    None => verb,
                }
            });
        }
        Ok(applied)
    }

    /// The options of a command, or of all commands, with the origins of their values.
    #[must_use]
    pub fn rows(&self, command: &Command, verb: Option<&str>) -> Vec<Row> {
        let mut rows = Vec::new();
        for of in verbs(command).filter(|of| verb.is_none_or(|verb| of.get_name() == verb)) {
            for (key, arg) in options(of) {
                let (value, origin) = match self.of(of.get_name(), key, None) {
                    Some(setting) => (setting.values.join(" "), setting.origin.clone()),
                    None => {
                        let values = arg.get_default_values().iter();
                        let values = values.map(|value| value.to_string_lossy());
                        (values.collect::<Vec<_>>().join(" "), Origin::Definition)
                    }
                };
                rows.push(Row {
                    verb: of.get_name().to_owned(),
                    key: key.to_owned(),
                    value,
                    origin,
                });
            }
        }
        rows
    }

    /// The text of an origin.
    #[must_use]
    pub fn place(&self, origin: &Origin) -> String {
        place(&self.files, origin)
    }

    /// The setting of a command's option that takes precedence; None if the option is not set.
    fn of(&self, verb: &str, key: &str, profile: Option<&str>) -> Option<&Setting> {
        let meant = |setting: &&Setting| {
            let is_asked_for = match &setting.profile {
                Some(name) => profile == Some(name) && profile::is_for(verb),
                None => setting.verb.as_deref().is_none_or(|of| of == verb),
            };
            setting.key == key && is_asked_for
        };
        let settings = self.settings.iter().filter(meant);
        settings.max_by_key(|setting| setting.origin.clone())
    }

    /// The values, after validation for the option. Empty for a switch that is off.
    fn checked(
        &self,
        verb: &Command,
        arg: &Arg,
        setting: &Setting,
    ) -> Result<Vec<String>, SettingsError> {
        let error = |what: String| SettingsError {
            place: self.place(&setting.origin),
            what: format!("{}: {what}", setting.key),
        };
        if !takes_value(arg) {
            return match setting.values.join(" ").as_str() {
                "true" | "1" | "yes" | "on" => Ok(vec!["true".to_owned()]),
                "false" | "0" | "no" | "off" => Ok(Vec::new()),
                other => Err(error(format!("expected true or false, not {other:?}"))),
            };
        }
        if setting.values.len() != 1 && !matches!(arg.get_action(), ArgAction::Append) {
            return Err(error("expected a single value".to_owned()));
        }
        for value in &setting.values {
            let word = format!("--{}={value}", setting.key);
            let parsed = verb.clone().try_get_matches_from([verb.get_name(), &word]);
            // Missing or conflicting arguments are not the fault of a setting.
            if let Err(refused) = parsed
                && matches!(
                    refused.kind(),
                    ErrorKind::InvalidValue | ErrorKind::ValueValidation
                )
            {
                let text = refused.to_string();
                let line = text.lines().next().unwrap_or_default();
                return Err(error(line.trim_start_matches("error: ").to_owned()));
            }
        }
        Ok(setting.values.clone())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&place(&Files::default(), self))
    }
}

fn place(files: &Files, origin: &Origin) -> String {
    let at = |file: &Option<PathBuf>, line: &usize| {
        let file = file
            .as_deref()
            .map_or_else(|| "file".to_owned(), printable_name);
        format!("{file}:{line}")
    };
    match origin {
        Origin::Definition => "default".to_owned(),
        Origin::Variable(name) => name.clone(),
        Origin::SiteFile(line) | Origin::SiteTable(line) | Origin::SiteProfile(line) => {
            at(&files.site, line)
        }
        Origin::File(line) | Origin::Table(line) | Origin::Profile(line) => at(&files.own, line),
    }
}

/// The path of the user's file: from `SDM_CONFIG`, otherwise below the user's configuration directory. None if no home
/// directory is known.
fn file_path(lookup: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| {
        lookup(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let below = || {
        let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
        Some(folder.join("sdm/config.toml"))
    };
    set(FILE_VARIABLE).or_else(below)
}

/// The path of the site's file, which `SDM_SITE_CONFIG` overrides. None if that is empty.
fn site_path(lookup: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = lookup(SITE_VARIABLE).unwrap_or_else(|| SITE_FILE.into());
    (!path.is_empty()).then(|| path.into())
}

/// Commands with options that can be set.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    let visible = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    visible.filter(|verb| options(verb).next().is_some())
}

fn options(verb: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let options = verb.get_arguments();
    let options = options.filter_map(|arg| Some((arg.get_long()?, arg)));
    options.filter(|(key, _)| !NO_SETTINGS.contains(key))
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The environment variable of an option: `start-wait` gives `SDM_START_WAIT`.
fn variable_of(key: &str) -> String {
    format!("SDM_{}", key.to_uppercase().replace('-', "_"))
}

/// The reason why a name in a settings file is invalid.
#[derive(Debug, thiserror::Error)]
enum UnknownSetting {
    #[error("[{0}]: no sdm command of this name has settings")]
    Verb(String),
    #[error("{0}: not a setting of `sdm {1}`")]
    OfVerb(String, String),
    #[error("{0}: allowed on the command line only, not in a file")]
    NoSetting(String),
    #[error("{0}: not a setting of any command; `sdm settings` lists them")]
    Key(String),
    #[error(
        "{0}: not allowed in a profile: only settings of `sdm run` and `sdm submit`, `program` and `arguments`"
    )]
    OfProfile(String),
}

/// Checks that the command and its option exist.
fn check_name(command: &Command, setting: &Setting) -> Result<(), UnknownSetting> {
    let key = &setting.key;
    if setting.profile.is_some() {
        return profile::check_name(command, key);
    }
    if let Some(name) = &setting.verb
        && !verbs(command).any(|verb| verb.get_name() == name)
    {
        return Err(UnknownSetting::Verb(name.clone()));
    }
    let mut of = verbs(command).filter(|verb| {
        setting
            .verb
            .as_deref()
            .is_none_or(|name| name == verb.get_name())
    });
    if of.any(|verb| options(verb).any(|(known, _)| known == key)) {
        return Ok(());
    }
    let key = key.clone();
    Err(match &setting.verb {
        Some(name) => UnknownSetting::OfVerb(key, name.clone()),
        None if NO_SETTINGS.contains(&key.as_str()) => UnknownSetting::NoSetting(key),
        None => UnknownSetting::Key(key),
    })
}
