// The connection to the session: records come as events, lines go as requests. In an editor's panel both are messages to
// the editor, which passes them on to its debug adapter and back.

const editor = globalThis.acquireVsCodeApi?.();
const listeners = new Map();
// Who waits for the editor's answer, by the number of what was asked.
const asked = new Map();
let tell = () => {};

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
    const { last, records } = await ask('sdm/events', { after });
    for (const record of records) deliver(JSON.parse(record));
    after = last;
  }
}

// Has the editor show a line of a file.
export function show(path, line) {
  editor.postMessage({ path, line });
}

export function open(state) {
  tell = state;
  if (editor) {
    listen().catch(() => tell('The session is over.'));
    return;
  }
  const events = new EventSource('/events');
  events.onopen = () => tell('');
  events.onerror = () => tell(events.readyState === EventSource.CLOSED ? 'The session cannot be reached.' : 'Connecting again ...');
  events.onmessage = ({ data }) => {
    const record = JSON.parse(data);
    deliver(record);
    if (record.kind === 'end') {
      events.close();
      tell('The session is over.');
      // The answer to the last line may come later, or not at all.
      tell = () => {};
    }
  };
}

async function post(path, text) {
  if (editor) {
    await ask(`sdm${path}`, { text }).then(() => tell(''), tell);
    return;
  }
  const response = await fetch(path, { method: 'POST', body: text }).catch(() => null);
  if (!response) tell('The session cannot be reached.');
  else if (!response.ok) tell((await response.text()).trim());
  else tell('');
}

// Sends a line as a person types it at the prompt.
export const line = (text) => post('/line', text);
// What Ctrl-C does at the prompt.
export const interrupt = () => post('/interrupt', '');
export const suspend = () => post('/suspend', '');
