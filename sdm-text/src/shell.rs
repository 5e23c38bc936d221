//! Quoting of words for a POSIX shell.

/// Quotes a text as one word for a shell. Text without special characters is unchanged, for readability.
#[must_use]
pub fn shell_word(word: &str) -> String {
    String::from_utf8_lossy(&shell_word_of_bytes(word.as_bytes())).into_owned()
}

/// Like [`shell_word`], for bytes that need not be text, for example file names.
#[must_use]
pub fn shell_word_of_bytes(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=,:+@%".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => out.extend(br"'\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_words_are_quoted() {
        for (word, expect) in [
            ("", "''"),
            ("/opt/a-b_c.1,d:e+f@g%h=i", "/opt/a-b_c.1,d:e+f@g%h=i"),
            ("two words", "'two words'"),
            ("it's", r"'it'\''s'"),
            ("$HOME `id` \\ \"", "'$HOME `id` \\ \"'"),
            ("~", "'~'"),
            ("a\nb", "'a\nb'"),
            ("\u{e4}", "'\u{e4}'"),
        ] {
            assert_eq!(shell_word(word), expect);
            assert_eq!(shell_word_of_bytes(word.as_bytes()), expect.as_bytes());
        }
        assert_eq!(shell_word_of_bytes(b"\xff'"), b"'\xff'\\'''");
    }
}
