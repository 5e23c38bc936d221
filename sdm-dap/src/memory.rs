//! Memory and instructions in the form of the protocol.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sdm_debug::reply::{Instruction, MemoryBlock};
use serde_json::{Value, json};

use crate::error::RequestError;

/// Maximum number of instructions in one answer.
pub(crate) const INSTRUCTIONS_MAX: usize = 4096;

/// Parses an address from the client: `0x7ffe0` or a decimal number. `None` for other text.
pub(crate) fn address(reference: &str) -> Option<u64> {
    let reference = reference.trim();
    match reference.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => reference.parse().ok(),
    }
}

/// The error for a memory reference that is not an address.
pub(crate) fn no_address(reference: &str) -> RequestError {
    let reference: String = reference.chars().take(60).collect();
    RequestError::Tasks(format!("`{reference}` is not an address"))
}

/// The address in gdb's printed pointer: `0x5555 <main>`, `(int *) 0x7ffe0`. `None` if there is none.
pub(crate) fn pointer(text: &str) -> Option<String> {
    let text = match text.strip_prefix('(') {
        Some(typed) => typed.rsplit_once(") ").map_or("", |(_, value)| value),
        None => text,
    };
    let digits = text.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit());
    let digits = &digits[..end.unwrap_or(digits.len())];
    (!digits.is_empty()).then(|| format!("0x{digits}"))
}

/// The body of the response to `readMemory`: the contiguous bytes from `start` on, and how many of `count` bytes are
/// missing.
pub(crate) fn read(start: u64, count: u64, blocks: &[MemoryBlock]) -> Value {
    let first = blocks.iter().find(|block| block.start == start);
    let bytes = first.map_or(&[][..], |block| block.bytes.as_slice());
    let missing = count.saturating_sub(bytes.len() as u64);
    let mut body = json!({"address": format!("{start:#x}"), "data": STANDARD.encode(bytes)});
    if missing > 0 {
        body["unreadableBytes"] = json!(missing);
    }
    body
}

/// The bytes of a `writeMemory` request.
///
/// # Errors
/// [`RequestError::Tasks`]: the data is not base64.
pub(crate) fn decode(data: &str) -> Result<Vec<u8>, RequestError> {
    let bytes = STANDARD.decode(data);
    bytes.map_err(|error| RequestError::Tasks(format!("writeMemory: {error}")))
}

/// The body of a `disassemble` response: exactly `count` instructions, from `offset` instructions after `address` on,
/// as far as `known` contains them.
pub(crate) fn instructions(
    known: &[Instruction],
    address: u64,
    offset: i64,
    count: usize,
) -> Value {
    let at = known.partition_point(|instruction| instruction.address < address);
    let at = i64::try_from(at).unwrap_or(i64::MAX).saturating_add(offset);
    let shown = (0..count).map(|step| {
        let index = at.saturating_add(i64::try_from(step).unwrap_or(i64::MAX));
        let index = usize::try_from(index).ok();
        match index.and_then(|index| known.get(index)) {
            Some(found) => json!({
                "address": format!("{:#x}", found.address),
                "instruction": found.text,
                "symbol": format!("{}+{}", found.function, found.offset),
            }),
            None => json!({
                "address": "-1",
                "instruction": "",
                "presentationHint": "invalid",
            }),
        }
    });
    json!({"instructions": shown.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_are_parsed_from_gdb_values() {
        for (text, expect) in [
            ("0x5555 <main+4>", Some("0x5555")),
            ("(int *) 0x7ffe0", Some("0x7ffe0")),
            ("(void (*)(void)) 0x1 <f>", Some("0x1")),
            ("0x", None),
            ("5", None),
        ] {
            assert_eq!(pointer(text).as_deref(), expect, "{text}");
        }
        assert_eq!(address("0x10"), Some(16));
        assert_eq!(address("0x10; kill"), None);
    }

    #[test]
    fn unknown_instructions_have_an_empty_text() {
        let known: Vec<Instruction> = [16, 18]
            .map(|address| Instruction {
                address,
                function: "f".to_owned(),
                offset: 0,
                text: "nop".to_owned(),
                current: false,
            })
            .into();
        let body = instructions(&known, 18, -1, 4);
        let texts = body["instructions"].as_array().expect("a list").iter();
        let texts: Vec<_> = texts.map(|found| found["instruction"].as_str()).collect();
        assert_eq!(texts, [Some("nop"), Some("nop"), Some(""), Some("")]);
    }

    #[test]
    fn memory_read_ends_at_an_unreadable_range() {
        let blocks = [
            MemoryBlock {
                start: 16,
                bytes: vec![1, 2],
            },
            MemoryBlock {
                start: 32,
                bytes: vec![3],
            },
        ];
        let body = read(16, 17, &blocks);
        assert_eq!(
            (&body["data"], &body["unreadableBytes"]),
            (&json!("AQI="), &json!(15))
        );
    }
}
