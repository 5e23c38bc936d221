//! The page (`sdm web`) of ten thousand emulated ranks: what it holds, and what a stop costs the browser.

use sdm_tests::browser::Browser;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;
use serde_json::json;

/// Bound of the nodes of a page: its elements and texts.
const ELEMENTS_MAX: f64 = 8_000.0;
/// Bound of the JavaScript heap of a page, in bytes.
const HEAP_MAX: f64 = 50e6;
/// Draws ten thousand ranks in a thousand places, each rank with other neighbours, as at a stop.
const MANY_PLACES: &str = "import('/link.js').then(({ deliver }) => {
  const frame = (name, line) => ({ module: '', function: name, file: 'solver.c', line, repeat: 1 });
  const stacks = Array.from({ length: 1000 }, (_, at) => ({ tasks: `${at}-${9000 + at}/1000`, count: 10, threads: 10, frames: [frame('main', 80), frame('solve', 20 + at % 7), frame(`kernel${at % 50}`, at), frame('MPI_Wait', 0)] }));
  const text = JSON.stringify({ kind: 'sight', stacks: { type: 'stacks', tasks: '0-9999', count: 10000, others: '', bare: '', stacks }, source: null, frames: [], locals: [], watched: [], missing: null });
  deliver(JSON.parse(text));
  const isThere = document.querySelector('#tree').textContent.includes('solve');
  return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(isThere), 0)));
})";

/// Bounds of the records of a stop, by kind: their bytes, and the nodes of the document that each of them changes.
const RECORDS_MAX: [(&str, u64, u64); 3] = [
    ("board", 4_000, 100),
    ("sight", 60_000, 2_500),
    ("said", 500, 3),
];
/// Bounds of the elements of a map of 100,000 ranks, and of the bytes of what it is drawn of.
const MAP_MAX: (u64, u64) = (100, 4_000_000);

/// Holds what the records of a stop cost against their bounds. Unlike times these are the same on a busy machine.
fn check_records(page: &mut BrowserPage) {
    // It is looked at once the prompt is there.
    page.wait("costs().sight");
    let costs = page.value("costs()");
    println!("page of 10000 ranks, most bytes and changed nodes of a record: {costs}");
    for (kind, bytes_max, nodes_max) in RECORDS_MAX {
        let figure = |at: usize| costs[kind][at].as_u64().expect("such a record came");
        assert!(figure(0) <= bytes_max, "{kind}: {costs}");
        assert!(figure(1) <= nodes_max, "{kind}: {costs}");
    }
}

/// Holds the size of a map of 100,000 ranks against its bounds, and finds some of its ranks.
fn check_large_map(page: &mut BrowserPage) {
    let map = page.value(include_str!("page_map.js"));
    println!("map of 100000 ranks: {map}");
    let states = [
        "stopped",
        "running",
        "exited",
        "detached",
        "starting",
        "absent",
        "signalled",
        "gdb_dead",
    ];
    for order in ["rank", "host"] {
        let map = &map[order];
        let figure = |name: &str| map[name].as_u64().expect("a number");
        assert!(figure("elements") <= MAP_MAX.0, "{order}: {map}");
        assert!(figure("bytes") <= MAP_MAX.1, "{order}: {map}");
        assert_eq!(map["cells"], json!(vec![12_500; 8]), "{order}");
        assert_eq!(map["isInside"], true, "{order}");
        let here = [0, 54_321, 99_999].map(|rank| format!("rank {rank}: {}", states[rank % 8]));
        assert_eq!(map["here"], json!(here), "{order}");
    }
}

/// A figure of Chromium's about the page.
fn figure(page: &mut BrowserPage, name: &str) -> f64 {
    let all = page.call("Performance.getMetrics", json!({}));
    let mut all = all["metrics"].as_array().expect("a list").iter();
    let found = all.find(|it| it["name"] == name).expect("it is measured");
    found["value"].as_f64().expect("a number")
}

/// Milliseconds that the page's thread is busy while `what` runs.
fn busy_ms(page: &mut BrowserPage, what: impl FnOnce(&mut BrowserPage)) -> f64 {
    let before = figure(page, "TaskDuration");
    what(page);
    (figure(page, "TaskDuration") - before) * 1000.0
}

fn check_size(page: &mut BrowserPage, what: &str, ms: f64) {
    page.call("HeapProfiler.collectGarbage", json!({}));
    let (elements, heap) = (figure(page, "Nodes"), figure(page, "JSHeapUsedSize"));
    println!(
        "page of 10000 ranks, {what}: {ms:.0} ms, {:.1} MB, {elements} nodes",
        heap / 1e6
    );
    assert!(elements < ELEMENTS_MAX, "{what}: {elements} nodes");
    assert!(heap < HEAP_MAX, "{what}: {heap} bytes");
}

#[test]
fn page_of_ten_thousand_ranks_is_small_and_does_not_poll() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let emulate = Sdm::new(&place, "emulate").args(["-n", "10000", "--tasks-per-server", "1000"]);
    let running = emulate.args(["--web"]).spawn();
    let line = running.err.wait_line(0, "/enter/");
    let (_, address) = line.rsplit_once(' ').expect("the address is last");
    let mut page = BrowserPage::open(&browser, place.path(), address, (1280, 800));
    // Times are those of a processor, and not of a busy machine.
    let clock = json!({ "timeDomain": "threadTicks" });
    page.call("Performance.enable", clock);
    page.wait_text("#states", "10000 stopped");
    page.wait_text("#tree", "MPI_Recv");
    page.call("Network.enable", json!({}));
    assert_eq!(page.value(include_str!("page_costs.js")), true);
    let ms = busy_ms(&mut page, |page| {
        page.line("next");
        page.wait_text("#log", "(9999): MPI_Allreduce ()");
        page.wait("document.querySelector('#prompt').textContent.includes('10000 stopped')");
    });
    check_size(&mut page, "a step of all", ms);
    check_records(&mut page);
    let ms = busy_ms(&mut page, |page| {
        page.line("outliers rank");
        page.wait_text("#shown h3", "rank");
    });
    page.click("#tab-map");
    check_size(&mut page, "values that all differ", ms);
    let ms = busy_ms(&mut page, |page| {
        assert_eq!(page.value(MANY_PLACES), true);
    });
    check_size(&mut page, "a thousand places", ms);
    // Each line of the prompt is a request, and there is no other one.
    assert_eq!(page.requests, 2);
    check_large_map(&mut page);
    page.line("quit");
    page.wait_text("#prompt", "ranks started here?");
    page.line("y");
    page.wait_text("#link", "The session is over.");
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    let _done = running.finish().code(0);
}
