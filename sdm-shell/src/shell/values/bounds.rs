//! Detects slices beyond the end of an array, where gdb would read unrelated memory as numbers.
//!
//! Each rank is asked for the lengths of its arrays. The type has the length, as of a `double d[40]` and of an array of
//! variable length. For a `std::vector` or a `std::string` the pretty-printer has it. Pointers have no length, nor has
//! a member array that is declared with at most one element, because it may stand for a longer one. Without Python in
//! gdb no length is known.

use std::fmt::Write;

use sdm_debug::calls::is_harmless;
use sdm_debug::{Command, Failure, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_text::counted;
use sdm_view::item::Gathered;

use crate::shell::invocation::Invocation;
use crate::shell::slices::{Range, Slices};
use crate::shell::{SessionHandle, Verdict};

/// Prints the length, a missing index and the name of the first array of `sdm_ranges` that is too short. The definition
/// of `sdm_ranges` is put in front of this text.
const QUESTION: &str = r"
import gdb, itertools
for text, first, last in sdm_ranges:
  value = gdb.parse_and_eval(text)
  kind = value.type.strip_typedefs()
  if kind.code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
    value = value.referenced_value()
    kind = value.type.strip_typedefs()
  if kind.code == gdb.TYPE_CODE_STRUCT and gdb.default_visualizer(value) is None:
    inner = [it.name for it in kind.fields() if it.name in ('_M_elems', '__elems_')]
    if inner:
      kind = value[inner[0]].type.strip_typedefs()
  count = None
  if kind.code == gdb.TYPE_CODE_ARRAY:
    high = kind.range()[1]
    if high > 0 or high == 0 and not ('.' in text or '->' in text):
      count = high + 1
  else:
    printer = gdb.default_visualizer(value)
    hint = printer.display_hint() if hasattr(printer, 'display_hint') else None
    if hint == 'array' and hasattr(printer, 'children'):
      count = sum(1 for one in itertools.islice(printer.children(), last + 1))
    if hint == 'string' and hasattr(printer, 'to_string'):
      whole = printer.to_string()
      length = getattr(whole, 'length', -1)
      count = length if length >= 0 else len(whole) if isinstance(whole, str) else None
  if count is not None and (first < 0 or last >= count):
    print('%d %d %s' % (count, first if first < 0 else last, text))
    break
";

/// The command that prints `COUNT INDEX NAME` where a range is not within its array; nothing otherwise.
fn question(ranges: &[Range]) -> Option<Command> {
    // History values are numbered by SDM, and a call could have effects.
    let asked = ranges
        .iter()
        .filter(|range| is_harmless(&range.array) && !range.array.contains('$'));
    let mut list = String::new();
    for Range { array, first, last } in asked {
        let _ = write!(list, "({array:?}, {first}, {last}), ");
    }
    let code = format!("sdm_ranges = [{list}]{QUESTION}");
    (!list.is_empty()).then(|| Command::Console {
        line: format!("python exec({code:?})"),
    })
}

/// The failure of a rank whose answer to [`question`] has this text; `None` for text of another form.
fn beyond(text: &str) -> Option<Failure> {
    let mut words = text.trim().splitn(3, ' ');
    let (count, index, array) = (words.next()?, words.next()?, words.next()?);
    let count: u64 = count.parse().ok()?;
    let index: i64 = index.parse().ok()?;
    let elements = counted(count, "element");
    let text = format!("`{array}` has {elements}: none has the index {index}");
    Some(Failure::new(FailureCode::Limit, text))
}

/// The tasks in which all elements of the slices exist, and the failures of the others. The verdict becomes that of a
/// failure if there are some.
pub(in crate::shell) async fn existing(
    session: &SessionHandle,
    said: &Invocation<'_>,
    slices: &Slices,
    verdict: &mut Verdict,
) -> (IdSet, Gathered) {
    let mut rest = Gathered::default();
    let Some(command) = question(&slices.ranges) else {
        return (said.to.clone(), rest);
    };
    let mut short = IdSet::new();
    for (tasks, reply) in session.answers(said.line, &said.to, &command).await {
        let Reply::Text(text) = reply else { continue };
        if let Some(failure) = beyond(&text) {
            short.union_with(&tasks);
            rest.failed.push((tasks, failure));
            *verdict = Verdict::Failed;
        }
    }
    (said.to.difference(&short), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_with_too_short_an_array_is_refused() {
        let text = |answer| beyond(answer).map(|failure| failure.text);
        let none = "`ve` has 0 elements: none has the index 2";
        assert_eq!(text("0 2 ve\n").as_deref(), Some(none));
        let one = "`p->rows [1]` has 1 element: none has the index -1";
        assert_eq!(text("1 -1 p->rows [1]").as_deref(), Some(one));
        for other in ["", "Undefined command", "0 x y"] {
            assert_eq!(text(other), None, "{other}");
        }
    }

    #[test]
    fn slice_bounds_are_queried_only_without_side_effects() {
        let line = |expression| match question(&Slices::of(expression).unwrap().ranges) {
            Some(Command::Console { line }) => line,
            None => String::new(),
            other => panic!("{other:?}"),
        };
        let rows = line("m[0:1][1:3]");
        for part in [
            r#"(\"m\", 0, 1), "#,
            r#"(\"m[0]\", 1, 3), "#,
            r#"(\"m[1]\", 1, 3), "#,
        ] {
            assert!(rows.contains(part), "{rows}");
        }
        for none in ["f(1)[0:2]", "$1[0:2]", "x", "cells(0:2)"] {
            assert_eq!(line(none), "", "{none}");
        }
    }
}
