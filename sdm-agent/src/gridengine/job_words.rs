//! The program and the arguments of a job, as Grid Engine keeps them.
//!
//! SDM's batch scripts come from standard input and have the job's words in them, since Grid Engine cuts arguments at a
//! line break. `qsub` gets the words as arguments of the script as well, which ignores them: `qstat -j` lists these.

/// The operand that makes `qsub` read the script from standard input. It is also the first argument of the script.
const STDIN: &str = "-";
/// The second argument of the script. It marks the arguments after it as the words of a job of SDM's.
const MARK: &str = ":sdm";
/// Maximum length of all words in bytes; longer ones are not reported. A command line of `qsub` has room for more.
const BYTES_MAX: usize = 64 << 10;

/// The operands of `qsub` for a script on standard input that executes these words. None for words longer than
/// [`BYTES_MAX`].
pub(super) fn operands<'a>(words: impl Iterator<Item = &'a String>) -> Vec<String> {
    let words: Vec<String> = words.map(|it| escaped(it)).collect();
    if words.iter().map(String::len).sum::<usize>() > BYTES_MAX {
        return Vec::new();
    }
    let begin = ["--", STDIN, MARK].map(str::to_owned);
    begin.into_iter().chain(words).collect()
}

/// The words of a job from the name of its script and the script's arguments; the first is the program, empty if it is
/// unknown.
pub(super) fn read(script: &str, arguments: Vec<String>) -> Vec<String> {
    let is_file = !["", "STDIN"].contains(&script);
    match &*arguments {
        _ if is_file => [vec![script.to_owned()], arguments].concat(),
        [dash, mark, words @ ..] if dash == STDIN && mark == MARK => {
            words.iter().map(|it| unescaped(it)).collect()
        }
        [dash, words @ ..] if dash == STDIN => [&[String::new()], words].concat(),
        _ => Vec::new(),
    }
}

/// Replaces control characters of a word by `\xNN`, and doubles backslashes: XML and Grid Engine's files cannot have
/// control characters.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => text.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text
}

/// The word from which [`escaped`] has made this text.
fn unescaped(text: &str) -> String {
    let (mut word, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        word.push_str(before);
        let code = after.strip_prefix('x').and_then(|it| it.get(..2));
        let code = code.and_then(|it| u8::from_str_radix(it, 16).ok());
        (rest, word) = match code {
            Some(code) => (
                &after[3..],
                word + char::from(code).encode_utf8(&mut [0; 4]),
            ),
            None => (after.strip_prefix('\\').unwrap_or(after), word + "\\"),
        };
    }
    word + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_command_line_is_read_back_from_qsub_arguments() {
        let given = [
            "/opt/my app",
            "",
            "it's",
            "a\nb\u{1}",
            "\\x0a",
            "\\",
            "\u{85}ä",
        ];
        let given = given.map(str::to_owned);
        let operands = operands(given.iter());
        assert!(!operands.concat().contains(char::is_control));
        assert_eq!(read("STDIN", operands[1..].to_vec()), given);
        // Scripts of others.
        let words = |script, arguments: &[&str]| {
            read(script, arguments.iter().map(|&it| it.to_owned()).collect())
        };
        assert_eq!(
            words("/w/run.sh", &["-", ":sdm"]),
            ["/w/run.sh", "-", ":sdm"]
        );
        assert_eq!(words("STDIN", &["-", "one"]), ["", "one"]);
        assert_eq!(words("STDIN", &[]), [""; 0]);
        let long = "a".repeat(BYTES_MAX + 1);
        assert_eq!(super::operands([long].iter()), [""; 0]);
    }
}
