//! Variables of many tasks: equal values once, differing ones by class.

use sdm_debug::Reply;
use sdm_debug::reply::{Value, Variable};
use sdm_idset::IdSet;
use sdm_text::{counted, printable};

use super::page::Page;
use super::place;
use super::style::Style;
use crate::normalise;
use crate::normalise::biggest_first;

/// Maximum number of distinct values of one variable that are shown.
const VALUES_SHOWN_MAX: usize = 8;

/// Appends one block per class of tasks with the same variables, largest first.
pub(super) fn variables(page: &Page<'_>, classes: &[&(IdSet, Reply)], lines: &mut Vec<String>) {
    let groups = groups(classes);
    for (index, group) in groups.iter().enumerate() {
        if index > 0 && Style::height(lines) + group.names.len() >= page.style.room() {
            let rest = groups[index..].iter().flat_map(|group| &group.members);
            let tasks = IdSet::union_all(rest.map(|(tasks, _)| *tasks));
            let groups = counted(groups.len() - index, "more group");
            let text = format!("{groups} of variables, not shown");
            lines.push(page.said(&tasks, &text, false));
            return;
        }
        let tasks = IdSet::union_all(group.members.iter().map(|(tasks, _)| *tasks));
        if group.names.is_empty() {
            lines.push(page.said(&tasks, "no variables", false));
            continue;
        }
        lines.push(page.over(&tasks));
        for (index, name) in group.names.iter().enumerate() {
            let text = match &distinct(group, index)[..] {
                [(_, value)] => format!("  {name} = {value}"),
                values => format!("  {name}: {}", differing(page, values)),
            };
            lines.push(page.style.wrap(&text, 6));
        }
    }
}

/// Tasks with the same variables in the same order.
struct SameNames<'a> {
    names: Vec<&'a str>,
    members: Vec<(&'a IdSet, &'a [Variable])>,
}

fn groups<'a>(classes: &[&'a (IdSet, Reply)]) -> Vec<SameNames<'a>> {
    let mut groups: Vec<SameNames<'a>> = Vec::new();
    for (tasks, reply) in classes {
        let Reply::Variables(variables) = reply else {
            continue;
        };
        let names: Vec<_> = variables.iter().map(|v| v.name.as_str()).collect();
        match groups.iter_mut().find(|group| group.names == names) {
            Some(group) => group.members.push((tasks, variables)),
            None => groups.push(SameNames {
                names,
                members: vec![(tasks, variables)],
            }),
        }
    }
    groups.sort_by_key(|group| {
        let count: u64 = group.members.iter().map(|(tasks, _)| tasks.len()).sum();
        std::cmp::Reverse(count)
    });
    groups
}

/// The distinct values of one variable, largest class first.
fn distinct(group: &SameNames<'_>, index: usize) -> Vec<(IdSet, String)> {
    let members = group.members.iter();
    classes(members.map(|(tasks, variables)| (*tasks, &variables[index].value)))
}

/// The text of a variable with several values: `name: 0 on ranks 0-2 (3); 1 on rank 3`. None if all tasks have the same
/// value.
pub(super) fn by_class<'a>(
    page: &Page<'_>,
    name: &str,
    values: impl Iterator<Item = (&'a IdSet, &'a Value)>,
) -> Option<String> {
    let (name, values) = (printable(name.as_bytes()), classes(values));
    (values.len() > 1).then(|| format!("{name}: {}", differing(page, &values)))
}

/// Groups tasks by value, largest class first.
fn classes<'a>(members: impl Iterator<Item = (&'a IdSet, &'a Value)>) -> Vec<(IdSet, String)> {
    let mut values: Vec<(IdSet, String)> = Vec::new();
    for (tasks, value) in members {
        let value = printable(place::value(value).as_bytes());
        match values.iter_mut().find(|(_, known)| *known == value) {
            Some((set, _)) => set.union_with(tasks),
            None => values.push((tasks.clone(), value)),
        }
    }
    values.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    let mut values = normalise::join(values);
    values.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    values
}

fn differing(page: &Page<'_>, values: &[(IdSet, String)]) -> String {
    let (shown, rest) = values.split_at(values.len().min(VALUES_SHOWN_MAX));
    let mut parts: Vec<_> = shown
        .iter()
        .map(|(tasks, value)| format!("{value} on {}", page.label(tasks)))
        .collect();
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        parts.push(format!(
            "{} on {}",
            counted(rest.len(), "more value"),
            page.label(&tasks)
        ));
    }
    parts.join("; ")
}
