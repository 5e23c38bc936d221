//! Syntax highlighting of source lines: keywords, strings and comments, as gdb does if it is built with a
//! library for it.

use super::style::Style;

/// Languages with known keywords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Fortran,
    Python,
}

const C_WORDS: &[&str] = &[
    "alignas",
    "auto",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constexpr",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "explicit",
    "extern",
    "false",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "namespace",
    "new",
    "noexcept",
    "nullptr",
    "operator",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "restrict",
    "return",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typename",
    "union",
    "using",
    "virtual",
    "volatile",
    "while",
];
const C_TYPES: &[&str] = &[
    "bool", "char", "double", "float", "int", "int16_t", "int32_t", "int64_t", "int8_t", "long",
    "short", "signed", "size_t", "ssize_t", "uint16_t", "uint32_t", "uint64_t", "uint8_t",
    "unsigned", "void", "wchar_t",
];
const FORTRAN_WORDS: &[&str] = &[
    "allocatable",
    "allocate",
    "call",
    "case",
    "contains",
    "cycle",
    "deallocate",
    "dimension",
    "do",
    "else",
    "elseif",
    "end",
    "enddo",
    "endif",
    "exit",
    "function",
    "goto",
    "if",
    "implicit",
    "in",
    "inout",
    "intent",
    "interface",
    "module",
    "none",
    "only",
    "out",
    "parameter",
    "pointer",
    "print",
    "private",
    "procedure",
    "program",
    "public",
    "pure",
    "read",
    "recursive",
    "result",
    "return",
    "save",
    "select",
    "stop",
    "subroutine",
    "target",
    "then",
    "use",
    "where",
    "while",
    "write",
];
const FORTRAN_TYPES: &[&str] = &[
    "character",
    "class",
    "complex",
    "integer",
    "logical",
    "real",
    "type",
];
const PYTHON_WORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

impl Language {
    /// The language of a file, by the extension of its name. None for an unknown one.
    fn of(file: &str) -> Option<Self> {
        let (_, end) = file.rsplit_once('.')?;
        match &*end.to_ascii_lowercase() {
            "c" | "cc" | "cpp" | "cxx" | "c++" | "h" | "hh" | "hpp" | "hxx" | "inl" | "cu"
            | "cuh" => Some(Self::C),
            "f" | "for" | "fpp" | "ftn" | "f77" | "f90" | "f95" | "f03" | "f08" | "f18" => {
                Some(Self::Fortran)
            }
            "py" => Some(Self::Python),
            _ => None,
        }
    }

    fn has_comment(self, rest: &str) -> Option<usize> {
        match self {
            Self::C if rest.starts_with("//") => Some(rest.len()),
            Self::C if rest.starts_with("/*") => {
                Some(rest[2..].find("*/").map_or(rest.len(), |at| at + 4))
            }
            Self::Fortran if rest.starts_with('!') => Some(rest.len()),
            Self::Python if rest.starts_with('#') => Some(rest.len()),
            _ => None,
        }
    }

    fn paint(self, style: &Style, word: &str) -> String {
        let (words, types) = match self {
            Self::C => (C_WORDS, C_TYPES),
            Self::Fortran => (FORTRAN_WORDS, FORTRAN_TYPES),
            Self::Python => (PYTHON_WORDS, &[][..]),
        };
        let known = match self {
            Self::Fortran => word.to_ascii_lowercase(),
            _ => word.to_owned(),
        };
        if words.binary_search(&known.as_str()).is_ok() {
            return style.word(word);
        }
        if types.binary_search(&known.as_str()).is_ok() {
            return style.type_name(word);
        }
        word.to_owned()
    }
}

/// Highlights a source line, or part of one. Returns it unchanged without colours, or for an unknown
/// language.
pub(super) fn source(style: &Style, file: &str, text: &str) -> String {
    let Some(language) = Language::of(file).filter(|_| style.colour) else {
        return text.to_owned();
    };
    let mut out = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (length, painted) = if let Some(length) = language.has_comment(rest) {
            (length, style.faint(&rest[..length]))
        } else if matches!(first, '"' | '\'') {
            let length = string(rest, first);
            (length, style.string(&rest[..length]))
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (length, language.paint(style, &rest[..length]))
        } else if first == '#' && language == Language::C && out.trim().is_empty() {
            let name = rest[1..].trim_start_matches([' ', '\t']);
            let length = rest.len() - name.len() + name.find(|c| !is_word(c)).unwrap_or(name.len());
            (length, style.type_name(&rest[..length]))
        } else {
            (first.len_utf8(), first.to_string())
        };
        out.push_str(&painted);
        rest = &rest[length..];
    }
    out
}

/// Length of the string literal at the beginning of a text, in bytes.
fn string(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Highlights a place within a text as gdb does: `exchange (step=3) at halo.c:44`.
pub(super) fn place(style: &Style, function: &str, file: &str, text: String) -> String {
    if !style.colour || function.is_empty() {
        return text;
    }
    let Some((before, behind)) = text.split_once(&format!("{function} (")) else {
        return text;
    };
    let behind = match behind.rsplit_once(&format!(" at {file}:")) {
        Some((args, line)) if !file.is_empty() => {
            format!("{args} at {}:{line}", style.string(file))
        }
        _ => behind.to_owned(),
    };
    format!("{before}{} ({behind}", style.odd(function))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLOUR: Style = Style {
        colour: true,
        ..Style::PLAIN
    };

    /// The line with a letter for each style: `w` word, `t` type, `s` string, `c` comment.
    fn marked(file: &str, text: &str) -> String {
        let mut marked = source(&COLOUR, file, text);
        for (code, mark) in [
            ("1", "w<"),
            ("36", "t<"),
            ("32", "s<"),
            ("2", "c<"),
            ("0", ">"),
        ] {
            marked = marked.replace(&format!("\x1b[{code}m"), mark);
        }
        marked
    }

    #[test]
    fn keywords_strings_and_comments_are_highlighted() {
        for (file, text, expect) in [
            (
                "halo.c",
                "  int x = sizeof(\"if \\\" //\"); // for",
                "  t<int> x = w<sizeof>(s<\"if \\\" //\">); c<// for>",
            ),
            ("a.h", "#include <stdio.h>", "t<#include> <stdio.h>"),
            (
                "a.CC",
                "a /* if */ return 'x';",
                "a c</* if */> w<return> s<'x'>;",
            ),
            ("a.c", "/* open", "c</* open>"),
            (
                "heat.F90",
                "  Real(8) :: x ! do",
                "  t<Real>(8) :: x c<! do>",
            ),
            ("a.py", "def f(): # x", "w<def> f(): c<# x>"),
            ("a.zig", "const x = \"y\"", "const x = \"y\""),
            ("a.c", "u\u{fc} = \"\u{fc}", "u\u{fc} = s<\"\u{fc}>"),
        ] {
            assert_eq!(marked(file, text), expect);
        }
        assert_eq!(source(&Style::PLAIN, "a.c", "int x;"), "int x;");
        for words in [C_WORDS, C_TYPES, FORTRAN_WORDS, FORTRAN_TYPES, PYTHON_WORDS] {
            assert!(words.is_sorted());
        }
    }

    #[test]
    fn location_highlights_function_and_file() {
        let text = || "#0  solve (n=3) at halo.c:44".to_owned();
        assert_eq!(
            place(&COLOUR, "solve", "halo.c", text()),
            "#0  \x1b[33msolve\x1b[0m (n=3) at \x1b[32mhalo.c\x1b[0m:44"
        );
        assert_eq!(place(&COLOUR, "other", "halo.c", text()), text());
        assert_eq!(place(&Style::PLAIN, "solve", "halo.c", text()), text());
    }
}
