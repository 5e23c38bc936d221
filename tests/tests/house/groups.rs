//! The test groups of `.config/nextest.toml` and the files that declare one (`sdm_tests::run::test_group`) name each
//! other.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

/// The beginning of a file's declaration.
const DECLARES: &str = "\nconst _: () = sdm_tests::run::test_group(";

/// A module of a test program: the program, and the module's name.
type Module = (String, String);

/// One alternative of a filter: the test program and its modules; `None` matches any.
#[derive(Debug, PartialEq)]
struct Term {
    program: Option<String>,
    modules: Option<Vec<String>>,
}

impl Term {
    /// Reads `binary(NAME)`, `package(sdm-tests)` and `test(/^(NAME|NAME)::/)`, joined by `&`.
    fn read(text: &str) -> Self {
        let text = text.trim();
        let inner = text.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
        let mut term = Self {
            program: None,
            modules: None,
        };
        for part in inner.unwrap_or(text).split('&').map(str::trim) {
            let within = |before: &str, after: &str| part.strip_prefix(before)?.strip_suffix(after);
            if let Some(names) = within("test(/^(", ")::/)").or(within("test(/^", "::/)")) {
                term.modules = Some(names.split('|').map(str::to_owned).collect());
            } else if let Some(name) = within("binary(", ")") {
                term.program = Some(name.to_owned());
            } else {
                assert_eq!(part, "package(sdm-tests)", "a filter beyond this test");
            }
        }
        term
    }

    /// All alternatives of a filter.
    fn all(filter: &str) -> Vec<Self> {
        // The bars within a pattern separate names.
        let mut parts = vec![String::new()];
        let mut in_pattern = false;
        for char in filter.chars() {
            in_pattern ^= char == '/';
            if char == '|' && !in_pattern {
                parts.push(String::new());
            } else {
                parts.last_mut().expect("it has one").push(char);
            }
        }
        parts.iter().map(|part| Self::read(part)).collect()
    }

    fn holds(&self, (program, module): &Module) -> bool {
        let is_named = |name: &String| is_like(name, module);
        self.program.as_ref().is_none_or(|it| it == program)
            && self
                .modules
                .as_ref()
                .is_none_or(|it| it.iter().any(is_named))
    }
}

/// True if a module's name matches a pattern of the filters: a name, or the beginning of one and `[a-z]+`.
fn is_like(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix("[a-z]+") {
        Some(begin) => name
            .strip_prefix(begin)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|it| it.is_ascii_lowercase())),
        None => pattern == name,
    }
}

/// All modules of the test programs, each with the group that its file or its program declares.
fn declared() -> BTreeMap<Module, Option<String>> {
    let mut modules: BTreeMap<Module, Option<String>> = BTreeMap::new();
    let mut programs = BTreeMap::new();
    for source in sources::all() {
        let Some(path) = source.path.strip_prefix("tests/tests/") else {
            continue;
        };
        let (program, rest) = path.split_once('/').expect("a folder for each program");
        let module = rest.split(['/', '.']).next().expect("its first part");
        let group = source.text.split_once(DECLARES).map(|(_, rest)| {
            let mut words = rest.split('"');
            words.nth(1).expect("the name of a group").to_owned()
        });
        if module == "main" {
            programs.insert(program.to_owned(), group);
        } else {
            let module = (program.to_owned(), module.to_owned());
            let known = modules.entry(module).or_default();
            *known = known.take().or(group);
        }
    }
    for ((program, _), group) in &mut modules {
        *group = group.take().or_else(|| programs[program].clone());
    }
    modules
}

/// The filters of the configuration, each with its group, in their order.
fn configured() -> Vec<(Vec<Term>, Option<String>)> {
    let path = sources::root().join(".config/nextest.toml");
    let text = std::fs::read_to_string(path).expect("the runner's configuration");
    let table: toml::Table = text.parse().expect("TOML");
    let profiles = table["profile"].as_table().expect("profiles");
    let overrides = profiles.values().filter_map(|it| it.get("overrides"));
    let overrides = overrides.flat_map(|it| it.as_array().expect("a list"));
    let read = |it: &toml::Value| {
        let group = it.get("test-group").and_then(toml::Value::as_str);
        let filter = it["filter"].as_str().expect("a filter");
        (Term::all(filter), group.map(str::to_owned))
    };
    overrides.map(read).collect()
}

#[test]
fn test_files_declare_their_nextest_group() {
    let configured = configured();
    let mut wrong = BTreeSet::new();
    for (module, declared) in declared() {
        let mut groups = configured.iter().filter(|(_, group)| group.is_some());
        let group = groups.find(|(terms, _)| terms.iter().any(|term| term.holds(&module)));
        let group = group.and_then(|(_, group)| group.clone());
        if group != declared {
            wrong.insert(format!(
                "{module:?}: {group:?} in .config/nextest.toml, {declared:?} in its file"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nextest_filters_name_existing_modules() {
    let modules = declared();
    for (terms, _) in configured() {
        for term in terms {
            let names = term.modules.clone().unwrap_or_else(|| vec![String::new()]);
            for name in names {
                let is_it = |module: &&Module| {
                    let named = name.is_empty() || is_like(&name, &module.1);
                    named && term.holds(module)
                };
                assert!(modules.keys().any(|it| is_it(&it)), "{name:?} of {term:?}");
            }
        }
    }
}

#[test]
fn filter_is_parsed_as_by_nextest() {
    let terms = Term::all("binary(a) | (binary(b) & test(/^(c|d_[a-z]+)::/))");
    let module = |program: &str, name: &str| (program.to_owned(), name.to_owned());
    let holds = |program, name| {
        let module = module(program, name);
        terms.iter().any(|term| term.holds(&module))
    };
    assert!(holds("a", "x") && holds("b", "c") && holds("b", "d_e"));
    assert!(!holds("b", "x") && !holds("b", "d") && !holds("b", "d_"));
    assert!(!holds("c", "c"));
}
