//! The decoders' fuzz entries as bolero targets: `cargo bolero test -p sdm-tests --test house bolero::message` fuzzes
//! one with libFuzzer or another engine; here each gets a fixed number of random inputs.

use sdm_tests::hammer::targets;

/// Passes the fuzzing engine's inputs to a decoder.
fn feed(name: &str) {
    let targets = targets();
    let target = targets.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("no decoder {name}"));
    // A dozen bytes can encode a set of millions; for such decoders a run has time for few inputs.
    let runs = usize::try_from(target.quick).expect("a few thousand");
    bolero::check!()
        .with_iterations(runs)
        .for_each(|input: &[u8]| (target.run)(input));
}

macro_rules! targets {
    ($($test:ident $name:literal)*) => {
        $(#[test]
        fn $test() {
            feed($name);
        })*

        #[test]
        fn every_decoder_has_a_bolero_target() {
            let mut here = vec![$($name),*];
            let mut there: Vec<_> = targets().iter().map(|target| target.name).collect();
            here.sort_unstable();
            there.sort_unstable();
            assert_eq!(here, there);
        }
    };
}

targets! {
    set "set"
    set_text "set-text"
    message "message"
    frame "frame"
    slice "slice"
    member "member"
    front_end "front-end"
    handshake "handshake"
    failure "failure"
    debug "debug"
    merge "merge"
    array "array"
    mi "mi"
    set_grammar "set-grammar"
    doctor "doctor"
    keeper "keeper"
    pmix "pmix"
    pmix_tool "pmix-tool"
    queues "queues"
    pmix_rendezvous "pmix-rendezvous"
    proxy "proxy"
    model "model"
    claim "claim"
    manager_lines "rm"
    editor "editor"
    invoke_lines "invoke"
    manager_answers "answers"
    first_words "first-words"
    shim "shim"
    objects "objects"
    core "core"
    walkers "walkers"
    kernel "kernel"
    hosts "hosts"
    scenario "scenario"
    page "page"
}
