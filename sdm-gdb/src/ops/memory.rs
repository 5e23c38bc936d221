//! Reads and writes memory, reads registers, and disassembles.

use std::fmt::Write;

use sdm_debug::command::ValueFormat;
use sdm_debug::reply::{Instruction, MEMORY_BYTES_MAX, MemoryBlock, Variable};
use sdm_debug::{Failure, FailureCode, Reply};

use crate::gdb::Gdb;
use crate::text::value;
use sdm_mi::{Results, quote};

/// Maximum number of instructions in one answer.
const INSTRUCTIONS_MAX: usize = 4096;
/// Maximum number of instructions shown before the current one, if not all fit.
const BEFORE_MAX: usize = 1024;
/// The first vector or floating-point registers of x86, ARM, POWER and RISC-V. Such a register and all after it in
/// gdb's order are left out unless named.
const VECTORS: [&str; 9] = ["st0", "xmm0", "ymm0", "v0", "d0", "q0", "s0", "f0", "vr0"];

fn check_length(length: usize) -> Result<(), Failure> {
    if length == 0 {
        return Err(Failure::new(
            FailureCode::BadCommand,
            "expected a length of at least 1 byte",
        ));
    }
    if length > MEMORY_BYTES_MAX as usize {
        let text = format!("{length} bytes requested, the maximum is {MEMORY_BYTES_MAX}");
        return Err(Failure::new(FailureCode::Limit, text));
    }
    Ok(())
}

pub(crate) async fn read(gdb: &Gdb, address: &str, length: u32) -> Result<Reply, Failure> {
    check_length(length as usize)?;
    let address = quote(address.as_bytes());
    let line = format!("-data-read-memory-bytes {address} {length}");
    let results = gdb.mi(line).await?;
    let blocks = results.tuples("memory").filter_map(block);
    Ok(Reply::Memory(blocks.collect()))
}

fn block(memory: &Results) -> Option<MemoryBlock> {
    let start = memory.address("begin")?;
    let bytes = from_hex(memory.text("contents")?)?;
    Some(MemoryBlock { start, bytes })
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}

pub(crate) async fn write(gdb: &Gdb, address: &str, bytes: &[u8]) -> Result<Reply, Failure> {
    check_length(bytes.len())?;
    let mut line = format!("-data-write-memory-bytes {} ", quote(address.as_bytes()));
    for byte in bytes {
        let _ = write!(line, "{byte:02x}");
    }
    gdb.mi(line).await?;
    Ok(Reply::Done)
}

pub(crate) async fn registers(
    gdb: &Gdb,
    names: &[String],
    format: ValueFormat,
) -> Result<Reply, Failure> {
    let results = gdb.mi("-data-list-register-names").await?;
    let known: Vec<&str> = results
        .items("register-names")
        .map(|name| name.as_text().unwrap_or_default())
        .collect();
    let wanted = choose(&known, names)?;
    let mut values = values_of(gdb, &wanted, format_letter(format)).await?;
    if format == ValueFormat::Natural {
        let raw = values_of(gdb, &wanted, 'x').await?;
        for ((_, natural), (_, raw)) in values.iter_mut().zip(raw) {
            *natural = both(&raw, natural);
        }
    }
    let variable = |(number, text): (usize, String)| {
        Some(Variable {
            name: (*known.get(number)?).to_owned(),
            value: value(&text),
        })
    };
    let variables = values.into_iter().filter_map(variable);
    Ok(Reply::Variables(variables.collect()))
}

/// The values of registers, by gdb's numbers.
async fn values_of(
    gdb: &Gdb,
    wanted: &[usize],
    letter: char,
) -> Result<Vec<(usize, String)>, Failure> {
    let mut line = format!("-data-list-register-values --skip-unavailable {letter}");
    for number in wanted {
        let _ = write!(line, " {number}");
    }
    let results = gdb.mi(line).await?;
    let values = results.tuples("register-values").filter_map(|register| {
        let text = register.text("value").unwrap_or_default();
        Some((register.number("number")?, text.to_owned()))
    });
    Ok(values.collect())
}

/// A register in hexadecimal, followed by its natural form if that adds anything, as in `info registers`. For vectors
/// and floating point the hexadecimal form is left out.
fn both(raw: &str, natural: &str) -> String {
    let is_whole = natural.parse::<i128>().is_ok() || natural.starts_with('[');
    match is_whole && raw != natural {
        true => format!("{raw}  {natural}"),
        false => natural.to_owned(),
    }
}

/// gdb's numbers of the registers with these names; the general ones for no names.
fn choose(known: &[&str], names: &[String]) -> Result<Vec<usize>, Failure> {
    if names.is_empty() {
        let is_general = |name: &&&str| !VECTORS.contains(name);
        let general = known.iter().take_while(is_general).enumerate();
        let named = general.filter(|(_, name)| !name.is_empty());
        return Ok(named.map(|(number, _)| number).collect());
    }
    let number = |name: &String| {
        let plain = name.strip_prefix('$').unwrap_or(name);
        // Every processor has its own names for these two.
        let own: &[&str] = match plain {
            "pc" => &["pc", "rip", "eip"],
            "sp" => &["sp", "rsp", "esp"],
            other => &[other],
        };
        let found = known
            .iter()
            .position(|known| !known.is_empty() && own.contains(known));
        found.ok_or_else(|| Failure::new(FailureCode::NoSuchThing, format!("no register {plain}")))
    };
    names.iter().map(number).collect()
}

fn format_letter(format: ValueFormat) -> char {
    match format {
        ValueFormat::Natural => 'N',
        ValueFormat::Hexadecimal => 'x',
    }
}

pub(crate) async fn disassemble(gdb: &Gdb, address: Option<&str>) -> Result<Reply, Failure> {
    let frame = gdb.mi("-stack-info-frame").await;
    let pc = frame
        .ok()
        .and_then(|frame| frame.tuple("frame")?.address("addr"));
    let address = quote(address.unwrap_or("$pc").as_bytes());
    let results = gdb
        .mi(format!("-data-disassemble -a {address} -- 0"))
        .await?;
    let instruction = |one: &Results| {
        let address = one.address("address").unwrap_or(0);
        Instruction {
            address,
            function: one.text("func-name").unwrap_or_default().to_owned(),
            offset: one.number("offset").unwrap_or(0),
            text: one.text("inst").unwrap_or_default().to_owned(),
            current: pc == Some(address),
        }
    };
    let mut all: Vec<Instruction> = results.tuples("asm_insns").map(instruction).collect();
    if all.len() > INSTRUCTIONS_MAX {
        let current = all.iter().position(|one| one.current).unwrap_or(0);
        all.drain(..current.saturating_sub(BEFORE_MAX));
        all.truncate(INSTRUCTIONS_MAX);
    }
    Ok(Reply::Instructions(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_memory_is_decoded() {
        assert_eq!(from_hex("00ff1A"), Some(vec![0, 0xff, 0x1a]));
        assert_eq!(from_hex(""), Some(vec![]));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("0g"), None);
        assert_eq!(from_hex("\u{fc}"), None);
    }

    #[test]
    fn integer_registers_show_raw_form_and_value() {
        for (raw, natural, expect) in [
            ("0x1c", "28", "0x1c  28"),
            ("0x0", "0", "0x0  0"),
            ("0xffffffffffffffff", "-1", "0xffffffffffffffff  -1"),
            ("0x246", "[ PF ZF IF ]", "0x246  [ PF ZF IF ]"),
            ("0x55551149", "0x55551149 <main+4>", "0x55551149 <main+4>"),
            ("0x7ffe10", "0x7ffe10", "0x7ffe10"),
            ("0x3", "3.7", "3.7"),
            ("{v1 = 0x1}", "{v1 = 1}", "{v1 = 1}"),
        ] {
            assert_eq!(both(raw, natural), expect);
        }
    }

    #[test]
    fn registers_are_selected_by_name() {
        let known = ["rax", "", "rip", "st0", "xmm0"];
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(&known, &names)
        };
        assert_eq!(named(&[]).unwrap(), [0, 2]);
        assert_eq!(named(&["$pc", "xmm0"]).unwrap(), [2, 4]);
        assert_eq!(named(&["r99"]).unwrap_err().code, FailureCode::NoSuchThing);
        assert_eq!(named(&[""]).unwrap_err().code, FailureCode::NoSuchThing);
    }
}
