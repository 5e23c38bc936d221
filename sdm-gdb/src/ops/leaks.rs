//! Enables LeakSanitizer's check in a program that gdb traces.
//!
//! LeakSanitizer starts a process that attaches to the program's threads by ptrace. The kernel refuses that under a
//! debugger, and LeakSanitizer then ends the program with its own exit code, leaks or not. So when a check is about
//! to begin and only the thread that waits for it is left, a seccomp filter makes the process's attach appear to
//! succeed. Nothing of the program runs meanwhile anyway.
//!
//! The process gets no registers, and then by its own rule treats the thread's whole stack as live, including the
//! part below the stack pointer. That part is cleared first, as stale pointers there would hide leaks.

use nix::libc;

use super::findings::{BELOW, evaluated};
use crate::gdb::Gdb;

/// True for 64-bit little-endian processors, for which the filter is written.
const FILTERS: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64",
    target_arch = "loongarch64"
));

/// Prepares a program with a sanitizer for LeakSanitizer's check. If that is impossible LeakSanitizer fails, as it does
/// under any debugger.
pub(crate) async fn prepare(gdb: &Gdb) {
    let calls = [libc::SYS_ptrace, libc::SYS_wait4].map(u32::try_from);
    let (true, [Ok(ptrace), Ok(wait)]) = (FILTERS, calls) else {
        return;
    };
    let asked = gdb.clone();
    gdb.finish(async move {
        if super::internal::is_sanitized(&asked) && is_alone(&asked).await {
            let filtered = asked.get().breakpoints.leaks.filtered;
            let done = clear_stack(&asked).await.is_some()
                && (filtered || install(&asked, &filter(ptrace, wait)).await.is_some());
            asked.edit().breakpoints.leaks.filtered = filtered || done;
        }
    })
    .await;
}

/// True if the program has no other thread. The check would see a running thread in an inconsistent state.
async fn is_alone(gdb: &Gdb) -> bool {
    let listed = gdb.mi("-thread-list-ids").await;
    listed.is_ok_and(|listed| listed.number("number-of-threads") == Some(1))
}

/// Clears the stack below the stack pointer; `None` if that fails. This part has pointers of returned functions, but no
/// data that the program still uses: the checking function has not made its calls yet.
async fn clear_stack(gdb: &Gdb) -> Option<()> {
    let pointer: u64 = evaluated(gdb, "(unsigned long)$sp").await?.parse().ok()?;
    let pid = gdb.get().pid()?;
    let (_, offset) = gdb.host().place(pid, pointer)?;
    fill(gdb, pointer - offset, "00", offset).await
}

async fn fill(gdb: &Gdb, address: u64, contents: &str, bytes: u64) -> Option<()> {
    let line = format!("-data-write-memory-bytes {address:#x} \"{contents}\" {bytes}");
    gdb.mi(line).await.ok().map(drop)
}

/// Has the program install the filter for its own system calls and those of the processes that it starts; `None` if
/// that fails.
async fn install(gdb: &Gdb, instructions: &[Instruction]) -> Option<()> {
    let pointer: u64 = evaluated(gdb, "(unsigned long)$sp").await?.parse().ok()?;
    let at = (pointer - u64::from(BELOW)) & !0xf;
    let bytes: Vec<u8> = instructions.iter().flat_map(|it| it.bytes()).collect();
    let program = at + 0x200;
    let mut head = [0; 16];
    head[..8].copy_from_slice(&(instructions.len() as u64).to_ne_bytes());
    head[8..].copy_from_slice(&at.to_ne_bytes());
    for (address, bytes) in [(at, bytes.as_slice()), (program, &head)] {
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        fill(gdb, address, &text, bytes.len() as u64).await?;
    }
    let call = |what: i32, first: u64, second: u64| {
        format!("((int(*)(int,long,long,long,long))prctl)({what},{first},{second},0,0)")
    };
    for line in [
        // Without this flag only root may install a filter.
        call(libc::PR_SET_NO_NEW_PRIVS, 1, 0),
        call(
            libc::PR_SET_SECCOMP,
            u64::from(libc::SECCOMP_MODE_FILTER),
            program,
        ),
    ] {
        let result = evaluated(gdb, &line).await?;
        (result == "0").then_some(())?;
    }
    Some(())
}

/// A BPF instruction: its code, the number of instructions to skip if its comparison holds, that number if it does not,
/// and its constant.
#[derive(Clone, Copy)]
struct Instruction(u16, u8, u8, u32);

impl Instruction {
    fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..2].copy_from_slice(&self.0.to_ne_bytes());
        (bytes[2], bytes[3]) = (self.1, self.2);
        bytes[4..].copy_from_slice(&self.3.to_ne_bytes());
        bytes
    }
}

/// The seccomp program of the check.
///
/// Attach and detach return success, as does a `wait` for any kind of child (`__WALL`); other ptrace requests fail
/// with `EPERM`. Everything else is unchanged. The program's own children are waited for without `__WALL`. The
/// program waits for the end of the checking process, whose stack it then frees, without asking for its exit status.
fn filter(ptrace: u32, wait: u32) -> [Instruction; 13] {
    const LOAD: u16 = 0x20;
    const IS: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const FAIL_WITH: u32 = libc::SECCOMP_RET_ERRNO;
    const EPERM: u32 = libc::EPERM.unsigned_abs();
    const ANY_KIND: u32 = 0x4000_0000;
    const ATTACH: u32 = 16;
    const DETACH: u32 = 17;
    // Offsets of the lower halves of the arguments, which come first on these processors.
    const FIRST_ARGUMENT: u32 = 16;
    const SECOND_ARGUMENT: u32 = 24;
    const THIRD_ARGUMENT: u32 = 32;
    [
        Instruction(LOAD, 0, 0, 0),
        Instruction(IS, 5, 0, ptrace),
        Instruction(IS, 0, 8, wait),
        Instruction(LOAD, 0, 0, SECOND_ARGUMENT),
        Instruction(IS, 6, 0, 0),
        Instruction(LOAD, 0, 0, THIRD_ARGUMENT),
        Instruction(IS, 3, 4, ANY_KIND),
        Instruction(LOAD, 0, 0, FIRST_ARGUMENT),
        Instruction(IS, 1, 0, ATTACH),
        Instruction(IS, 0, 2, DETACH),
        Instruction(RETURN, 0, 0, FAIL_WITH),
        Instruction(RETURN, 0, 0, ALLOW),
        Instruction(RETURN, 0, 0, FAIL_WITH | EPERM),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter's verdict on a system call with these arguments.
    fn said(number: u32, [first, second, third]: [u32; 3]) -> u32 {
        let program = filter(101, 61);
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction(what, if_so, if_not, value) = program[at];
            at += 1;
            match what {
                0x20 => {
                    loaded = match value {
                        0 => number,
                        at => [first, second, third][usize::try_from(at / 8 - 2).unwrap()],
                    }
                }
                0x15 => at += usize::from(if loaded == value { if_so } else { if_not }),
                _ => return value,
            }
        }
    }

    #[test]
    fn leak_check_ptrace_attach_and_wait_are_faked() {
        let (done, allowed, refused) = (0x0005_0000, 0x7fff_0000, 0x0005_0001);
        let status = 0x7ffc_0000;
        for (number, arguments, expect, what) in [
            (101, [16, 0, 0], done, "attach"),
            (101, [17, 0, 0], done, "detach"),
            (101, [0x4204, 0, 0], refused, "registers"),
            (61, [7, status, 0x4000_0000], done, "wait for a stop"),
            (61, [7, 0, 0x4000_0000], allowed, "wait for who looks"),
            (61, [7, status, 0], allowed, "wait for a child"),
            (61, [7, status, 1], allowed, "look for a child"),
            (1, [16, 0, 0x4000_0000], allowed, "write"),
        ] {
            assert_eq!(said(number, arguments), expect, "{what}");
        }
    }
}
