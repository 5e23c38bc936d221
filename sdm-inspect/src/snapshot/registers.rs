//! The registers of a thread, by DWARF number.

use serde::{Deserialize, Serialize};

use sdm_system::REGISTER_WORDS;

/// Number of registers: the general ones and the return address.
const COUNT: usize = 17;
/// DWARF's register number of the frame pointer.
pub const FRAME_POINTER: u16 = 6;
/// DWARF's register number of the stack pointer.
pub const STACK_POINTER: u16 = 7;
/// DWARF's register number of the return address: the program counter.
pub const RETURN_ADDRESS: u16 = 16;
/// The callee-saved registers, except the stack pointer.
const KEPT: [u16; 6] = [3, 6, 12, 13, 14, 15];
/// Names of the registers in gdb's order, with their DWARF numbers.
const NAMES: [(&str, u16); COUNT] = [
    ("rax", 0),
    ("rbx", 3),
    ("rcx", 2),
    ("rdx", 1),
    ("rsi", 4),
    ("rdi", 5),
    ("rbp", FRAME_POINTER),
    ("rsp", STACK_POINTER),
    ("r8", 8),
    ("r9", 9),
    ("r10", 10),
    ("r11", 11),
    ("r12", 12),
    ("r13", 13),
    ("r14", 14),
    ("r15", 15),
    ("rip", RETURN_ADDRESS),
];
/// Index of each register in the kernel's `user_regs_struct`.
const OF_KERNEL: [usize; COUNT] = [10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16];

/// Indices of the system call's number and of its arguments in the kernel's `user_regs_struct`.
const SYSTEM_CALL: usize = 15;
const SYSTEM_CALL_ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];

/// The number of the system call that a thread was in, -1 for none, and its arguments.
pub(crate) fn system_call(words: &[u64; REGISTER_WORDS]) -> (i64, [u64; 6]) {
    let number = words[SYSTEM_CALL].cast_signed();
    (number, SYSTEM_CALL_ARGUMENTS.map(|at| words[at]))
}

/// The general registers of a thread, by DWARF number; `None` if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registers([Option<u64>; COUNT]);

impl Registers {
    /// Converts the kernel's `user_regs_struct`.
    pub(crate) fn of_kernel(words: &[u64; REGISTER_WORDS]) -> Self {
        Self(OF_KERNEL.map(|at| Some(words[at])))
    }

    /// The value of a register; `None` if unknown.
    #[must_use]
    pub fn get(&self, number: u16) -> Option<u64> {
        self.0.get(usize::from(number)).copied().flatten()
    }

    /// Stores a register's value. A number beyond the supported registers is ignored.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(register) = self.0.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// The registers that are still valid in the caller of a function without unwind rules: the callee-saved ones.
    #[must_use]
    pub fn kept(&self) -> Self {
        let mut kept = Self::default();
        for number in KEPT {
            kept.set(number, self.get(number));
        }
        kept
    }

    /// The registers with the same value in `self` and `other`.
    #[must_use]
    pub(crate) fn common(&self, other: &Self) -> Self {
        let same = |at: usize| self.0[at].filter(|_| self.0[at] == other.0[at]);
        Self(std::array::from_fn(same))
    }

    /// The known registers by their names, in gdb's order.
    pub(crate) fn named(&self) -> Vec<(String, u64)> {
        let known = NAMES.iter().filter_map(|(name, number)| {
            let value = self.get(*number)?;
            Some(((*name).to_owned(), value))
        });
        known.collect()
    }

    /// The program counter; `None` if unknown.
    #[must_use]
    pub fn pc(&self) -> Option<u64> {
        self.get(RETURN_ADDRESS)
    }

    /// The stack pointer; `None` if unknown.
    #[must_use]
    pub fn sp(&self) -> Option<u64> {
        self.get(STACK_POINTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_dwarf_numbers() {
        let mut words = [0; REGISTER_WORDS];
        // rbp, rbx, rip, rsp in `struct user_regs_struct`.
        (words[4], words[5], words[16], words[19]) = (6, 3, 16, 7);
        let registers = Registers::of_kernel(&words);
        for number in [FRAME_POINTER, 3, RETURN_ADDRESS, STACK_POINTER] {
            assert_eq!(registers.get(number), Some(u64::from(number)));
        }
        assert_eq!(registers.get(17), None);
        assert_eq!(registers.kept().get(3), Some(3));
        assert_eq!(registers.kept().sp(), None);
        // orig_rax, rdi, r10.
        (words[15], words[14], words[7]) = (202, 1, 4);
        assert_eq!(system_call(&words), (202, [1, 0, 0, 4, 0, 0]));
    }
}
