// The connection to the session: records come as events, lines go as requests.

const listeners = new Map();
let tell = () => {};

// Calls `heard` with each record of a kind.
export function on(kind, heard) {
  if (!listeners.has(kind)) listeners.set(kind, []);
  listeners.get(kind).push(heard);
}

// Gives a record to those who listen.
export function deliver(record) {
  for (const heard of listeners.get(record.kind) ?? []) heard(record);
}

export function open(state) {
  tell = state;
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

async function post(path, body) {
  const response = await fetch(path, { method: 'POST', body }).catch(() => null);
  if (!response) tell('The session cannot be reached.');
  else if (!response.ok) tell((await response.text()).trim());
  else tell('');
}

// Sends a line as a person types it at the prompt.
export const line = (text) => post('/line', text);
// What Ctrl-C does at the prompt.
export const interrupt = () => post('/interrupt', '');
export const suspend = () => post('/suspend', '');
