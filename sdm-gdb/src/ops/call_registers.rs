//! Recovers the arguments of a call that neither source nor debug information gives, from registers and stack.
//!
//! The code of the called function shows where it still has each argument. An argument that it has only passed on is
//! searched in the function that it has called.

use std::collections::BTreeMap;

use sdm_debug::Failure;
use sdm_debug::FailureCode;
use sdm_inspect::unwind::{
    ARGUMENTS, ArgumentPlace, ArgumentPlaces, FunctionCode, argument_places, never_returns,
};

use super::frame_states::{STACK_POINTER, address, read_memory, read_registers};
use super::frames::GdbFrame;
use super::stack::ReadThread;
use crate::gdb::Gdb;

/// Maximum number of further functions, inside the one called, in which an argument is searched.
const FUNCTIONS_MAX: usize = 8;
/// Smaller numbers are no addresses, and can be equal by chance.
const ADDRESS_MIN: u64 = 1 << 16;

/// The places of a call's arguments.
pub(super) struct CallRegisters {
    /// Index of the function's frame.
    function: usize,
    places: ArgumentPlaces,
    /// Stack pointer of the caller, after the return address was popped.
    caller: u64,
}

/// Finds the places of the arguments of the frame with this index, from its function's code. `None` if this is not
/// possible, as for a Fortran binding, which takes its arguments by reference.
pub(super) async fn kept(
    gdb: &Gdb,
    thread: &ReadThread,
    callee: Option<usize>,
) -> Result<Option<CallRegisters>, Failure> {
    let Some((function, callee)) = callee.and_then(|at| Some((at, thread.frames.get(at)?))) else {
        return Ok(None);
    };
    let by_reference = callee
        .raw()
        .function
        .is_some_and(|name| name.ends_with('_'));
    if !cfg!(target_arch = "x86_64") || by_reference || !callee.is_native() {
        return Ok(None);
    }
    // The caller is the program, or a library function without a frame in the list.
    let level = callee.level + 1;
    let pointer = read_registers(gdb, thread, level, &[STACK_POINTER]).await?;
    let Some(caller) = pointer.first().and_then(|text| address(text)) else {
        return Ok(None);
    };
    let code = code(gdb, thread, callee).await?;
    let is_exact = callee.level == 0;
    Ok(Some(CallRegisters {
        function,
        places: argument_places(&code, callee.address(), is_exact),
        caller,
    }))
}

/// The code of a frame's function; empty if gdb is too old for the question.
async fn code(gdb: &Gdb, thread: &ReadThread, frame: &GdbFrame) -> Result<FunctionCode, Failure> {
    // A return address can be behind the function's end.
    let within = frame.address().saturating_sub(u64::from(frame.level > 0));
    let line = format!(
        "-data-disassemble --thread {} -a {within:#x} -- 2",
        thread.id
    );
    let results = match gdb.mi(line).await {
        Ok(results) => results,
        // Older gdbs do not have this option.
        Err(failure) if failure.code == FailureCode::Gdb => return Ok(FunctionCode::default()),
        Err(failure) => return Err(failure),
    };
    let mut code = FunctionCode::default();
    for one in results.tuples("asm_insns") {
        let Some(address) = one.address("address") else {
            continue;
        };
        if called(one.text("inst").unwrap_or_default()).is_some_and(never_returns) {
            code.ends.insert(address);
        }
        let Some(digits) = one.text("opcodes") else {
            continue;
        };
        let end = code.begin + code.bytes.len() as u64;
        // A function can have parts elsewhere.
        if address != end && !(code.begin..end).contains(&within) {
            (code.begin, code.bytes) = (address, Vec::new());
        } else if address != end {
            continue;
        }
        let digits = digits.replace(' ', "");
        let bytes = (0..digits.len() / 2).map_while(|at| {
            let two = digits.get(2 * at..2 * at + 2)?;
            u8::from_str_radix(two, 16).ok()
        });
        code.bytes.extend(bytes);
    }
    Ok(code)
}

/// The function that an instruction calls: `call   0x8ed20 <__stack_chk_fail@plt>`; `None` for another instruction.
fn called(instruction: &str) -> Option<&str> {
    let target = instruction.strip_prefix("call")?.split_once('<')?.1;
    target.split(['@', '+', '>']).next()
}

impl CallRegisters {
    /// The argument with this index from 0, of this size; `None` if it is lost.
    pub(super) async fn argument(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
        (place, bytes): (usize, u64),
    ) -> Result<Option<i64>, Failure> {
        if let Some(value) = self.value(gdb, thread, place).await? {
            return Ok(value.of_size(bytes));
        }
        let mut wanted: Vec<usize> = vec![place];
        let mut known = self.addresses(gdb, thread).await?;
        let mut inner: Option<Self> = None;
        for _ in 0..FUNCTIONS_MAX {
            let outer = inner.as_ref().unwrap_or(self);
            let passed = &outer.places.passed;
            let of = |own: usize| passed.iter().filter(move |(from, _)| *from == own);
            wanted = wanted.into_iter().flat_map(of).map(|(_, to)| *to).collect();
            known = (known.into_iter())
                .flat_map(|(own, value)| of(own).map(move |(_, to)| (*to, value)))
                .collect();
            let called = outer.function.checked_sub(1);
            let called = called.filter(|_| !wanted.is_empty());
            let Some(called) = kept(gdb, thread, called).await? else {
                return Ok(None);
            };
            // The function on the stack may be another one than was called, which has ended in a jump to it. It has the
            // same arguments if one that is an address agrees.
            let own = called.addresses(gdb, thread).await?;
            let is_it = own.iter().any(|(at, value)| known.get(at) == Some(value));
            for at in &wanted {
                if let Some(value) = called.value(gdb, thread, *at).await? {
                    return Ok(value.of_size(bytes).filter(|_| is_it));
                }
            }
            inner = Some(called);
        }
        Ok(None)
    }

    /// The arguments whose values can be addresses, by index.
    async fn addresses(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
    ) -> Result<BTreeMap<usize, u64>, Failure> {
        let mut all = BTreeMap::new();
        for place in 0..ARGUMENTS {
            let value = self.value(gdb, thread, place).await?;
            let value = value.filter(|it| it.is_whole && it.bits >= ADDRESS_MIN);
            all.extend(value.map(|it| (place, it.bits)));
        }
        Ok(all)
    }

    /// The argument with this index, read where the function still has it; `None` if it is lost.
    async fn value(
        &self,
        gdb: &Gdb,
        thread: &ReadThread,
        place: usize,
    ) -> Result<Option<ArgumentValue>, Failure> {
        let Some(Some((place, is_whole))) = self.places.kept.get(place) else {
            return Ok(None);
        };
        let bits = match place {
            ArgumentPlace::Register(dwarf) => {
                let level = thread.frames[self.function].level;
                let read = read_registers(gdb, thread, level, &[of_gdb(*dwarf)]).await?;
                read.first().and_then(|text| address(text))
            }
            ArgumentPlace::Stack(offset) => {
                let at = self.caller.wrapping_add_signed(*offset);
                let digits = read_memory(gdb, thread, at, 8).await?;
                u64::from_str_radix(&digits, 16).ok().map(u64::swap_bytes)
            }
        };
        let is_whole = *is_whole;
        Ok(bits.map(|bits| ArgumentValue { bits, is_whole }))
    }
}

/// An argument of which all bits are known, or only the lower half.
struct ArgumentValue {
    bits: u64,
    is_whole: bool,
}

impl ArgumentValue {
    /// The lower `bytes` bytes (4 or 8), as a signed number; `None` if they are not known.
    fn of_size(&self, bytes: u64) -> Option<i64> {
        match bytes {
            // Drops the upper half and extends the sign of the lower half.
            4 => Some((self.bits << 32).cast_signed() >> 32),
            _ => self.is_whole.then(|| self.bits.cast_signed()),
        }
    }
}

/// gdb's number of the register with a DWARF number: 1 and 3 are exchanged.
fn of_gdb(dwarf: u16) -> u32 {
    match dwarf {
        1 => 3,
        3 => 1,
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn called_function_is_read_from_an_instruction() {
        let check = |text, expect| assert_eq!(called(text), expect, "{text}");
        check(
            "call   0x8ed20 <__stack_chk_fail@plt>",
            Some("__stack_chk_fail"),
        );
        check("call   0x1234 <abort>", Some("abort"));
        check("call   *0x70(%rax)", None);
        check("jne    0x1234 <abort+4>", None);
    }
}
