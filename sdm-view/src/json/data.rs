//! Memory, registers, libraries and other data of tasks, except stacks and values, as JSON.

use sdm_debug::reply::{
    BreakpointView, CatchHit, Library, MemoryBlock, MemoryLimit, Reply, Usage, VarObject,
};
use serde_json::{Value, json};

use super::reply::{places, value};

/// Converts the answers that `super::reply` leaves out: memory, registers, libraries and the like.
pub(super) fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Mi { result, printed } => {
            json!({ "type": "mi", "result": result, "printed": printed })
        }
        Reply::Breakpoints(list) => json!({
            "type": "breakpoints",
            "breakpoints": list.iter().map(breakpoint).collect::<Vec<_>>(),
        }),
        Reply::Memory(blocks) => {
            json!({ "type": "memory", "blocks": blocks.iter().map(block).collect::<Vec<_>>() })
        }
        Reply::Instructions(list) => {
            let one = |one: &sdm_debug::reply::Instruction| {
                json!({
                    "address": one.address,
                    "function": one.function,
                    "offset": one.offset,
                    "text": one.text,
                    "current": one.current,
                })
            };
            json!({ "type": "instructions", "instructions": list.iter().map(one).collect::<Vec<_>>() })
        }
        Reply::Source(source) => json!({
            "type": "source",
            "file": source.file,
            "path": source.path,
            "first": source.first,
            "lines": source.lines,
        }),
        Reply::Libraries(list) => {
            let libraries: Vec<_> = list.iter().map(library).collect();
            json!({ "type": "libraries", "libraries": libraries })
        }
        Reply::Signals(list) => {
            let one = |one: &sdm_debug::reply::SignalView| {
                json!({
                    "name": one.name,
                    "stop": one.stop,
                    "print": one.print,
                    "pass": one.pass,
                    "meaning": one.meaning,
                })
            };
            json!({ "type": "signals", "signals": list.iter().map(one).collect::<Vec<_>>() })
        }
        Reply::VarObject(object) => json!({ "type": "var_object", "object": var_object(object) }),
        Reply::VarChildren { children, more } => json!({
            "type": "var_children",
            "children": children.iter().map(var_object).collect::<Vec<_>>(),
            "more": more,
        }),
        Reply::Usage(found) => usage(found),
        Reply::Queues(queues) => json!({ "type": "queues", "queues": queues }),
        Reply::Room(room) => json!({
            "type": "room",
            "gdb_bytes": room.gdb_bytes,
            "free_bytes": room.free_bytes,
            "limit": match room.limit {
                MemoryLimit::Host => "host",
                MemoryLimit::Group => "group",
            },
        }),
        Reply::Probe(probe) => json!({ "type": "probe", "probe": probe }),
        _ => unreachable!("the other answers are written by `super::reply`"),
    }
}

fn block(block: &MemoryBlock) -> Value {
    json!({ "start": block.start, "bytes_hex": hex(&block.bytes) })
}

fn library(one: &Library) -> Value {
    json!({ "path": one.path, "symbols": one.symbols })
}

fn usage(found: &Usage) -> Value {
    json!({ "resident_bytes": found.resident_bytes, "peak_bytes": found.peak_bytes })
}

/// The JSON of a catchpoint's event.
pub(super) fn caught(hit: &CatchHit) -> Value {
    match hit {
        CatchHit::Fork => json!({ "event": "fork" }),
        CatchHit::Vfork => json!({ "event": "vfork" }),
        CatchHit::Exec { program } => json!({ "event": "exec", "program": program }),
        CatchHit::SyscallEntry { name } => json!({ "event": "syscall_entry", "name": name }),
        CatchHit::SyscallReturn { name } => json!({ "event": "syscall_return", "name": name }),
        CatchHit::Signal { name } => json!({ "event": "signal", "name": name }),
        CatchHit::Exception { stage } => json!({ "event": "exception", "stage": stage }),
        CatchHit::Libraries { loaded, unloaded } => {
            json!({ "event": "libraries", "loaded": loaded, "unloaded": unloaded })
        }
    }
}

fn breakpoint(view: &BreakpointView) -> Value {
    json!({
        "number": view.place.number,
        "pending": view.place.pending,
        "places": places(&view.place.places),
        "kind": view.kind,
        "what": view.what,
        "condition": view.condition,
        "enabled": view.enabled,
        "temporary": view.temporary,
        "hits": view.hits,
        "ignore": view.ignore,
    })
}

fn var_object(object: &VarObject) -> Value {
    json!({
        "name": object.name,
        "expression": object.expression,
        "type_name": object.type_name,
        "value": value(&object.value),
        "children": object.children,
        "more": object.more,
        "pretty": object.pretty,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
