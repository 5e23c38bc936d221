//! Tests with memory of an Open MPI process that has the layout of the table, and with memory that has not.

use super::*;

/// Memory, with one entry per byte.
#[derive(Default)]
struct Bytes(BTreeMap<u64, u8>);

impl Memory for Bytes {
    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        for (at, byte) in (address..).zip(to) {
            *byte = *self.0.get(&at)?;
        }
        Some(())
    }
}

struct Process {
    memory: Bytes,
    symbols: BTreeMap<String, u64>,
    types: Vec<TypeLayout>,
}

/// A made-up address for a symbol's number.
fn place(number: u64) -> u64 {
    0x10_0000 + 0x1000 * number
}

impl Process {
    fn new() -> Self {
        let mut process = Self {
            memory: Bytes::default(),
            symbols: BTreeMap::new(),
            types: table(),
        };
        let classes = WITH_CLASS.iter().map(|name| class_symbol(name));
        let names = VARIABLES.into_iter().chain(COMMUNICATORS);
        let names = names.map(str::to_owned).chain(classes);
        for (number, name) in (0..).zip(names) {
            process.symbols.insert(name, place(number));
            process.set(place(number), &[0; 0x800]);
        }
        process.fill();
        process
    }

    fn at(&self, symbol: &str) -> u64 {
        self.symbols[symbol]
    }

    fn set(&mut self, address: u64, bytes: &[u8]) {
        let bytes = (address..).zip(bytes);
        self.memory.0.extend(bytes.map(|(at, byte)| (at, *byte)));
    }

    fn word(&mut self, address: u64, word: u64) {
        self.set(address, &word.to_ne_bytes());
    }

    fn number(&mut self, address: u64, number: i32) {
        self.set(address, &number.to_ne_bytes());
    }

    fn fill(&mut self) {
        for (at, size) in (0..).step_by(4).zip(TYPE_SIZES) {
            self.number(self.at("MPIR_debug_typedefs_sizeof") + at, size);
        }
        for name in WITH_CLASS {
            let class = self.at(&class_symbol(name));
            let size = rows().find(|row| row.0 == name).unwrap().1;
            self.set(class + 0x100, format!("{name}\0").as_bytes());
            self.word(class, class + 0x100);
            self.word(class + 56, size.into());
        }
        let list = self.at("ompi_mpi_communicators");
        self.word(list, self.at("opal_pointer_array_t_class"));
        self.number(list + 84, 1);
        self.number(list + 88, 4);
        self.word(list + 112, list + 0x200);
        self.word(list + 0x200, self.at("ompi_mpi_comm_world"));
        for (number, name, count, rank) in [
            (0, "ompi_mpi_comm_world", 8, 5),
            (1, "ompi_mpi_comm_self", 1, 0),
        ] {
            let (of, group) = (self.at(name), self.at(name) + 0x400);
            self.number(of + 224, number);
            self.number(of + 228, rank);
            self.word(of + 248, group);
            self.word(of + 256, group);
            self.word(group, self.at("ompi_group_t_class"));
            self.number(group + 16, count);
            self.number(group + 20, rank);
        }
        for (list, of, size) in [
            (SENDS, "mca_pml_base_send_request_t", 600),
            (RECEIVES, "mca_pml_base_recv_request_t", 560),
        ] {
            let (list, class) = (self.at(list), self.at(list) + 0x600);
            self.word(list, self.at("opal_free_list_t_class"));
            self.word(list + 88, 4);
            self.word(list + 96, 64);
            self.word(list + 112, size);
            self.word(list + 120, 128);
            // The class of the requests is derived from the general one.
            self.word(list + 144, class);
            self.word(class, class + 64);
            self.set(class + 64, b"mca_pml_ob1_request_t\0");
            self.word(class + 8, self.at(&class_symbol(of)));
        }
    }

    fn check(&self) -> Result<(), Failure> {
        let looked = CheckedProcess {
            memory: &self.memory,
            symbols: &self.symbols,
            types: &self.types,
        };
        looked.check()
    }

    fn refused(&self) -> String {
        let text = self.check().unwrap_err().text;
        let begin = "the layout of this Open MPI is unknown: ";
        text.strip_prefix(begin).unwrap_or(&text).to_owned()
    }
}

#[test]
fn matching_open_mpi_layout_is_accepted() {
    assert_eq!(Process::new().check(), Ok(()));
}

#[test]
fn open_mpi_class_of_other_size_or_name_is_refused() {
    for name in WITH_CLASS {
        let mut process = Process::new();
        let class = process.at(&class_symbol(name));
        process.word(class + 56, 9);
        assert!(
            process
                .refused()
                .starts_with(&format!("{name} has 9 bytes instead of "))
        );
        let mut process = Process::new();
        process.set(class + 0x100, b"x");
        assert_eq!(
            process.refused(),
            format!("the class of {name} has an unexpected name")
        );
        process.symbols.remove(&class_symbol(name));
        assert_eq!(
            process.refused(),
            format!("the library has no symbol {name}_class")
        );
    }
}

#[test]
fn moved_fields_are_refused_despite_equal_sizes() {
    let mut process = Process::new();
    let of = process.at("ompi_mpi_comm_world");
    process.number(of + 224, 3);
    assert_eq!(
        process.refused(),
        "the data at ompi_mpi_comm_world do not have the known layout"
    );
    let mut process = Process::new();
    let group = process.at("ompi_mpi_comm_self") + 0x400;
    process.number(group + 16, 2);
    assert_eq!(
        process.refused(),
        "the data at ompi_mpi_comm_self do not have the known layout"
    );
    let mut process = Process::new();
    let list = process.at("ompi_mpi_communicators");
    process.word(list + 112, list + 0x210);
    assert_eq!(
        process.refused(),
        "MPI_COMM_WORLD is not the first communicator"
    );
    let mut process = Process::new();
    process.word(process.at(SENDS) + 120, 3);
    assert_eq!(
        process.refused(),
        format!("the data at {SENDS} do not have the known layout")
    );
    let mut process = Process::new();
    process.number(process.at("MPIR_debug_typedefs_sizeof") + 8, 4);
    assert_eq!(
        process.refused(),
        "MPIR_debug_typedefs_sizeof has other sizes of C types than sdm knows"
    );
}

#[test]
fn other_pml_and_missing_mpi_init_are_distinguished() {
    let mut process = Process::new();
    process.word(process.at(RECEIVES) + 144, 0);
    assert_eq!(
        process.refused(),
        "Open MPI sends by requests that its debug library does not support (class: unnamed), as with the PMLs ucx and cm"
    );
    process.word(process.at("ompi_mpi_communicators"), 0);
    assert_eq!(
        process.refused(),
        "the rank is before MPI_Init or after MPI_Finalize, and has no message queues"
    );
}

#[test]
fn field_offset_of_debug_info_is_checked_in_the_process() {
    let mut process = Process::new();
    let mut of = process.types.iter_mut();
    let of = of.find(|it| it.name == "ompi_communicator_t").unwrap();
    of.fields.retain(|(field, _)| field != "c_contextid");
    of.fields.push(("c_contextid".to_owned(), 228));
    assert_eq!(
        process.refused(),
        "the data at ompi_mpi_comm_world do not have the known layout"
    );
}
