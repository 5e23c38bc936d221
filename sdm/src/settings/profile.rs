//! Launch configurations: `[profile.NAME]`.

use std::ffi::OsString;

use clap::Command;

use super::{NO_SETTINGS, Origin, Settings, SettingsError, UnknownSetting, options, verbs};

/// The table of all profiles.
pub(super) const PROFILES: &str = "profile";
/// The key for the program, which is also the id of the command line's argument.
pub(super) const PROGRAM: &str = "program";
/// The key for the program's arguments.
const ARGUMENTS: &str = "arguments";
/// The commands that accept a profile.
const VERBS: [&str; 2] = ["run", "submit"];

/// True for a command that accepts profiles.
pub(super) fn is_for(verb: &str) -> bool {
    VERBS.contains(&verb)
}

/// Checks that a profile can have this setting.
pub(super) fn check_name(command: &Command, key: &str) -> Result<(), UnknownSetting> {
    let mut of = verbs(command).filter(|verb| is_for(verb.get_name()));
    let is_known = [PROGRAM, ARGUMENTS].contains(&key)
        || of.any(|verb| options(verb).any(|(known, _)| known == key));
    match is_known {
        true => Ok(()),
        false if NO_SETTINGS.contains(&key) => Err(UnknownSetting::NoSetting(key.to_owned())),
        false => Err(UnknownSetting::OfProfile(key.to_owned())),
    }
}

/// The profile that a command line requests, in the words before the program. None without `--profile`.
#[must_use]
pub fn asked_for(args: &[OsString]) -> Option<&str> {
    let mut words = args.iter().map_while(|word| match word.to_str() {
        Some("--") => None,
        word => Some(word.unwrap_or_default()),
    });
    let mut asked = None;
    while let Some(word) = words.next() {
        if word == "--profile" {
            asked = words.next();
        } else if let Some(name) = word.strip_prefix("--profile=") {
            asked = Some(name);
        }
    }
    asked
}

/// The names of all profiles. Empty if the settings cannot be read.
#[must_use]
pub fn known_profiles(command: &Command) -> Vec<String> {
    let loaded = Settings::load(command, |name| std::env::var_os(name));
    let names = loaded.map(|it| it.profiles().into_iter().map(str::to_owned).collect());
    names.unwrap_or_default()
}

impl Settings {
    /// The profiles, in the order of their names.
    pub fn profiles(&self) -> Vec<&str> {
        let named = self.settings.iter().filter_map(|it| it.profile.as_deref());
        let mut names: Vec<&str> = named.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The settings of a profile: option, value and origin.
    pub fn of_profile(&self, name: &str) -> impl Iterator<Item = (&str, String, &Origin)> {
        let its = move |it: &&super::Setting| it.profile.as_deref() == Some(name);
        let all = self.settings.iter().filter(its);
        all.map(|it| (&*it.key, it.values.join(" "), &it.origin))
    }

    /// Checks that a profile exists.
    pub(super) fn check_profile(&self, name: &str) -> Result<(), SettingsError> {
        let profiles = self.profiles();
        if profiles.contains(&name) {
            return Ok(());
        }
        let file = self.file().map(sdm_text::printable_name);
        let known = match profiles.is_empty() {
            true => "the settings file defines no [profile.NAME]".to_owned(),
            false => format!("there are: {}", profiles.join(", ")),
        };
        Err(SettingsError {
            place: file.unwrap_or_else(|| "--profile".to_owned()),
            what: format!(
                "profile '{}': {known}",
                sdm_text::printable(name.as_bytes())
            ),
        })
    }

    /// The program and its arguments from a profile, for a command.
    pub(super) fn program(&self, verb: &str, profile: &str) -> Vec<String> {
        let of = |key| self.of(verb, key, Some(profile)).map(|it| it.values.iter());
        let words = [PROGRAM, ARGUMENTS].into_iter().filter_map(of).flatten();
        words.cloned().collect()
    }
}
