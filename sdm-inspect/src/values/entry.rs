//! Debug information entries of the variables of a function and of its file.

use gimli::{AttributeValue, DwAt, DwLang, UnitOffset};

use super::scope::{Object, Scope};
use crate::elf::Slice;
use crate::symbols::{is_fortran, text};

/// Maximum number of references that are followed from an entry to the entry that it is a copy of.
const HOPS_MAX: usize = 8;
/// Maximum number of entries of a function or a file that are examined.
const ENTRIES_MAX: usize = 1 << 16;

pub(super) type Entry = gimli::DebuggingInformationEntry<Slice>;

/// A local variable or parameter of a function.
pub(super) struct Local {
    pub(super) name: String,
    pub(super) offset: UnitOffset,
    pub(super) is_parameter: bool,
    /// Nesting depth of the variable's entry, which grows with each enclosing block.
    pub(super) depth: isize,
}

impl Scope<'_> {
    /// An attribute of an entry, or of its abstract origin or specification; `None` if none has it.
    pub(super) fn attribute(
        &self,
        offset: UnitOffset,
        name: DwAt,
    ) -> Option<AttributeValue<Slice>> {
        let mut offset = offset;
        for _ in 0..HOPS_MAX {
            let entry = self.unit.entry(offset).ok()?;
            if let Some(value) = entry.attr_value(name) {
                return Some(value);
            }
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            let origin = origin.or_else(|| entry.attr_value(gimli::DW_AT_specification));
            let Some(AttributeValue::UnitRef(next)) = origin else {
                return None;
            };
            offset = next;
        }
        None
    }

    /// The name of an entry, or of its abstract origin; `None` if none has one.
    pub(super) fn name(&self, offset: UnitOffset) -> Option<String> {
        let mut offset = offset;
        for _ in 0..HOPS_MAX {
            let entry = self.unit.entry(offset).ok()?;
            if let Some(name) = text(self.unit, &entry, gimli::DW_AT_name) {
                return Some(name);
            }
            match entry.attr_value(gimli::DW_AT_abstract_origin)? {
                AttributeValue::UnitRef(next) => offset = next,
                _ => return None,
            }
        }
        None
    }

    /// The type of an entry; `None` if it has none.
    pub(super) fn kind(&self, offset: UnitOffset) -> Option<UnitOffset> {
        match self.attribute(offset, gimli::DW_AT_type)? {
            AttributeValue::UnitRef(kind) => Some(kind),
            _ => None,
        }
    }

    /// The location and type of a variable's entry; `None` if one of them is not known.
    pub(super) fn object(&self, offset: UnitOffset) -> Option<Object> {
        let place = self.place(offset)?;
        let kind = self.kind(offset)?;
        Some(Object { place, kind })
    }

    /// The variables of the function in scope at its current address.
    pub(super) fn locals(&self) -> Vec<Local> {
        let mut locals = Vec::new();
        let Ok(mut entries) = self.unit.entries_at_offset(self.function) else {
            return locals;
        };
        let Ok(Some(top)) = entries.next_dfs().map(|top| top.map(Entry::depth)) else {
            return locals;
        };
        let mut apart = None;
        let mut left = ENTRIES_MAX;
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            left -= 1;
            if depth <= top || left == 0 {
                break;
            }
            if apart.is_some_and(|above| depth > above) {
                continue;
            }
            apart = None;
            let is_parameter = entry.tag() == gimli::DW_TAG_formal_parameter;
            match entry.tag() {
                gimli::DW_TAG_formal_parameter | gimli::DW_TAG_variable => {
                    let offset = entry.offset();
                    locals.extend(self.name(offset).map(|name| Local {
                        name,
                        offset,
                        is_parameter,
                        depth,
                    }));
                }
                gimli::DW_TAG_lexical_block if self.is_in(entry) => {}
                _ => apart = Some(depth),
            }
        }
        locals
    }

    fn is_in(&self, block: &Entry) -> bool {
        let Ok(mut ranges) = self.unit.die_ranges(block) else {
            return false;
        };
        while let Ok(Some(range)) = ranges.next() {
            if (range.begin..range.end).contains(&self.address) {
                return true;
            }
        }
        false
    }

    /// True if the function's source language is Fortran.
    pub(super) fn is_fortran(&self) -> bool {
        is_fortran(self.language())
    }

    /// The function's source language; `None` if unknown.
    pub(super) fn language(&self) -> Option<DwLang> {
        let root = self.unit.entry(self.unit.header.root_offset()).ok()?;
        match root.attr_value(gimli::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// The variable with a name: the innermost local variable, or else a variable of an enclosing function or of the
    /// file. `None` if it is not found.
    pub(super) fn find(&self, name: &str) -> Option<Object> {
        let locals = self.locals().into_iter().filter(|it| it.name == name);
        match locals.max_by_key(|it| it.depth) {
            Some(local) => self.object(local.offset),
            None => self.object(self.of_host(name).or_else(|| self.global(name))?),
        }
    }

    /// The variable of this name in an enclosing function that has no frame of its own; `None` if it is not static, or
    /// not found.
    fn of_host(&self, name: &str) -> Option<UnitOffset> {
        let mut hosts = self.hosts().into_iter().rev();
        hosts.find_map(|host| {
            let mut variables = self.children(host).into_iter();
            let is_it = |of: UnitOffset| self.name(of).as_deref() == Some(name);
            let found =
                variables.find(|(offset, tag)| *tag == gimli::DW_TAG_variable && is_it(*offset))?;
            self.is_fixed(found.0).then_some(found.0)
        })
    }

    /// True if a Fortran expression contains the name of a local variable of the function.
    pub(crate) fn has_any_of(&self, expression: &str) -> bool {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let names = expression.split(|c: char| !is_part(c));
        let names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
        self.locals()
            .iter()
            .any(|local| names.contains(&local.name))
    }

    /// The entries of the functions that enclose this function, outermost first. In Fortran these include the host of a
    /// contained procedure.
    pub(crate) fn hosts(&self) -> Vec<UnitOffset> {
        let mut hosts: Vec<(isize, UnitOffset)> = Vec::new();
        let mut entries = self.unit.entries();
        let mut left = ENTRIES_MAX;
        while let Ok(Some(entry)) = entries.next_dfs() {
            left -= 1;
            if left == 0 {
                return Vec::new();
            }
            hosts.retain(|(depth, _)| *depth < entry.depth());
            if entry.offset() == self.function {
                return hosts.into_iter().map(|(_, host)| host).collect();
            }
            if entry.tag() == gimli::DW_TAG_subprogram {
                hosts.push((entry.depth(), entry.offset()));
            }
        }
        Vec::new()
    }

    fn global(&self, name: &str) -> Option<UnitOffset> {
        let mut entries = self.unit.entries();
        entries.next_dfs().ok()?;
        let mut left = ENTRIES_MAX;
        let mut found = None;
        while let Ok(Some(entry)) = entries.next_dfs() {
            left = left.checked_sub(1)?;
            let is_wanted = entry.depth() == 1 && entry.tag() == gimli::DW_TAG_variable;
            if is_wanted && self.name_or_declared(entry).as_deref() == Some(name) {
                found = Some(entry.offset());
                // A definition has a location, a declaration has not.
                if entry.attr_value(gimli::DW_AT_location).is_some() {
                    break;
                }
            }
        }
        found
    }

    fn name_or_declared(&self, entry: &Entry) -> Option<String> {
        let own = text(self.unit, entry, gimli::DW_AT_name);
        own.or_else(|| match entry.attr_value(gimli::DW_AT_specification)? {
            AttributeValue::UnitRef(offset) => self.name(offset),
            _ => None,
        })
    }
}
