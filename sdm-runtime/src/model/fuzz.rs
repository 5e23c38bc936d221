//! Entry points for fuzzers: any bytes go in, and a broken promise panics.
