//! The registers of a thread, by DWARF's numbers.

/// How many registers DWARF numbers here: the general ones and the return address.
const COUNT: usize = 17;
/// DWARF's number of the stack pointer.
pub const STACK_POINTER: u16 = 7;
/// DWARF's number of the return address: the program counter.
pub const RETURN_ADDRESS: u16 = 16;

/// The general registers of a thread, each by DWARF's number of it; absent where it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Registers([Option<u64>; COUNT]);

impl Registers {
    /// A register's value, where it is known.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Notes a register's value. A number that is none here is left out.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(register) = self.0.get_mut(usize::from(number)) {
            *register = value;
        }
    }
}
