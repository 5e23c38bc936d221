//! Components of the elements in a section of a Fortran array, as `rods(1:3)%heat`. gdb knows those of single elements.

use std::ops::Range;

use sdm_debug::quotes::outside_quotes;

use super::indices::{Indices, SliceError};

/// The expression once for each index of a section, with the index in place of the section's `bounds`. More than `max`
/// indices are an error.
pub(super) fn questions(
    expression: &str,
    bounds: Range<usize>,
    max: u64,
) -> Result<Vec<String>, SliceError> {
    let slice = format!("({})", &expression[bounds.clone()]);
    let indices = Indices::parse(&slice)?;
    if indices.count > max {
        return Err(SliceError::TooLong { slice, max });
    }
    let (before, behind) = (&expression[..bounds.start], &expression[bounds.end..]);
    let each = (0..indices.count).map(|place| format!("{before}{}{behind}", indices.at(place)));
    Ok(each.collect())
}

/// The byte range of the bounds of the first section with a component behind it. None if its array has another section,
/// or brackets among its subscripts.
pub(super) fn bounds(expression: &str) -> Option<Range<usize>> {
    let (mut depth, mut begin) = (0_u32, 0);
    for (at, c) in outside_quotes(expression) {
        match c {
            '(' => {
                depth += 1;
                if depth == 1 {
                    begin = at + 1;
                }
            }
            ')' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        let is_component = expression[at + 1..].trim_start().starts_with('%');
        if depth > 0 || c == '(' || !is_component {
            continue;
        }
        let inner = &expression[begin..at];
        let mut sections = Vec::new();
        let mut from = begin;
        for subscript in inner.split(',') {
            let end = from + subscript.len();
            sections.extend(subscript.contains(':').then_some(from..end));
            from = end + 1;
        }
        match sections.pop() {
            Some(section) if sections.is_empty() && !inner.contains('(') => return Some(section),
            Some(_) => return None,
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_before_a_component_is_found() {
        for (expression, expect) in [
            ("rods(1:3)%heat", Some("1:3")),
            ("a%rods(2,1:9:2)%w(1:2)", Some("1:9:2")),
            ("cell(2)%rods(1:3)%heat", Some("1:3")),
            ("rods(:)%heat", Some(":")),
            ("rods(1:3)", None),
            ("rods(1:3,1:2)%heat", None),
            ("rods(1)%w(1:3)", None),
            ("rods(min(1:2))%w", None),
        ] {
            let found = bounds(expression).map(|it| &expression[it]);
            assert_eq!(found, expect, "{expression}");
        }
    }
}
