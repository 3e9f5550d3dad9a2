// One stream of changes for all tabs of a browser: over HTTP/1.1 a browser opens six
// connections to a server, and a stream of each tab would take them all.
'use strict';
const kinds = ['ready', 'reset', 'Cluster', 'Run', 'PullRequest'];
const silent = 60000; // a tab that has said nothing for so long is gone
const tabs = new Map(); // its port, and when it was last heard of
let source = null;
let state = 'reconnecting';
let last = null; // the number of the newest change that was told

function tell(message) {
  for (const port of tabs.keys()) port.postMessage(message);
}

function say(next) {
  if (state !== next) {
    state = next;
    tell({ state });
  }
}

function connect() {
  if (source && source.readyState !== EventSource.CLOSED) return;
  source = new EventSource('/api/v1/events');
  source.onopen = () => say('live');
  source.onerror = () => {
    say('reconnecting');
    // A refusal, such as of a session that has ended, closes it for good: try later.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { if (tabs.size) connect(); }, 5000 + Math.random() * 5000);
  };
  for (const kind of kinds) source.addEventListener(kind, (event) => {
    last = event.lastEventId;
    tell({ kind, data: event.data, id: last });
  });
}

function leave(port) {
  tabs.delete(port);
  if (!tabs.size && source) {
    source.close();
    source = null;
    state = 'reconnecting';
  }
}

self.onconnect = (event) => {
  const port = event.ports[0];
  tabs.set(port, Date.now());
  port.onmessage = (message) => {
    if (message.data === 'bye') {
      leave(port);
    } else {
      tabs.set(port, Date.now());
      connect();
    }
  };
  port.postMessage({ state, id: last });
  connect();
};

setInterval(() => {
  for (const [port, heard] of tabs) if (Date.now() - heard > silent) leave(port);
}, silent / 2);
