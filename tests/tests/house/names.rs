//! The words of names are in `docs/vocabulary.tsv`: names of files, of types and of public functions. Names that say too
//! little are listed in `tests/names.md`, and become fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use crate::sources::{self, Source, root};
use crate::vocabulary::{self, VAGUE};

/// Words that are no nouns or verbs: articles, pronouns, prepositions, conjunctions, adverbs, auxiliaries and numerals.
const OTHER_WORDS: &str = "a about after again ahead all alone am among an and anew another any anybody apart are as at away \
    back be because been before beforehand behind being below beside between beyond both but by can down each either \
    else elsewhere every far few first for from further had has have here how if in inside instead into is it its \
    itself last late later least less many may more most much must near never new next no nobody none nor not nothing now \
    nowhere of off on once one only or other others our ours out outside over own per same several since so some \
    someone something still such than that the their then there these this those though through to together too toward \
    two under unless until up upwards was well were what when where whether which while who whole whom whose why will \
    with within without would yes yet you";

/// Forms of irregular verbs and nouns, each with its base form.
const IRREGULAR: &[(&str, &str)] = &[
    ("began", "begin"),
    ("begun", "begin"),
    ("bound", "bind"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("came", "come"),
    ("caught", "catch"),
    ("children", "child"),
    ("chosen", "choose"),
    ("did", "do"),
    ("died", "die"),
    ("done", "do"),
    ("drawn", "draw"),
    ("fed", "feed"),
    ("found", "find"),
    ("gave", "give"),
    ("given", "give"),
    ("gone", "go"),
    ("heard", "hear"),
    ("held", "hold"),
    ("hidden", "hide"),
    ("indices", "index"),
    ("kept", "keep"),
    ("knew", "know"),
    ("known", "know"),
    ("laid", "lay"),
    ("left", "leave"),
    ("lent", "lend"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("met", "meet"),
    ("paid", "pay"),
    ("ran", "run"),
    ("rewritten", "rewrite"),
    ("said", "say"),
    ("seen", "see"),
    ("sent", "send"),
    ("shown", "show"),
    ("spent", "spend"),
    ("spoken", "speak"),
    ("stood", "stand"),
    ("stuck", "stick"),
    ("taken", "take"),
    ("tied", "tie"),
    ("told", "tell"),
    ("took", "take"),
    ("withdrawn", "withdraw"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Endings of forms, each with what the base form has in their place.
const ENDINGS: &[(&str, &[&str])] = &[
    ("s", &[""]),
    ("es", &[""]),
    ("ies", &["y"]),
    ("ed", &["", "e"]),
    ("ied", &["y"]),
    ("ing", &["", "e"]),
    ("est", &["", "e"]),
    ("ly", &["", "e"]),
];

/// Functions whose names do not tell what they do.
const FUNCTIONS: &[&str] = &["look", "of", "take", "tell"];

/// The number of crates in which a type's name is too common.
const CRATES_MIN: usize = 3;

/// The file with the names that become fewer.
const LIST: &str = "tests/names.md";

/// The words of a name in any case: `HTTPHost2` and `http_host2` are `http host`.
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut found = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let after_lower = at > 0 && !chars[at - 1].is_ascii_uppercase();
        let before_lower = chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        if c.is_ascii_uppercase() && (after_lower || before_lower) || !c.is_ascii_alphabetic() {
            found.push(String::new());
        }
        if c.is_ascii_alphabetic() {
            let last = found.last_mut().expect("there is one");
            last.push(c.to_ascii_lowercase());
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

/// The word without its ending or its `un`, in each way in which it can have been formed.
fn simpler(word: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let irregular = IRREGULAR.iter().filter(|(form, _)| *form == word);
    found.extend(irregular.map(|(_, base)| (*base).to_owned()));
    found.extend(word.strip_prefix("un").map(str::to_owned));
    for (ending, bases) in ENDINGS {
        let Some(stem) = word.strip_suffix(ending).filter(|it| it.len() > 1) else {
            continue;
        };
        found.extend(bases.iter().map(|base| format!("{stem}{base}")));
        let last = &stem.as_bytes()[stem.len() - 2..];
        if last[0] == last[1] {
            found.push(stem[..stem.len() - 1].to_owned());
        }
    }
    found
}

/// True if the vocabulary has the word, or a base form of it.
fn is_known(word: &str, vocabulary: &BTreeSet<String>) -> bool {
    let mut forms = vec![word.to_owned()];
    for _ in 0..3 {
        if forms.iter().any(|form| vocabulary.contains(form)) {
            return true;
        }
        forms = forms.iter().flat_map(|form| simpler(form)).collect();
    }
    forms.iter().any(|form| vocabulary.contains(form))
}

/// The single words of the vocabulary, and the words that need no entry.
fn vocabulary() -> BTreeSet<String> {
    let rows = vocabulary::rows().into_iter();
    let rows = rows.map(|row| row.word.to_lowercase());
    let split = |row: String| row.split([' ', '-']).map(str::to_owned).collect::<Vec<_>>();
    let others = OTHER_WORDS.split_whitespace().map(str::to_owned);
    rows.flat_map(split).chain(others).collect()
}

/// The name of a file, without its folder unless it is that of a module.
fn file_name(source: &Source) -> &str {
    let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or_default()
}

/// The identifier at the beginning of a text.
fn identifier(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// A line of code without its visibility and without words such as `async`.
fn item(line: &str) -> &str {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("pub(") {
        rest = after.split_once(") ").map_or("", |(_, rest)| rest);
    }
    for word in ["pub ", "const ", "async ", "unsafe ", "extern \"C\" "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    rest
}

/// The names of the types that a source defines.
fn types(source: &Source) -> impl Iterator<Item = &str> {
    source.shipped().lines().filter_map(|line| {
        let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
        let rest = kinds.iter().find_map(|kind| item(line).strip_prefix(kind));
        rest.map(identifier)
    })
}

/// The names of the functions that a source defines; true for those that other modules can call.
fn functions(source: &Source) -> impl Iterator<Item = (bool, &str)> {
    source.shipped().lines().filter_map(|line| {
        let name = identifier(item(line).strip_prefix("fn ")?);
        Some((line.trim_start().starts_with("pub"), name))
    })
}

fn product(sources: &[Source]) -> impl Iterator<Item = &Source> {
    let members = ["tests", "benches"];
    sources
        .iter()
        .filter(move |source| !source.is_test && !members.contains(&&*source.member))
}

/// Names that say too little: the rule and the name, with a count.
type Poor = BTreeMap<(String, String), usize>;

fn poor(sources: &[Source]) -> Poor {
    let mut crates: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut found = Poor::new();
    for source in product(sources) {
        for name in types(source) {
            crates.entry(name).or_default().insert(&source.member);
            if words(name).iter().any(|word| VAGUE.contains(&&**word)) {
                let name = format!("{} {name}", source.member);
                *found.entry(("vague type".to_owned(), name)).or_default() += 1;
            }
        }
        for (_, name) in functions(source).filter(|(_, name)| FUNCTIONS.contains(name)) {
            let key = ("vague function".to_owned(), name.to_owned());
            *found.entry(key).or_default() += 1;
        }
    }
    let common = crates
        .into_iter()
        .filter(|(_, in_crates)| in_crates.len() >= CRATES_MIN);
    found.extend(common.map(|(name, in_crates)| {
        let key = ("type of several crates".to_owned(), name.to_owned());
        (key, in_crates.len())
    }));
    found
}

fn listed() -> Poor {
    let text = fs::read_to_string(root().join(LIST)).expect("the list");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| "));
    let rows = rows.skip(2).map(|row| {
        let cells: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
        let count = cells[2].parse().expect("a count");
        ((cells[0].to_owned(), cells[1].to_owned()), count)
    });
    rows.collect()
}

fn list(poor: &Poor) -> String {
    let mut text = "# Names that become fewer\n\n\
        Types whose name three or more crates have, with the number of crates; types with a vague word in their name; \
        functions\nwhose name does not tell what they do. `tests/tests/house/names.rs` fails where there are more; \
        `UPDATE_GOLDEN=1` lowers\na number, and raises none.\n\n| rule | name | count |\n| --- | --- | --- |\n"
        .to_owned();
    for ((rule, name), count) in poor {
        writeln!(text, "| {rule} | {name} | {count} |").expect("a string takes all");
    }
    text
}

#[test]
fn words_of_names_are_in_the_vocabulary() {
    let all = sources::all();
    let vocabulary = vocabulary();
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    let mut count = 0;
    for source in product(&all) {
        let public = functions(source).filter(|(is_public, _)| *is_public);
        let names = public.map(|(_, name)| name).chain(types(source));
        for name in names.chain([file_name(source)]) {
            count += 1;
            let words = words(name).into_iter();
            for word in words.filter(|word| !is_known(word, &vocabulary)) {
                unknown.insert(word, format!("{name} in {}", source.path));
            }
        }
    }
    assert!(count > 5000, "{count} names");
    assert!(
        unknown.is_empty(),
        "use a word of docs/vocabulary.tsv, or add a row: {unknown:#?}"
    );
}

#[test]
fn poor_names_do_not_increase() {
    let listed = listed();
    let found = poor(&sources::all());
    let more = found
        .iter()
        .filter(|(key, count)| listed.get(key).is_none_or(|it| it < count));
    let more: Vec<_> = more.collect();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let fewer = found.iter().filter_map(|(key, count)| {
            let before = listed.get(key)?;
            Some((key.clone(), *before.min(count)))
        });
        fs::write(root().join(LIST), list(&fewer.collect())).expect("there is room");
    }
    assert!(more.is_empty(), "more than {LIST} has: {more:#?}");
}

#[test]
fn words_are_reduced_to_their_base_form() {
    assert_eq!(words("HTTPHost2_ofEach"), ["http", "host", "of", "each"]);
    let vocabulary = BTreeSet::from(["stop", "store", "query", "take", "pass"].map(str::to_owned));
    for word in [
        "stop",
        "stops",
        "stopped",
        "stopping",
        "stored",
        "storing",
        "queries",
        "passes",
        "untaken",
        "unstopped",
    ] {
        assert!(is_known(word, &vocabulary), "{word}");
    }
    for word in ["stopper", "stupid", "tak", "un", "s"] {
        assert!(!is_known(word, &vocabulary), "{word}");
    }
}
