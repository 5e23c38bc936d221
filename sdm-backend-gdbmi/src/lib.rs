//! The gdb backend: drives tasks through GDB/MI.

pub mod mi;
