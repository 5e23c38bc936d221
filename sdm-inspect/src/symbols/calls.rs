//! The calls in a function, as its compiler has recorded them.

use gimli::{AttributeValue, UnitOffset, UnitRef};

use super::names::text;
use crate::elf::Slice;

/// Maximum number of calls of a function that are examined.
const CALLS_MAX: usize = 4096;

/// A function of the debug information, with its call sites.
pub(crate) struct Function {
    /// Start of the function.
    pub(crate) entry: u64,
    /// The call sites in the function.
    pub(crate) calls: Vec<Call>,
}

/// A call site in a function.
pub(crate) struct Call {
    /// The return address of the call.
    pub(crate) after: u64,
    /// True for a tail call: the function ends with a jump to the callee.
    pub(crate) is_tail: bool,
    /// The callee; `None` if it is known only at run time.
    pub(crate) target: Option<Target>,
}

/// The callee of a call.
pub(crate) enum Target {
    /// The function that starts at an address of the file.
    At(u64),
    /// A function of another unit or file, by its linker name.
    Named(String),
}

impl Function {
    /// Reads the function of a debug information entry; `None` if the entry has no start address.
    pub(super) fn read(unit: UnitRef<'_, Slice>, offset: UnitOffset) -> Option<Self> {
        let entry = begins(unit, offset)?;
        let mut calls = Vec::new();
        let mut entries = unit.entries_at_offset(offset).ok()?;
        let top = entries.next_dfs().ok()??.depth();
        let mut within = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            if depth <= top || calls.len() >= CALLS_MAX {
                break;
            }
            // A nested function's calls are not those of this function.
            if within.is_some_and(|above| depth > above) {
                continue;
            }
            within = (entry.tag() == gimli::DW_TAG_subprogram).then_some(depth);
            let is_new = entry.tag() == gimli::DW_TAG_call_site;
            if !is_new && entry.tag() != gimli::DW_TAG_GNU_call_site {
                continue;
            }
            let [after, tail, origin] = match is_new {
                true => [
                    gimli::DW_AT_call_return_pc,
                    gimli::DW_AT_call_tail_call,
                    gimli::DW_AT_call_origin,
                ],
                false => [
                    gimli::DW_AT_low_pc,
                    gimli::DW_AT_GNU_tail_call,
                    gimli::DW_AT_abstract_origin,
                ],
            };
            let after = entry
                .attr_value(after)
                .and_then(|it| unit.attr_address(it).ok()?);
            let Some(after) = after else { continue };
            calls.push(Call {
                after,
                is_tail: entry.attr_value(tail).is_some(),
                target: entry.attr_value(origin).and_then(|it| target(unit, &it)),
            });
        }
        Some(Self { entry, calls })
    }
}

fn target(unit: UnitRef<'_, Slice>, origin: &AttributeValue<Slice>) -> Option<Target> {
    let AttributeValue::UnitRef(offset) = origin else {
        return None;
    };
    let entry = unit.entry(*offset).ok()?;
    if entry.attr_value(gimli::DW_AT_declaration).is_none() {
        return begins(unit, *offset).map(Target::At);
    }
    let linkage = text(unit, &entry, gimli::DW_AT_linkage_name);
    let name = linkage.or_else(|| text(unit, &entry, gimli::DW_AT_name));
    name.map(Target::Named)
}

fn begins(unit: UnitRef<'_, Slice>, offset: UnitOffset) -> Option<u64> {
    let entry = unit.entry(offset).ok()?;
    let mut ranges = unit.die_ranges(&entry).ok()?;
    Some(ranges.next().ok()??.begin)
}
