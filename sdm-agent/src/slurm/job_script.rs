//! The batch script of a job whose processes `srun` starts, and the program that such a script names.
//!
//! The script checks on the job's first node that the program exists: `srun` would start a step of processes that end
//! at once. If the program does not exist, the script writes this into the job's comment.

use sdm_runtime::attribute as id;

use crate::manager::Submission;
use crate::script;
use crate::snapshot::{Attributes, set, set_items};

/// Shell code that checks the program and starts it. `$@` are the program and its arguments. A program without a slash
/// is searched on PATH.
const START: &str = r#"why='no such program'
runs() {
  [ -e "$1" ] && why='Permission denied'
  [ -f "$1" ] && [ -x "$1" ]
}
case $1 in
*/*) runs "$1" && exec srun "$@" ;;
*)
  set -f
  IFS=:
  for dir in $PATH; do
    if runs "${dir:-.}/$1"; then
      unset IFS
      exec srun "$@"
    fi
  done
  unset IFS ;;
esac
scontrol update "JobId=$SLURM_JOB_ID" "Comment=sdm: cannot start $1: $why"
echo "sdm: cannot start $1: $why" >&2
exit 127
"#;

/// The batch script for a job whose program is not a batch script itself.
pub(super) fn of(job: &Submission) -> String {
    let is_in_container =
        |option: &String| option.contains("container") || option.contains("image");
    if job.options.iter().any(is_in_container) {
        // The node itself need not have the program.
        return script::of(job, "exec srun");
    }
    let words = script::words(job);
    format!(
        "{}: sdm {}\nset -- {}\n{START}",
        script::head(job),
        words.len(),
        words.join(" ")
    )
}

/// The program of a job with its arguments, and the environment that its script sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Program {
    words: Vec<String>,
    environment: Vec<String>,
}

impl Program {
    /// The program of a batch script that [`of`] has written; `None` for another script.
    pub(super) fn read(script: &str) -> Option<Self> {
        let (_, script) = script.split_once('\n')?;
        let mut words = shell_words::split(script).ok()?.into_iter();
        let mut environment = Vec::new();
        let mut word = words.next()?;
        while word == "export" {
            environment.push(words.next()?);
            word = words.next()?;
        }
        let head = [word, words.next()?];
        let count: usize = words.next()?.parse().ok()?;
        let begin = [words.next()?, words.next()?];
        if head != [":", "sdm"] || begin != ["set", "--"] {
            return None;
        }
        let words: Vec<String> = words.take(count).collect();
        (count > 0 && words.len() == count).then_some(Self { words, environment })
    }

    /// Adds the program to the attributes of its job.
    pub(super) fn tell(&self, attributes: &mut Attributes) {
        let program = self.words.first().map_or("", String::as_str);
        let (path, name) = program.rsplit_once('/').unwrap_or(("", program));
        set(attributes, id::EXEC_PATH, path);
        set(attributes, id::EXEC_NAME, name);
        set_items(attributes, id::PROG_ARGS, self.words.iter().skip(1));
        set_items(attributes, id::ENV, &self.environment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Submission {
        Submission {
            program: "/opt/my app".to_owned(),
            arguments: ["it's", "$HOME", "", "a\nb", "set"]
                .map(str::to_owned)
                .to_vec(),
            environment: vec!["A=b c".to_owned(), "B=".to_owned()],
            ..Submission::default()
        }
    }

    #[test]
    fn script_sets_environment_and_checks_its_program() {
        let expected = "#!/bin/sh\nexport A='b c'\nexport B=''\n: sdm 6\n\
                        set -- '/opt/my app' 'it'\\''s' '$HOME' '' 'a\nb' set\nwhy=";
        let text = of(&job());
        assert!(text.starts_with(expected), "{text}");
        let mut inside = job();
        inside.options = vec!["--container=/images/a".to_owned()];
        let text = of(&inside);
        assert!(text.contains("\nexec srun '/opt/my app' "), "{text}");
    }

    #[test]
    fn program_of_a_slurm_job_script_is_read_back() {
        let job = job();
        let program = Program::read(&of(&job)).unwrap();
        assert_eq!(program.words[0], job.program);
        assert_eq!(program.words[1..], job.arguments);
        assert_eq!(program.environment, job.environment);
        let mut attributes = Attributes::new();
        program.tell(&mut attributes);
        let value = |id: &str| attributes.get(id).map(String::as_str);
        assert_eq!(
            (value("execPath"), value("execName")),
            (Some("/opt"), Some("my app"))
        );
        assert_eq!(value("progArgs"), Some("it's\0$HOME\0\0a\nb\0set\0"));
        assert_eq!(value("env"), Some("A=b c\0B=\0"));
        for other in [
            "",
            "#!/bin/sh\nexec srun a\n",
            "#!/bin/sh\n: sdm 2\nset -- a\n",
            "#\n'",
        ] {
            assert_eq!(Program::read(other), None, "{other}");
        }
    }
}
