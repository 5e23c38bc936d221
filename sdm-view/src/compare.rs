//! Values compared element by element.

use sdm_idset::IdSet;

use sdm_debug::quoted::split_at_commas;

/// The most elements of one value that are looked at.
const ELEMENTS_MAX: usize = 1 << 16;
/// How deep structures may stand in structures.
const DEPTH_MAX: usize = 64;

/// How the values of tasks differ from what most of them have.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub expression: String,
    /// Those whose value the others are compared with: the biggest class.
    pub reference: IdSet,
    /// Their value, as it was printed.
    pub value: String,
    /// How many elements it has; 1 for a plain value.
    pub elements: usize,
    /// The other classes, biggest first.
    pub others: Vec<Difference>,
    /// True where some value was not printed whole: what is beyond was not compared.
    pub cut: bool,
}

/// How one class differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tasks of the class.
    pub tasks: IdSet,
    /// How many elements differ.
    pub count: usize,
    /// The path of the first one that does: `[3].x`; empty for a plain value.
    pub path: String,
    /// What most have there; absent where they have no such element.
    pub reference: Option<String>,
    /// What this class has there; absent where it has no such element.
    pub value: Option<String>,
}

/// Compares the values of classes, each as gdb prints it; absent where there is none.
#[must_use]
pub fn compare(expression: &str, mut classes: Vec<(IdSet, String)>) -> Option<Comparison> {
    classes.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    let (first, rest) = classes.split_first()?;
    let (reference, mut cut) = elements(&first.1);
    let others = rest
        .iter()
        .map(|(tasks, text)| {
            let (own, own_cut) = elements(text);
            cut |= own_cut;
            difference(tasks, &reference, &own)
        })
        .collect();
    Some(Comparison {
        expression: expression.to_owned(),
        reference: first.0.clone(),
        value: first.1.clone(),
        elements: reference.len(),
        others,
        cut,
    })
}

fn difference(tasks: &IdSet, reference: &[Element], own: &[Element]) -> Difference {
    let mut first: Option<(String, Option<String>, Option<String>)> = None;
    let mut count = 0;
    let mut note = |a: Option<&Element>, b: Option<&Element>| {
        count += 1;
        let path = a.or(b).map(|element| element.path.clone());
        let value = |element: Option<&Element>| element.map(|element| element.value.clone());
        first.get_or_insert((path.unwrap_or_default(), value(a), value(b)));
    };
    for index in 0..reference.len().max(own.len()) {
        match (reference.get(index), own.get(index)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) if a.path != b.path => {
                note(Some(a), None);
            }
            (a, b) => note(a, b),
        }
    }
    let (path, reference, value) = first.unwrap_or_default();
    Difference {
        tasks: tasks.clone(),
        count,
        path,
        reference,
        value,
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Element {
    path: String,
    value: String,
}

/// The elements of a value as gdb prints it, in order; true where it was not printed whole.
fn elements(text: &str) -> (Vec<Element>, bool) {
    let mut found = Vec::new();
    let mut cut = text.ends_with("...");
    flatten(text.trim(), String::new(), 0, &mut found, &mut cut);
    (found, cut)
}

fn flatten(text: &str, path: String, depth: usize, found: &mut Vec<Element>, cut: &mut bool) {
    if found.len() >= ELEMENTS_MAX {
        *cut = true;
        return;
    }
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    let Some(inner) = inner.filter(|_| depth < DEPTH_MAX) else {
        let value = text.to_owned();
        return found.push(Element { path, value });
    };
    let mut index = 0;
    for part in split_at_commas(inner) {
        let (part, more) = match part.strip_suffix("...") {
            Some(part) => (part.trim_end(), true),
            None => (part, false),
        };
        *cut |= more;
        if part.is_empty() {
            continue;
        }
        let (part, times) = repeats(part);
        if let Some((name, value)) = named(part) {
            flatten(value, format!("{path}.{name}"), depth + 1, found, cut);
            continue;
        }
        for _ in 0..times {
            if found.len() >= ELEMENTS_MAX {
                *cut = true;
                return;
            }
            flatten(part, format!("{path}[{index}]"), depth + 1, found, cut);
            index += 1;
        }
    }
}

/// `0 <repeats 12 times>` is 12 zeros.
fn repeats(part: &str) -> (&str, usize) {
    let Some(text) = part.strip_suffix(" times>") else {
        return (part, 1);
    };
    let Some((value, count)) = text.rsplit_once(" <repeats ") else {
        return (part, 1);
    };
    match count.parse() {
        Ok(count) => (value, count),
        Err(_) => (part, 1),
    }
}

/// `name = value`: a name of letters, or `<base>`.
fn named(part: &str) -> Option<(&str, &str)> {
    let (name, value) = part.split_once(" = ")?;
    let plain = |c: char| c.is_alphanumeric() || "_<>:,$ ".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reference: &str, own: &str, expect: (usize, &str, &str, &str)) {
        let classes = vec![
            ("0-2".parse().unwrap(), reference.to_owned()),
            ("3".parse().unwrap(), own.to_owned()),
        ];
        let found = compare("x", classes).unwrap();
        let Difference {
            count,
            path,
            reference,
            value,
            ..
        } = &found.others[0];
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let (reference, value) = (or_none(reference), or_none(value));
        assert_eq!(
            (*count, path.as_str(), reference.as_str(), value.as_str()),
            expect
        );
    }

    #[test]
    fn the_first_element_that_differs_is_named() {
        check("3", "4", (1, "", "3", "4"));
        check("{1, 2, 3}", "{1, 5, 6}", (2, "[1]", "2", "5"));
        check(
            "{0 <repeats 200 times>}",
            "{0 <repeats 150 times>, 1, 0 <repeats 49 times>}",
            (1, "[150]", "0", "1"),
        );
        check(
            "{a = 1, b = {x = 2, y = {1, 2}}}",
            "{a = 1, b = {x = 2, y = {1, 3}}}",
            (1, ".b.y[1]", "2", "3"),
        );
        check("{1, 2}", "{1, 2, 3}", (1, "[2]", "-", "3"));
        check(
            "{name = \"a, {b\", c = 44 ','}",
            "{name = \"a, {b\", c = 45 '-'}",
            (1, ".c", "44 ','", "45 '-'"),
        );
    }

    #[test]
    fn what_was_not_printed_is_not_called_equal() {
        let classes = vec![
            ("0-1".parse().unwrap(), "{1, 2...}".to_owned()),
            ("2".parse().unwrap(), "{1, 3...}".to_owned()),
        ];
        let found = compare("x", classes).unwrap();
        assert!(found.cut);
        assert_eq!(found.others[0].path, "[1]");
    }

    #[test]
    fn hostile_values_are_bounded() {
        let deep = "{".repeat(10_000) + &"}".repeat(10_000);
        let many = "{0 <repeats 99999999999 times>}";
        for text in [deep.as_str(), many, "{{{", "}}}", "{\"\\", "{'"] {
            let (found, _) = elements(text);
            assert!(found.len() <= ELEMENTS_MAX, "{}", found.len());
        }
    }
}
