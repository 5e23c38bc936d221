//! Converts launch.json to a command line of `sdm`.
//!
//! All features of `sdm run` and `sdm attach` are available in their own words, so that an editor and a shell start a
//! job alike.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;

use crate::error::RequestError;

/// Maximum number of tasks with a thread each, unless launch.json says otherwise.
pub(crate) const RANKS_MAX: u64 = 16;

/// The meaning of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Threads {
    /// A thread is a group of tasks with equal stacks.
    Classes,
    /// A thread is one task.
    Ranks,
}

/// The tasks that F5 and steps move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// All stopped tasks.
    #[default]
    All,
    /// The tasks of one thread of the client.
    Class,
}

/// A single word, or several.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Number(i64),
    Several(Vec<String>),
}

impl Words {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Number(number) => vec![number.to_string()],
            Self::Several(words) => words,
        }
    }
}

/// The present location of a moved folder: a path, or an object as other adapters accept.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Moved {
    Path(String),
    Editor {
        #[serde(rename = "editorPath")]
        path: String,
    },
}

/// A source directory, with its present path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Substitution {
    from: String,
    to: String,
}

/// Source directories as the compiler recorded them, each with its present path.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct MovedFolders {
    source_file_map: Option<BTreeMap<String, Moved>>,
    /// The directories as a list.
    substitute_path: Option<Vec<Substitution>>,
}

impl MovedFolders {
    /// The gdb commands that set the moved folders.
    fn commands(&self) -> Vec<String> {
        let map = self.source_file_map.iter().flatten();
        let map = map.map(|(from, to)| match to {
            Moved::Path(to) | Moved::Editor { path: to } => (from.as_str(), to.as_str()),
        });
        let list = self.substitute_path.iter().flatten();
        let list = list.map(|it| (it.from.as_str(), it.to.as_str()));
        let all = map.chain(list);
        let lines =
            all.map(|(from, to)| format!("set substitute-path {} {}", word(from), word(to)));
        lines.collect()
    }
}

/// A directory as a word of gdb's command line.
fn word(path: &str) -> String {
    let path = path
        .strip_suffix('/')
        .filter(|rest| !rest.is_empty())
        .unwrap_or(path);
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The job to which to attach.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AttachedJob {
    /// The job, in the syntax of `sdm attach`.
    target: Option<Words>,
    pid: Option<i64>,
}

/// The arguments of `launch` and `attach`. Unknown fields are ignored, as editors add their own.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Configuration {
    pub(crate) no_debug: bool,
    program: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, Option<String>>>,
    cwd: Option<String>,
    ranks: Option<Words>,
    launcher: Option<String>,
    launcher_options: Option<Vec<String>>,
    hosts: Option<Words>,
    profile: Option<String>,
    gdb: Option<String>,
    /// Number of scripted tasks, in place of a program. `None` for a program.
    emulate: Option<u32>,
    #[serde(flatten)]
    job: AttachedJob,
    /// The address of the session, in an attach that this adapter has requested from the client. `None` in other
    /// requests.
    #[serde(rename = "__sdmSession")]
    pub(crate) session: Option<String>,
    /// The rank of the session `__sdmSession` that this client debugs.
    pub(crate) rank: Option<u32>,
    #[serde(alias = "stopOnEntry", alias = "stopAtBeginningOfMainSubprogram")]
    pub(crate) stop_at_entry: Option<bool>,
    pub(crate) threads: Option<Threads>,
    pub(crate) scope: Scope,
    #[serde(flatten)]
    moved: MovedFolders,
    /// Additional command-line options of `sdm run` or `sdm attach`, passed on unchanged.
    sdm_options: Option<Vec<String>>,
}

impl Configuration {
    /// Converts this configuration to a command line of `sdm run`, or of `sdm emulate` for scripted tasks.
    ///
    /// # Errors
    /// [`RequestError::Configuration`] if no program is named, or if a word contains a byte 0.
    pub(crate) fn launch_words(self) -> Result<Vec<OsString>, RequestError> {
        let mut words = Vec::new();
        let moved = self.moved_folders();
        if let Some(count) = self.emulate {
            words.extend(["emulate".to_owned(), "-n".to_owned(), count.to_string()]);
            words.extend(self.sdm_options.unwrap_or_default());
            return checked(words);
        }
        let program = self.program.filter(|program| !program.is_empty());
        let Some(program) = program else {
            let text = "`program` is missing: the path of the program to debug";
            return Err(RequestError::Configuration(text.to_owned()));
        };
        words.push("run".to_owned());
        // Editors that prompt for the number return text.
        if let Some(ranks) = self.ranks {
            words.push("-n".to_owned());
            words.extend(ranks.into_vec());
        }
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name}={value}")));
        };
        // The program gets no input, as editors have no window for typing it.
        option("stdin", Some("none".to_owned()));
        option("launcher", self.launcher);
        option("directory", self.cwd.filter(|cwd| !cwd.is_empty()));
        option("gdb", self.gdb.filter(|gdb| !gdb.is_empty()));
        option("profile", self.profile);
        for launcher_option in self.launcher_options.unwrap_or_default() {
            option("launcher-option", Some(launcher_option));
        }
        for host in self.hosts.map(Words::into_vec).unwrap_or_default() {
            option("host", Some(host));
        }
        for (name, value) in self.env.unwrap_or_default() {
            let text = match value {
                Some(value) => format!("{name}={value}"),
                None => name,
            };
            option("env", Some(text));
        }
        let moved = moved.into_iter();
        words.extend(moved.map(|line| format!("--gdb-setting={line}")));
        words.extend(self.sdm_options.unwrap_or_default());
        words.extend(["--".to_owned(), program]);
        words.extend(self.args.unwrap_or_default());
        checked(words)
    }

    /// Commands that tell gdb the present paths of source directories.
    pub(crate) fn moved_folders(&self) -> Vec<String> {
        self.moved.commands()
    }

    /// True if an attach names a job.
    pub(crate) fn names_a_job(&self) -> bool {
        let is_named =
            |target: &Words| !matches!(target, Words::One(word) if word.trim().is_empty());
        self.job.pid.is_some() || self.job.target.as_ref().is_some_and(is_named)
    }

    /// Converts this configuration to a command line of `sdm attach`.
    ///
    /// # Errors
    /// [`RequestError::Configuration`] if no job is named, or if a word contains a byte 0.
    pub(crate) fn attach_words(self) -> Result<Vec<OsString>, RequestError> {
        let mut words = vec!["attach".to_owned()];
        if let Some(gdb) = self.gdb.filter(|gdb| !gdb.is_empty()) {
            words.push(format!("--gdb={gdb}"));
        }
        for option in self.launcher_options.unwrap_or_default() {
            words.push(format!("--launcher-option={option}"));
        }
        words.extend(self.sdm_options.unwrap_or_default());
        let target = self.job.target.map(|target| target.into_vec().join(","));
        let target = target.or_else(|| self.job.pid.map(|pid| pid.to_string()));
        match target.filter(|target| !target.is_empty()) {
            Some(target) => words.push(target),
            None => {
                let text = "`target` is missing: the pid of mpirun or srun, pids with commas in between, \
                    slurm:JOB, or CLUSTER:JOB";
                return Err(RequestError::Configuration(text.to_owned()));
            }
        }
        checked(words)
    }
}

/// Checks that no word contains a byte 0.
fn checked(words: Vec<String>) -> Result<Vec<OsString>, RequestError> {
    if words.iter().any(|word| word.contains('\0')) {
        let text = "a string contains a zero byte";
        return Err(RequestError::Configuration(text.to_owned()));
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(json: &str) -> Result<String, RequestError> {
        let configuration: Configuration = serde_json::from_str(json).expect("well-formed");
        let words = configuration.launch_words()?;
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn launch_json_becomes_a_command_line() {
        let line = launch(
            r#"{"program": "./app", "args": ["-x", "3"], "ranks": 4, "cwd": "/tmp", "launcher": "mpirun",
                "launcherOptions": ["--bind-to"], "hosts": ["a", "b:2"], "env": {"A": "1", "B": null},
                "profile": "big", "gdb": "/opt/gdb", "sdmOptions": ["--force"], "__sessionId": 7}"#,
        );
        let expect = "run -n 4 --stdin=none --launcher=mpirun --directory=/tmp --gdb=/opt/gdb --profile=big \
            --launcher-option=--bind-to --host=a --host=b:2 --env=A=1 --env=B --force -- ./app -x 3";
        assert_eq!(line.as_deref(), Ok(expect));
        assert_eq!(launch(r#"{"emulate": 9}"#).as_deref(), Ok("emulate -n 9"));
        let line = launch(
            r#"{"program": "a", "sourceFileMap": {"/build/": "/home/me/a b", "/c": {"editorPath": "/d"}},
                "substitutePath": [{"from": "/e", "to": "/f"}]}"#,
        );
        let expect = "run --stdin=none --gdb-setting=set substitute-path \"/build\" \"/home/me/a b\" \
            --gdb-setting=set substitute-path \"/c\" \"/d\" --gdb-setting=set substitute-path \"/e\" \"/f\" -- a";
        assert_eq!(line.as_deref(), Ok(expect));
        let line = launch(r#"{"program": "a", "ranks": "4"}"#);
        assert_eq!(line.as_deref(), Ok("run -n 4 --stdin=none -- a"));
        assert!(launch("{}").is_err());
        assert!(launch(r#"{"program": "a\u0000b"}"#).is_err());
    }

    #[test]
    fn attach_target_becomes_a_command_line() {
        for (json, expect) in [
            (r#"{"target": 4711}"#, Some("attach 4711")),
            (r#"{"target": "slurm:7"}"#, Some("attach slurm:7")),
            (r#"{"target": ["3", "4"]}"#, Some("attach 3,4")),
            (r#"{"pid": 5}"#, Some("attach 5")),
            ("{}", None),
        ] {
            let configuration: Configuration = serde_json::from_str(json).expect("well-formed");
            let words = configuration.attach_words().ok();
            let line = words.map(|words| words.join(&OsString::from(" ")));
            assert_eq!(line, expect.map(OsString::from), "{json}");
        }
    }
}
