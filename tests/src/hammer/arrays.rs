//! Seeds for the fuzz target `array`: arrays of numbers as gdb prints them.

/// Arrays of numbers as gdb prints them.
pub(super) fn arrays() -> Vec<Vec<u8>> {
    let texts = [
        "{1, -2, 0x1f, 1.5e-05, nan(0x8000000000000), -inf}",
        "{{0 <repeats 12 times>, 44 ','}, {39 '\\'', 0 <repeats 12 times>}}",
        "((1.5, 2.5) (3.5, 4.5))",
        "{{{1, 2}, {3, 4}} <repeats 3 times>}",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
