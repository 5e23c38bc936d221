//! Scripts for `/bin/sh` that batch systems execute: a job's environment, its command line, and its name.

use sdm_text::shell_word;

use crate::manager::Submission;

/// A script that sets a job's environment, and executes `starter` with the job's program and arguments.
pub(crate) fn of(job: &Submission, starter: &str) -> String {
    format!("{}{starter} {}\n", head(job), words(job).join(" "))
}

/// Shell code that executes `START` with the program if it exists, and `REFUSE` if not. `$@` are the program and its
/// arguments. A program without a slash is searched on PATH.
const CHECK: &str = r#"why='no such program'
runs() {
  [ -e "$1" ] && why='Permission denied'
  [ -f "$1" ] && [ -x "$1" ]
}
case $1 in
*/*) runs "$1" && START "$@" ;;
*)
  set -f
  IFS=:
  for dir in $PATH; do
    if runs "${dir:-.}/$1"; then
      unset IFS
      START "$@"
    fi
  done
  unset IFS ;;
esac
REFUSE
echo "sdm: cannot start $1: $why" >&2
"#;

/// The part of a script that executes `starter` with the job's program, which it checks first. If the program cannot be
/// started, it executes `refuse` and ends with `code`.
pub(crate) fn checked(job: &Submission, starter: &str, refuse: &str, code: u8) -> String {
    let check = CHECK.replace("START", starter).replace("REFUSE", refuse);
    format!("set -- {}\n{check}exit {code}\n", words(job).join(" "))
}

/// The beginning of a script: it sets a job's environment.
pub(crate) fn head(job: &Submission) -> String {
    let mut script = "#!/bin/sh\n".to_owned();
    for pair in &job.environment {
        if let Some((name, value)) = pair.split_once('=') {
            script.push_str(&format!("export {name}={}\n", shell_word(value)));
        }
    }
    script
}

/// The words of a job's command line, quoted: a debugger, the program and its arguments.
pub(crate) fn words(job: &Submission) -> Vec<String> {
    job.words().map(|it| shell_word(it)).collect()
}

/// Turns a program's name into a job name that every batch system accepts. A name for Grid Engine must not begin with a
/// digit, nor contain certain characters (`sge_types(1)`, object_name).
pub(crate) fn plain_name(program: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() || "._-+".contains(c) {
        true => c,
        false => '_',
    };
    let name: String = program.chars().map(plain).collect();
    match name.starts_with(|c: char| !c.is_ascii_alphabetic()) {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_name_is_program_name_in_allowed_characters() {
        for (program, name) in [
            ("a.out", "a.out"),
            ("9lives", "_9lives"),
            ("a b@c", "a_b_c"),
            ("", ""),
        ] {
            assert_eq!(plain_name(program), name);
        }
    }
}
