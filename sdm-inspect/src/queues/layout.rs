//! Layout of the Open MPI 4 structures that its debug library asks for, and a check whether a process has it.
//!
//! The debug library wants types from debug information, which distributions do not install. So the layout of versions
//! 4.0 and 4.1 on 64-bit Linux is a table here. The table is used only for a process whose memory agrees with it: the
//! classes in its memory contain their own names and sizes, and its communicators and request lists refer to one
//! another.

use std::collections::BTreeMap;

use sdm_debug::{Failure, FailureCode};
use sdm_foreign::queues::TypeLayout;
use sdm_mpi::symbols::{OPEN_MPI_COMMUNICATORS, OPEN_MPI_SELF, OPEN_MPI_WORLD};

use crate::memory::Memory;
use crate::mpi::Piece;

/// A type: its name, its size in bytes, and the offsets of its fields, in bytes.
type Row = (&'static str, u32, &'static [(&'static str, u32)]);

/// The types that the debug library asks for and uses. It asks for further fields of these types, and works without
/// them.
const OPEN_MPI_4: [Row; 18] = [
    ("opal_list_item_t", 40, &[("opal_list_next", 16)]),
    ("opal_list_t", 64, &[("opal_list_sentinel", 16)]),
    ("opal_free_list_item_t", 56, &[]),
    (
        "opal_free_list_t",
        352,
        &[
            ("fl_max_to_alloc", 80),
            ("fl_num_allocated", 88),
            ("fl_num_per_alloc", 96),
            ("fl_frag_size", 112),
            ("fl_frag_alignment", 120),
            ("fl_frag_class", 144),
            ("fl_mpool", 152),
            ("fl_allocations", 256),
        ],
    ),
    ("opal_hash_table_t", 72, &[]),
    (
        "ompi_request_t",
        160,
        &[
            ("req_type", 56),
            ("req_status", 64),
            ("req_complete", 88),
            ("req_state", 96),
        ],
    ),
    (
        "mca_pml_base_request_t",
        496,
        &[
            ("req_pml_complete", 160),
            ("req_type", 168),
            ("req_comm", 176),
            ("req_datatype", 184),
            ("req_addr", 456),
            ("req_count", 464),
            ("req_peer", 472),
            ("req_tag", 476),
            ("req_proc", 480),
            ("req_sequence", 488),
        ],
    ),
    (
        "mca_pml_base_send_request_t",
        520,
        &[("req_addr", 496), ("req_bytes_packed", 504)],
    ),
    (
        "mca_pml_base_recv_request_t",
        504,
        &[("req_bytes_packed", 496)],
    ),
    (
        "opal_pointer_array_t",
        120,
        &[
            ("lowest_free", 80),
            ("number_free", 84),
            ("size", 88),
            ("addr", 112),
        ],
    ),
    (
        "ompi_communicator_t",
        352,
        &[
            ("c_name", 160),
            ("c_contextid", 224),
            ("c_my_rank", 228),
            ("c_flags", 232),
            ("c_local_group", 248),
            ("c_remote_group", 256),
        ],
    ),
    ("mca_topo_base_module_t", 104, &[]),
    ("mca_topo_base_comm_cart_2_2_0_t", 48, &[]),
    ("mca_topo_base_comm_graph_2_2_0_t", 40, &[]),
    ("mca_topo_base_comm_dist_graph_2_2_0_t", 64, &[]),
    (
        "ompi_group_t",
        72,
        &[
            ("grp_proc_count", 16),
            ("grp_my_rank", 20),
            ("grp_proc_pointers", 32),
            ("grp_flags", 40),
        ],
    ),
    (
        "ompi_status_public_t",
        24,
        &[("MPI_SOURCE", 0), ("MPI_TAG", 4), ("_ucount", 16)],
    ),
    ("ompi_datatype_t", 304, &[("super", 0), ("name", 240)]),
];

/// The type with which `ompi_datatype_t` begins. The debug library asks for it separately.
const DATATYPE: Row = ("opal_datatype_t", 200, &[("size", 24)]);

/// Types for which the process has a class object, which states their size.
pub const WITH_CLASS: [&str; 15] = [
    "opal_list_item_t",
    "opal_list_t",
    "opal_free_list_item_t",
    "opal_free_list_t",
    "opal_hash_table_t",
    "ompi_request_t",
    "mca_pml_base_request_t",
    "mca_pml_base_send_request_t",
    "mca_pml_base_recv_request_t",
    "opal_pointer_array_t",
    "ompi_communicator_t",
    "mca_topo_base_module_t",
    "ompi_group_t",
    "ompi_datatype_t",
    "opal_datatype_t",
];

/// Variables that the debug library looks up.
pub const VARIABLES: [&str; 4] = [
    "MPIR_debug_typedefs_sizeof",
    OPEN_MPI_COMMUNICATORS,
    SENDS,
    RECEIVES,
];
/// The communicators by which the layout is checked.
pub const COMMUNICATORS: [&str; 2] = [OPEN_MPI_WORLD, OPEN_MPI_SELF];
const SENDS: &str = "mca_pml_base_send_requests";
const RECEIVES: &str = "mca_pml_base_recv_requests";

/// Size of a class object, and offsets of its fields, in bytes.
const CLASS_BYTES: usize = 64;
const CLASS_NAME: usize = 0;
const CLASS_PARENT: usize = 8;
const CLASS_SIZEOF: usize = 56;
/// Maximum number of classes between the class of a request and the general class of requests.
const ANCESTORS_MAX: usize = 8;
/// Maximum length of a class name, in bytes.
const NAME_BYTES: usize = 64;
/// Sizes of C types with which Open MPI was compiled, in bytes: short, int, long, long long, pointers, bool,
/// `size_t`.
const TYPE_SIZES: [i32; 7] = [2, 4, 8, 8, 8, 1, 8];
/// Maximum plausible number of allocated requests.
const REQUESTS_MAX: u64 = 1 << 24;

/// All types of the table.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    OPEN_MPI_4.iter().chain([&DATATYPE])
}

/// The table in the form for `sdm-pmix queues`.
pub fn table() -> Vec<TypeLayout> {
    let row = |(name, size_bytes, fields): &Row| TypeLayout {
        name: (*name).to_owned(),
        size_bytes: *size_bytes,
        fields: fields
            .iter()
            .map(|(field, at)| ((*field).to_owned(), *at))
            .collect(),
    };
    rows().map(row).collect()
}

/// The symbol of the class object of a type.
pub fn class_symbol(name: &str) -> String {
    format!("{name}_class")
}

/// An Open MPI process against whose memory a layout of the library's types is checked.
pub struct CheckedProcess<'a> {
    /// The memory of the process.
    pub memory: &'a dyn Memory,
    /// Addresses of the process's symbols.
    pub symbols: &'a BTreeMap<String, u64>,
    /// The layouts of the types in its memory.
    pub types: &'a [TypeLayout],
}

impl CheckedProcess<'_> {
    /// Checks the layout against the process.
    ///
    /// # Errors
    /// The process has another layout, or its messages are not where the library looks; the text names the
    /// difference.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_sizes()?;
        self.check_classes()?;
        self.check_communicators()?;
        self.check_list(SENDS, "mca_pml_base_send_request_t")?;
        self.check_list(RECEIVES, "mca_pml_base_recv_request_t")
    }

    fn check_sizes(&self) -> Result<(), Failure> {
        let sizes = self.at("MPIR_debug_typedefs_sizeof", 4 * TYPE_SIZES.len())?;
        let agrees = |(at, size): (usize, &i32)| sizes.number(4 * at) == *size;
        match TYPE_SIZES.iter().enumerate().all(agrees) {
            true => Ok(()),
            false => Err(unknown(
                "MPIR_debug_typedefs_sizeof has other sizes of C types than sdm knows",
            )),
        }
    }

    fn check_classes(&self) -> Result<(), Failure> {
        for name in WITH_CLASS {
            let class = self.at(&class_symbol(name), CLASS_BYTES)?;
            let own = text_at(self.memory, class.word(CLASS_NAME));
            if own.as_deref() != Some(name) {
                return Err(unknown(&format!(
                    "the class of {name} has an unexpected name"
                )));
            }
            let (size, known) = (class.word(CLASS_SIZEOF), self.layout(name)?.size_bytes);
            if size != u64::from(known) {
                let text = format!("{name} has {size} bytes instead of {known}");
                return Err(unknown(&text));
            }
        }
        Ok(())
    }

    /// Checks that `MPI_COMM_WORLD` and `MPI_COMM_SELF` are at their expected places, and that their groups are
    /// consistent.
    fn check_communicators(&self) -> Result<(), Failure> {
        let array = self.layout("opal_pointer_array_t")?;
        let list = self.at(OPEN_MPI_COMMUNICATORS, array.size_bytes as usize)?;
        if list.word(0) != self.symbol(&class_symbol("opal_pointer_array_t"))? {
            let text =
                "the rank is before MPI_Init or after MPI_Finalize, and has no message queues";
            return Err(Failure::new(FailureCode::Unsupported, text));
        }
        let (size, free) = (
            list.number(field(array, "size")?),
            list.number(field(array, "number_free")?),
        );
        let first = word_at(self.memory, list.word(field(array, "addr")?));
        let world = self.symbol(OPEN_MPI_WORLD)?;
        if first != Some(world) || size < 2 || !(0..size).contains(&free) {
            return Err(unknown("MPI_COMM_WORLD is not the first communicator"));
        }
        for (number, name) in COMMUNICATORS.into_iter().enumerate() {
            self.check_communicator(name, i32::try_from(number).unwrap_or(0))?;
        }
        Ok(())
    }

    fn check_communicator(&self, name: &str, number: i32) -> Result<(), Failure> {
        let wrong = || unknown(&format!("the data at {name} do not have the known layout"));
        let of = self.layout("ompi_communicator_t")?;
        let known = self.at(name, of.size_bytes as usize)?;
        let of_group = self.layout("ompi_group_t")?;
        let group = known.word(field(of, "c_local_group")?);
        if known.word(field(of, "c_remote_group")?) != group {
            return Err(wrong());
        }
        let group = Piece::read(self.memory, group, of_group.size_bytes as usize);
        let group = group.ok_or_else(wrong)?;
        let rank = known.number(field(of, "c_my_rank")?);
        let count = group.number(field(of_group, "grp_proc_count")?);
        let fits = group.word(0) == self.symbol(&class_symbol("ompi_group_t"))?
            && known.number(field(of, "c_contextid")?) == number
            && group.number(field(of_group, "grp_my_rank")?) == rank
            && (0..count).contains(&rank)
            && (number == 0 || count == 1);
        fits.then_some(()).ok_or_else(wrong)
    }

    /// Checks that the requests of a list are of a class that the debug library supports, and not of another PML.
    fn check_list(&self, symbol: &str, of: &str) -> Result<(), Failure> {
        let layout = self.layout("opal_free_list_t")?;
        let list = self.at(symbol, layout.size_bytes as usize)?;
        if list.word(0) != self.symbol(&class_symbol("opal_free_list_t"))? {
            return Err(unknown(&format!("{symbol} is not a list of requests")));
        }
        let wanted = self.symbol(&class_symbol(of))?;
        let own = list.word(field(layout, "fl_frag_class")?);
        let parent = |class: &u64| {
            let class = Piece::read(self.memory, *class, CLASS_BYTES)?;
            Some(class.word(CLASS_PARENT)).filter(|parent| *parent != 0)
        };
        let mut ancestors = std::iter::successors(Some(own), parent).take(ANCESTORS_MAX);
        if !ancestors.any(|class| class == wanted) {
            let class = Piece::read(self.memory, own, CLASS_BYTES);
            let name = class.and_then(|class| text_at(self.memory, class.word(CLASS_NAME)));
            let name = name.unwrap_or_else(|| "unnamed".to_owned());
            let text = format!(
                "Open MPI sends by requests that its debug library does not support (class: {name}), as with the PMLs ucx and cm"
            );
            return Err(Failure::new(FailureCode::Unsupported, text));
        }
        let size = list.word(field(layout, "fl_frag_size")?);
        let alignment = list.word(field(layout, "fl_frag_alignment")?);
        let fits = size >= u64::from(self.layout(of)?.size_bytes)
            && alignment.is_power_of_two()
            && list.word(field(layout, "fl_num_per_alloc")?) > 0
            && list.word(field(layout, "fl_num_allocated")?) <= REQUESTS_MAX;
        fits.then_some(()).ok_or_else(|| {
            unknown(&format!(
                "the data at {symbol} do not have the known layout"
            ))
        })
    }

    fn layout(&self, name: &str) -> Result<&TypeLayout, Failure> {
        let found = self.types.iter().find(|known| known.name == name);
        found.ok_or_else(|| unknown(&format!("the type {name} is unknown")))
    }

    fn symbol(&self, name: &str) -> Result<u64, Failure> {
        let found = self.symbols.get(name).copied();
        found.ok_or_else(|| unknown(&format!("the library has no symbol {name}")))
    }

    fn at(&self, symbol: &str, bytes: usize) -> Result<Piece, Failure> {
        let found = Piece::read(self.memory, self.symbol(symbol)?, bytes);
        found.ok_or_else(|| unknown(&format!("{symbol} cannot be read")))
    }
}

fn field(of: &TypeLayout, name: &str) -> Result<usize, Failure> {
    let found = of.fields.iter().find(|(known, _)| known == name);
    match found {
        Some((_, at)) => Ok(*at as usize),
        None => Err(unknown(&format!("{} has no {name}", of.name))),
    }
}

fn unknown(why: &str) -> Failure {
    let text = format!("the layout of this Open MPI is unknown: {why}");
    Failure::new(FailureCode::Unsupported, text)
}

fn word_at(memory: &dyn Memory, address: u64) -> Option<u64> {
    Piece::read(memory, address, 8).map(|piece| piece.word(0))
}

/// A null-terminated text of at most `NAME_BYTES` bytes at an address; `None` for other contents.
fn text_at(memory: &dyn Memory, address: u64) -> Option<String> {
    let mut bytes = Vec::new();
    for at in 0..NAME_BYTES as u64 {
        let mut byte = [0];
        memory.read(address.checked_add(at)?, &mut byte)?;
        if byte[0] == 0 {
            return String::from_utf8(bytes).ok();
        }
        bytes.push(byte[0]);
    }
    None
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
