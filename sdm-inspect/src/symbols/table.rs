//! The names of functions and variables in a file's symbol table, and of functions that it imports.

use std::collections::HashMap;
use std::ops::Range;

use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SymbolKind};

use crate::elf::Image;

/// A symbol with its address and size; size 0 if unknown.
struct Named {
    address: u64,
    bytes: u64,
    is_global: bool,
    /// False for a variable, and for a label, which can be inside a function.
    is_function: bool,
    name: &'static str,
}

/// All function symbols of a file, by ascending address.
pub(super) struct Table(Vec<Named>);

impl Table {
    /// Reads the function symbols of a file, from its stripped and its unstripped form.
    pub(super) fn of<'a>(images: impl Iterator<Item = &'a Image>) -> Self {
        let mut all = Vec::new();
        for image in images {
            let symbols = image.file.symbols().chain(image.file.dynamic_symbols());
            for symbol in symbols {
                let is_code = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown);
                let is_here = symbol.is_definition() || symbol.kind() == SymbolKind::Unknown;
                if !is_code || !is_here || symbol.address() == 0 || symbol.is_undefined() {
                    continue;
                }
                if let Ok(name) = symbol.name()
                    && !name.is_empty()
                {
                    all.push(Named {
                        address: symbol.address(),
                        bytes: symbol.size(),
                        is_global: symbol.is_global(),
                        is_function: symbol.kind() == SymbolKind::Text
                            || symbol.address() == image.file.entry(),
                        name: name.split('@').next().unwrap_or(name),
                    });
                }
            }
        }
        // Of several names for one address the last one counts, as in gdb.
        all.sort_unstable_by_key(|it| (it.address, it.bytes != 0, it.is_global, it.name));
        Self(all)
    }

    /// The name of the function that contains an address, demangled; `None` if no symbol covers it.
    pub(super) fn name(&self, address: u64) -> Option<String> {
        let before = self.0.partition_point(|it| it.address <= address);
        let mut known = self.0[..before].iter().rev().take(NEIGHBOURS_MAX);
        let holder = known.find(|it| it.bytes == 0 || address - it.address < it.bytes)?;
        Some(super::demangle::demangled(holder.name))
    }

    /// Start and end of the function that contains an address. `None` if no symbol covers it, and for a part of a
    /// function that is placed elsewhere.
    pub(super) fn range(&self, address: u64) -> Option<Range<u64>> {
        let after = self.0.partition_point(|it| it.address <= address);
        let mut known = self.0[..after].iter().rev().take(NEIGHBOURS_MAX);
        let holder = known
            .find(|it| it.is_function && (it.bytes == 0 || address - it.address < it.bytes))?;
        let mut others = self.0[after..].iter().filter(|it| it.is_function);
        let end = match holder.bytes {
            0 => others.next().map_or(u64::MAX, |next| next.address),
            bytes => holder.address.saturating_add(bytes),
        };
        let is_part = holder.name.contains(PART);
        (!is_part).then_some(holder.address..end)
    }

    /// Address of the function of this name; `None` if there is none.
    pub(super) fn address_of(&self, name: &str) -> Option<u64> {
        let named = self.0.iter().find(|it| it.name == name)?;
        Some(named.address)
    }

    /// The linker name of the function that begins at an address; `None` if none does.
    pub(super) fn begins(&self, address: u64) -> Option<&'static str> {
        let after = self.0.partition_point(|it| it.address <= address);
        let last = self.0[..after].last()?;
        (last.address == address).then_some(last.name)
    }
}

/// The linker names of a file's variables, by rising address.
pub(super) struct Variables(Vec<Named>);

impl Variables {
    /// Reads the variable symbols of a file, from its stripped and its unstripped form.
    pub(super) fn of<'a>(images: impl Iterator<Item = &'a Image>) -> Self {
        let symbols = images.flat_map(|it| it.file.symbols().chain(it.file.dynamic_symbols()));
        let variables = symbols.filter(|it| it.kind() == SymbolKind::Data && it.is_definition());
        let named = variables.filter_map(|symbol| {
            Some(Named {
                address: symbol.address(),
                bytes: symbol.size(),
                is_global: symbol.is_global(),
                is_function: false,
                name: symbol.name().ok().filter(|name| !name.is_empty())?,
            })
        });
        let mut all: Vec<Named> = named.collect();
        all.sort_unstable_by_key(|it| (it.address, it.is_global, it.name));
        Self(all)
    }

    /// Address of the variable of this name, of a global one rather than a local one; `None` if there is none.
    pub(super) fn address_of(&self, name: &str) -> Option<u64> {
        let mut named = self.0.iter().filter(|it| it.name == name);
        let first = named.next()?;
        let global = named.find(|it| it.is_global && !first.is_global);
        Some(global.unwrap_or(first).address)
    }

    /// The variable that contains an address, and the offset in the variable; `None` if none does.
    pub(super) fn at(&self, address: u64) -> Option<(&'static str, u64)> {
        let before = self.0.partition_point(|it| it.address <= address);
        let last = self.0[..before].last()?;
        let within = address - last.address;
        (within < last.bytes.max(1)).then_some((last.name, within))
    }
}

/// A part of the names of function parts that compilers place elsewhere, because they are seldom reached.
const PART: &str = ".cold";
/// Maximum number of symbols in front of an address that are examined. A function can have several symbols, and parts
/// of other functions lie between.
const NEIGHBOURS_MAX: usize = 64;

/// Maximum number of a file's slots that are examined.
const IMPORTS_MAX: usize = 1 << 20;

/// The names of other files' functions, by the slots to which the loader writes their addresses.
pub(super) fn imports(image: &Image) -> HashMap<u64, &'static str> {
    let relocations = image.file.dynamic_relocations().into_iter().flatten();
    let Some(symbols) = image.file.dynamic_symbol_table() else {
        return HashMap::new();
    };
    let named = relocations
        .take(IMPORTS_MAX)
        .filter_map(|(at, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            let name = symbols.symbol_by_index(index).ok()?.name().ok()?;
            let name = name.split('@').next().unwrap_or(name);
            (!name.is_empty()).then_some((at, name))
        });
    named.collect()
}
