//! The mappings of a process, and their files.

use std::path::Path;
use std::rc::Rc;

use sdm_system::proc::{self, Mapping};

use crate::files::base_name;
use crate::module::{Module, Modules};

/// Maximum number of bytes of a function whose instructions are read.
pub(crate) const CODE_BYTES_MAX: u64 = 1 << 20;
/// The kernel's mark on the name of a mapped file that no longer has this name.
const REMOVED: &str = " (deleted)";

/// A process's mappings, by rising address, with the files of the executable ones.
pub(crate) struct Space {
    mappings: Vec<Mapping>,
    code: Vec<Code>,
    /// File name of the program, without directories; `None` if unknown.
    program: Option<String>,
    /// The addresses of the program that the kernel records; `None` if unknown.
    image: Option<Image>,
}

/// Start and end of a program's code, and start of its stack. They change at an `exec`.
type Image = [u64; 3];

/// An executable mapping.
struct Code {
    start: u64,
    end: u64,
    module: Option<(Rc<Module>, u64)>,
}

/// An address in a file.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) module: &'a Module,
    /// The address in the file, before relocation.
    pub(crate) address: u64,
    /// Load bias of the file.
    bias: u64,
}

impl Place<'_> {
    /// Address in the process of an address in the file.
    pub(crate) fn in_process(&self, address: u64) -> u64 {
        address.wrapping_add(self.bias)
    }

    /// Load bias of the file.
    pub(crate) fn bias(&self) -> u64 {
        self.bias
    }

    /// Address in the file of an address in the process.
    pub(crate) fn of_process(&self, address: u64) -> u64 {
        address.wrapping_sub(self.bias)
    }
}

impl Space {
    /// The mappings of a process. The files of the executable ones are opened here.
    ///
    /// # Errors
    /// The process has ended, or its mappings cannot be read.
    pub(crate) fn of(pid: i32, modules: &mut Modules) -> std::io::Result<Self> {
        let process = proc::of(pid).living();
        // Read first, so that an `exec` meanwhile is noticed.
        let image = image(pid);
        let mappings = process.maps()?;
        let code = mappings.iter().filter(|it| it.is_executable());
        let code = code.map(|mapping| {
            let module = modules.of(&process, mapping);
            let bias = module.and_then(|it| Some((it.image.bias(mapping)?, it)));
            Code {
                start: mapping.start,
                end: mapping.end,
                module: bias.map(|(bias, module)| (module, bias)),
            }
        });
        let code = code.collect();
        let program = process.program().ok();
        Ok(Self {
            image,
            mappings,
            code,
            program: program.map(|path| base_name(&path)),
        })
    }

    /// True if the process still executes the same program; false also if that is not known.
    pub(crate) fn is_of(&self, pid: i32) -> bool {
        self.image.is_some() && self.image == image(pid)
    }

    /// True if the process has executed another program since its mappings were read.
    pub(crate) fn is_outdated(&self, pid: i32) -> bool {
        let both = self.image.zip(image(pid));
        both.is_some_and(|(then, now)| then != now)
    }

    fn code_at(&self, address: u64) -> Option<&Code> {
        let after = self.code.partition_point(|it| it.start <= address);
        let code = self.code.get(after.checked_sub(1)?)?;
        (address < code.end).then_some(code)
    }

    /// True if an address is in executable memory.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.code_at(address).is_some()
    }

    /// The file and the address in it of an address in the process; `None` if no readable file has code there.
    pub(crate) fn place(&self, address: u64) -> Option<Place<'_>> {
        let (module, bias) = self.code_at(address)?.module.as_ref()?;
        Some(Place {
            module,
            address: address.wrapping_sub(*bias),
            bias: *bias,
        })
    }

    /// Bytes of code at an address; `None` if the file does not have all of them.
    pub(crate) fn code(&self, address: u64, count: u64) -> Option<&[u8]> {
        let place = self.place(address)?;
        place.module.image.code(place.address, count)
    }

    /// The function that contains an address, by the symbols: its start, and its code. `None` without such a symbol.
    pub(crate) fn function_code(&self, address: u64) -> Option<(u64, &[u8])> {
        let place = self.place(address)?;
        let range = place.module.symbols().range(place.address)?;
        let bytes = range.end.saturating_sub(range.start).min(CODE_BYTES_MAX);
        let code = place.module.image.code_from(range.start, bytes)?;
        Some((place.in_process(range.start), code))
    }

    /// Bytes of code from an address on, as far as the file has them, and at most `count_max`. `None` if it has none
    /// there.
    pub(crate) fn code_from(&self, address: u64, count_max: u64) -> Option<&[u8]> {
        let place = self.place(address)?;
        place.module.image.code_from(place.address, count_max)
    }

    /// True if a function begins at an address without code in front of it: no call can precede it.
    pub(crate) fn begins_at(&self, address: u64) -> bool {
        let is_known = |address: u64| {
            let place = self.place(address);
            place.is_some_and(|it| it.module.rules().is_known(it.address))
        };
        address
            .checked_sub(1)
            .is_some_and(|before| !is_known(before))
            && is_known(address)
    }

    /// The files, each with its load bias.
    fn modules(&self) -> impl Iterator<Item = &(Rc<Module>, u64)> {
        let mut last = None;
        let modules = self.code.iter().filter_map(|it| it.module.as_ref());
        modules
            .filter(move |(module, _)| last.replace(Rc::as_ptr(module)) != Some(Rc::as_ptr(module)))
    }

    /// Address of a variable, in the first file that has a variable of this name; `None` if none has.
    pub(crate) fn variable(&self, name: &str) -> Option<u64> {
        self.modules().find_map(|(module, bias)| {
            let at = module.symbols().variable(&module.image, name)?;
            Some(at.wrapping_add(*bias))
        })
    }

    /// The variable that contains an address, and the offset in the variable; `None` if no variable does.
    pub(crate) fn variable_at(&self, address: u64) -> Option<(&'static str, u64)> {
        self.modules().find_map(|(module, bias)| {
            let at = address.wrapping_sub(*bias);
            let is_in = module.image.is_loaded(at);
            is_in
                .then(|| module.symbols().variable_at(&module.image, at))
                .flatten()
        })
    }

    /// Name of the file with the code at an address, if it was removed or replaced after it was mapped; otherwise
    /// `None`.
    pub(crate) fn removed_file(&self, address: u64) -> Option<String> {
        let mapping = self.mappings.iter().find(|it| it.holds(address))?;
        let is_read = self.place(address).is_some();
        let name = mapping.file().filter(|_| !is_read).map(base_name)?;
        name.strip_suffix(REMOVED).map(str::to_owned)
    }

    /// Start of the function at an address, from the unwind tables; `None` if they do not have it.
    pub(crate) fn begins(&self, address: u64) -> Option<u64> {
        let place = self.place(address)?;
        let begin = place.module.rules().begins(place.address)?;
        Some(place.in_process(begin))
    }

    /// Name of the program's file; empty if unknown.
    pub(crate) fn program(&self) -> &str {
        self.program.as_deref().unwrap_or_default()
    }

    /// The file's name in frames; empty for the program itself.
    pub(crate) fn module_name(&self, module: &Module) -> String {
        match self.program.as_deref() == Some(module.name.as_str()) {
            true => String::new(),
            false => module.name.clone(),
        }
    }

    /// The name of a mapping, and the offset of an address from the first adjacent mapping of that name. `None` if
    /// nothing with a name is mapped at the address.
    pub(crate) fn offset(&self, address: u64) -> Option<(&Path, u64)> {
        let holder = self.mappings.iter().find(|it| it.holds(address))?;
        if holder.name.is_empty() {
            return None;
        }
        let at = self
            .mappings
            .iter()
            .position(|it| std::ptr::eq(it, holder))?;
        let before = self.mappings[..at].iter().rev();
        let first = before
            .filter(|it| !it.name.is_empty())
            .take_while(|it| it.name == holder.name)
            .last();
        let start = first.unwrap_or(holder).start;
        Some((Path::new(&holder.name), address.checked_sub(start)?))
    }
}

/// Reads the addresses of [`Image`] from `/proc/PID/stat`; `None` if the process has ended, or the kernel hides them
/// from this user.
fn image(pid: i32) -> Option<Image> {
    let stat = proc::of(pid).living().stat().ok()?;
    let field = |number| stat.field(number);
    let start = field(26)?;
    (start != 0).then_some([start, field(27)?, field(28)?])
}
