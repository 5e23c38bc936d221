//! Cycles of modules within a crate: files that each need the others. The remaining ones are listed here, each with
//! its reason.
//!
//! Module A needs module B where a path in A's text leads to an item that B defines: `crate::b::Thing`,
//! `super::b::make`, `b::make` of a child, and names that a module between has imported from B. A re-export (`pub
//! use`) is not a need. Methods are not seen, because they are called without a path. Tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources;

type Module = Vec<String>;

/// Module cycles that remain: the crate, the modules, and the reason.
const CIRCLES: &[(&str, &str, &str)] = &[
    (
        "sdm",
        "settings settings::file settings::profile",
        "the file of settings, and the profiles in it, are made of the types of `settings`, which reads them",
    ),
    (
        "sdm",
        "blocked_output sink",
        "a write that nobody reads is given up by closing the sink that it is in",
    ),
    (
        "sdm-backend-gdbmi",
        "backend backend::seized backend::shims backend::start",
        "one type, whose methods are in four files",
    ),
    (
        "sdm-core",
        "topology topology::policy",
        "a plan by a policy has its sizes counted as any other plan",
    ),
    (
        "sdm-gdb",
        "answer background gdb",
        "sending a command gives what waits for its answer, and that breaks the command off where it is dropped: one thing, in three files for length",
    ),
    (
        "sdm-gdb",
        "ops::attach ops::end ops::start",
        "what could not be attached to is let go, and what is let go waits as an attachment does",
    ),
    (
        "sdm-backend-gdbmi",
        "task task::seized task::streams",
        "one type, whose methods are in three files",
    ),
    (
        "sdm-core",
        "member member::handshakes member::pending_dials member::sent_commands",
        "one type, whose methods are in a file for each concern, with the data of that concern",
    ),
    (
        "sdm-core",
        "node node::adoption node::audit node::events node::exchange node::exchange::state node::execution node::links node::open_commands node::plan node::root node::shutdown",
        "one type, whose methods are in a file for each concern, with the data of that concern",
    ),
    (
        "sdm-debug",
        "probe reply",
        "a probe is made of parts of other replies, and is a reply",
    ),
    (
        "sdm-fake",
        "parse scenario",
        "a scenario is read from its text, and the text gives the parts of a scenario",
    ),
    (
        "sdm-idset",
        "dense iter set",
        "a set, one of its layouts, and the walk over all of them",
    ),
    (
        "sdm-launch",
        "control launcher",
        "a launcher says how it can hold what it starts, and holding asks the launcher",
    ),
    (
        "sdm-foreign",
        "host host::answers host::app host::barrier host::control host::peer_requests host::publications host::query host::queues host::request host::server host::spawn host::tool_requests host::tools host::upcalls",
        "one type, whose methods are in a file for each concern; what the library asks for names who waits for the answer",
    ),
    (
        "sdm-session",
        "plan start",
        "one type, whose methods are in a file for each step of a start",
    ),
    (
        "sdm-shell",
        "commands::parse commands::table commands::words commands::words::data commands::words::inspection commands::words::session",
        "a command can hold a command: `display`, `define`",
    ),
    (
        "sdm-shell",
        "commands::set commands::set::parse",
        "an expression is read from its text, and the text gives the parts of an expression",
    ),
    (
        "sdm-shell",
        "shell::breakpoints shell::define shell::line shell::script shell::thread_apply",
        "a line can name a file of lines, a command of the user's own, or the commands of a breakpoint, which are lines",
    ),
    (
        "sdm-shell",
        "shell::model shell::model::job shell::model::sets",
        "one type, whose methods are in a file for each concern",
    ),
    (
        "sdm-sim",
        "million million::crowd",
        "the measurements of a crowd, and the crowd that is measured",
    ),
    (
        "sdm-view",
        "item overview",
        "the board is made of the rows that items have, and is shown by the trait that shows items",
    ),
    (
        "sdm-diagnose",
        "collective_groups epochs messages neighbors wait_for",
        "one type of all waits, whose methods are in the files of the kinds of waits that it holds",
    ),
    (
        "sdm-diagnose",
        "observations observations::decode observations::encode observations::fields",
        "one format: its reader and its writer name the version and the errors that its callers see",
    ),
    (
        "sdm-view",
        "json json::queues json::topics",
        "one form of output; sets are written alike in it",
    ),
    (
        "sdm-view",
        "json::data json::reply",
        "one match over all answers, in two files for length",
    ),
    (
        "sdm-view",
        "report report::record",
        "a report, and what is recorded to make it of",
    ),
    (
        "sdm-view",
        "report::html report::html::parts",
        "one page, in two files for length",
    ),
    (
        "sdm-gdb",
        "ops::breakpoints::change ops::breakpoints::hit",
        "a breakpoint that is changed is known by what has hit it, and the other way round",
    ),
    (
        "sdm-hosts",
        "job job::ranks job::remote_ranks job::slurm job::wrappers",
        "one type, whose parts are in a file for each way in which a job is found",
    ),
    (
        "sdm-shell",
        "shell::export shell::values",
        "what is exported is read as values are, and values name what is exported",
    ),
    (
        "sdm-xstate",
        "crate sys",
        "what the kernel calls, and what is done then",
    ),
    (
        "tests",
        "fixture ordinary parts place sdm",
        "a place of a test has programs, which are installed at a place and run as its user",
    ),
    (
        "tests",
        "leftovers processes run",
        "who looks for what a session has left knows how sessions are run",
    ),
];

/// The modules that each module needs.
type Needs = BTreeMap<Module, BTreeSet<Module>>;

/// A path of a `use` or an expression, word for word.
type Words = Vec<String>;

/// The paths in one module's text.
#[derive(Default)]
struct Paths {
    /// The path of each imported name.
    imports: BTreeMap<String, Words>,
    /// The paths that the module needs.
    needed: Vec<Words>,
}

/// A text without comments, the contents of strings, and test code.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'', '#', 'r']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let raw = rest
            .strip_prefix('r')
            .filter(|_| !code.ends_with(|c: char| c.is_alphanumeric() || c == '_'));
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        let behind = if rest.starts_with("//") {
            rest.find('\n')
        } else if raw.is_some_and(|raw| raw[hashes..].starts_with('"')) {
            let end = format!("\"{}", "#".repeat(hashes));
            let from = hashes + 2;
            rest[from..].find(&end).map(|at| from + at + end.len())
        } else if let Some(inner) = rest.strip_prefix('"') {
            let mut escaped = false;
            let ends = |c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            };
            inner.find(ends).map(|at| at + 2)
        } else if rest.starts_with("'\"'") {
            Some(3)
        } else if rest.starts_with("'\\\"'") {
            Some(4)
        } else if let Some(declared) = rest.strip_prefix("#[cfg(test)]\n") {
            // A declaration or an import that only tests have.
            declared
                .find(';')
                .map(|at| rest.len() - declared.len() + at + 1)
        } else {
            code.push_str(&rest[..1]);
            Some(1)
        };
        rest = &rest[behind.unwrap_or(rest.len())..];
    }
    code + rest
}

/// The paths in a tree of a `use`, each with the name that it is known by.
fn imported(before: &[String], tree: &str, found: &mut Vec<(String, Words)>) {
    let mut depth = 0;
    let parts = tree.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        let mut words = before.to_vec();
        if let Some((path, inner)) = part.split_once('{') {
            words.extend(split(path));
            imported(&words, inner.trim_end_matches('}'), found);
            continue;
        }
        let (path, alias) = match part.split_once(" as ") {
            Some((path, alias)) => (path, Some(alias)),
            None => (part, None),
        };
        words.extend(split(path));
        if words.last().is_some_and(|last| last == "self") {
            words.pop();
        }
        let name = alias.or(words.last().map(String::as_str));
        found.push((name.unwrap_or_default().trim().to_owned(), words));
    }
}

fn split(path: &str) -> impl Iterator<Item = String> + '_ {
    let words = path.split("::").map(str::trim);
    words.filter(|word| !word.is_empty()).map(str::to_owned)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
}

fn paths(text: &str) -> Paths {
    let mut paths = Paths::default();
    let code = code(text);
    let mut rest = code.as_str();
    while !rest.is_empty() {
        let line = rest.trim_start();
        let bare = match line.strip_prefix("pub") {
            Some(behind) if behind.starts_with('(') => {
                behind.split_once(") ").map_or("", |it| it.1)
            }
            Some(behind) => behind.trim_start(),
            None => line,
        };
        if let Some((tree, behind)) = bare.strip_prefix("use ").and_then(|it| it.split_once(';')) {
            let mut found = Vec::new();
            imported(&[], tree, &mut found);
            let is_passed_on = line.starts_with("pub");
            for (name, words) in found {
                if !is_passed_on {
                    paths.needed.push(words.clone());
                }
                paths.imports.insert(name, words);
            }
            rest = behind;
            continue;
        }
        let (line, behind) = rest.split_once('\n').unwrap_or((rest, ""));
        // `pub(in crate::driver)` is a visibility, not a dependency.
        let line = match line.split_once("pub(in ") {
            Some((_, behind)) => behind.split_once(')').map_or("", |it| it.1),
            None => line,
        };
        let words = line.split(|c| !is_word(c));
        let words = words.filter(|word| word.contains("::") && !word.starts_with(':'));
        paths.needed.extend(words.map(|word| split(word).collect()));
        rest = behind;
    }
    paths
}

/// The modules of a crate.
struct Crate {
    modules: BTreeMap<Module, Paths>,
}

impl Crate {
    /// The module that defines the item of a path, seen from `from`.
    fn find(&self, from: &Module, path: &[String], steps: u32) -> Option<Module> {
        let steps = steps.checked_sub(1)?;
        let (mut at, mut rest) = (from.clone(), path);
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Module::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let Some((_, behind)) =
                    rest.split_first().filter(|(word, _)| *word == "super")
                {
                    at.pop()?;
                    rest = behind;
                }
            }
            first => {
                let mut child = from.clone();
                child.push(first.to_owned());
                if !self.modules.contains_key(&child) {
                    let known = self.modules[from].imports.get(first)?;
                    let is_step = path.len() > 1 && known.len() > 1;
                    let whole = is_step.then(|| [known, &path[1..]].concat())?;
                    return self.find(from, &whole, steps);
                }
            }
        }
        for (index, word) in rest.iter().enumerate() {
            at.push(word.clone());
            if self.modules.contains_key(&at) {
                continue;
            }
            at.pop();
            let passed_on = self.modules.get(&at)?.imports.get(word);
            return match passed_on {
                Some(known) => {
                    let whole = [known, &rest[index + 1..]].concat();
                    self.find(&at, &whole, steps)
                }
                None => Some(at),
            };
        }
        self.modules.contains_key(&at).then_some(at)
    }

    fn needs(&self) -> Needs {
        let mut needs = Needs::new();
        for (module, paths) in &self.modules {
            let needed = paths
                .needed
                .iter()
                .filter_map(|path| self.find(module, path, 12));
            needs.insert(module.clone(), needed.filter(|it| it != module).collect());
        }
        needs
    }
}

/// All that a module needs, and those that they need.
fn reached(needs: &Needs, from: &Module) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let new = needs[module]
            .iter()
            .filter(|it| reached.insert((*it).clone()));
        open.extend(new);
    }
    reached
}

/// The module cycles of a crate, each as the names of its modules, in alphabetical order.
fn circles(needs: &Needs) -> BTreeSet<String> {
    let reached: BTreeMap<&Module, _> = needs.keys().map(|it| (it, reached(needs, it))).collect();
    let circle = |module: &Module| {
        let both =
            |other: &&Module| reached[module].contains(*other) && reached[*other].contains(module);
        let names = needs.keys().filter(both).map(|it| match it.is_empty() {
            true => "crate".to_owned(),
            false => it.join("::"),
        });
        names.collect::<Vec<_>>().join(" ")
    };
    let circles = needs.keys().map(circle);
    circles.filter(|circle| !circle.is_empty()).collect()
}

/// The module cycles of all crates, each with the crate's name.
fn all() -> BTreeSet<(String, String)> {
    let mut crates: BTreeMap<String, Crate> = BTreeMap::new();
    for source in sources::all().iter().filter(|source| !source.is_test) {
        if let Some(module) = source.module() {
            let modules = BTreeMap::new();
            let member = crates
                .entry(source.member.clone())
                .or_insert(Crate { modules });
            let known = member.modules.entry(module).or_default();
            let Paths { imports, needed } = paths(source.shipped());
            // A program's main file next to its library's counts as the same module here.
            known.imports.extend(imports);
            known.needed.extend(needed);
        }
    }
    let of_crate = |(name, it): (&String, &Crate)| {
        let found = circles(&it.needs()).into_iter();
        found
            .map(|circle| (name.clone(), circle))
            .collect::<Vec<_>>()
    };
    crates.iter().flat_map(of_crate).collect()
}

#[test]
fn every_module_cycle_is_a_listed_exception() {
    let found = all();
    let known = CIRCLES.iter();
    let known: BTreeSet<(String, String)> = known
        .map(|(name, circle, _)| ((*name).to_owned(), (*circle).to_owned()))
        .collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(
        new.is_empty(),
        "modules that need each other; break the circle, or list it with its reason: {new:#?}"
    );
    let broken: Vec<_> = known.difference(&found).collect();
    assert!(
        broken.is_empty(),
        "there are no such circles any more: {broken:#?}"
    );
}

#[test]
fn module_cycle_is_detected() {
    let module = |name: &str| -> Module { split(name).collect() };
    let texts = [
        ("", "mod a;\nmod b;\nmod c;\npub use a::A;\nuse b::B;\n"),
        (
            "a",
            "use crate::b::{self, B as Other};\npub(in crate::c) struct A;\n// crate::c::C\n",
        ),
        (
            "b",
            "fn f() { let it = super::A; \"crate::c::C\"; }\npub struct B;\n",
        ),
        (
            "c",
            "#[cfg(test)]\nuse crate::d::D;\nuse super::B;\nfn g() {}\n",
        ),
        ("d", "use crate::c::g;\n"),
    ];
    let modules = texts.map(|(name, text)| (module(name), paths(text)));
    let it = Crate {
        modules: modules.into(),
    };
    assert_eq!(circles(&it.needs()), BTreeSet::from(["a b".to_owned()]));
    assert_eq!(it.needs()[&module("c")], BTreeSet::from([module("b")]));
}
