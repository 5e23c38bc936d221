//! Names a called function whose own frame is gone.
//!
//! A function that ends in a jump to another one (`sem_wait`, `pthread_join`) leaves only the other's frame. In a
//! library without debug information that frame has no name. The call instruction in the program names the function.

use std::collections::BTreeMap;

use sdm_debug::calls::{is_file, is_lock};
use sdm_debug::{Failure, FailureCode};

use super::frames::GdbFrame;
use crate::gdb::Gdb;

/// Possible sizes of a call instruction, in bytes.
#[cfg(target_arch = "x86_64")]
const CALL_BYTES: &[u64] = &[5, 6];
#[cfg(not(target_arch = "x86_64"))]
const CALL_BYTES: &[u64] = &[4];
/// The mnemonics of call instructions.
const CALLS: [&str; 3] = ["call", "callq", "bl"];

/// The function called just before each address, or `None` if unknown. The threads of a pool share one such address.
#[derive(Default)]
pub(super) struct Calls(BTreeMap<u64, Option<String>>);

impl Calls {
    /// Names the callee of a thread's innermost program frame, if its frame has no name that users know.
    pub(super) async fn name(
        &mut self,
        gdb: &Gdb,
        thread: u32,
        frames: &mut [GdbFrame],
    ) -> Result<(), Failure> {
        let is_own = |frame: &GdbFrame| frame.function().is_some() && frame.module().is_empty();
        let caller = frames.iter().position(is_own);
        let Some(caller) = caller.filter(|at| *at > 0) else {
            return Ok(());
        };
        let callee = &frames[caller - 1];
        if callee.module().is_empty() || !callee.function().is_none_or(is_internal) {
            return Ok(());
        }
        let after = frames[caller].address();
        let known = match self.0.get(&after) {
            Some(known) => known.clone(),
            None => {
                let known = before(gdb, thread, after).await?;
                self.0.insert(after, known.clone());
                known
            }
        };
        if let Some(name) = known {
            frames[caller - 1].set_called(name);
        }
        Ok(())
    }
}

/// The function that the call instruction in front of the address `after` names; `None` if none is found.
async fn before(gdb: &Gdb, thread: u32, after: u64) -> Result<Option<String>, Failure> {
    for bytes in CALL_BYTES {
        let from = after.saturating_sub(*bytes);
        let line = format!("-data-disassemble --thread {thread} -s {from} -e {after} -- 0");
        let results = match gdb.mi(line).await {
            Ok(results) => results,
            Err(failure) if failure.code == FailureCode::Gdb => continue,
            Err(failure) => return Err(failure),
        };
        let all: Vec<&str> = results
            .tuples("asm_insns")
            .filter_map(|one| one.text("inst"))
            .collect();
        if let [instruction] = all[..]
            && let Some(name) = called(instruction)
        {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

/// True for a library's internal name, which users do not know. The internal names of functions that wait for a lock or
/// a file are excepted.
fn is_internal(function: &str) -> bool {
    function.starts_with("__") && !is_lock(function) && !is_file(function)
}

/// The function called by an instruction: `sem_wait` for `call   0x56324231b070 <sem_wait@plt>`. `None` for other
/// instructions.
fn called(instruction: &str) -> Option<&str> {
    let (name, operand) = instruction.split_once(char::is_whitespace)?;
    let (_, symbol) = operand.split_once('<')?;
    let symbol = symbol.strip_suffix('>')?;
    let symbol = symbol.split('@').next().unwrap_or(symbol);
    (CALLS.contains(&name) && !symbol.is_empty() && !symbol.contains('+')).then_some(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn called_function_is_read_from_an_instruction() {
        let check = |instruction, expect| assert_eq!(called(instruction), expect, "{instruction}");
        check("call   0x56324231b070 <sem_wait@plt>", Some("sem_wait"));
        check("callq  0x401030 <pthread_join@plt>", Some("pthread_join"));
        check(
            "call   *0x2fb2(%rip)        # 0x55550 <sem_wait@got.plt>",
            Some("sem_wait"),
        );
        check("bl\t0x400 <sem_wait@plt>", Some("sem_wait"));
        check("call   0x401030 <main+12>", None);
        check("call   *%rax", None);
        check("jmp    0x401030 <sem_wait@plt>", None);
        check("", None);
    }
}
