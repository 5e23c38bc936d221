//! The batch script of a job whose processes `srun` starts, and the program that such a script names.
//!
//! The script checks on the job's first node that the program can be executed: `srun` would start a step of processes
//! that end at once. If it cannot, the script writes the reason into the job's comment. A job in a container is not
//! checked.

use crate::manager::Submission;
use crate::program::Program;
use crate::script;

/// Shell code for a program that cannot be started.
const REFUSE: &str =
    r#"scontrol update "JobId=$SLURM_JOB_ID" "Comment=sdm: cannot start $1: $why""#;

/// The batch script for a job whose program is not a batch script itself.
pub(super) fn of(job: &Submission) -> String {
    let starter = if job.batch { "exec" } else { "exec srun" };
    let is_in_container =
        |option: &String| option.contains("container") || option.contains("image");
    if job.options.iter().any(is_in_container) {
        // The node itself need not have the program.
        return script::of(job, starter);
    }
    let words = script::words(job);
    format!(
        "{}: sdm {}\n{}",
        script::head(job),
        words.len(),
        script::checked(job, starter, REFUSE, 127)
    )
}

/// The program of a batch script that [`of`] has written; `None` for another script.
pub(super) fn program(script: &str) -> Option<Program> {
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
    (count > 0 && words.len() == count).then_some(Program { words, environment })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Attributes;

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
    fn job_script_exports_environment_and_quotes_arguments() {
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
        let program = program(&of(&job)).unwrap();
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
            assert_eq!(super::program(other), None, "{other}");
        }
    }
}
