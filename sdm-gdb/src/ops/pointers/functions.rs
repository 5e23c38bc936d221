//! Writes an expression with functions of gdb's Python around its names (`sdm-child/src/expressions.py`).
//!
//! gdb itself knows neither a component of a class or of a parent type by its plain name, nor the elements of an array
//! with a negative stride.

use std::ops::Range;

use sdm_debug::quotes::outside_quotes;

use super::names::{Comparison, Name, Names, Part, Role};
use super::words::is_taken;

/// The expression with each name replaced by its value: for a pointer, the target.
pub(super) fn held(expression: &str, found: &Names) -> String {
    let whole = 0..expression.len();
    let text = match assignment(expression, found) {
        Some(text) => text,
        None => part(expression, whole, found),
    };
    // gdb has no empty texts. Blanks at the end of a text do not count.
    text.replace("''", "' '")
}

/// The variable that an expression names as a whole. It is not replaced by its value, because gdb or its printers show
/// that.
pub(super) fn single(expression: &str, found: &Names) -> String {
    found.all.first().map_or_else(
        || expression.to_owned(),
        |name| designator(expression, name, name.parts.len(), found),
    )
}

/// The assignment in a form in which the value fits the target: a text is cut or padded. `None` for another expression.
fn assignment(expression: &str, found: &Names) -> Option<String> {
    let from = found.assigned?;
    let target = found.all.first()?;
    let value = part(expression, from..expression.len(), found);
    if has_comma(&expression[from..]) {
        return None;
    }
    let before = target.parts.len().saturating_sub(1);
    let owner = match target.parts.last() {
        Some(Part::Component(name)) => {
            let structure = designator(expression, target, before, found);
            format!(", '{}', {structure}", word(expression, name))
        }
        Some(Part::Subscripts(_)) => String::new(),
        None => format!(", '{}'", word(expression, &target.range)),
    };
    Some(format!(
        "{} = $_sdm_fitting({},{value}{owner})",
        replaced(expression, target, found),
        designator(expression, target, target.parts.len(), found)
    ))
}

/// True for text with a comma outside of brackets.
fn has_comma(text: &str) -> bool {
    let mut depth = 0_i32;
    outside_quotes(text).any(|(_, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    })
}

/// A part of an expression with its names replaced.
fn part(expression: &str, range: Range<usize>, found: &Names) -> String {
    let is_within = |it: &Range<usize>| it.start >= range.start && it.end <= range.end;
    let mut edits = Vec::new();
    let mut names: Vec<&Name> = Vec::new();
    for name in found.all.iter().filter(|it| is_within(&it.range)) {
        // The names in its subscripts are replaced with it.
        if names
            .last()
            .is_none_or(|last| name.range.start >= last.range.end)
        {
            names.push(name);
        }
    }
    let is_in_name = |it: &Range<usize>| {
        let mut names = names.iter();
        names.any(|name| name.range.start <= it.start && it.end < name.range.end)
    };
    let comparisons = found.comparisons.iter();
    let comparisons = comparisons.filter(|it| is_within(&it.range) && !is_in_name(&it.range));
    for Comparison {
        range,
        operator,
        is_equality,
    } in comparisons
    {
        let word = if *is_equality { "(" } else { "(.not. " };
        edits.push((range.start..range.start, format!("{word}$_sdm_same(")));
        edits.push((operator.clone(), ",".to_owned()));
        edits.push((range.end..range.end, "))".to_owned()));
    }
    let asked = found.asked.iter();
    let asked = asked.filter(|it| is_within(it) && !is_in_name(it));
    edits.extend(asked.map(|it| (it.clone(), format!("$_sdm_{}", word(expression, it)))));
    for name in names {
        edits.push((name.range.clone(), replaced(expression, name, found)));
    }
    edited(expression, range, edits)
}

fn replaced(expression: &str, name: &Name, found: &Names) -> String {
    let plain = designator(expression, name, name.parts.len(), found);
    match name.role {
        Role::Value => format!("$_sdm_held({plain})"),
        Role::Inquiry => {
            // The data of a class is meant by its name too.
            let is_data = |part: &&Part| matches!(part, Part::Component(range) if word(expression, range) == "_data");
            let count = name.parts.len() - name.parts.iter().rev().take_while(is_data).count();
            format!(
                "$_sdm_part({}, ' ')",
                designator(expression, name, count, found)
            )
        }
        Role::Address | Role::Type => plain,
    }
}

/// A name with its first `count` parts, written with gdb's Python functions.
fn designator(expression: &str, name: &Name, count: usize, found: &Names) -> String {
    let first = &expression[name.range.start..name.base];
    let mut text = match first.strip_prefix('(') {
        Some(_) => {
            let within = name.range.start + 1..name.base - 1;
            format!("({})", part(expression, within, found))
        }
        None if is_taken(first) => {
            format!("$_sdm_variable('{}')", first.trim().to_ascii_lowercase())
        }
        None => first.to_owned(),
    };
    let mut before = None;
    for (at, one) in name.parts[..count].iter().enumerate() {
        let has_subscripts = matches!(name.parts.get(at + 1), Some(Part::Subscripts(_)));
        match one {
            Part::Component(name) if first.starts_with('$') => {
                text = format!("{text}%{}", word(expression, name));
            }
            Part::Component(name) if has_subscripts && at + 1 < count => {
                before = Some(format!("{text}, '{}'", word(expression, name)));
            }
            Part::Component(name) => {
                text = format!("$_sdm_part({text}, '{}')", word(expression, name));
            }
            Part::Subscripts(range) => {
                let subscripts = part(expression, range.clone(), found);
                let array = before.take();
                text = match section(expression, range, found) {
                    _ if first.starts_with('$') => format!("{text}({subscripts})"),
                    Some(section) => {
                        let array = array.unwrap_or_else(|| format!("{text}, ' '"));
                        format!("$_sdm_section({array}, {section})")
                    }
                    None => {
                        let array = array.unwrap_or(text);
                        format!("$_sdm_item({array}, {subscripts})")
                    }
                };
            }
        }
    }
    text
}

/// The form of an array section, with a `#` for each subscript, and the subscripts. `None` for an element.
fn section(expression: &str, range: &Range<usize>, found: &Names) -> Option<String> {
    let (mut form, mut subscripts) = (String::new(), Vec::new());
    let (mut depth, mut begin) = (0_i32, range.start);
    let text = &expression[range.clone()];
    let is_in_name = |at: usize| {
        let mut names = found.all.iter().map(|it| &it.range);
        names.any(|it| it.start >= range.start && it.contains(&at))
    };
    let ends = outside_quotes(text).map(|(at, c)| (range.start + at, Some(c)));
    let ends = ends.filter(|(at, c)| {
        depth += i32::from(*c == Some('(')) - i32::from(*c == Some(')'));
        depth == 0 && matches!(c, Some(',' | ':')) && !is_in_name(*at)
    });
    for (at, c) in ends.chain([(range.end, None)]) {
        if !expression[begin..at].trim().is_empty() {
            form.push('#');
            subscripts.push(part(expression, begin..at, found).trim().to_owned());
        }
        form.extend(c);
        begin = at + 1;
    }
    let subscripts: String = subscripts.iter().map(|it| format!(", {it}")).collect();
    form.contains(':').then(|| format!("'{form}'{subscripts}"))
}

/// A name as the compiler writes it, in lower case.
fn word(expression: &str, range: &Range<usize>) -> String {
    expression[range.clone()].trim().to_ascii_lowercase()
}

/// A range of a text with some parts of it replaced. Of several edits at one place the first comes first.
pub(super) fn edited(
    text: &str,
    range: Range<usize>,
    mut edits: Vec<(Range<usize>, String)>,
) -> String {
    // An insertion behind a part comes before one in front of the next part.
    edits.sort_by_key(|(at, _)| at.start);
    let (mut all, mut done) = (String::new(), range.start);
    for (at, new) in edits {
        all.push_str(&text[done..at.start]);
        all.push_str(&new);
        done = at.end;
    }
    all.push_str(&text[done..range.end]);
    all
}

#[cfg(test)]
mod tests {
    use super::super::names::names;
    use super::*;

    #[test]
    fn fortran_pointer_names_are_replaced_by_their_values() {
        let check = |expression: &str, expect: &str| {
            assert_eq!(held(expression, &names(expression).unwrap()), expect);
        };
        check("count + 1", "$_sdm_held(count) + 1");
        check("P%N*2", "$_sdm_held($_sdm_part(P, 'n'))*2");
        check(
            "a(k)%n < i",
            "$_sdm_held($_sdm_part($_sdm_item(a, $_sdm_held(k)), 'n')) < $_sdm_held(i)",
        );
        check(
            "v(n(2)) > 1",
            "$_sdm_held($_sdm_item(v, $_sdm_held($_sdm_item(n, 2)))) > 1",
        );
        check("v(1:2)", "$_sdm_held($_sdm_section(v, ' ', '#:#', 1, 2))");
        check(
            "p%v(1:m::n, :k:2)",
            "$_sdm_held($_sdm_section(p, 'v', '#:#,:#:#', 1, $_sdm_held(m::n), $_sdm_held(k), 2))",
        );
        check(
            "v(n(2))(:3)",
            "$_sdm_held($_sdm_section($_sdm_item(v, $_sdm_held($_sdm_item(n, 2))), ' ', ':#', 3))",
        );
        check(
            "p%v(2)%n + p%v(:)",
            "$_sdm_held($_sdm_part($_sdm_item(p, 'v', 2), 'n')) + $_sdm_held($_sdm_section(p, 'v', ':'))",
        );
        check("v(:)", "$_sdm_held($_sdm_section(v, ' ', ':'))");
        check("$t(1)", "$_sdm_held($t(1))");
        check(
            "p%label == 'it' .or. 'no' /= name",
            "($_sdm_same($_sdm_held($_sdm_part(p, 'label')) , 'it')) .or. (.not. $_sdm_same('no' , $_sdm_held(name)))",
        );
        check("name .EQ. 'x'", "($_sdm_same($_sdm_held(name) , 'x'))");
        check("name == ''", "($_sdm_same($_sdm_held(name) , ' '))");
        check("i == n", "$_sdm_held(i) == $_sdm_held(n)");
        check(
            "Rank == 1 .and. size(v) > rank",
            "$_sdm_held($_sdm_variable('rank')) == 1 .and. size($_sdm_part(v, ' ')) > $_sdm_held($_sdm_variable('rank'))",
        );
        check("&single", "&$_sdm_variable('single')");
        check("&p%n", "&$_sdm_part(p, 'n')");
        check(
            "sizeof(p%v)",
            "$_sdm_sizeof($_sdm_part($_sdm_part(p, 'v'), ' '))",
        );
        check("lbound(p%_data)", "lbound($_sdm_part(p, ' '))");
        check("Allocated(x)", "$_sdm_allocated($_sdm_part(x, ' '))");
        check("size(p%v)", "size($_sdm_part($_sdm_part(p, 'v'), ' '))");
        check("(*p)%n + 1", "$_sdm_held($_sdm_part((*p), 'n')) + 1");
    }

    #[test]
    fn value_assigned_to_a_fortran_pointer_fits_its_target() {
        let check = |expression: &str, expect: &str| {
            assert_eq!(held(expression, &names(expression).unwrap()), expect);
        };
        check(
            "p%label = 'it'",
            "$_sdm_held($_sdm_part(p, 'label')) = $_sdm_fitting($_sdm_part(p, 'label'), 'it', 'label', p)",
        );
        check(
            "n = n + 1",
            "$_sdm_held(n) = $_sdm_fitting(n, $_sdm_held(n) + 1, 'n')",
        );
        check(
            "w(2) = (1,2)",
            "$_sdm_held($_sdm_item(w, 2)) = $_sdm_fitting($_sdm_item(w, 2), (1,2))",
        );
        check("n = 1, i", "$_sdm_held(n) = 1, $_sdm_held(i)");
    }

    #[test]
    fn single_fortran_pointer_name_is_not_replaced_by_its_value() {
        let check = |expression: &str, expect: &str| {
            assert_eq!(single(expression, &names(expression).unwrap()), expect);
        };
        check("count", "count");
        check("p%n", "$_sdm_part(p, 'n')");
        check("v(k)", "$_sdm_item(v, $_sdm_held(k))");
    }
}
