//! Maximum sizes of crates, files and types, and unique names of types in a crate.
//!
//! A larger one needs a reason: the documentation of the type, or the head of the file, has a sentence that begins
//! with [`REASON`], and the list here names it.

use std::collections::BTreeMap;

use crate::sources::{self, Source};

/// The largest share of all lines of code that a crate may have.
const CRATE_PART_MAX: usize = 10;
/// Maximum number of lines of a file.
const LINES_MAX: usize = 500;
/// Maximum number of fields of a type.
const FIELDS_MAX: usize = 20;
/// Maximum number of methods of a type, those of traits not counted.
const METHODS_MAX: usize = 40;
/// Beginning of the sentence with the reason for a larger size.
const REASON: &str = "Large because ";

/// Files of more than [`LINES_MAX`] lines.
const LARGE_FILES: &[&str] = &[];

/// Types with more fields or methods than the maximum, each with its crate.
const LARGE_TYPES: &[(&str, &str)] = &[
    ("sdm-core", "Member"),
    ("sdm-core", "Node"),
    ("sdm-foreign", "Host"),
    ("sdm-idset", "IdSet"),
    ("sdm-launch", "LaunchSpec"),
    ("sdm-screen", "Debugger"),
    ("sdm-screen", "Top"),
    ("sdm-session", "SessionConfig"),
    ("sdm-sim", "World"),
];

/// Names that several types of a crate have, and why.
const SHARED_NAMES: &[(&str, &str, &str)] = &[(
    "benches",
    "Arguments",
    "each program of the benches has its own",
)];

/// Size of a type, and its documentation.
#[derive(Default)]
struct Size {
    fields: usize,
    methods: usize,
    doc: String,
}

/// The line without `pub`, `pub(super)` and the like.
fn bare(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => line,
    }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name of a type that is defined in this line.
fn defined<'a>(line: &'a str, words: &[&str]) -> Option<&'a str> {
    let line = bare(line);
    let rest = words.iter().find_map(|word| line.strip_prefix(word));
    rest.map(identifier).filter(|name| !name.is_empty())
}

/// The lines between the braces of an item that begins at line `at`, and the text before them.
fn body<'a>(lines: &'a [&'a str], at: usize) -> Option<(String, &'a [&'a str])> {
    let depth = indent(lines[at]);
    let opens = (at..lines.len()).find(|i| lines[*i].ends_with(['{', ';', '}']))?;
    if !lines[opens].ends_with('{') {
        return None;
    }
    let closes = |line: &&str| indent(line) == depth && line.trim_start().starts_with('}');
    let end = lines[opens + 1..].iter().position(closes)?;
    let head = lines[at..=opens].iter().map(|line| line.trim());
    let head = head.collect::<Vec<_>>().join(" ");
    Some((head, &lines[opens + 1..opens + 1 + end]))
}

/// Lines of the body that are indented one step further than the item.
fn inside<'a>(item: &str, body: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let depth = indent(item) + 4;
    let lines = body.iter().filter(move |line| indent(line) == depth);
    lines.map(|line| bare(line))
}

fn is_field(line: &str) -> bool {
    let name = identifier(line.trim_start_matches("r#"));
    !name.is_empty() && line[line.find(name).unwrap_or(0) + name.len()..].starts_with(": ")
}

fn is_method(line: &str) -> bool {
    let words = ["const ", "async ", "unsafe "];
    let rest = words
        .iter()
        .fold(line, |line, word| line.strip_prefix(word).unwrap_or(line));
    rest.starts_with("fn ")
}

/// The type of an `impl` that is not of a trait.
fn implemented(head: &str) -> Option<&str> {
    let mut rest = head.strip_prefix("impl")?;
    if rest.split(" where ").next()?.contains(" for ") {
        return None;
    }
    if rest.starts_with('<') {
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            depth == 0
        })?;
        rest = &rest[end + 1..];
    }
    let path = rest.trim_start().split(['<', ' ']).next()?;
    path.rsplit("::").next()
}

fn doc(lines: &[&str], at: usize) -> String {
    let above = lines[..at].iter().rev().map(|line| line.trim());
    let above = above.take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']));
    let doc = above.filter_map(|line| line.strip_prefix("///"));
    let mut doc: Vec<&str> = doc.collect();
    doc.reverse();
    doc.concat()
}

/// The types of these files, by crate and name.
fn sizes(sources: &[Source]) -> BTreeMap<(&str, &str), Size> {
    let mut sizes: BTreeMap<(&str, &str), Size> = BTreeMap::new();
    for source in sources {
        let lines: Vec<&str> = source.text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            if let Some(name) = defined(line, &["struct "]) {
                let size = sizes.entry((&source.member, name)).or_default();
                size.doc += &doc(&lines, at);
                if let Some((_, body)) = body(&lines, at) {
                    let fields = inside(line, body).filter(|line| is_field(line));
                    size.fields = size.fields.max(fields.count());
                }
            } else if line.trim_start().starts_with("impl")
                && let Some((head, body)) = body(&lines, at)
                && implemented(&head).is_some()
            {
                // The name has to live as long as the sources.
                let name = lines[at..]
                    .iter()
                    .find_map(|line| line.find(implemented(&head)?).map(|from| &line[from..]));
                let name = identifier(name.unwrap_or_default());
                let methods = inside(line, body).filter(|line| is_method(line)).count();
                sizes.entry((&source.member, name)).or_default().methods += methods;
            }
        }
    }
    sizes
}

fn large(sizes: &BTreeMap<(&str, &str), Size>) -> Vec<(String, String)> {
    let is_large = |size: &Size| size.fields > FIELDS_MAX || size.methods > METHODS_MAX;
    let large = sizes.iter().filter(|(_, size)| is_large(size));
    let name = |(member, name): &(&str, &str)| ((*member).to_owned(), (*name).to_owned());
    large.map(|(key, _)| name(key)).collect()
}

#[test]
fn large_files_and_types_give_a_reason() {
    let sources = sources::all();
    let is_long = |source: &&Source| source.text.lines().count() > LINES_MAX;
    let long: Vec<&Source> = sources.iter().filter(is_long).collect();
    let paths: Vec<&str> = long.iter().map(|source| &*source.path).collect();
    assert_eq!(
        paths, LARGE_FILES,
        "files of more than {LINES_MAX} lines, beside those that are known: split them by what they hold"
    );
    for source in long {
        let mut head = source.text.lines().take_while(|it| it.starts_with("//!"));
        assert!(head.any(|line| line.contains(REASON)), "{}", source.path);
    }
    let sizes = sizes(&sources);
    let known = LARGE_TYPES.iter();
    let known: Vec<_> = known
        .map(|(member, name)| ((*member).to_owned(), (*name).to_owned()))
        .collect();
    assert_eq!(
        large(&sizes),
        known,
        "types of more than {FIELDS_MAX} fields or {METHODS_MAX} methods, beside those that are known: part them"
    );
    for (member, name) in LARGE_TYPES {
        let doc = &sizes[&(*member, *name)].doc;
        assert!(doc.contains(REASON), "{member}: {name} does not say why");
    }
}

/// Lines of code, tests, comments and empty lines not counted, of each crate that is shipped.
fn lines_of_code(sources: &[Source]) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    let is_shipped =
        |it: &&Source| !it.is_test && it.module().is_some() && it.member.starts_with("sdm");
    for source in sources.iter().filter(is_shipped) {
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
        let code = source.shipped().lines().map(str::trim).filter(is_code);
        *lines.entry(&*source.member).or_default() += code.count();
    }
    lines
}

#[test]
fn no_crate_exceeds_a_tenth_of_the_code() {
    let sources = sources::all();
    let lines = lines_of_code(&sources);
    let all: usize = lines.values().sum();
    let large = lines
        .iter()
        .filter(|(_, lines)| **lines * 100 > all * CRATE_PART_MAX);
    let large: Vec<_> = large.collect();
    assert!(
        large.is_empty() && lines.len() > 20,
        "of {all} lines: {large:?}"
    );
}

#[test]
fn type_names_are_unique_in_a_crate() {
    let sources = sources::all();
    let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        for line in source.shipped().lines() {
            if let Some(name) = defined(line, &["struct ", "enum ", "trait "]) {
                let at = places.entry((&source.member, name)).or_default();
                at.push(&source.path);
            }
        }
    }
    places.retain(|_, at| at.len() > 1);
    for (member, name, _) in SHARED_NAMES {
        let found = places.remove(&(*member, *name));
        assert!(found.is_some(), "{member} has one {name} only");
    }
    assert!(places.is_empty(), "types of the same name: {places:#?}");
}

#[test]
fn type_over_the_field_or_method_limit_is_detected() {
    let source = |text: String| Source {
        member: "it".to_owned(),
        path: "it/src/lib.rs".to_owned(),
        text,
        is_test: false,
    };
    let fields = |count| {
        let fields: String = (0..count)
            .map(|i| format!("    pub(super) f{i}: u8,\n"))
            .collect();
        format!(
            "/// Why.\n#[derive(Debug)]\npub struct It<T>\nwhere\n    T: Copy,\n{{\n{fields}}}\n"
        )
    };
    let methods = |count| {
        let one =
            |i| format!("    pub(crate) async fn f{i}(&self) {{\n        fn no() {{}}\n    }}\n");
        let methods: String = (0..count).map(one).collect();
        format!(
            "impl<T: Into<u8>> It<T> {{\n{methods}}}\nimpl Drop for It<u8> {{\n    fn drop() {{}}\n}}\n"
        )
    };
    let found = |text: String| large(&sizes(&[source(text)]));
    let it = vec![("it".to_owned(), "It".to_owned())];
    assert_eq!(found(fields(FIELDS_MAX)), []);
    assert_eq!(found(fields(FIELDS_MAX + 1)), it);
    assert_eq!(found(methods(METHODS_MAX)), []);
    assert_eq!(found(methods(20) + &methods(21)), it);
    let text = fields(1);
    let all = [source(text)];
    assert_eq!(sizes(&all)[&("it", "It")].doc, " Why.");
}
