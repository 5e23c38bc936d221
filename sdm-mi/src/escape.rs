//! C strings in MI notation: `"a\tb\303\274"`.

/// The bytes as a quoted MI C string.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for &byte in bytes {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => write!(out, "\\{byte:03o}").expect("a String takes everything"),
        }
    }
    out.push('"');
    out
}

/// Parses a c-string from its opening quote: its bytes, and the number of bytes of `input` used. `None` if it is not
/// closed.
pub(super) fn read_c_string(input: &[u8]) -> Option<(Vec<u8>, usize)> {
    if input.first() != Some(&b'"') {
        return None;
    }
    let mut out = Vec::new();
    let mut at = 1;
    loop {
        let rest = &input[at..];
        let plain = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
        out.extend_from_slice(&rest[..plain]);
        at += plain + 1;
        if rest[plain] == b'"' {
            return Some((out, at));
        }
        let (byte, used) = read_escape(&input[at..])?;
        out.push(byte);
        at += used;
    }
}

/// Parses an escape after its backslash. Returns the byte and the number of bytes used; `None` if the input ends.
fn read_escape(input: &[u8]) -> Option<(u8, usize)> {
    let first = *input.first()?;
    if (b'0'..=b'7').contains(&first) {
        let mut value = 0u32;
        let mut used = 0;
        while used < 3 && input.get(used).is_some_and(|b| (b'0'..=b'7').contains(b)) {
            value = value * 8 + u32::from(input[used] - b'0');
            used += 1;
        }
        // `\777` is not a byte, and gdb never writes it. C takes the low 8 bits.
        let byte = u8::try_from(value & 0xff).expect("masked to a byte");
        return Some((byte, used));
    }
    let byte = match first {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'e' => 27,
        other => other,
    };
    Some((byte, 1))
}

/// Bytes as text. Bytes that are not UTF-8 become `\ooo`, so that nothing is lost.
pub(super) fn text_of(bytes: Vec<u8>) -> String {
    use std::fmt::Write;
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let mut out = String::new();
            for chunk in error.as_bytes().utf8_chunks() {
                out.push_str(chunk.valid());
                for byte in chunk.invalid() {
                    write!(out, "\\{byte:03o}").expect("a String takes everything");
                }
            }
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &[u8]) {
        let (bytes, used) = read_c_string(input.as_bytes()).expect(input);
        assert_eq!((bytes.as_slice(), used), (expect, input.len()), "{input}");
    }

    #[test]
    fn c_string_escapes_are_decoded() {
        check(r#""""#, b"");
        check(r#""a\tb\n""#, b"a\tb\n");
        check(r#""\"\\\e""#, b"\"\\\x1b");
        check(r#""\303\2741""#, "\u{fc}1".as_bytes());
        check(r#""\0\018\7""#, &[0, 1, b'8', 7]);
        assert_eq!(read_c_string(b"\"open\\"), None);
        assert_eq!(read_c_string(b"\"open"), None);
        assert_eq!(read_c_string(b"bare"), None);
    }

    #[test]
    fn non_utf8_bytes_are_preserved() {
        assert_eq!(text_of(vec![b'a', 0xff, 0xc3, b'b']), "a\\377\\303b");
        assert_eq!(quote(b"a\"b\\c\n\xff"), r#""a\"b\\c\012\377""#);
    }
}
