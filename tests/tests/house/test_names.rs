//! Scripts and the runner's configuration name tests that exist: a name that has changed would choose nothing.

use std::collections::BTreeSet;
use std::fs;

use crate::skips::glob;
use crate::sources::{self, Source};

/// A test: the folder of its crate, the file's path, and its name as the runner has it.
pub(super) struct Test {
    pub(super) member: String,
    pub(super) path: String,
    pub(super) name: String,
}

/// The tests of a source, whose names begin with `before`.
fn tests_of(source: &Source, before: impl Fn(usize) -> String) -> Vec<Test> {
    let mut found = Vec::new();
    for (at, mark) in source.text.match_indices("#[test]") {
        let behind = &source.text[at + mark.len()..];
        let name = behind.split_once("fn ").and_then(|it| it.1.split_once('('));
        if let Some((name, _)) = name {
            found.push(Test {
                member: source.member.clone(),
                path: source.path.clone(),
                name: format!("{}{name}", before(at)),
            });
        }
    }
    found
}

/// The tests within the crates themselves.
pub(super) fn unit_tests() -> Vec<Test> {
    let sources = sources::all().into_iter();
    let with_module = sources.filter_map(|source| Some((source.module()?, source)));
    let tests = with_module.flat_map(|(module, source)| {
        let inline = source.text.find("mod tests {");
        tests_of(&source, |at| {
            let inline = inline.filter(|inline| *inline < at).map(|_| "tests");
            let parts = module.iter().map(String::as_str).chain(inline);
            parts.map(|part| format!("{part}::")).collect()
        })
    });
    tests.collect()
}

/// The tests of all test programs.
pub(super) fn tests() -> Vec<Test> {
    let mut found = Vec::new();
    for source in sources::all() {
        let Some((_, inner)) = source.path.split_once("tests/") else {
            continue;
        };
        let inner = inner.strip_prefix("tests/").unwrap_or(inner);
        // `sessions/dap/picked.rs` is the module `dap::picked` of a program; `launch.rs` is a program by itself.
        let module = inner.split_once('/').map_or("", |(_, module)| module);
        let module = module.trim_end_matches(".rs").trim_end_matches("mod");
        let module = module.trim_end_matches('/').replace('/', "::");
        let modules = [&*module, "::"].concat();
        let before = if ["main", ""].contains(&&*module) {
            ""
        } else {
            &modules
        };
        found.extend(tests_of(&source, |_| before.to_owned()));
    }
    found
}

/// The alternatives of a pattern without its groups: `(a|b)c` is `ac` and `bc`.
fn alternatives(pattern: &str) -> Vec<String> {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for char in pattern.chars() {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if char == '|' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().expect("it has one").push(char);
        }
    }
    if let [only] = &*parts {
        let Some((head, rest)) = only.split_once('(') else {
            return parts;
        };
        let mut depth = 1;
        let end = rest.find(|char| {
            depth += i32::from(char == '(') - i32::from(char == ')');
            depth == 0
        });
        let end = end.unwrap_or_else(|| panic!("a group without an end: {pattern}"));
        let tails = alternatives(&rest[end + 1..]);
        let inner = alternatives(&rest[..end]);
        let pairs = inner
            .iter()
            .flat_map(|inner| tails.iter().map(move |tail| (inner, tail)));
        return pairs
            .map(|(inner, tail)| format!("{head}{inner}{tail}"))
            .collect();
    }
    parts.iter().flat_map(|part| alternatives(part)).collect()
}

/// The globs of a pattern of the runner's, one for each alternative; a variable of a script is any text.
fn globs(pattern: &str) -> Vec<String> {
    let plain = pattern.replace("\\$", "$").replace("$names", "*");
    let plain = plain.replace(".*", "*").replace("[a-z]+", "*");
    let one = |it: String| {
        let (head, rest) = match it.strip_prefix('^') {
            Some(rest) => ("", rest),
            None => ("*", &*it),
        };
        match rest.strip_suffix('$') {
            Some(rest) => format!("{head}{rest}"),
            None => format!("{head}{rest}*"),
        }
    };
    alternatives(&plain).into_iter().map(one).collect()
}

/// True if the part of a filter in front of a pattern allows a test: by the last program or package that it names.
fn is_in_scope(before: &str, test: &Test) -> bool {
    let last = |word: &str| {
        before
            .rfind(word)
            .map(|at| (at, &before[at + word.len()..]))
    };
    let named = |rest: &str| rest.split(')').next().unwrap_or_default().to_owned();
    match (last("binary("), last("package(")) {
        (Some((at, rest)), package) if package.is_none_or(|(other, _)| other < at) => {
            test.path.contains(&format!("tests/{}/", named(rest)))
        }
        (_, Some((_, rest))) => test.member == named(rest).replace("sdm-tests", "tests"),
        _ => true,
    }
}

/// The patterns of a text that match no test.
fn stale(text: &str, tests: &[Test]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        for (at, mark) in line.match_indices("test(/") {
            let pattern = line[at + mark.len()..].split("/)").next();
            let pattern = pattern.expect("a pattern ends");
            // A name that a script is given, or makes.
            if pattern.contains("${") || pattern.contains("$(") {
                continue;
            }
            for glob_of_one in globs(pattern) {
                let is_it = |test: &&Test| is_in_scope(&line[..at], test);
                if !tests
                    .iter()
                    .filter(is_it)
                    .any(|test| glob(&glob_of_one, &test.name))
                {
                    found.insert(format!("{glob_of_one} of {line}"));
                }
            }
        }
    }
    found
}

fn read(path: &str) -> String {
    fs::read_to_string(sources::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn filters_match_existing_tests() {
    let tests = tests();
    assert!(tests.len() > 500, "{} tests", tests.len());
    let mut wrong = stale(&read(".config/nextest.toml"), &tests);
    for entry in fs::read_dir(sources::root().join("scripts")).expect("scripts") {
        let path = entry.expect("an entry").path();
        wrong.extend(stale(&fs::read_to_string(path).expect("text"), &tests));
    }
    assert!(wrong.is_empty(), "no such test: {wrong:#?}");
}

/// Names behind `cargo test` and `cargo nextest run`, in scripts and in what tests print.
#[test]
fn command_lines_name_existing_tests() {
    let tests = tests();
    let mut texts: Vec<(String, String)> = sources::all()
        .into_iter()
        .filter(|source| source.member == "tests" && !source.path.ends_with("/test_names.rs"))
        .map(|source| (source.path, source.text))
        .collect();
    for entry in fs::read_dir(sources::root().join("scripts")).expect("scripts") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        texts.push((path.display().to_string(), text));
    }
    let mut named = 0;
    for (path, text) in texts {
        let runs = |line: &&str| line.contains("cargo test ") || line.contains("cargo nextest run");
        for line in text.lines().filter(runs) {
            let words = line.split([' ', '"', '`', '\'']);
            for word in words.filter(|word| word.contains("::") && !word.contains('/')) {
                named += 1;
                let is_it = |test: &Test| test.name.contains(word);
                assert!(tests.iter().any(is_it), "{path}: no test {word}");
            }
        }
    }
    assert!(named >= 2, "{named} names");
}

#[test]
fn stale_name_in_a_filter_is_found() {
    let one = Test {
        member: "tests".to_owned(),
        path: "tests/tests/sessions/keys.rs".to_owned(),
        name: "keys::a_key_ends".to_owned(),
    };
    let all = [one];
    let is_stale = |filter: &str| !stale(filter, &all).is_empty();
    assert!(!is_stale("binary(sessions) & test(/^keys::(a_key|a)/)"));
    assert!(!is_stale("package(sdm-tests) & test(/ends$|key/)"));
    assert!(is_stale("binary(sessions) & test(/^keys::(a_key|b)/)"));
    assert!(is_stale("binary(tree) & test(/^keys::/)"));
    assert!(is_stale("test(/^key$/)"));
}
