//! Merging of answers that differ only in addresses.
//!
//! Equal programs print unequal pointers where address spaces are randomised. The records keep the
//! addresses. On a screen such answers are one class, with one of the addresses as an example. Null,
//! addresses below every mapping and all ones have a meaning of their own and stay distinct. So does the
//! text behind an address (`<symbol+off>`, a string).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use sdm_debug::reply::{Frame, Stop, StopReason, Value};
use sdm_debug::{Failure, Reply, wire};
use sdm_idset::IdSet;

use crate::item::{Gathered, Happening, Item};

/// Placeholder for an address in the text by which answers are compared.
const ANY: &str = "0x*";
/// Placeholder for an argument whose value differs between stacks that are otherwise equal.
pub(crate) const DIFFERS: &str = "...";
/// Minimum number of digits of an address: nothing is mapped below 64 kB.
const DIGITS_MIN: usize = 5;
/// Prefixes of hexadecimal numbers that are not addresses.
const NO_ADDRESS: [&str; 2] = ["nan(", "unknown: "];

/// The order of sets: larger ones first, then by the smallest task.
pub(crate) fn biggest_first(a: &IdSet, b: &IdSet) -> std::cmp::Ordering {
    b.len().cmp(&a.len()).then(a.first().cmp(&b.first()))
}

/// The text with the same word in place of all addresses outside of strings.
fn key(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    let mut open = None;
    while let Some(&byte) = bytes.get(at) {
        let in_word = at > 0 && bytes[at - 1].is_ascii_alphanumeric();
        let mut length = 1;
        match (open, byte) {
            (Some(_), b'\\') => length = 2,
            (Some(quote), byte) if byte == quote => open = None,
            // Not the apostrophe of a word.
            (None, b'"' | b'\'') if !in_word => open = Some(byte),
            (None, b'0') if !in_word && bytes[at + 1..].starts_with(b"x") => {
                let digits = bytes[at + 2..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_hexdigit());
                length = 2 + digits.count();
                if is_address(&text[..at], &text[at + 2..at + length]) {
                    out.push_str(&text[copied..at]);
                    out.push_str(ANY);
                    copied = at + length;
                }
            }
            _ => {}
        }
        at += length;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// True if these hexadecimal digits are an address that can differ between equal programs. `before` is
/// the text in front of them.
fn is_address(before: &str, digits: &str) -> bool {
    digits.len() >= DIGITS_MIN
        && digits.bytes().any(|digit| digit != b'f')
        && !NO_ADDRESS.iter().any(|word| before.ends_with(word))
}

/// The text of a class whose members differ in this number of distinct addresses.
fn example(text: &str, distinct: usize) -> String {
    format!("{text} ... ({distinct} distinct addresses)")
}

/// Joins the sets of texts that differ only in addresses. The first text of each class is its example.
pub(crate) fn join(texts: Vec<(IdSet, String)>) -> Vec<(IdSet, String)> {
    let mut groups: Vec<(String, IdSet, String, usize)> = Vec::new();
    for (tasks, text) in texts {
        let key = key(&text);
        match groups.iter_mut().find(|(known, ..)| *known == key) {
            Some((_, set, _, count)) => {
                set.union_with(&tasks);
                *count += 1;
            }
            None => groups.push((key.into_owned(), tasks, text, 1)),
        }
    }
    let groups = groups.into_iter();
    let said = groups.map(|(_, tasks, text, count)| match count {
        1 => (tasks, text),
        count => (tasks, example(&text, count)),
    });
    said.collect()
}

impl Gathered {
    /// Merges answers and failures that differ only in addresses, and stacks and frames that differ only in arguments.
    /// The largest class is first.
    pub(crate) fn alike(&self) -> Self {
        let ok = grouped(&self.ok, |reply| {
            let mut reply = reply.clone();
            // The same frames are one stack, whatever their arguments are.
            for value in frames(&mut reply).iter_mut().flat_map(args) {
                (value.text, value.cut) = (String::new(), None);
            }
            for value in values(&mut reply) {
                value.text = key(&value.text).into_owned();
            }
            wire::encode(&reply)
        });
        let failed = grouped(&self.failed, |failure| {
            let Failure { code, text, hint } = failure;
            (code.name(), key(text).into_owned(), hint.clone())
        });
        let failure = |members: &[&Failure]| {
            let mut failure = members[0].clone();
            if members.len() > 1 {
                failure.text = example(&failure.text, members.len());
            }
            failure
        };
        let ok = ok.into_iter();
        let failed = failed.into_iter();
        Self {
            ok: ok.map(|(tasks, all)| (tasks, merged(&all))).collect(),
            failed: failed.map(|(tasks, all)| (tasks, failure(&all))).collect(),
            ..self.clone()
        }
    }
}

/// Merges events of calls that have returned, if they differ only in addresses. The merged item stands in place of the
/// first one.
#[must_use]
pub fn returns_joined(items: &[Item]) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::new();
    let mut known: HashMap<Vec<u8>, (usize, usize)> = HashMap::new();
    for item in items {
        let Some(key) = key_of_returned(item) else {
            joined.push(item.clone());
            continue;
        };
        let (at, count) = known.entry(key).or_insert((joined.len(), 0));
        *count += 1;
        let more = match item {
            Item::Happened { tasks, .. } => tasks,
            _ => continue,
        };
        match joined.get_mut(*at) {
            Some(Item::Happened { tasks, .. }) => tasks.union_with(more),
            _ => joined.push(item.clone()),
        }
    }
    for (at, count) in known.into_values().filter(|(_, count)| *count > 1) {
        if let Some((_, stop)) = joined.get_mut(at).and_then(returned)
            && let Some(value) = returned_value(stop)
        {
            value.text = example(&value.text, count);
        }
    }
    joined
}

/// The key that is equal for all events that are merged: the stop without addresses. None for items that are no return
/// of a call.
fn key_of_returned(item: &Item) -> Option<Vec<u8>> {
    let mut item = item.clone();
    let (_, stop) = returned(&mut item)?;
    let without = |value: &mut Value| value.text = key(&value.text).into_owned();
    returned_value(stop).into_iter().for_each(without);
    stop.frame.iter_mut().flat_map(args).for_each(without);
    Some(wire::encode(stop))
}

/// The tasks and the stop of an event in which a call has returned a value that is not truncated. None for other items.
fn returned(item: &mut Item) -> Option<(&mut IdSet, &mut Stop)> {
    match item {
        Item::Happened {
            tasks,
            what: Happening::Stopped(stop),
        } => returned_value(stop).is_some().then_some((tasks, stop)),
        _ => None,
    }
}

fn returned_value(stop: &mut Stop) -> Option<&mut Value> {
    match &mut stop.reason {
        StopReason::FunctionFinished { value } => value.as_mut().filter(|it| it.cut.is_none()),
        _ => None,
    }
}

/// Groups answers by a key, largest group first. The members of a group are sorted likewise.
fn grouped<T, K: Eq + Hash>(
    classes: &[(IdSet, T)],
    key: impl Fn(&T) -> K,
) -> Vec<(IdSet, Vec<&T>)> {
    let mut sorted: Vec<&(IdSet, T)> = classes.iter().collect();
    sorted.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    let mut groups: Vec<(IdSet, Vec<&T>)> = Vec::new();
    let mut known: HashMap<K, usize> = HashMap::new();
    for (tasks, what) in sorted {
        let at = *known.entry(key(what)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((set, members)) => {
                set.union_with(tasks);
                members.push(what);
            }
            None => groups.push((tasks.clone(), vec![what])),
        }
    }
    groups.sort_by(|(a, _), (b, _)| biggest_first(a, b));
    groups
}

/// One reply for a group: the values of the first member and, where values differ in addresses, the number of distinct
/// ones. An argument that differs otherwise is [`DIFFERS`].
fn merged(members: &[&Reply]) -> Reply {
    let mut reply = members[0].clone();
    if members.len() == 1 {
        return reply;
    }
    let all: Vec<_> = members.iter().map(|member| arguments(member)).collect();
    for (index, value) in frames(&mut reply).iter_mut().flat_map(args).enumerate() {
        let mut distinct: Vec<&Value> =
            all.iter().filter_map(|it| it.get(index).copied()).collect();
        distinct.sort_unstable_by_key(|value| &value.text);
        distinct.dedup();
        let is_alike = |other: &&Value| other.cut.is_none() && key(&other.text) == key(&value.text);
        if distinct.len() > 1 && value.cut.is_none() && distinct.iter().all(is_alike) {
            value.text = example(&value.text, distinct.len());
        } else if distinct.len() > 1 {
            *value = Value {
                text: DIFFERS.to_owned(),
                cut: None,
            };
        }
    }
    let mut texts: Vec<HashSet<String>> = Vec::new();
    for member in members {
        let mut member = (*member).clone();
        let values = values(&mut member);
        texts.resize_with(values.len(), HashSet::new);
        for (known, value) in texts.iter_mut().zip(values) {
            known.insert(std::mem::take(&mut value.text));
        }
    }
    for (value, known) in values(&mut reply).into_iter().zip(texts) {
        if known.len() > 1 {
            value.text = example(&value.text, known.len());
        }
    }
    reply
}

/// The values in a reply in which addresses are ignored. Variables and arguments are excluded, because they are shown
/// differently. Truncated values differ by their hash.
fn values(reply: &mut Reply) -> Vec<&mut Value> {
    let mut values: Vec<&mut Value> = match reply {
        Reply::Value(value) => vec![value],
        _ => Vec::new(),
    };
    values.retain(|value| value.cut.is_none());
    values
}

/// The values of the arguments of all frames of a stack, in order, or of the selected frame. Empty for another reply.
pub(crate) fn arguments(reply: &Reply) -> Vec<&Value> {
    let frames = match reply {
        Reply::Backtrace(backtrace) => &backtrace.frames[..],
        Reply::Frame(view) => std::slice::from_ref(&view.frame),
        _ => &[],
    };
    let all = frames.iter().flat_map(|frame| &frame.args);
    all.map(|variable| &variable.value).collect()
}

/// The frames of a stack, or the selected one. Empty for another reply.
fn frames(reply: &mut Reply) -> &mut [Frame] {
    match reply {
        Reply::Backtrace(backtrace) => &mut backtrace.frames,
        Reply::Frame(view) => std::slice::from_mut(&mut view.frame),
        _ => &mut [],
    }
}

fn args(frame: &mut Frame) -> impl Iterator<Item = &mut Value> {
    frame.args.iter_mut().map(|variable| &mut variable.value)
}

#[cfg(test)]
mod tests {
    use sdm_debug::FailureCode;

    use super::*;

    #[test]
    fn addresses_are_distinguished_from_other_numbers() {
        let check = |text: &str, expect: &str| assert_eq!(key(text), expect, "{text}");
        check("(int *) 0x7ffe12345678", "(int *) 0x*");
        check(
            "0x5555555592a0 \"0x5555555592a0\"",
            "0x* \"0x5555555592a0\"",
        );
        check("0x555555555149 <main+4>", "0x* <main+4>");
        check(
            "{a = 0x1c2b2a0, b = 0x0, c = 0x10}",
            "{a = 0x*, b = 0x0, c = 0x10}",
        );
        check("0xffffffffffffffff", "0xffffffffffffffff");
        check("-nan(0x8000000000000)", "-nan(0x8000000000000)");
        check("(A | unknown: 0x100000)", "(A | unknown: 0x100000)");
        check("34 '\"', 0x7ffe12345678", "34 '\"', 0x*");
        check("a0x7ffe12345678", "a0x7ffe12345678");
        check("Can't read 0x7ffe12345678", "Can't read 0x*");
        check("0x", "0x");
        check("\u{fc}0x", "\u{fc}0x");
    }

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    #[test]
    fn returned_addresses_merge_and_their_number_is_shown() {
        let happened = |tasks: &str, value: Option<&str>| Item::Happened {
            tasks: set(tasks),
            what: Happening::Stopped(Stop {
                reason: StopReason::FunctionFinished {
                    value: value.map(|text| Value {
                        text: text.to_owned(),
                        cut: None,
                    }),
                },
                frame: None,
                inside: None,
                source: None,
            }),
        };
        let items = [
            happened("0", Some("(int *) 0x5555555592a0")),
            happened("1", Some("(int *) 0x0")),
            happened("2-3", Some("(int *) 0x5555555592b0")),
            happened("4", None),
            happened("5", Some("(int *) 0x5555555592c0")),
        ];
        let expect = [
            happened(
                "0,2-3,5",
                Some("(int *) 0x5555555592a0 ... (3 distinct addresses)"),
            ),
            happened("1", Some("(int *) 0x0")),
            happened("4", None),
        ];
        assert_eq!(returns_joined(&items), expect);
    }

    #[test]
    fn values_differing_only_in_addresses_form_one_class() {
        let value = |text: &str| {
            Reply::Value(Value {
                text: text.to_owned(),
                cut: None,
            })
        };
        let failure = |at| {
            Failure::new(
                FailureCode::Gdb,
                format!("Cannot access memory at address {at}"),
            )
        };
        let gathered = Gathered {
            ok: vec![
                (set("4"), value("0x5555555592a0")),
                (set("0-1"), value("0x5555555592b0")),
                (set("2"), value("0x0")),
            ],
            failed: vec![
                (set("5"), failure("0x7ffe12345678")),
                (set("6"), failure("0x7ffe12345679")),
                (set("7"), failure("0x0")),
            ],
            ..Gathered::default()
        };
        let alike = gathered.alike();
        let said = |at: usize| match &alike.ok[at] {
            (tasks, Reply::Value(value)) => format!("{tasks}: {}", value.text),
            other => panic!("{other:?}"),
        };
        assert_eq!(said(0), "0-1,4: 0x5555555592b0 ... (2 distinct addresses)");
        assert_eq!(said(1), "2: 0x0");
        let failed: Vec<_> = alike
            .failed
            .iter()
            .map(|(tasks, f)| format!("{tasks}: {}", f.text))
            .collect();
        let text = "Cannot access memory at address";
        assert_eq!(
            failed[0],
            format!("5-6: {text} 0x7ffe12345678 ... (2 distinct addresses)")
        );
        assert_eq!(failed[1], format!("7: {text} 0x0"));
        assert_eq!(alike.alike().ok.len(), 2);
    }
}
