//! The `evaluateName` that an editor gets for a variable evaluates to its value, and each variable has its type where
//! gdb knows it.

use std::path::{Path, PathBuf};
use std::process::Command;

use sdm_tests::editor::Editor;
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

/// Deepest row that is looked at, and the number of rows below each value.
const DEPTH: u32 = 5;
const WIDTH: usize = 14;

/// An editor at the caller of `mark`.
struct Stopped<'a> {
    editor: Editor<'a>,
    frame: Value,
    /// Paths of all rows.
    paths: Vec<String>,
    /// Number of expressions that were evaluated.
    named: usize,
    wrong: Vec<String>,
}

/// The value of a row or an expression without the type and the place of it, and without the name of a symbol.
fn bare(text: &str) -> String {
    let text = text.split(" <").next().unwrap_or_default();
    let behind = |open: &str| text.find(open).map(|at| &text[at + open.len()..]);
    match behind(") 0x").filter(|_| text.starts_with('(')) {
        Some(address) => format!("0x{address}"),
        None if text.starts_with('"') => text.replace("\\000", ""),
        None => text.to_owned(),
    }
}

/// True for the text that stands for parts, which have rows of their own.
fn is_short(text: &str) -> bool {
    text.contains("...") || text.starts_with('[') || text.starts_with('{')
}

impl<'a> Stopped<'a> {
    fn at_mark(place: &'a Place, program: &Path, mark: &str) -> Self {
        let mut editor = Editor::new(place);
        let typed = json!({"adapterID": "sdm", "supportsVariableType": true});
        editor.ask("initialize", &typed);
        editor.ask(
            "launch",
            &json!({"program": program, "ranks": 1, "launcher": "local"}),
        );
        editor.event("initialized");
        let breakpoints = json!({"breakpoints": [{"name": mark}]});
        editor.ask("setFunctionBreakpoints", &breakpoints);
        editor.ask("configurationDone", &Value::Null);
        let stopped = editor.event("stopped");
        let frame = editor.frames(&stopped["threadId"])[1]["id"].clone();
        Self {
            editor,
            frame,
            paths: Vec::new(),
            named: 0,
            wrong: Vec::new(),
        }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let watch = json!({"expression": expression, "frameId": self.frame, "context": "watch"});
        self.editor.try_out("evaluate", &watch)
    }

    /// Evaluates the expression of each row below one.
    fn walk(&mut self, below: &Value, path: &str, depth: u32) {
        let reference = json!({"variablesReference": below["variablesReference"]});
        let rows = self.editor.try_out("variables", &reference);
        let rows = rows["body"]["variables"].as_array().cloned();
        for row in rows.unwrap_or_default().iter().take(WIDTH) {
            let path = format!("{path}/{}", row["name"].as_str().expect("a name"));
            let own = row["value"].as_str().expect("a value");
            let name = row["evaluateName"].as_str().unwrap_or_default();
            if !name.is_empty() {
                self.named += 1;
                let found = self.evaluate(name);
                let value = found["body"]["result"].as_str();
                let is_own = value.is_some_and(|it| is_short(own) || bare(it) == bare(own));
                // gdb knows no type of a variable with the name of its function.
                let is_typed = row["type"].is_string() || name == "shape";
                if !is_own || !is_typed {
                    self.wrong.push(format!("{path} = {row}: {found}"));
                }
            }
            self.paths.push(path.clone());
            if row["variablesReference"] != 0 && depth < DEPTH {
                self.walk(row, &path, depth + 1);
            }
        }
    }

    fn walk_all(&mut self, watches: &[&str]) {
        let scopes = json!({"frameId": self.frame});
        let scopes = self.editor.ask("scopes", &scopes);
        for at in 0..2 {
            self.walk(&scopes["scopes"][at], "", 0);
        }
        for watch in watches {
            let found = self.evaluate(watch);
            let is_typed = found["body"]["type"].is_string();
            assert!(found["success"] == true && is_typed, "{watch}: {found}");
            self.walk(&found["body"], watch, 2);
        }
    }

    /// Asserts that no expression was wrong, and that there were at least this many.
    fn finish(self, least: usize) {
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
        assert!(self.named >= least, "{} names", self.named);
        self.editor.disconnect();
    }

    fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|it| it == path)
    }
}

#[test]
fn names_of_fortran_variable_rows_evaluate_to_their_values() {
    let place = Place::new();
    let program = place.compile("parts", Compiler::Fortran);
    let mut stopped = Stopped::at_mark(&place, &program, "mark");
    stopped.walk_all(&[
        "own%t(1:2,3)",
        "own%t(:,3)",
        "own%t(0:3:2,:)",
        "own%view(0:1)",
        "own%back(2:3)",
        "own%back(:2)",
        "own%cells(0:1)",
        "own%many(-1:0)",
        "local(-2:1)",
        "local(3:-3:-2)",
        "local(::2)",
        "local(n-1:n+1)",
        "cube(:,0,:)",
        "cube(1,:,2:3)",
        "plane(-1,:)",
        "grid(1:3,2)",
        "own%names(-1:0)",
        "own%cells(1)%w(-1:0)",
        "own%one%w(4:5)",
    ]);
    // The object of a class has the rows of its own type, and no row is the compiler's.
    assert!(stopped.has("/class1/extra/[2]"), "{:?}", stopped.paths);
    assert!(stopped.has("/classes/[1]/extra/[0]"), "{:?}", stopped.paths);
    let own = stopped.paths.iter().find(|path| path.contains("/_"));
    assert_eq!(own, None);
    // gdb knows no expression for the elements of a variable with the name of its function.
    assert!(stopped.has("/shape/[2]"), "{:?}", stopped.paths);
    stopped.finish(300);
}

#[test]
fn names_of_c_variable_rows_evaluate_to_their_values() {
    let place = Place::new();
    let program = place.compile("parts", Compiler::C);
    let mut stopped = Stopped::at_mark(&place, &program, "mark");
    stopped.walk_all(&["*all", "&one", "all->grid[1]", "all->n", "twin"]);
    assert!(stopped.has("/all/n/next/list/a"), "{:?}", stopped.paths);
    stopped.finish(300);
}

#[test]
fn names_of_cpp_variable_rows_evaluate_to_their_values() {
    let place = Place::new();
    let program = place.compile("parts", Compiler::Cxx);
    let mut stopped = Stopped::at_mark(&place, &program, "mark");
    stopped.walk_all(&["*this", "base", "&base", "*pointer", "holder.base", "row"]);
    // What is behind a base class has the members of its own class.
    for derived in [
        "/this/integrator/get()/energies/[1]",
        "/this/other/get()/energies/[1]",
        "/base/energies/[1]",
        "/pointer/energies/[1]",
        "/holder/base/energies/[1]",
    ] {
        assert!(stopped.has(derived), "{derived}: {:?}", stopped.paths);
    }
    stopped.finish(300);
}

/// The program of `parts.rs`; `None` without a compiler for this user.
fn compiled_rust(place: &Place) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/parts.rs");
    let program = place.path().join("parts");
    let mut compiler = Command::new("rustc");
    compiler.args(["--edition=2021", "-g", "-C", "opt-level=0", source, "-o"]);
    let Ok(status) = compiler.arg(&program).status() else {
        println!("SKIP: no rustc for this user");
        return None;
    };
    assert!(status.success(), "rustc parts.rs");
    Some(program)
}

#[test]
fn names_of_rust_variable_rows_evaluate_to_their_values() {
    let place = Place::new();
    let Some(program) = compiled_rust(&place) else {
        return;
    };
    let mut stopped = Stopped::at_mark(&place, &program, "parts::mark");
    stopped.walk_all(&["local", "cell", "cells", "shapes", "grid", "r"]);
    for path in [
        "/rc/ptr/pointer/value/id",
        "/grid/[1]/[0]",
        "/result/Ok/__0/id",
    ] {
        assert!(stopped.has(path), "{path}: {:?}", stopped.paths);
    }
    stopped.finish(100);
}
