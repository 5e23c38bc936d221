//! Disassembly of instructions, in gdb's notation.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};

/// Disassembles code at an address: the start of each instruction, and its text in AT&T syntax.
pub(crate) fn assembly(begin: u64, code: &[u8]) -> Vec<(u64, String)> {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut all = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        all.push((instruction.ip(), text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_formatted_as_by_gdb() {
        let code: &[u8] = &[
            0xf3, 0x0f, 0x1e, 0xfa, // endbr64
            0x41, 0x57, // push
            0x45, 0x89, 0xc7, // mov
            0x48, 0x83, 0xec, 0x28, // sub
            0x89, 0x4c, 0x24, 0x0c, // mov
            0x89, 0x4d, 0xe8, // mov
            0x48, 0x89, 0x3c, 0x24, // mov
            0xc7, 0x45, 0xe8, 5, 0, 0, 0, // movl
            0x48, 0x8d, 0x74, 0x98, 0x08, // lea
            0x80, 0x38, 0x00, // cmpb
            0x0f, 0x85, 0, 1, 0, 0, // jne
        ];
        let all = assembly(0x1000, code);
        let text: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
        let expect = [
            "endbr64",
            "push %r15",
            "mov %r8d,%r15d",
            "sub $0x28,%rsp",
            "mov %ecx,0xc(%rsp)",
            "mov %ecx,-0x18(%rbp)",
            "mov %rdi,(%rsp)",
            "movl $0x5,-0x18(%rbp)",
            "lea 0x8(%rax,%rbx,4),%rsi",
            "cmpb $0x0,(%rax)",
            "jne 0x112d",
        ];
        assert_eq!(text, expect);
        assert_eq!(all[2].0, 0x1006);
    }
}
