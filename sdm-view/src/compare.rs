//! Comparison of the values of tasks by their elements: the first that differs, and the number of those that differ.

use std::collections::HashSet;

use sdm_idset::IdSet;

use sdm_debug::quotes::bare;

use elements::{Element, elements, of_variant};

pub use numeric::{NumericPart, numeric_parts};
pub use path::{Step, grouped, is_fortran, steps};

mod behind;
mod elements;
mod numeric;
mod order;
mod parts;
mod path;
mod rust;
mod text;

/// Maximum number of parts that are shown of an element that is a plain value in another task.
const PARTS_SHOWN_MAX: usize = 8;
/// The differences between the values of tasks and the most frequent value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The compared expression.
    pub expression: String,
    /// The reference: the largest class of tasks with equal values, and classes with the same elements in another
    /// order.
    pub reference: IdSet,
    /// The value of the reference, as gdb printed it.
    pub value: String,
    /// Number of elements of the value; 1 for a plain value, the number of characters for a long text.
    pub elements: usize,
    /// The other classes, biggest first.
    pub others: Vec<Difference>,
    /// True if gdb did not print some value in full, or if a value has too many elements. The remainder was not
    /// compared.
    pub cut: bool,
}

/// The difference of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tasks of the class.
    pub tasks: IdSet,
    /// Number of elements that differ, or of characters of a long text.
    pub count: usize,
    /// Number of elements that were compared: those of either value.
    pub of: usize,
    /// The path of the first element that differs: `[3].x`. Empty for a plain value. [`steps`] reads that of a
    /// Fortran value.
    pub path: String,
    /// The reference's value of the first element that differs. None if the value has no such element.
    pub reference: Option<String>,
    /// This class's value of the first element that differs. None if the value has no such element.
    pub value: Option<String>,
}

/// Compares the values of classes, each as gdb prints it. None without classes.
#[must_use]
pub fn compare(expression: &str, mut classes: Vec<(IdSet, String)>) -> Option<Comparison> {
    classes.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    let (first, rest) = classes.split_first()?;
    let (reference, mut cut) = elements(&first.1);
    let mut count = reference.len();
    let mut same = first.0.clone();
    let others = rest
        .iter()
        .filter_map(|(tasks, text)| {
            let (own, own_cut) = elements(text);
            cut |= own_cut;
            let (own, is_moved) = order::as_in(&reference, own);
            let mut found = difference(tasks, &reference, &own);
            if found.count == 0 && is_moved && !cut {
                same.union_with(tasks);
                return None;
            }
            if found.count == 0 {
                let [reference, value] = behind::ends(&first.1, text).map(Some);
                return Some(Difference {
                    count: 1,
                    of: 1,
                    reference,
                    value,
                    ..found
                });
            }
            let is_plain = found.path.is_empty();
            if is_plain {
                let whole = |text: &str| Some(bare(text.trim()).to_owned());
                (found.reference, found.value) = (whole(&first.1), whole(text));
            }
            let both = found.reference.as_deref().zip(found.value.as_deref());
            if let Some(in_text) = both.and_then(|(a, b)| text::difference(a, b)) {
                if is_plain {
                    (found.count, found.of) = (in_text.count, in_text.length);
                    count = in_text.length;
                }
                found.path += &in_text.path;
                (found.reference, found.value) = (in_text.reference, in_text.value);
            }
            Some(found)
        })
        .collect();
    Some(Comparison {
        expression: expression.to_owned(),
        reference: same,
        value: first.1.clone(),
        elements: count,
        others,
        cut,
    })
}

/// Finds the elements that differ: those with the same path in both, and those in only one. An element that
/// is plain in one and structured in the other, as a `std::optional` can be, is one difference.
fn difference(tasks: &IdSet, reference: &[Element], own: &[Element]) -> Difference {
    let mut first: Option<(String, Option<String>, Option<String>)> = None;
    let (mut count, mut of) = (0, 0);
    let known: HashSet<&str> = reference.iter().map(|it| it.path.as_str()).collect();
    let (mut left, mut right) = (reference, own);
    loop {
        let (a, b) = match (left, right) {
            ([a, ..], [b, ..]) if a.path == b.path => (1, 1),
            ([a, ..], [b, ..]) if is_below(&b.path, &a.path) => (1, below(&a.path, right)),
            ([a, ..], [b, ..]) if is_below(&a.path, &b.path) => (below(&b.path, left), 1),
            (_, [b, ..]) if left.is_empty() || !known.contains(b.path.as_str()) => (0, 1),
            ([_, ..], _) => (1, 0),
            ([], _) => break,
        };
        of += 1;
        let (own_a, own_b) = (&left[..a], &right[..b]);
        (left, right) = (&left[a..], &right[b..]);
        if own_a == own_b {
            continue;
        }
        if let Some(within) = within_variant(tasks, own_a, own_b) {
            count += within.count;
            of += within.of - 1;
            first.get_or_insert((within.path, within.reference, within.value));
            continue;
        }
        let paths = own_a.first().into_iter().chain(own_b.first());
        let path = paths.map(|it| it.path.as_str()).min_by_key(|it| it.len());
        let path = path.unwrap_or_default();
        count += 1;
        first.get_or_insert_with(|| (path.to_owned(), shown(path, own_a), shown(path, own_b)));
    }
    let (path, reference, value) = first.unwrap_or_default();
    Difference {
        tasks: tasks.clone(),
        count,
        of,
        path,
        reference,
        value,
    }
}

/// The differences within two values of the same variant of an enum; `None` for other elements.
fn within_variant(tasks: &IdSet, a: &[Element], b: &[Element]) -> Option<Difference> {
    let [[a], [b]] = [a, b] else { return None };
    let [a, b] = of_variant(a, b).filter(|_| a.path == b.path)?;
    Some(difference(tasks, &a, &b)).filter(|found| found.count > 0)
}

/// True if `path` is the path of a part of the element at `other`.
fn is_below(path: &str, other: &str) -> bool {
    let rest = path.strip_prefix(other);
    rest.is_some_and(|rest| rest.starts_with(['.', '%', '[', '(']) || rest.starts_with("->"))
}

/// Number of leading elements that are parts of the element at a path.
fn below(path: &str, elements: &[Element]) -> usize {
    let parts = elements.iter();
    parts.take_while(|it| is_below(&it.path, path)).count()
}

/// The text of the value at a path: the element's value, or its first parts in braces. None if no element has the path.
fn shown(path: &str, elements: &[Element]) -> Option<String> {
    let part = |element: &Element| {
        let name = element.path[path.len()..].trim_start_matches(['.', '%', '-', '>']);
        format!("{name} = {}", element.value)
    };
    match elements {
        [] => None,
        [one] if one.path == path => Some(one.value.clone()),
        parts => {
            let shown: Vec<_> = parts.iter().take(PARTS_SHOWN_MAX).map(part).collect();
            Some(format!("{{{}}}", shown.join(", ")))
        }
    }
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
    fn order_of_an_unordered_container_is_no_difference() {
        let one = "std::unordered_map with 2 elements = {[1] = 5, [2] = 6}".to_owned();
        let two = "std::unordered_map with 2 elements = {[2] = 6, [1] = 5}".to_owned();
        let classes = vec![("0".parse().unwrap(), one), ("1".parse().unwrap(), two)];
        let found = compare("m", classes).unwrap();
        assert_eq!(found.reference, "0-1".parse().unwrap());
        assert!(found.others.is_empty(), "{found:?}");
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn first_differing_element_is_named() {
        check("3", "4", (1, "", "3", "4"));
        check("{1, 2, 3}", "{1, 5, 6}", (2, "[1]", "2", "5"));
        let [four, five] = [4, 5].map(|capacity| {
            let numbers = "1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000, 11000";
            format!("std::vector of length 11, capacity {capacity} = {{{numbers}}}")
        });
        check(&four, &five, (1, "", &four, &five));
        check(
            "{{k = 1, {i = 3, {lo = 1, hi = 0}}, z = 1}}",
            "{{k = 1, {i = 3, {lo = 2, hi = 0}}, z = 2}}",
            (2, "[0].lo", "1", "2"),
        );
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
            "[[1, 2], [3, 4]]",
            "[[1, 2], [3, 5]]",
            (1, "[1][1]", "4", "5"),
        );
        let map = |entries| format!("std::unordered_map with 2 elements = {{{entries}}}");
        let (there, here) = (map("[1] = 5, [2] = 6"), map("[2] = 7, [1] = 5"));
        check(&there, &here, (1, "[2]", "6", "7"));
        let other = map("[3] = 6, [1] = 5");
        check(&there, &other, (2, "[3]", "-", "6"));
        let rows = |last| {
            format!(
                "std::vector of length 2, capacity 2 = {{std::vector of length 3, capacity 3 = {{1, 2, 3}}, std::vector of length 2, capacity 2 = {{4, {last}}}}}"
            )
        };
        check(&rows(5), &rows(50), (1, "[1][1]", "5", "50"));
        let map = |value| {
            format!(
                "std::map with 2 elements = {{[\"a, b\"] = 1, [\"c\"] = std::vector of length 1, capacity 1 = {{{value}}}}}"
            )
        };
        check(&map(3), &map(4), (1, "[\"c\"][0]", "3", "4"));
        check(
            "{a = std::vector of length 1, capacity 1 = {1}, p = std::unique_ptr<Cell> = {get() = 0x1}}",
            "{a = std::vector of length 1, capacity 1 = {2}, p = std::unique_ptr<Cell> = {get() = 0x1}}",
            (1, ".a[0]", "1", "2"),
        );
        check(
            "std::variant<int, double> [index 1] = {2.5}",
            "std::variant<int, double> [index 0] = {2}",
            (
                1,
                "",
                "std::variant<int, double> [index 1] = {2.5}",
                "std::variant<int, double> [index 0] = {2}",
            ),
        );
        check(
            "{std::tuple containing = {[1] = 1, [2] = 2}, 7}",
            "{std::tuple containing = {[1] = 1, [2] = 3}, 7}",
            (1, "[0][2]", "2", "3"),
        );
        check("C", "(A | C)", (1, "", "C", "(A | C)"));
        check("{f = C}", "{f = (A | C)}", (1, ".f", "C", "(A | C)"));
        let optional = "std::optional<int> = {[contained value] = 1}";
        let without = "std::optional<int> [no contained value]";
        check(without, optional, (1, "", without, optional));
        check(
            &format!("{{{without}, 2, 3}}"),
            &format!("{{{optional}, 2, 4}}"),
            (2, "[0]", without, "1"),
        );
        check(
            "{a = 1, b = {x = 2}, c = 3}",
            "{a = 1, c = 3}",
            (1, ".b.x", "2", "-"),
        );
        check(
            "{[\"a\"] = 1, [\"c\"] = 3}",
            "{[\"a\"] = 1, [\"b\"] = 2, [\"c\"] = 3}",
            (1, "[\"b\"]", "-", "2"),
        );
        check(
            "((1, 2) (3, 4))",
            "((1, 2) (3, 5))",
            (1, "(1)(1)", "4", "5"),
        );
        check(
            "(0, 1, <repeats 3 times>, 2)",
            "(0, 1, <repeats 4 times>)",
            (1, "(4)", "2", "1"),
        );
        check(
            "((5, 1) (1, 1) <repeats 3 times> (2, 2))",
            "((5, 1) (1, 1) <repeats 2 times> (2, 1) (2, 2))",
            (1, "(3)(0)", "1", "2"),
        );
        check(
            "((1,-2), (3,4))",
            "((1,-2), (3,5))",
            (1, "(1)", "(3,4)", "(3,5)"),
        );
        check(
            "( id = 3, w = (1, 2) )",
            "( id = 3, w = (1, 3) )",
            (1, "%w(1)", "2", "3"),
        );
        check(
            "(( id = 3, w = (1, 2) ), ( id = 9, w = (3, 4) ))",
            "(( id = 3, w = (1, 2) ), ( id = 9, w = (3, 5) ))",
            (1, "(1)%w(1)", "4", "5"),
        );
        check(
            "(Cell &) @0x7: {id = 1}",
            "(Cell &) @0x8: {id = 2}",
            (1, ".id", "1", "2"),
        );
        check(
            "(Cell &) @0x7: {id = 1}",
            "(Cell &) @0x8: {id = 1}",
            (1, "", "(Cell &) @0x7: {id = 1}", "(Cell &) @0x8: {id = 1}"),
        );
        check(
            "{1, 2}... (9 bytes, 00)",
            "{1, 2}... (9 bytes, 01)",
            (1, "", "{1, 2}... (9 bytes, 00)", "{1, 2}... (9 bytes, 01)"),
        );
        check(
            "{name = \"a, {b\", c = 44 ','}",
            "{name = \"a, {b\", c = 45 '-'}",
            (1, ".c", "44 ','", "45 '-'"),
        );
    }

    #[test]
    fn rust_values_are_compared_by_element_and_field() {
        check("&[f64] [1, 2, 3]", "&[f64] [1, 2, 4]", (1, "[2]", "3", "4"));
        let node = |tag: &str, x| {
            format!("m::P {{id: 1, tags: [\"a\", \"{tag}\"], pair: (2, {x}), kind: m::Kind::A}}")
        };
        check(
            &node("b", 1),
            &node("c", 2),
            (2, ".tags[1]", "\"b\"", "\"c\""),
        );
        check(&node("b", 1), &node("b", 2), (1, ".pair.1", "1", "2"));
        check(
            "m::Wide<i32> (1, 2)",
            "m::Wide<i32> (1, 3)",
            (1, ".1", "2", "3"),
        );
        let some = |value| format!("core::option::Option<i32>::Some({value})");
        check(&some(3), &some(4), (1, ".0", "3", "4"));
        let none = "core::option::Option<i32>::None";
        check(none, &some(4), (1, "", none, &some(4)));
        check(
            "[m::E::Circle(1), m::E::Rect{w: 1, h: m::P {id: 2}}, m::E::Empty]",
            "[m::E::Named(1), m::E::Rect{w: 1, h: m::P {id: 3}}, m::E::Empty]",
            (2, "[0]", "m::E::Circle(1)", "m::E::Named(1)"),
        );
        check("(1, [2, 3])", "(1, [2, 4])", (1, ".1[1]", "3", "4"));
        check(
            "m::P {f: {[\"k\"] = 1}}",
            "m::P {f: {[\"k\"] = 2}}",
            (1, ".f[\"k\"]", "1", "2"),
        );
    }

    /// Long texts are shown by their beginnings, which are equal here. So the first character that differs is named.
    #[test]
    fn difference_within_a_long_text_is_named() {
        let text = |last: char| format!("\"{}{last}\"", "abcdefghij".repeat(20));
        check(&text('0'), &text('1'), (1, "[200]", "'0'", "'1'"));
        check("\"n0\"", "\"n1\"", (1, "", "\"n0\"", "\"n1\""));
        let pointer = |at: &str, last| format!("{at} {}", text(last));
        let (a, b) = (pointer("0x5555", '0'), pointer("0x6666", '\\'));
        check(&a, &b.replace('\\', "\\n"), (1, "[200]", "'0'", "'\\n'"));
        let member = |last| format!("{{id = 3, name = {}, n = 4}}", text(last));
        check(&member('0'), &member('1'), (1, ".name[200]", "'0'", "'1'"));
        let run = |last| {
            let name = "\"ab\\\"\\001c\", 'x' <repeats 30 times>";
            format!("{{name = {name}, \"{}{last}\", n = 4}}", "yz".repeat(60))
        };
        check(&run('0'), &run('1'), (1, ".name[155]", "'0'", "'1'"));
        let longer = text('0').replace("0\"", "01\"");
        check(&text('0'), &longer, (1, "[201]", "-", "'1'"));
        // Of several bytes in one character, the index of those behind is unknown.
        let (a, b) = (
            text('0').replace('a', "\u{e4}"),
            text('1').replace('a', "\u{e4}"),
        );
        check(&a, &b, (1, "", &a, &b));
        let names = |last| format!("('short', '{}{last}')", "abcdefghij".repeat(20));
        check(&names('0'), &names('1'), (1, "(1)(201:201)", "'0'", "'1'"));
        let runs = [
            "{name = 'x' <repeats 30 times>}",
            "{name = 'x' <repeats 31 times>}",
        ];
        let values = ["'x' <repeats 30 times>", "'x' <repeats 31 times>"];
        check(runs[0], runs[1], (1, ".name", values[0], values[1]));
    }

    #[test]
    fn differing_elements_are_counted_out_of_all_of_both_values() {
        let check = |reference: &str, own: &str, expect: (usize, usize)| {
            let classes = vec![
                ("0-2".parse().unwrap(), reference.to_owned()),
                ("3".parse().unwrap(), own.to_owned()),
            ];
            let found = compare("x", classes).unwrap();
            let other = &found.others[0];
            assert_eq!((other.count, other.of), expect, "{reference} {own}");
        };
        check("{1}", "{2, 3, 4}", (3, 3));
        check("{1, 2}", "{1, 2, 3}", (1, 3));
        check("{1, 2, 3}", "{1}", (2, 3));
        check("{}", "{1, 2}", (2, 2));
        check("{{1, 2}, 7}", "{5, 7}", (1, 2));
        check("{[\"a\"] = 1}", "{[\"b\"] = 2, [\"c\"] = 3}", (3, 3));
    }

    #[test]
    fn cut_values_are_not_reported_as_equal() {
        let classes = vec![
            ("0-1".parse().unwrap(), "{1, 2...}".to_owned()),
            ("2".parse().unwrap(), "{1, 3...}".to_owned()),
        ];
        let found = compare("x", classes).unwrap();
        assert!(found.cut);
        assert_eq!(found.others[0].path, "[1]");
    }

    #[test]
    fn compare_of_hostile_values_is_bounded() {
        let deep = "{".repeat(10_000) + &"}".repeat(10_000);
        let many = "{0 <repeats 99999999999 times>}";
        for text in [deep.as_str(), many, "{{{", "}}}", "{\"\\", "{'"] {
            let (found, _) = elements(text);
            assert!(found.len() <= elements::ELEMENTS_MAX, "{}", found.len());
        }
    }
}
