//! Finds the places where a function still has its integer arguments, and the arguments that it has passed on.
//!
//! On x86-64 the first six arguments come in registers that a called function may change; the others are on the stack.
//! A function that needs an argument later has a copy in a callee-saved register or in its frame. The copies are
//! followed along all paths of the code. A copy is valid at an instruction if each path to it has made the copy, and
//! none has overwritten it since.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register, UsedMemory,
};

/// Number of arguments that are followed: as many as an MPI function has at most.
pub const ARGUMENTS: usize = 13;
/// The registers of the first arguments, by their numbers in instructions.
const PASSED: [usize; 6] = [7, 6, 2, 1, 8, 9];
/// The registers that a called function may change, by their numbers in instructions.
const CHANGED: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];
/// The DWARF numbers of the registers, in the order of their numbers in instructions.
const OF_DWARF: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
const STACK_POINTER: usize = 4;
const FRAME_POINTER: usize = 5;
const WORD: i64 = 8;
const INSTRUCTION_BYTES_MAX: usize = 15;
/// Maximum number of instructions that are followed in one function. An instruction counts again each time its copies
/// change.
const STEPS_MAX: usize = 1 << 16;

/// Functions that do not return: the code after a call of such a function belongs to another path.
const ENDS: [&str; 9] = [
    "_Exit",
    "_Unwind_Resume",
    "__assert_fail",
    "__chk_fail",
    "__fortify_fail",
    "__stack_chk_fail",
    "_exit",
    "abort",
    "exit",
];

/// True for a function that does not return to its caller.
#[must_use]
pub fn never_returns(function: &str) -> bool {
    ENDS.contains(&function)
}

/// A place where an argument is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentPlace {
    /// The register with this DWARF number.
    Register(u16),
    /// In the stack, at this distance from the canonical frame address.
    Stack(i64),
}

/// The arguments of a function at one of its calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentPlaces {
    /// The place of each argument; `None` if it is lost. True if all of its 8 bytes are there, false for the lower 4.
    pub kept: [Option<(ArgumentPlace, bool)>; ARGUMENTS],
    /// The arguments that the call has passed on: the index in this function, and the index in the called function,
    /// from 0.
    pub passed: Vec<(usize, usize)>,
}

/// A copy of an argument, with all 8 bytes or the lower 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copy {
    argument: usize,
    is_whole: bool,
}

/// The copies of arguments before an instruction. Stack addresses count from the stack pointer at the function's first
/// instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Copies {
    registers: [Option<Copy>; 16],
    stack: BTreeMap<i64, Copy>,
    stack_pointer: Option<i64>,
    /// The stack address in the frame pointer; `None` if it does not point into the frame.
    frame_pointer: Option<i64>,
}

impl Copies {
    fn at_start() -> Self {
        let whole = |argument| Copy {
            argument,
            is_whole: true,
        };
        let mut registers = [None; 16];
        for (argument, register) in PASSED.into_iter().enumerate() {
            registers[register] = Some(whole(argument));
        }
        let on_stack = (PASSED.len()..ARGUMENTS).zip(1..);
        let stack = on_stack.map(|(argument, word)| (WORD * word, whole(argument)));
        Self {
            registers,
            stack: stack.collect(),
            stack_pointer: Some(0),
            frame_pointer: None,
        }
    }

    /// Keeps only the copies that `other` has too.
    fn meet(&mut self, other: &Self) {
        let both = |one: Copy, other: Copy| {
            let is_whole = one.is_whole && other.is_whole;
            (one.argument == other.argument).then_some(Copy { is_whole, ..one })
        };
        for (one, other) in self.registers.iter_mut().zip(other.registers) {
            *one = one.zip(other).and_then(|(one, other)| both(one, other));
        }
        self.stack.retain(|at, one| {
            let met = other.stack.get(at).and_then(|other| both(*one, *other));
            met.is_some_and(|met| {
                *one = met;
                true
            })
        });
        if self.stack_pointer != other.stack_pointer {
            self.stack_pointer = None;
        }
        if self.frame_pointer != other.frame_pointer {
            self.frame_pointer = None;
        }
    }

    /// The stack address of an operand; `None` if the operand is not in the frame.
    fn address(&self, base: Register, index: Register, displacement: u64) -> Option<i64> {
        let base = match base {
            Register::RSP => self.stack_pointer,
            Register::RBP => self.frame_pointer,
            _ => None,
        };
        let base = base.filter(|_| index == Register::None);
        base?.checked_add(displacement.cast_signed())
    }

    fn operand(&self, instruction: &Instruction) -> Option<i64> {
        self.address(
            instruction.memory_base(),
            instruction.memory_index(),
            instruction.memory_displacement64(),
        )
    }

    /// The copy that an instruction moves, and the copy's new place; `None` if it moves none.
    fn moved(&self, instruction: &Instruction) -> Option<(Copy, NewPlace)> {
        let moves = [
            Mnemonic::Mov,
            Mnemonic::Movsxd,
            Mnemonic::Push,
            Mnemonic::Pop,
        ];
        if !moves.contains(&instruction.mnemonic()) {
            return None;
        }
        let is_push = instruction.mnemonic() == Mnemonic::Push;
        let is_pop = instruction.mnemonic() == Mnemonic::Pop;
        let of_register = |register: Register| {
            let bytes = register.size();
            let copy = self.registers[number(register)?]?;
            Some((copy, bytes))
        };
        let of_stack = |at: Option<i64>, bytes: usize| {
            let copy = self.stack.get(&at?).copied()?;
            Some((copy, bytes))
        };
        let operand = || self.operand(instruction);
        let (copy, bytes) = match (is_push, is_pop) {
            (true, _) => of_register(instruction.op0_register()),
            (_, true) => of_stack(self.stack_pointer, 8),
            _ if instruction.op1_kind() == OpKind::Memory => {
                of_stack(operand(), instruction.memory_size().size())
            }
            _ => of_register(instruction.op1_register()),
        }?;
        let to = match is_push {
            true => NewPlace::Stack(self.stack_pointer?.checked_sub(WORD)?),
            false if instruction.op0_kind() == OpKind::Memory => NewPlace::Stack(operand()?),
            false => NewPlace::Register(number(instruction.op0_register())?),
        };
        let is_whole = copy.is_whole && bytes == 8;
        (bytes >= 4).then_some((Copy { is_whole, ..copy }, to))
    }

    fn overwrite(&mut self, at: i64, bytes: usize) {
        let end = at.saturating_add(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.stack
            .retain(|from, copy| from + if copy.is_whole { 8 } else { 4 } <= at || *from >= end);
    }

    /// The copies after an instruction that is neither a call nor a jump.
    fn after(mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) -> Self {
        let moved = self.moved(instruction);
        let before = [self.stack_pointer, self.frame_pointer];
        let operand = self.operand(instruction);
        let info = factory.info(instruction);
        let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead);
        let written = info.used_memory().iter().filter(|it| writes(it.access()));
        let piece = |it: &UsedMemory| {
            let at = self.address(it.base(), it.index(), it.displacement())?;
            Some((at, it.memory_size().size()))
        };
        let written: Vec<(i64, usize)> = written.filter_map(piece).collect();
        for (at, bytes) in written {
            self.overwrite(at, bytes);
        }
        let used = info.used_registers().iter();
        for register in used.filter(|it| writes(it.access())) {
            if let Some(number) = number(register.register()) {
                self.registers[number] = None;
                match number {
                    STACK_POINTER => self.stack_pointer = None,
                    FRAME_POINTER => self.frame_pointer = None,
                    _ => {}
                }
            }
        }
        if instruction.mnemonic() == Mnemonic::Lea
            && let Some(at) = operand
        {
            // A variable whose address is known can change in any call.
            self.overwrite(at, 1);
        }
        self.set_pointers(instruction, before, operand);
        match moved {
            Some((copy, NewPlace::Register(to))) => self.registers[to] = Some(copy),
            Some((copy, NewPlace::Stack(to))) => {
                self.stack.insert(to, copy);
            }
            None => {}
        }
        self
    }

    /// Sets the stack pointer and the frame pointer after an instruction, from those before it.
    fn set_pointers(
        &mut self,
        instruction: &Instruction,
        [stack, frame]: [Option<i64>; 2],
        operand: Option<i64>,
    ) {
        let immediate = match instruction.op1_kind() {
            OpKind::Immediate8to64 | OpKind::Immediate32to64 => {
                Some(instruction.immediate(1).cast_signed())
            }
            _ => None,
        };
        let up = |at: Option<i64>, by: Option<i64>| at?.checked_add(by?);
        let moved = i64::from(instruction.stack_pointer_increment());
        let (to, from) = (instruction.op0_register(), instruction.op1_register());
        match (instruction.mnemonic(), to, from) {
            (Mnemonic::Mov, Register::RBP, Register::RSP) => self.frame_pointer = stack,
            (Mnemonic::Mov, Register::RSP, Register::RBP) => self.stack_pointer = frame,
            (Mnemonic::Lea, Register::RBP, _) => self.frame_pointer = operand,
            (Mnemonic::Lea, Register::RSP, _) => self.stack_pointer = operand,
            (Mnemonic::Add, Register::RSP, _) => self.stack_pointer = up(stack, immediate),
            (Mnemonic::Sub, Register::RSP, _) => {
                self.stack_pointer = up(stack, immediate.and_then(i64::checked_neg));
            }
            (Mnemonic::Leave, ..) => self.stack_pointer = up(frame, Some(WORD)),
            _ if moved != 0 => self.stack_pointer = up(stack, Some(moved)),
            _ => {}
        }
    }

    /// The copies during a call, and after it has returned.
    fn after_call(mut self) -> Self {
        for register in CHANGED {
            self.registers[register] = None;
        }
        self
    }

    /// The places of the arguments. With `is_called` also the arguments that a call in this state passes on.
    fn places(&self, is_called: bool) -> ArgumentPlaces {
        let mut places = ArgumentPlaces::default();
        let mut keep = |copy: &Copy, place| {
            let known = &mut places.kept[copy.argument];
            if known.is_none_or(|(_, is_whole)| copy.is_whole && !is_whole) {
                *known = Some((place, copy.is_whole));
            }
        };
        for (copy, dwarf) in self.registers.iter().zip(OF_DWARF) {
            let is_lost = is_called && CHANGED.iter().any(|it| OF_DWARF[*it] == dwarf);
            if let Some(copy) = copy.as_ref().filter(|_| !is_lost) {
                keep(copy, ArgumentPlace::Register(dwarf));
            }
        }
        for (at, copy) in &self.stack {
            keep(copy, ArgumentPlace::Stack(at - WORD));
        }
        if is_called {
            let in_registers = PASSED.map(|register| self.registers[register]);
            let on_stack = (0..ARGUMENTS - PASSED.len()).zip(0..).map(|(_, word)| {
                let at = self.stack_pointer?.checked_add(WORD * word)?;
                self.stack.get(&at).copied()
            });
            let passed = in_registers.into_iter().chain(on_stack).enumerate();
            let passed = passed.filter_map(|(at, copy)| Some((copy?.argument, at)));
            places.passed = passed.collect();
        }
        places
    }
}

/// The new place of a moved copy.
enum NewPlace {
    Register(usize),
    Stack(i64),
}

/// The number of a general register in the processor's order; `None` for other registers.
fn number(register: Register) -> Option<usize> {
    let whole = register.full_register();
    whole.is_gpr64().then(|| whole.number())
}

/// The code of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionCode {
    /// Address of the function's first instruction.
    pub begin: u64,
    /// The code of the function.
    pub bytes: Vec<u8>,
    /// Addresses of the function's calls of functions that do not return.
    pub ends: BTreeSet<u64>,
}

/// The places of a function's arguments at an address. If the address is not exact, it is the return address of the
/// call that the function is in.
#[must_use]
pub fn argument_places(function: &FunctionCode, pc: u64, is_exact: bool) -> ArgumentPlaces {
    let FunctionCode { begin, bytes, ends } = function;
    let mut factory = InstructionInfoFactory::new();
    let mut known: BTreeMap<u64, Copies> = BTreeMap::new();
    let mut found: Option<Copies> = None;
    let mut open = vec![(*begin, Copies::at_start())];
    let mut steps = 0;
    while let Some((at, copies)) = open.pop() {
        let from = at.checked_sub(*begin);
        let from = from.and_then(|by| usize::try_from(by).ok());
        let rest = from.and_then(|from| bytes.get(from..)).unwrap_or_default();
        let rest = &rest[..rest.len().min(INSTRUCTION_BYTES_MAX)];
        let met = match known.get(&at) {
            Some(before) => {
                let mut met = before.clone();
                met.meet(&copies);
                if met == *before {
                    continue;
                }
                met
            }
            None => copies,
        };
        steps += 1;
        if steps > STEPS_MAX {
            return ArgumentPlaces::default();
        }
        known.insert(at, met.clone());
        if rest.is_empty() {
            continue;
        }
        let instruction = Decoder::with_ip(64, rest, at, DecoderOptions::NONE).decode();
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        match instruction.flow_control() {
            _ if instruction.is_invalid() => {}
            FlowControl::Call | FlowControl::IndirectCall => {
                if !is_exact && next == pc {
                    found = Some(met.clone());
                }
                if !ends.contains(&at) {
                    open.push((next, met.after_call()));
                }
            }
            FlowControl::ConditionalBranch => open.extend([(next, met.clone()), (target, met)]),
            FlowControl::UnconditionalBranch => open.push((target, met)),
            FlowControl::Return | FlowControl::IndirectBranch | FlowControl::Exception => {}
            _ => open.push((next, met.after(&instruction, &mut factory))),
        }
    }
    let found = if is_exact { known.remove(&pc) } else { found };
    found.map_or_else(ArgumentPlaces::default, |copies| copies.places(!is_exact))
}

#[cfg(test)]
mod tests {
    use super::ArgumentPlace::{Register, Stack};
    use super::*;

    const BEGIN: u64 = 0x1000;

    /// The places at an offset of this code, in which calls at the other offsets do not return.
    fn at(code: &[u8], offset: u64, is_exact: bool, ends: &[u64]) -> ArgumentPlaces {
        let function = FunctionCode {
            begin: BEGIN,
            bytes: code.to_vec(),
            ends: ends.iter().map(|end| BEGIN + end).collect(),
        };
        argument_places(&function, BEGIN + offset, is_exact)
    }

    #[test]
    fn argument_copies_overwritten_only_after_abort_are_kept() {
        let code = &[
            0x53, // push %rbx
            0x89, 0xfb, // mov %edi,%ebx
            0x48, 0x83, 0xec, 0x18, // sub $0x18,%rsp
            0x89, 0x74, 0x24, 0x0c, // mov %esi,0xc(%rsp)
            0x85, 0xff, // test %edi,%edi
            0x78, 0x0b, // js to the error
            0xe8, 0, 0, 0, 0, // call
            0x48, 0x83, 0xc4, 0x18, // add $0x18,%rsp
            0x5b, // pop %rbx
            0xc3, // ret
            0xbb, 7, 0, 0, 0, // the error: mov $0x7,%ebx
            0xe8, 0, 0, 0, 0, // call abort
            0xc7, 0x44, 0x24, 0x0c, 0, 0, 0, 0, // movl $0x0,0xc(%rsp)
            0xeb, 0xe1, // jmp to the first call
        ];
        let found = at(code, 20, false, &[31]);
        assert_eq!(found.kept[0], Some((Register(3), false)));
        assert_eq!(found.kept[1], Some((Stack(-28), false)));
        assert_eq!(found.kept[2], None, "the call can change it");
        let passed: Vec<_> = (0..6).map(|at| (at, at)).collect();
        assert_eq!(found.passed[..6], passed);
        // Where the path goes on, either value is possible.
        let found = at(code, 20, false, &[]);
        assert_eq!(found.kept[..3], [None; 3]);
        // Before the call the argument's own register has it.
        let found = at(code, 15, true, &[31]);
        assert_eq!(found.kept[2], Some((Register(1), true)));
    }

    #[test]
    fn stack_arguments_are_found_with_a_frame_pointer() {
        let code = &[
            0x55, // push %rbp
            0x48, 0x89, 0xe5, // mov %rsp,%rbp
            0x4c, 0x8b, 0x65, 0x10, // mov 0x10(%rbp),%r12
            0x41, 0x89, 0xd5, // mov %edx,%r13d
            0x89, 0x4d, 0xf8, // mov %ecx,-0x8(%rbp)
            0x48, 0x8d, 0x45, 0xf8, // lea -0x8(%rbp),%rax
            0xc7, 0x45, 0x18, 0, 0, 0, 0, // movl $0x0,0x18(%rbp)
            0x41, 0x54, // push %r12
            0xe8, 0, 0, 0, 0, // call
        ];
        let found = at(code, 32, false, &[]);
        assert_eq!(found.kept[2], Some((Register(13), false)));
        assert_eq!(found.kept[3], None, "the called function has its address");
        assert_eq!(found.kept[6], Some((Register(12), true)));
        assert_eq!(found.kept[7], None, "it was written to");
        assert_eq!(found.kept[8], Some((Stack(16), true)));
        assert!(found.passed.contains(&(6, 6)), "{:?}", found.passed);
    }

    #[test]
    fn truncated_code_yields_no_argument_places() {
        assert_eq!(
            at(&[0xeb, 0x80, 0x06], 3, true, &[]),
            ArgumentPlaces::default()
        );
        assert_eq!(at(&[], 0, false, &[]), ArgumentPlaces::default());
    }
}
