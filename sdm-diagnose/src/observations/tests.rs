//! Tests that observations survive a round trip, and that errors name their place.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use sdm_debug::probe::{
    Call, CallArgument, Holder, JoinWait, LockWait, ProcessState, ResourceWait, TaskWaits,
    ThreadWait, WaitFor, WindowLock, Within,
};
use sdm_debug::reply::{StackFrame, TaskStacks, ThreadStack, Value as Shown};
use sdm_debug::rules::{Marks, Numbers, Probes};
use sdm_idset::{IdSet, TaskId};
use serde_json::json;

use super::names::{KNOWN, ROLES};
use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z_]{1,8}", any::<String>()]
}

fn set() -> impl Strategy<Value = IdSet> {
    let ranks = vec(0..40_u32, 0..6);
    ranks.prop_map(|ranks| ranks.into_iter().map(TaskId).collect())
}

fn of_each<T: std::fmt::Debug>(
    part: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(IdSet, T)>> {
    vec((set(), part), 0..3)
}

fn frame() -> impl Strategy<Value = StackFrame> {
    let parts = (text(), text(), text(), 0..3_u32, 0..3_u32);
    parts.prop_map(|(module, function, file, line, repeat)| StackFrame {
        module,
        function,
        file,
        line,
        repeat,
    })
}

fn stacks() -> impl Strategy<Value = TaskStacks> {
    let thread = (0..3_u32, any::<bool>(), vec(frame(), 0..3));
    let thread = thread.prop_map(|(count, main, frames)| ThreadStack {
        count,
        main,
        frames,
    });
    let parts = (vec(thread, 0..3), 0..3_u32);
    parts.prop_map(|(threads, helpers)| TaskStacks { threads, helpers })
}

fn argument() -> impl Strategy<Value = CallArgument> {
    let shown = (text(), option::of(any::<(u64, u64)>()));
    let shown = shown.prop_map(|(text, cut)| Shown { text, cut });
    let role = (0..ROLES.len()).prop_map(|at| ROLES[at].0);
    let known = (0..KNOWN.len()).prop_map(|at| KNOWN[at].0);
    let parts = (
        role,
        text(),
        option::of(shown),
        option::of(any::<i64>()),
        known,
    );
    parts.prop_map(|(role, expression, value, number, known)| CallArgument {
        role,
        expression,
        value,
        number,
        known,
    })
}

fn wait_for() -> impl Strategy<Value = WaitFor> {
    let lock = (text(), frame(), option::of(any::<u32>()), any::<bool>());
    let lock = lock.prop_map(|(mutex, place, holder, orphaned)| LockWait {
        mutex,
        place,
        holder,
        orphaned,
    });
    let holder = (any::<i32>(), text(), any::<char>());
    let holder = holder.prop_map(|(pid, name, letter)| Holder { pid, name, letter });
    let resource = (text(), text(), vec(holder, 0..3));
    let resource = resource.prop_map(|(call, what, holders)| ResourceWait {
        call,
        what,
        holders,
    });
    let join = (any::<u32>(), frame());
    let join = join.prop_map(|(thread, place)| JoinWait { thread, place });
    prop_oneof![
        lock.prop_map(WaitFor::Lock),
        text().prop_map(WaitFor::SystemCall),
        resource.prop_map(WaitFor::Resource),
        join.prop_map(WaitFor::Join),
        Just(WaitFor::Polling),
        Just(WaitFor::Nobody),
    ]
}

fn waits() -> impl Strategy<Value = TaskWaits> {
    let call = (text(), frame(), text(), vec(argument(), 0..3));
    let call = call.prop_map(|(function, place, source, arguments)| Call {
        function,
        place,
        source,
        arguments,
    });
    let thread = (any::<u32>(), wait_for());
    let thread = thread.prop_map(|(thread, what)| ThreadWait { thread, what });
    let lock = (any::<i64>(), option::of(any::<u32>()));
    let lock = lock.prop_map(|(window, target)| WindowLock { window, target });
    let parts = (option::of(call), vec(thread, 0..3), vec(lock, 0..3));
    parts.prop_map(|(call, threads, window_locks)| TaskWaits {
        call,
        threads,
        window_locks,
    })
}

fn marks() -> impl Strategy<Value = Marks> {
    let sets = [set(), set(), set(), set(), set(), set()];
    sets.prop_map(
        |[
            inner_changed,
            outer_changed,
            partial,
            starved,
            unfollowed,
            exchanged,
        ]| Marks {
            inner_changed,
            outer_changed,
            partial,
            starved,
            unfollowed,
            exchanged,
        },
    )
}

fn sample() -> impl Strategy<Value = Probes> {
    let number = prop_oneof![-3..40_i64, any::<i64>()];
    let numbers = vec((0..40_u32, number), 0..6);
    let numbers = numbers.prop_map(|each| {
        let each = each
            .into_iter()
            .map(|(rank, number)| (TaskId(rank), number));
        each.collect::<Numbers>()
    });
    let role = (0..ROLES.len()).prop_map(|at| ROLES[at].0);
    let within = (any::<u32>(), frame(), any::<bool>(), any::<bool>());
    let within = within.prop_map(|(depth, frame, changed, noted)| Within {
        depth,
        frame,
        changed,
        noted,
    });
    let process = (any::<char>(), text());
    let process = process.prop_map(|(letter, wait_channel)| ProcessState {
        letter,
        wait_channel,
    });
    let parts = (
        of_each(stacks()),
        marks(),
        of_each(waits()),
        btree_map(role, numbers, 0..3),
        of_each(within),
        of_each(any::<u64>()),
        of_each(process),
        set(),
    );
    parts.prop_map(
        |(mut stacks, marks, waits, numbers, within, cpu_ms, processes, cut)| {
            // Equal stacks are one entry after a merge.
            let all = stacks.clone();
            let mut at = 0;
            stacks.retain(|(_, one)| {
                at += 1;
                !all[..at - 1].iter().any(|(_, other)| other == one)
            });
            Probes {
                stacks,
                marks,
                waits,
                numbers,
                within,
                cpu_ms,
                processes,
                cut,
            }
        },
    )
}

fn observed() -> impl Strategy<Value = Observed> {
    let time = || any::<u64>().prop_map(Duration::from_nanos);
    let lists = [
        of_each(text()).boxed(),
        of_each(text()).boxed(),
        of_each(text()).boxed(),
        of_each(text()).boxed(),
        of_each(text()).boxed(),
        of_each(text()).boxed(),
    ];
    let pids = btree_map(any::<i32>(), (0..40_u32).prop_map(TaskId), 0..4);
    let parts = (
        vec(sample(), 0..3),
        time(),
        time(),
        lists,
        set(),
        (any::<bool>(), any::<bool>()),
        pids,
    );
    parts.prop_map(|(samples, span, ran, lists, outside, flags, pids)| {
        let [gone, aborting, halted, states, stood, unseen] = lists;
        Observed {
            samples,
            span,
            ran,
            gone,
            aborting,
            halted,
            states,
            stood,
            unseen,
            outside,
            unranked: flags.0,
            strict_sends: flags.1,
            pids,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn written_observations_are_parsed_back(observed in observed()) {
        let kept = Observations { observed, verdict: json!({ "step": "held_up" }) };
        let text = kept.encode();
        let read = Observations::decode(&text).unwrap();
        prop_assert_eq!(&read, &kept);
        prop_assert_eq!(read.encode(), text);
    }

    #[test]
    fn arbitrary_text_is_parsed_as_observations_or_refused(
        observed in observed(),
        at in any::<prop::sample::Index>(),
        put in "[\"{}\\[\\],:0-9a-z -]{0,3}",
    ) {
        let mut text = Observations { observed, verdict: json!({}) }.encode();
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let begin = places[at.index(places.len())];
        let end = text[begin..].chars().next().map_or(0, char::len_utf8);
        text.replace_range(begin..begin + end, &put);
        if let Ok(read) = Observations::decode(&text) {
            prop_assert_eq!(Observations::decode(&read.encode()).unwrap(), read);
        }
    }
}

/// The smallest valid file, with one more field.
fn with(field: &str, value: Value) -> Value {
    let mut file = json!({ "observations": 1, "verdict": {} });
    file[field] = value;
    file
}

#[test]
fn invalid_observations_error_names_position_and_field() {
    let frame = json!({ "function": "main" });
    let wait = |what: Value| json!([{ "waits": [{ "tasks": "0", "threads": [what] }] }]);
    for (file, expect) in [
        (json!([]), "observations: expected an object"),
        (
            json!({}),
            "observations: the field `observations` is missing",
        ),
        (
            json!({ "observations": 2, "verdict": {} }),
            "the file has observations of version 2, but this program reads version 1",
        ),
        (
            json!({ "observations": 1 }),
            "observations: the field `verdict` is missing",
        ),
        (
            with("sample", json!([])),
            "observations: the field `sample` is unknown",
        ),
        (
            with("samples", json!([{}, { "marks": { "asleep": "0" } }])),
            "observations.samples[1].marks: the field `asleep` is unknown",
        ),
        (
            with(
                "samples",
                json!([{ "stacks": [{ "tasks": "0", "stack": 0 }] }]),
            ),
            "observations.samples[0].stacks[0].stack: expected the number of a stack that no earlier element names",
        ),
        (
            with("samples", wait(json!({ "thread": 1 }))),
            "observations.samples[0].waits[0].threads[0].lock: expected exactly one of `lock`, `system_call`, \
             `resource`, `join`, `polling` and `nobody`",
        ),
        (
            with("samples", wait(json!({ "polling": true }))),
            "observations.samples[0].waits[0].threads[0]: the field `thread` is missing",
        ),
        (
            with(
                "samples",
                wait(json!({ "thread": 1, "lock": { "mutex": "&m" } })),
            ),
            "observations.samples[0].waits[0].threads[0].lock: the field `place` is missing",
        ),
        (
            with(
                "samples",
                wait(json!({ "thread": -1, "join": { "thread": 2, "place": frame } })),
            ),
            "observations.samples[0].waits[0].threads[0].thread: expected a whole number in the range of this field",
        ),
        (
            with("outside", json!("0-4194304")),
            "observations.outside: expected a set of ranks, as `0-3,7`, below 4,194,304",
        ),
        (
            with("gone", json!([{ "tasks": 3 }])),
            "observations.gone[0].tasks: expected a text",
        ),
    ] {
        let error = Observations::decode(&file.to_string()).unwrap_err();
        assert_eq!(error.to_string(), expect);
    }
}

#[test]
fn file_without_json_is_refused() {
    let error = Observations::decode("{").unwrap_err();
    assert!(
        error.to_string().starts_with("the file is not JSON: "),
        "{error}"
    );
}

/// A short file cannot cause a large allocation.
#[test]
fn short_file_that_expands_to_huge_rank_sets_is_refused() {
    let role = json!([{ "tasks": "0-4194303", "number": 1 }]);
    let roles: BTreeMap<_, _> = ROLES
        .iter()
        .map(|(_, word)| (*word, role.clone()))
        .collect();
    let file = with("samples", json!([{ "numbers": roles }]));
    let error = Observations::decode(&file.to_string()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("expected at most 16,777,216 numbers in the file"),
        "{error}"
    );
}

#[test]
fn short_values_are_written_on_one_line() {
    let value = json!({ "b": [1, 2], "a": "x".repeat(140), "c": {} });
    let expect = format!(
        "{{\n \"a\": \"{}\",\n \"b\": [1, 2],\n \"c\": {{}}\n}}\n",
        "x".repeat(140)
    );
    assert_eq!(layout::text(&value), expect);
}

/// docs/json.md documents each name that is written.
#[test]
fn json_document_describes_every_observations_field() {
    const DOCUMENT: &str = include_str!("../../../docs/json.md");
    const SOURCE: &str = include_str!("encode.rs");
    let chapter = DOCUMENT
        .split("\n## `observations`\n")
        .nth(1)
        .expect("the chapter");
    let heads = [".with(\"", ".set(\""];
    let fields = heads.iter().flat_map(|head| SOURCE.split(head).skip(1));
    let mut names: Vec<&str> = fields.filter_map(|rest| rest.split('"').next()).collect();
    assert!(names.len() > 40, "{names:?}");
    names.extend(ROLES.iter().map(|(_, word)| *word));
    names.extend(KNOWN.iter().map(|(_, word)| *word));
    names.extend(["number", "above_rank", "pid", "rank", "name"]);
    for name in names {
        assert!(chapter.contains(&format!("`{name}`")), "{name}");
    }
}

/// All enum variants are in the tables. A new variant does not compile until it is added here.
#[test]
fn every_argument_role_has_a_name() {
    use sdm_debug::probe::ArgumentRole as R;
    for (role, _) in ROLES {
        match role {
            R::Count | R::Destination | R::Tag | R::Source | R::ReceiveTag | R::Communicator => {}
            R::File | R::Root | R::Requests | R::Target | R::Context | R::OtherJobs => {}
            R::Handle | R::Window | R::Operation | R::Access | R::Exposure => {}
        }
    }
    let words: std::collections::BTreeSet<_> = ROLES.iter().map(|(role, _)| *role).collect();
    assert_eq!(words.len(), 17);
}
