//! Values of many tasks as one variable: a single value if all are equal, otherwise each distinct value with its
//! tasks.

use sdm_idset::{IdSet, set_text};
use sdm_text::counted;
use sdm_view::coalesce::{Distinct, hash_of};
use serde_json::{Value, json};

use crate::memory;
use crate::references::{Node, References};

/// Maximum number of distinct values in a variable's text.
const VALUES_SHOWN_MAX: usize = 4;
/// Maximum number of distinct values that are shown as rows below a variable.
pub(crate) const VALUES_MAX: usize = 256;
/// Maximum length of a task set in a value, in bytes.
const SET_BYTES_MAX: usize = 24;
/// Maximum length of one of several values in a text, in characters.
const PART_CHARS_MAX: usize = 40;
/// Number of characters shown in front of the first difference of long values.
const PART_CHARS_BEFORE: usize = 10;

/// One value, with its tasks and the node of its parts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OneValue {
    pub(crate) tasks: IdSet,
    pub(crate) text: String,
    /// The node that lists its parts; `None` if it has none.
    pub(crate) node: Option<Node>,
}

/// A variable, with its values in several tasks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// Index among variables of the same name, from 0.
    place: usize,
    pub(crate) type_name: String,
    pub(crate) evaluate_name: Option<String>,
    pub(crate) values: Vec<OneValue>,
    /// Number of parts; `None` if unknown.
    pub(crate) indexed: Option<u32>,
}

/// Distinct variables in order of first appearance.
///
/// Each of thousands of ranks may have a different value of each variable. Known names and values are therefore found
/// by hash.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Variables {
    found: Vec<Variable>,
    names: Distinct,
    texts: Distinct,
}

/// Number of characters that are left out of the beginnings of texts, so that a part of each shows where they differ.
fn differ_from<'a>(mut texts: impl Iterator<Item = &'a str>) -> usize {
    let first = texts.next().unwrap_or_default();
    let alike = |text: &str| {
        first
            .chars()
            .zip(text.chars())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let alike = texts.map(alike).min().unwrap_or(0);
    match alike + PART_CHARS_BEFORE < PART_CHARS_MAX {
        true => 0,
        false => alike - PART_CHARS_BEFORE,
    }
}

impl Variables {
    /// Adds a value of this name for some tasks. Several variables of one name (in nested blocks) are distinguished
    /// by `place`, their index among those of the name, from 0.
    pub(crate) fn add(&mut self, name: &str, place: usize, value: OneValue) -> &mut Variable {
        let at = self.place(name, place);
        let variable = &mut self.found[at];
        let hash = hash_of(&(at, &value.text));
        let equal = self
            .texts
            .find(hash, |known| {
                let known = variable.values.get(known);
                known.is_some_and(|known| known.text == value.text)
            })
            .and_then(|known| variable.values.get_mut(known));
        match equal {
            Some(known) => {
                known.tasks.union_with(&value.tasks);
                match (&mut known.node, value.node) {
                    (Some(Node::Expression { tasks, .. } | Node::Part { tasks, .. }), _) => {
                        tasks.union_with(&value.tasks);
                    }
                    (node, new) => *node = new,
                }
            }
            None => {
                self.texts.add(hash, variable.values.len());
                variable.values.push(value);
            }
        }
        variable
    }

    /// Index of the variable of this name, which is created if it is missing.
    fn place(&mut self, name: &str, place: usize) -> usize {
        let found = &mut self.found;
        let hash = hash_of(&(name, place));
        let known = |at: usize| found[at].name == name && found[at].place == place;
        if let Some(at) = self.names.find(hash, known) {
            return at;
        }
        let at = found.len();
        self.names.add(hash, at);
        found.push(Variable {
            name: name.to_owned(),
            place,
            type_name: String::new(),
            evaluate_name: None,
            values: Vec::new(),
            indexed: None,
        });
        at
    }

    /// The names of variables that an expression names.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        let named = self.found.iter().filter(|it| it.evaluate_name.is_some());
        named.map(|it| &*it.name)
    }

    /// Sets the type of the variable of this name. Variables that it hides have none.
    pub(crate) fn set_type(&mut self, name: &str, type_name: &str) {
        let at = self.place(name, 0);
        type_name.clone_into(&mut self.found[at].type_name);
    }

    /// True if nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All variables; the values of each are ordered by their lowest task.
    pub(crate) fn into_sorted(mut self) -> Vec<Variable> {
        for variable in &mut self.found {
            variable
                .values
                .sort_by_cached_key(|value| value.tasks.first());
        }
        self.found
    }
}

impl Variable {
    /// The text of the variable's value, and the reference by which the client requests its parts. The reference is 0
    /// for a value without parts.
    pub(crate) fn told(&self, references: &mut References) -> (String, i64) {
        match self.values.as_slice() {
            [] => (String::new(), 0),
            [one] => {
                let below = one.node.clone().map_or(0, |node| references.add(node));
                (one.text.clone(), below)
            }
            several => {
                let parts = several.iter().take(VALUES_MAX).map(|value| {
                    (
                        value.tasks.clone(),
                        value.text.clone(),
                        value.node.clone().map(Box::new),
                    )
                });
                let below = references.add(Node::Values(parts.collect()));
                (self.several(), below)
            }
        }
    }

    /// The values with their tasks, such as `1 [0], 2 [1-3]`.
    fn several(&self) -> String {
        let shown = &self.values[..self.values.len().min(VALUES_SHOWN_MAX)];
        let from = differ_from(shown.iter().map(|value| &*value.text));
        let before = if from > 0 { "..." } else { "" };
        let shown = shown.iter().map(|value| {
            let rest = || value.text.chars().skip(from);
            let text: String = rest().take(PART_CHARS_MAX).collect();
            let cut = if rest().nth(PART_CHARS_MAX).is_some() {
                "..."
            } else {
                ""
            };
            let tasks = set_text(&value.tasks, SET_BYTES_MAX);
            format!("{before}{text}{cut} [{tasks}]")
        });
        let mut text = shown.collect::<Vec<_>>().join(", ");
        let more = self.values.len().saturating_sub(VALUES_SHOWN_MAX);
        if more > 0 {
            text.push_str(&format!(", and {}", counted(more, "more value")));
        }
        text
    }

    /// The variable in the form of the protocol.
    pub(crate) fn shown(&self, references: &mut References) -> Value {
        let (value, reference) = self.told(references);
        let mut shown = json!({
            "name": self.name,
            "value": &value,
            "variablesReference": reference,
        });
        if !self.type_name.is_empty() {
            shown["type"] = json!(self.type_name);
        }
        if let Some(name) = &self.evaluate_name {
            shown["evaluateName"] = json!(name);
        }
        if let Some(indexed) = self.indexed.filter(|_| self.values.len() == 1) {
            shown["indexedVariables"] = json!(indexed);
        }
        if let Some(address) = memory::pointer(&value) {
            shown["memoryReference"] = json!(address);
        }
        shown
    }
}

/// gdb's words before the type of an object, if that is not the one of the pointer or the reference to it.
pub(crate) const REAL_TYPE: &str = "/* real type = ";

/// The name of a type in gdb's text, `type = int`. For a pointer to a base class it also has the object's own type:
/// `type = /* real type = Derived * */`, and a second line.
pub(crate) fn type_name(text: &str) -> &str {
    let name = text.trim().strip_prefix("type = ").unwrap_or(text);
    let real = name.strip_prefix(REAL_TYPE);
    let real = real.and_then(|it| it.split_once(" */")).map(|(it, _)| it);
    real.unwrap_or(name).trim()
}

/// True if a value has parts, judging by gdb's printed text: a structure, an array, or a pointer to data.
pub(crate) fn has_parts(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with('{') || text.ends_with('}') {
        return true;
    }
    // A value of Fortran. Flags in C are in parentheses too, but without commas.
    if text.starts_with('(') && text.ends_with(')') && text.contains(", ") {
        return true;
    }
    // An array or a slice of Rust.
    if text.starts_with(['[', '&']) && text.ends_with(']') && !text.ends_with("[]") {
        return true;
    }
    if is_rust_variant(text) {
        return true;
    }
    let pointer = match text.strip_prefix('(') {
        Some(typed) => typed.split_once(") ").map_or("", |(_, value)| value),
        None => text,
    };
    let is_function = text.contains("(*)(") || text.contains(" {");
    pointer.starts_with("0x") && !pointer.starts_with("0x0") && !is_function && !text.ends_with('"')
}

/// True for the variant of an enumeration of Rust that has data: `Option<i32>::Some(7)`.
fn is_rust_variant(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let names_variant = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end_matches(is_word);
        before.len() < at && before.ends_with("::")
    };
    text.starts_with(is_word) && text.ends_with(')') && text.match_indices('(').any(names_variant)
}

/// Display name of tasks that share a value.
pub(crate) fn set_name(tasks: &IdSet) -> String {
    format!("[{}]", set_text(tasks, SET_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tasks: &str, text: &str) -> OneValue {
        OneValue {
            tasks: tasks.parse().expect("a set"),
            text: text.to_owned(),
            node: None,
        }
    }

    #[test]
    fn equal_values_merge_and_others_name_their_tasks() {
        let mut variables = Variables::default();
        variables.add("x", 0, value("0-1", "5"));
        variables.add("y", 0, value("0-3", "6"));
        variables.add("x", 0, value("3", "5"));
        variables.add("x", 0, value("2", "7"));
        // A variable in a nested block, in some of the tasks.
        variables.add("x", 1, value("3", "7"));
        let mut references = References::default();
        let variables = variables.into_sorted();
        let (text, below) = variables[0].told(&mut references);
        assert_eq!((text.as_str(), below > 0), ("5 [0-1,3], 7 [2]", true));
        assert_eq!(variables[1].told(&mut references), ("6".to_owned(), 0));
        assert_eq!(variables[2].told(&mut references), ("7".to_owned(), 0));
    }

    #[test]
    fn values_are_in_the_order_of_their_tasks() {
        let mut variables = Variables::default();
        for (tasks, text) in [("5", "a"), ("7", "b"), ("2", "c"), ("1", "b")] {
            variables.add("x", 0, value(tasks, text));
        }
        let (text, _) = variables.into_sorted()[0].told(&mut References::default());
        assert_eq!(text, "b [1,7], c [2], a [5]");
    }

    #[test]
    fn type_name_is_the_dynamic_type_of_the_object() {
        assert_eq!(type_name("type = int [3]"), "int [3]");
        let real = "type = /* real type = b::Derived * */\nb::Base *";
        assert_eq!(type_name(real), "b::Derived *");
    }

    #[test]
    fn expandable_values_are_recognized_by_gdb_text() {
        for (text, expect) in [
            ("5", false),
            ("{a = 1}", true),
            ("std::vector of length 2, capacity 2 = {1, 2}", true),
            ("0x5555", true),
            ("(struct node *) 0x5555", true),
            ("0x0", false),
            ("0x5555 \"text\"", false),
            ("(int (*)(int)) 0x5555 <f>", false),
            ("{int (int)} 0x5555 <f>", true),
            ("(0.5, 1.5, <repeats 3 times>)", true),
            ("( id = 7, heat = 99.5 )", true),
            ("(READ | WRITE)", false),
            ("(1,2)", false),
            ("[1, 2, 3]", true),
            ("&mut [f64] [1, 2]", true),
            ("[]", false),
            ("core::option::Option<(i32, f64)>::Some((1, 2.5))", true),
            ("core::option::Option<(i32, f64)>::None", false),
            ("std::optional<int> [no contained value]", false),
            ("std::error_code (empty)", false),
        ] {
            assert_eq!(has_parts(text), expect, "{text}");
        }
    }
}
