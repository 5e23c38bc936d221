//! Finds the places where a function without call frame information stores its caller's registers.
//!
//! The instructions are followed from the function's start to the program counter.

use std::collections::HashSet;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};

/// Maximum number of instructions that are followed of one function. An instruction counts again for each frame with
/// which it is reached.
const INSTRUCTIONS_MAX: usize = 1 << 14;
const INSTRUCTION_BYTES_MAX: usize = 15;
const WORD: i64 = 8;
/// The callee-saved registers except the stack pointer, with their DWARF numbers.
const KEPT: [(u16, Register); 6] = [
    (3, Register::RBX),
    (6, Register::RBP),
    (12, Register::R12),
    (13, Register::R13),
    (14, Register::R14),
    (15, Register::R15),
];

/// Index of the frame pointer in `KEPT`.
const FRAME_POINTER_INDEX: usize = 1;

/// The frame of a function at one of its instructions. A distance is counted in bytes from a place up to the canonical
/// frame address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackLayout {
    /// Distance from the stack pointer; `None` if unknown.
    pub(super) stack: Option<i64>,
    /// Distance from the frame pointer; `None` if it does not point into the frame.
    pub(super) frame: Option<i64>,
    kept: [RegisterState; KEPT.len()],
}

/// The state of a callee-saved register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct RegisterState {
    /// Distance from the place that has the caller's value; `None` if it is not stored.
    stored: Option<i64>,
    /// True if the register does not have the caller's value any more.
    is_changed: bool,
}

/// The place of the caller's value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SavedPlace {
    InRegister,
    /// In memory, at this distance below the canonical frame address.
    At(i64),
    Nowhere,
}

impl StackLayout {
    /// The frame at the first instruction: the return address has been stored.
    pub(super) fn at_start() -> Self {
        Self {
            stack: Some(WORD),
            frame: None,
            kept: [RegisterState::default(); KEPT.len()],
        }
    }

    /// The frame of a function that has stored its caller's frame pointer and set its own.
    pub(super) fn by_frame_pointer() -> Self {
        let mut layout = Self::at_start();
        layout.stack = None;
        layout.frame = Some(2 * WORD);
        layout.kept[FRAME_POINTER_INDEX] = RegisterState {
            stored: Some(2 * WORD),
            is_changed: true,
        };
        layout
    }

    /// The callee-saved registers of the caller, by DWARF number.
    pub(super) fn held(&self) -> impl Iterator<Item = (u16, SavedPlace)> + '_ {
        let held = |kept: &RegisterState| match kept {
            RegisterState {
                is_changed: false, ..
            } => SavedPlace::InRegister,
            RegisterState { stored, .. } => stored.map_or(SavedPlace::Nowhere, SavedPlace::At),
        };
        let numbers = KEPT.iter().map(|(number, _)| *number);
        numbers.zip(self.kept.iter().map(held))
    }

    /// True if the caller's frame pointer is neither in the register nor stored.
    pub(super) fn has_lost_frame_pointer(&self) -> bool {
        let kept = self.kept[FRAME_POINTER_INDEX];
        kept.is_changed && kept.stored.is_none()
    }

    /// Distance from an instruction's memory operand; `None` if the operand is not in the frame.
    fn operand(&self, instruction: &Instruction) -> Option<i64> {
        if instruction.memory_index() != Register::None {
            return None;
        }
        let base = match instruction.memory_base() {
            Register::RSP => self.stack,
            Register::RBP => self.frame,
            _ => None,
        };
        base?.checked_sub(instruction.memory_displacement64().cast_signed())
    }

    fn store(&mut self, register: Register, at: i64) {
        for (kept, (_, known)) in self.kept.iter_mut().zip(KEPT) {
            if kept.stored == Some(at) {
                kept.stored = None;
            }
            if register == known && !kept.is_changed && kept.stored.is_none() {
                kept.stored = Some(at);
            }
        }
    }

    /// The frame after an instruction that is neither a call nor a jump.
    fn after(mut self, instruction: &Instruction, written: &[Register]) -> Self {
        let moved = i64::from(instruction.stack_pointer_increment());
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        let operand = self.operand(instruction);
        let before = self;
        let down = |distance: Option<i64>, by: i64| distance?.checked_sub(by);
        let immediate = match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                Some(instruction.immediate(1).cast_signed())
            }
            _ => None,
        };
        let restored = match (instruction.mnemonic(), instruction.op1_kind()) {
            (Mnemonic::Pop, _) => before.stack.map(|at| (to, at)),
            (Mnemonic::Mov, OpKind::Memory) => operand.map(|at| (to, at)),
            (Mnemonic::Leave, _) => before.frame.map(|at| (Register::RBP, at)),
            _ => None,
        };
        for register in written {
            for (kept, (_, known)) in self.kept.iter_mut().zip(KEPT) {
                if register.full_register() == known {
                    let is_restored =
                        restored.is_some_and(|(to, at)| to == known && kept.stored == Some(at));
                    kept.is_changed = !is_restored;
                }
            }
            match register.full_register() {
                Register::RBP => self.frame = None,
                Register::RSP => self.stack = None,
                _ => {}
            }
        }
        match (instruction.mnemonic(), to, from) {
            (Mnemonic::Mov, Register::RBP, Register::RSP) => self.frame = before.stack,
            (Mnemonic::Mov, Register::RSP, Register::RBP) => self.stack = before.frame,
            (Mnemonic::Lea, Register::RBP, _) => self.frame = operand,
            (Mnemonic::Lea, Register::RSP, _) => self.stack = operand,
            (Mnemonic::Add, Register::RSP, _) => {
                self.stack = immediate.and_then(|by| down(before.stack, by));
            }
            (Mnemonic::Sub, Register::RSP, _) => {
                self.stack = immediate.and_then(|by| down(before.stack, by.checked_neg()?));
            }
            (Mnemonic::Leave, ..) => self.stack = down(before.frame, WORD),
            (Mnemonic::Pop, Register::RSP, _) => {}
            _ if moved != 0 => self.stack = down(before.stack, moved),
            _ => {}
        }
        let stored = match instruction.mnemonic() {
            Mnemonic::Push => self.stack.map(|at| (to, at)),
            Mnemonic::Mov if instruction.op0_kind() == OpKind::Memory => {
                operand.map(|at| (from, at))
            }
            _ => None,
        };
        if let Some((register, at)) = stored {
            self.store(register, at);
        }
        self
    }
}

/// The frames that a function can have at an address, each once. `begin` is its start, and `code` its code from there
/// on. If the address is not exact, it is the return address of a call.
pub(super) fn layouts(begin: u64, code: &[u8], pc: u64, is_exact: bool) -> Vec<StackLayout> {
    let mut factory = InstructionInfoFactory::new();
    let mut open = vec![(begin, StackLayout::at_start())];
    let mut seen = HashSet::new();
    let mut found: Vec<StackLayout> = Vec::new();
    while let Some((at, layout)) = open.pop() {
        if is_exact && at == pc {
            if !found.contains(&layout) {
                found.push(layout);
            }
            continue;
        }
        if seen.len() >= INSTRUCTIONS_MAX {
            return Vec::new();
        }
        let from = at
            .checked_sub(begin)
            .and_then(|by| usize::try_from(by).ok());
        let rest = from.and_then(|from| code.get(from..)).unwrap_or_default();
        let rest = &rest[..rest.len().min(INSTRUCTION_BYTES_MAX)];
        if rest.is_empty() || !seen.insert((at, layout)) {
            continue;
        }
        let instruction = Decoder::with_ip(64, rest, at, DecoderOptions::NONE).decode();
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        match instruction.flow_control() {
            _ if instruction.is_invalid() => {}
            FlowControl::Call | FlowControl::IndirectCall => {
                if !is_exact && next == pc && !found.contains(&layout) {
                    found.push(layout);
                }
                open.push((next, layout));
            }
            FlowControl::ConditionalBranch => open.extend([(next, layout), (target, layout)]),
            FlowControl::UnconditionalBranch => open.push((target, layout)),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {}
            _ => {
                let info = factory.info(&instruction);
                let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead);
                let used = info.used_registers().iter();
                let written = used.filter(|it| writes(it.access()));
                let written: Vec<Register> = written.map(|it| it.register()).collect();
                open.push((next, layout.after(&instruction, &written)));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 0x1000;

    /// The frames at an offset of this code, each with the places of rbx and rbp.
    fn at(
        code: &[u8],
        offset: u64,
        is_exact: bool,
    ) -> Vec<(Option<i64>, Option<i64>, SavedPlace, SavedPlace)> {
        let found = layouts(BEGIN, code, BEGIN + offset, is_exact);
        let frame = |it: StackLayout| {
            let held: Vec<_> = it.held().map(|(_, held)| held).collect();
            (it.stack, it.frame, held[0], held[1])
        };
        found.into_iter().map(frame).collect()
    }

    #[test]
    fn function_without_frame_pointer_keeps_caller_registers() {
        let code = &[
            0x48, 0x83, 0xec, 0x60, // sub $0x60,%rsp
            0x48, 0x89, 0x1c, 0x24, // mov %rbx,(%rsp)
            0x31, 0xdb, // xor %ebx,%ebx
            0xff, 0xc3, // inc %ebx
            0xeb, 0xfc, // jmp to it
            0x48, 0x8b, 0x1c, 0x24, // mov (%rsp),%rbx
            0x48, 0x83, 0xc4, 0x60, // add $0x60,%rsp
            0xc3, // ret
        ];
        use SavedPlace::{At, InRegister};
        assert_eq!(at(code, 0, true), [(Some(8), None, InRegister, InRegister)]);
        assert_eq!(
            at(code, 8, true),
            [(Some(104), None, InRegister, InRegister)]
        );
        assert_eq!(at(code, 10, true), [(Some(104), None, At(104), InRegister)]);
        // No jump leads behind the loop.
        assert_eq!(at(code, 18, true), []);
    }

    #[test]
    fn frame_of_realigned_stack_is_known_by_the_frame_pointer() {
        let code = &[
            0x53, // push %rbx
            0x55, // push %rbp
            0x48, 0x89, 0xe5, // mov %rsp,%rbp
            0x48, 0x83, 0xe4, 0xe0, // and $-32,%rsp
            0x89, 0xfb, // mov %edi,%ebx
            0xe8, 0, 0, 0, 0,    // call
            0xc9, // leave
            0x5b, // pop %rbx
            0xc3, // ret
        ];
        use SavedPlace::{At, InRegister};
        assert_eq!(at(code, 16, false), [(None, Some(24), At(16), At(24))]);
        assert_eq!(at(code, 17, true), [(Some(16), None, At(16), InRegister)]);
        assert_eq!(
            at(code, 18, true),
            [(Some(8), None, InRegister, InRegister)]
        );
    }

    #[test]
    fn start_function_that_clears_the_frame_pointer_is_detected() {
        let code = &[
            0x31, 0xed, // xor %ebp,%ebp
            0x48, 0x83, 0xe4, 0xf0, // and $-16,%rsp
            0xff, 0xd1, // call *%rcx
        ];
        let found = layouts(BEGIN, code, BEGIN + 8, false);
        assert!(found[0].has_lost_frame_pointer() && found.len() == 1);
        assert!(!layouts(BEGIN, code, BEGIN, true)[0].has_lost_frame_pointer());
    }

    #[test]
    fn every_code_path_to_an_address_is_followed() {
        let code = &[
            0x74, 0x01, // je past the next
            0x50, // push %rax
            0x90, // nop
            0xe8, 0, 0, 0, 0, // call
        ];
        let mut depths: Vec<_> = at(code, 9, false).into_iter().map(|it| it.0).collect();
        depths.sort_unstable();
        assert_eq!(depths, [Some(8), Some(16)]);
        // Code that is cut off, jumps out of it, and what is no instruction lead nowhere.
        assert_eq!(at(&code[..3], 9, false), []);
        assert_eq!(at(&[0xeb, 0x80, 0x06], 3, true), []);
    }
}
