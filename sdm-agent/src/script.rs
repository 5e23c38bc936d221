//! Scripts for `/bin/sh`, as batch systems take them.

use crate::manager::Submission;

/// A script that sets a job's environment, and becomes what `starter` makes of its program and arguments.
pub(crate) fn of(job: &Submission, starter: &str) -> String {
    let mut script = "#!/bin/sh\n".to_owned();
    for pair in &job.environment {
        if let Some((name, value)) = pair.split_once('=') {
            script.push_str(&format!("export {name}={}\n", quoted(value)));
        }
    }
    let words = job.debugger.iter().chain([&job.program]);
    let words: Vec<String> = words.chain(&job.arguments).map(|it| quoted(it)).collect();
    script.push_str(&format!("{starter} {}\n", words.join(" ")));
    script
}

/// A word for a shell, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
