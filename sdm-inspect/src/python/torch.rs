//! The arguments of an operation of PyTorch's package `torch.distributed`: its process group, and the ranks that it
//! names. They are read from the variables of the Python function and from the tables of its module.

use super::{Reader, Runtime};
use crate::memory::{Memory, read_u64};

/// Names of the variables for the process group, and for the ranks of a process group that is being made.
const GROUP: &str = "group";
const RANKS: &str = "ranks";
/// Names of the module's tables: the ranks of each process group, and its name.
const RANKS_OF_GROUPS: &str = "_pg_group_ranks";
const NAMES_OF_GROUPS: &str = "_pg_names";
/// The names by which programs import PyTorch's packages, and the names of the packages and modules in these.
const PACKAGES: [&str; 5] = ["torch", "dist", "distributed", "c10d", "distributed_c10d"];

/// Offsets: of the variables in a module, of the number of members in a tuple or list, and of the members. A list has a
/// pointer to its members.
const VARIABLES_OF_MODULE: u64 = 16;
const COUNT: u64 = 16;
const MEMBERS: u64 = 24;

/// Maximum number of entries of a dictionary, and of variables of a function, that are read.
const ENTRIES_MAX: u64 = 1 << 16;
const VARIABLES_MAX: u64 = 256;

/// A process group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessGroup {
    /// The group of all ranks, which `init_process_group` makes.
    Default,
    /// Another group.
    Made {
        /// The name of the group, which is the same at all its ranks: `1`.
        name: String,
        /// The ranks in the job of the group's members, in the order of their ranks in the group.
        ranks: Vec<u32>,
    },
}

/// The arguments of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TorchArguments {
    /// The process group; `None` if it cannot be read.
    pub group: Option<ProcessGroup>,
    /// The ranks of the process group that the operation makes; `None` for other operations.
    pub ranks: Option<Vec<u32>>,
    /// The variables that are numbers, by name.
    pub numbers: Vec<(String, i64)>,
}

impl TorchArguments {
    /// Reads the arguments of the operation that the frame at this address runs. `None` if the version of Python is not
    /// supported, or if the frame's data is inconsistent.
    #[must_use]
    pub fn read(memory: &dyn Memory, runtime: Runtime, frame: u64) -> Option<Self> {
        Reader::of(memory, runtime)?.torch_arguments(frame)
    }

    /// Reads the process group of an operation that runs inside the frame at this address, if the frame's variables do
    /// not name the group. The group is known only if the process has made no group but the default one. `None` if the
    /// module's table of groups cannot be read.
    #[must_use]
    pub fn below(memory: &dyn Memory, runtime: Runtime, frame: u64) -> Option<Self> {
        let reader = Reader::of(memory, runtime)?;
        let groups = reader.table(&reader.module(frame)?, RANKS_OF_GROUPS)?;
        Some(Self {
            group: (groups.len() == 1).then_some(ProcessGroup::Default),
            ..Self::default()
        })
    }

    /// The number in the variable of this name; `None` if there is none.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<i64> {
        let mut numbers = self.numbers.iter();
        numbers
            .find(|(known, _)| known == name)
            .map(|(_, number)| *number)
    }
}

/// The keys and values of a dictionary, as addresses.
type Entries = Vec<(u64, u64)>;

impl Reader<'_> {
    fn torch_arguments(&self, frame: u64) -> Option<TorchArguments> {
        let layout = self.layout;
        let code = self.address(frame.checked_add(layout.frame.code)?)?;
        let names = self.members(self.address(code + layout.code.variable_names)?)?;
        let mut found = TorchArguments::default();
        let mut group = None;
        for (at, name) in (0..).zip(names) {
            let object = self.address(frame + layout.frame.variables + 8 * at)?;
            if object == 0 {
                continue;
            }
            match self.text(name)? {
                name if name == GROUP => group = Some(object),
                name if name == RANKS => found.ranks = self.ranks(object),
                name => {
                    let number = self.number(object);
                    found.numbers.extend(number.map(|number| (name, number)));
                }
            }
        }
        found.group = group.and_then(|group| self.process_group(frame, group));
        Some(found)
    }

    /// The process group in a variable, in which Python's `None` stands for the default group. `None` if it cannot be
    /// read.
    fn process_group(&self, frame: u64, group: u64) -> Option<ProcessGroup> {
        let module = self.module(frame)?;
        let ranks = self.table(&module, RANKS_OF_GROUPS)?;
        // The default group is made first.
        let (default, _) = ranks.first()?;
        if group == *default || self.is_of_type(group, "NoneType") {
            return Some(ProcessGroup::Default);
        }
        let of_group = |table: &Entries| {
            let mut table = table.iter();
            let found = table.find(|(key, _)| *key == group);
            found.map(|(_, value)| *value)
        };
        let mut pairs = Vec::new();
        for (rank, within) in self.entries(of_group(&ranks)?)? {
            pairs.push((self.number(within)?, self.rank(rank)?));
        }
        pairs.sort_unstable();
        Some(ProcessGroup::Made {
            name: self.text(of_group(&self.table(&module, NAMES_OF_GROUPS)?)?)?,
            ranks: pairs.into_iter().map(|(_, rank)| rank).collect(),
        })
    }

    /// The variables of the module that has the tables: the frame's own module, or one that this module has imported.
    /// `None` if it is not found.
    fn module(&self, frame: u64) -> Option<Entries> {
        let globals = self.address(frame.checked_add(self.layout.frame.globals)?)?;
        let mut module = self.entries(globals)?;
        for _ in PACKAGES {
            if self.value(&module, RANKS_OF_GROUPS).is_some() {
                return Some(module);
            }
            let mut named = PACKAGES.iter().rev();
            let inner = named.find_map(|name| {
                let value = self.value(&module, name);
                value.filter(|value| self.is_of_type(*value, "module"))
            })?;
            module = self.entries(self.address(inner + VARIABLES_OF_MODULE)?)?;
        }
        None
    }

    /// A dictionary that is a variable of a module; `None` if there is none of this name.
    fn table(&self, module: &Entries, name: &str) -> Option<Entries> {
        self.entries(self.value(module, name)?)
    }

    /// The value for a key in a dictionary, as an address; `None` if the key is missing.
    fn value(&self, entries: &Entries, name: &str) -> Option<u64> {
        let length = name.len() as u64;
        let at = self.layout.objects.text_length;
        let mut entries = entries.iter();
        let is_it = |key: u64| {
            self.address(key + at) == Some(length) && self.text(key).as_deref() == Some(name)
        };
        let found = entries.find(|(key, _)| is_it(*key));
        found.map(|(_, value)| *value)
    }

    /// The ranks in a list; `None` for other objects.
    fn ranks(&self, list: u64) -> Option<Vec<u32>> {
        if !self.is_of_type(list, "list") {
            return None;
        }
        let count = self.address(list + COUNT)?;
        let members = self.address(list + MEMBERS)?;
        let rank = |at| self.rank(self.address(members + 8 * at)?);
        let ranks = (0..count).take_while(|_| count <= ENTRIES_MAX);
        ranks.map(rank).collect()
    }

    fn rank(&self, object: u64) -> Option<u32> {
        u32::try_from(self.number(object)?).ok()
    }

    /// The first members of a tuple, as addresses; `None` if they cannot be read.
    fn members(&self, tuple: u64) -> Option<Vec<u64>> {
        let count = self.address(tuple + COUNT)?.min(VARIABLES_MAX);
        (0..count)
            .map(|at| self.address(tuple + MEMBERS + 8 * at))
            .collect()
    }

    /// The keys and values of a dictionary, in the order in which they were added. `None` if they cannot be read, or if
    /// there are too many.
    fn entries(&self, dictionary: u64) -> Option<Entries> {
        const KEYS: u64 = 32;
        const KIND_OF_TEXTS: u8 = 1;
        let keys = self.address(dictionary + KEYS)?;
        let mut head = [0; 32];
        self.memory.read(keys, &mut head)?;
        let (index_bits, kind) = (head[9], head[10]);
        let (_, count) = head.split_last_chunk::<8>()?;
        let count = u64::from_ne_bytes(*count);
        if count > ENTRIES_MAX || index_bits > 32 {
            return None;
        }
        // Keys of other kinds than texts have their hash in front of them.
        let (size, key) = match kind {
            0 => (24, 8),
            KIND_OF_TEXTS => (16, 0),
            _ => return None,
        };
        let first = keys + 32 + (1_u64 << index_bits);
        let entry = |at: u64| {
            let entry = first + size * at + key;
            Some((self.address(entry)?, self.address(entry + 8)?))
        };
        let all: Option<Entries> = (0..count).map(entry).collect();
        // A removed entry has neither.
        Some(all?.into_iter().filter(|(_, value)| *value != 0).collect())
    }

    /// The value of an `int` that fits into 60 bits. `None` for other objects.
    fn number(&self, object: u64) -> Option<i64> {
        const DIGITS: u64 = 24;
        const DIGIT_BITS: u32 = 30;
        if !self.is_of_type(object, "int") {
            return None;
        }
        let count = read_u64(self.memory, object + super::variables::NUMBER)?;
        let (count, is_negative) = match self.layout.objects.has_tagged_numbers {
            true => (count >> 3, count & 3 == 2),
            false => {
                let signed = count.cast_signed();
                (signed.unsigned_abs(), signed < 0)
            }
        };
        let digits = read_u64(self.memory, object + DIGITS)?;
        let (low, high) = (digits & u64::from(u32::MAX), digits >> 32);
        let value = match count {
            0 => 0,
            1 => low,
            2 => low | high << DIGIT_BITS,
            _ => return None,
        };
        let value = i64::try_from(value).ok()?;
        Some(if is_negative { -value } else { value })
    }

    /// True for an object of the type with this name.
    fn is_of_type(&self, object: u64, name: &str) -> bool {
        self.type_name(object, name.len() + 1)
            .is_some_and(|bytes| bytes.strip_suffix(b"\0") == Some(name.as_bytes()))
    }

    /// The first `length` bytes of the name of an object's type; `None` if they cannot be read.
    fn type_name(&self, object: u64, length: usize) -> Option<Vec<u8>> {
        let class = self.address(object.checked_add(super::variables::TYPE)?)?;
        let name = self.address(class + super::variables::TYPE_NAME)?;
        let mut bytes = vec![0; length];
        self.memory.read(name, &mut bytes)?;
        Some(bytes)
    }
}
