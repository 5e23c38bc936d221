//! Executable files that processes of this host have mapped. Each is opened and read once for all processes.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sdm_system::proc::{self, Mapping, Process};

use crate::elf::Image;
use crate::files::{Opened, base_name, below};
use crate::frame_rules::Rules;
use crate::symbols::{Function, Line, Symbols};
use sdm_system::process_memory::read_memory;

/// The name of the vDSO, the kernel's code in each process.
const OF_KERNEL: &str = "[vdso]";
/// Maximum size of the vDSO that is read, in bytes.
const OF_KERNEL_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of addresses per file whose names are cached.
const KNOWN_MAX: usize = 1 << 16;

/// A file with executable code.
pub(crate) struct Module {
    pub(crate) image: Image,
    /// The file name without directories, or the name of the link by which the loader has found the file.
    pub(crate) name: String,
    opened: Opened,
    /// Path of the file, by which its debug information is found too.
    path: PathBuf,
    of_system: bool,
    rules: OnceCell<Rules>,
    symbols: OnceCell<Symbols>,
    known: RefCell<HashMap<u64, Rc<[Line]>>>,
    functions: RefCell<HashMap<u64, Option<Rc<Function>>>>,
}

impl Module {
    fn new(opened: Opened, path: PathBuf, of_system: bool) -> Option<Self> {
        let image = Image::parse(opened.bytes)?;
        let file = base_name(&path);
        // The loader has found the file through a symbolic link, and gdb shows the link's name.
        let asked = image.name().filter(|name| file.starts_with(name.as_str()));
        Some(Self {
            image,
            name: asked.unwrap_or(file),
            opened,
            path,
            of_system,
            rules: OnceCell::new(),
            symbols: OnceCell::new(),
            known: RefCell::default(),
            functions: RefCell::default(),
        })
    }

    /// Unwind rules of the file's functions.
    pub(crate) fn rules(&self) -> &Rules {
        self.rules.get_or_init(|| {
            let is_loaded = !self.image.section(".eh_frame").is_empty();
            let debug = (!is_loaded).then(|| self.symbols().debug_image());
            Rules::of(&self.image, debug.flatten())
        })
    }

    /// The symbols of the file.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols
            .get_or_init(|| Symbols::of(&self.image, &self.opened, &self.path, self.of_system))
    }

    /// The functions and source lines at an address of the file, innermost first; at least one.
    pub(crate) fn lines(&self, address: u64) -> Rc<[Line]> {
        if let Some(known) = self.known.borrow().get(&address) {
            return Rc::clone(known);
        }
        let lines: Rc<[Line]> = match self.image.stub(address) {
            Some(stub) => [self.stub_line(stub)].into(),
            None => self.symbols().lines(address).into(),
        };
        remember(&self.known, address, Rc::clone(&lines));
        lines
    }

    /// The name of a PLT stub, as gdb has it. A stub has no symbol, and the symbols near it are of other functions.
    fn stub_line(&self, stub: u64) -> Line {
        let slot = self.image.stub_slot(stub);
        let name = slot.and_then(|it| self.symbols().imported(it));
        Line {
            function: name.map(|name| format!("{name}@plt")),
            ..Line::default()
        }
    }

    /// The function at an address of the file, with its calls; `None` if not known.
    pub(crate) fn function(&self, address: u64) -> Option<Rc<Function>> {
        if let Some(known) = self.functions.borrow().get(&address) {
            return known.clone();
        }
        let function = self.symbols().function(address).map(Rc::new);
        remember(&self.functions, address, function.clone());
        function
    }
}

/// Adds an entry to a cache by address. A full cache is cleared before.
fn remember<T>(known: &RefCell<HashMap<u64, T>>, address: u64, what: T) {
    let mut known = known.borrow_mut();
    if known.len() >= KNOWN_MAX {
        known.clear();
    }
    known.insert(address, what);
}

/// The identity of a mapped file: device, inode number, and name.
type Key = (String, u64, OsString);

/// All modules seen so far.
pub(crate) struct Modules {
    known: HashMap<Key, Option<Rc<Module>>>,
    of_system: bool,
}

impl Modules {
    /// No modules yet. With `of_system` the system's debug information is used too.
    pub(crate) fn new(of_system: bool) -> Self {
        let known = HashMap::new();
        Self { known, of_system }
    }

    /// The module of a process's mapping; `None` for a mapping without a file other than the vDSO, or if it cannot be
    /// read.
    pub(crate) fn of(&mut self, process: &Process, mapping: &Mapping) -> Option<Rc<Module>> {
        let key = (mapping.device.clone(), mapping.inode, mapping.name.clone());
        let of_system = self.of_system;
        let known = self.known.entry(key).or_insert_with(|| {
            let module = match mapping.name.to_str() {
                Some(OF_KERNEL) => of_kernel(),
                _ => of_file(process, mapping, of_system),
            };
            module.map(Rc::new)
        });
        known.clone()
    }
}

fn of_file(process: &Process, mapping: &Mapping, of_system: bool) -> Option<Module> {
    let root = root_of(process);
    let opened = Opened::mapped(process, &root, mapping).ok()?;
    Module::new(opened, below(&root, mapping.file()?), of_system)
}

/// Root directory for the file names of a process, which is another one in a container.
fn root_of(process: &Process) -> PathBuf {
    let mounts = |process: &Process| std::fs::read_link(process.path("ns/mnt")).ok();
    match mounts(process) == mounts(&proc::own()) {
        true => PathBuf::from("/"),
        false => process.path("root"),
    }
}

/// The vDSO, read from this process, as it is the same in every process; `None` if there is none.
fn of_kernel() -> Option<Module> {
    let own = proc::own();
    let maps = own.maps().ok()?;
    let mapping = maps.iter().find(|it| it.name == OF_KERNEL)?;
    let bytes = mapping.end.checked_sub(mapping.start)?;
    let bytes = usize::try_from(bytes.min(OF_KERNEL_BYTES_MAX)).ok()?;
    let mut copy = vec![0; bytes];
    let pid = std::process::id().cast_signed();
    let read = read_memory(pid, mapping.start, &mut copy).ok()?;
    copy.truncate(read);
    Module::new(
        Opened::of_kernel(copy.leak()),
        Path::new(OF_KERNEL).into(),
        false,
    )
}
