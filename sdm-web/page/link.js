// The connection to the session: records come as events, lines go as requests. In an editor's panel both are messages to
// the editor, which passes them on to its debug adapter and back.

const editor = globalThis.acquireVsCodeApi?.();
const listeners = new Map();
// Who waits for the editor's answer, by the number of what was asked.
const asked = new Map();
let tell = () => {};
let over = () => {};
let isQuestion = false;
// The width of the console, in columns, once it is measured.
let columns = null;
// A browser tries again every three seconds: by then a session that goes on has answered.
const TRIES_MAX = 3;

// True in an editor's panel, where the editor shows the source.
export const isPanel = Boolean(editor);

// Calls `heard` with each record of a kind.
export function on(kind, heard) {
  if (!listeners.has(kind)) listeners.set(kind, []);
  listeners.get(kind).push(heard);
}

// Gives a record to those who listen.
export function deliver(record) {
  for (const heard of listeners.get(record.kind) ?? []) heard(record);
}

// Integers that a number of JavaScript cannot hold are exact: few records have such digits.
const exact = (_, value, context) => (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source) ? BigInt(context.source) : value);
const parse = (text) => JSON.parse(text, /\d{16}/.test(text) ? exact : undefined);

function ask(request, values) {
  // A panel that is shown anew may get answers for the page before it.
  const id = crypto.randomUUID();
  editor.postMessage({ id, request, values });
  return new Promise((done, failed) => asked.set(id, { done, failed }));
}

async function listen() {
  window.addEventListener('message', ({ origin, data: { id, body, error } }) => {
    if (origin !== window.origin || !asked.has(id)) return;
    const { done, failed } = asked.get(id);
    asked.delete(id);
    if (error === undefined) done(body);
    else failed(error);
  });
  for (let after = 0; ;) {
    const { last, records } = await ask('sdm/events', { after, columns });
    for (const record of records) deliver(parse(record));
    after = last;
  }
}

// Has the editor show a line of a file.
export function show(path, line) {
  editor.postMessage({ path, line });
}

// The last that is told: the answer to the last line may come later, or not at all.
function end(text) {
  tell(text);
  tell = () => {};
  over();
}

// `state` gets what there is to say about the connection, and `ended` is called once the session is over or gone.
export function open(state, ended) {
  tell = state;
  over = ended;
  if (editor) {
    listen().catch(() => end('The session is over.'));
    return;
  }
  const events = new EventSource('/events');
  let failed = 0;
  events.onopen = () => { failed = 0; tell(''); };
  events.onerror = () => {
    failed += navigator.onLine ? 1 : 0;
    if (events.readyState !== EventSource.CLOSED && failed < TRIES_MAX) return tell('Connecting again ...');
    events.close();
    return end('The session is gone, or cannot be reached: load the page again to look for it.');
  };
  events.onmessage = ({ data }) => {
    const record = parse(data);
    deliver(record);
    if (record.kind === 'end') {
      events.close();
      end('The session is over.');
    }
  };
  window.addEventListener('online', () => tell(''));
}

// True if it was taken.
async function post(path, text) {
  if (editor) {
    return ask(`sdm${path}`, { text }).then(() => { tell(''); return true; }, (error) => { tell(error); return false; });
  }
  const response = await fetch(path, { method: 'POST', body: text }).catch(() => null);
  if (!response) tell('The session cannot be reached.');
  else tell(response.ok ? '' : (await response.text()).trim());
  return Boolean(response?.ok);
}

on('prompt', ({ question }) => {
  if (isQuestion && !question) tell('');
  isQuestion = question;
});

// Sends a line as a person types it at the prompt.
export const answer = (text) => post('/line', text);
// A line that a button or a picture stands for. It is no answer to a question.
export const line = (text) => (isQuestion ? tell('The console asks a question: answer it first.') : answer(text));
// Asks for the words that can complete a line, which come as a record.
export function complete(text) {
  if (!editor) return post('/complete', text);
  // An editor's adapter has a request for that, as it is.
  return ask('completions', { text, column: text.length + 1 }).then(({ targets }) => deliver({ kind: 'completion', typed: text, kept: text.slice(0, targets[0]?.start), words: targets.map((it) => it.text) }), () => {});
}
// What Ctrl-C does at the prompt.
export const interrupt = () => post('/interrupt', '');
export const suspend = () => post('/suspend', '');
// The session breaks its text where the console ends.
export function tellColumns(fit) {
  columns = fit;
  if (!editor) fetch('/columns', { method: 'POST', body: `${fit}` }).catch(() => {});
}
