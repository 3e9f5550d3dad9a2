// What pages do besides being read: live regions, keys, the log. Every page works without.
'use strict';
(() => {
  const script = document.currentScript;
  const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));

  /* ---- live: one stream for all tabs, as an event source that htmx-ext-sse can use ---- */

  let stale = false; // something has changed while nobody looked
  let lost = null; // whether something may have been missed; null: it was never live
  let seen = Number(document.body.dataset.seen); // the newest change that the page knew when it was made; NaN: all after it are told

  function show(state) {
    for (const element of all('[data-live]')) {
      if (element.dataset.state === state) continue;
      element.dataset.state = state;
      element.querySelector('.word').textContent = state;
    }
    if (state === 'live' && lost) refresh();
    if (state === 'live') lost = false; else if (lost === false) lost = true;
  }

  // What changes while the page is under way nobody tells: the first number heard says whether something did.
  function heard(id) {
    const missed = Number(id) > seen;
    seen = NaN;
    if (missed) refresh();
  }

  class SharedSource extends EventTarget {
    constructor() {
      super();
      this.readyState = 0;
      this.worker = new SharedWorker(script.dataset.worker, 'holdfast-live');
      this.port = this.worker.port;
      this.port.onmessage = ({ data }) => this.take(data);
      this.port.start();
      this.port.postMessage('here');
      this.beat = setInterval(() => this.port.postMessage('here'), 20000);
      addEventListener('pagehide', () => this.port.postMessage('bye'));
      addEventListener('pageshow', (event) => { if (event.persisted) this.port.postMessage('here'); });
    }

    take(message) {
      if (message.state) {
        this.readyState = message.state === 'live' ? 1 : 0;
        show(message.state);
        if (this.readyState === 1 && this.onopen) this.onopen(new Event('open'));
        if (this.readyState === 1 && message.id) heard(message.id);
      } else if (message.kind === 'reset') {
        refresh();
      } else {
        if (message.kind === 'ready') heard(message.id);
        this.dispatchEvent(new MessageEvent(message.kind, { data: message.data, lastEventId: message.id }));
      }
    }

    close() {
      clearInterval(this.beat);
      this.readyState = 2;
      this.port.postMessage('bye');
    }
  }

  function ownSource(url) {
    const source = new EventSource(url);
    source.addEventListener('open', () => show('live'));
    source.addEventListener('error', () => show('reconnecting'));
    source.addEventListener('ready', (event) => heard(event.lastEventId));
    return source;
  }

  // Regions ask for their own address again: filters and rights are the server's.
  function refresh() {
    stale = false;
    for (const element of all('[hx-trigger*="refresh"]')) htmx.trigger(element, 'refresh');
  }

  // Nothing moves while somebody chooses from a menu, confirms something, or selects text.
  const menus = 'details.pick[open], details.act[open]';
  const busy = () => document.hidden || document.querySelector(menus) || String(getSelection()).length > 0;

  if (window.htmx) {
    if (script.dataset.worker) htmx.createEventSource = (url) => (window.SharedWorker ? new SharedSource() : ownSource(url));
    document.addEventListener('htmx:beforeRequest', (event) => {
      const cause = event.detail.requestConfig.triggeringEvent;
      if (cause && (cause.type.startsWith('sse:') || cause.type === 'refresh') && busy()) {
        stale = true;
        event.preventDefault();
      }
    });
    document.addEventListener('visibilitychange', () => { if (!document.hidden && stale) refresh(); });
    setInterval(() => { if (stale && !busy()) refresh(); }, 2000);
    // A page that is not what was asked for, such as the one to sign in, is opened as a whole.
    document.addEventListener('htmx:beforeSwap', (event) => {
      const target = event.detail.target;
      const url = event.detail.xhr.responseURL || '';
      if (/\/login(\?|$)/.test(url)) {
        event.detail.shouldSwap = false;
        location.assign(url);
      } else if (target && target.id && !event.detail.serverResponse.includes('id="' + target.id + '"')) {
        event.detail.shouldSwap = false;
      }
    });
  }
  if (window.Idiomorph) {
    Idiomorph.defaults.ignoreActiveValue = true;
    // What a person has unfolded stays so, and the row that is chosen.
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
      !((name === 'open' && node.tagName === 'DETAILS') || name === 'data-chosen' || name === 'data-state');
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (old) => !(old.classList && old.classList.contains('live'));
  }

  /* ---- keys ---- */

  const rows = () => all('[data-row]').filter((row) => row.offsetParent !== null);
  const chosen = () => document.querySelector('[data-row][data-chosen]');

  function choose(step) {
    const list = rows();
    if (!list.length) return;
    const now = list.indexOf(chosen());
    const next = list[Math.min(list.length - 1, Math.max(0, now < 0 ? (step > 0 ? 0 : list.length - 1) : now + step))];
    for (const row of all('[data-chosen]')) row.removeAttribute('data-chosen');
    next.setAttribute('data-chosen', '');
    const focus = next.querySelector('[data-open], summary, a, button');
    if (focus) focus.focus({ preventScroll: true });
    next.scrollIntoView({ block: 'nearest' });
  }

  function fold(everything) {
    const scope = everything ? document.querySelector('main') : chosen();
    const parts = scope ? all('details.change', scope) : [];
    const open = parts.some((part) => !part.open);
    for (const part of parts) part.open = open;
  }

  let leader = 0; // when g was pressed
  document.addEventListener('keydown', (event) => {
    const field = event.target.closest('input, textarea, select, [contenteditable]');
    if (event.key === 'Escape') {
      for (const menu of all(menus)) menu.open = false;
      if (field) field.blur();
      return;
    }
    if (field || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (leader && Date.now() - leader < 1500) {
      leader = 0;
      const entry = document.querySelector('[data-go="' + CSS.escape(event.key) + '"]');
      if (entry) { event.preventDefault(); entry.click(); }
      return;
    }
    const pages = { '[': '[data-key="["]', ']': '[data-key="]"]' };
    switch (event.key) {
      case '/': {
        const search = document.querySelector('[data-focus]');
        event.preventDefault();
        if (search) { search.focus(); search.select(); } else { location.assign('/?focus=search'); }
        break;
      }
      case 'g': leader = Date.now(); break;
      case 'j': choose(1); break;
      case 'k': choose(-1); break;
      case 'x': fold(false); break;
      case 'X': fold(true); break;
      case 'f': if (follower) follower.toggle(); break;
      case '?': { const help = document.getElementById('help'); if (help) help.showModal(); break; }
      case '[': case ']': { const link = document.querySelector(pages[event.key]); if (link) link.click(); break; }
      case 'Enter': {
        const row = chosen();
        const link = row && event.target === document.body && row.querySelector('[data-open]');
        if (link) link.click();
        break;
      }
    }
  });
  document.addEventListener('click', (event) => {
    const inside = event.target.closest('details.pick, details.act');
    for (const menu of all(menus)) if (menu !== inside) menu.open = false;
    const help = document.getElementById('help');
    if (help && event.target === help) help.close();
    const search = event.target.closest('[data-search]');
    const field = document.querySelector('[data-focus]');
    if (search && field) { event.preventDefault(); field.focus(); }
  });

  /* ---- the log: a window of lines that moves with the reader, and follows the end ---- */

  const most = 2000; // lines in the page
  let follower = null;

  class Log {
    constructor(element) {
      this.box = element;
      this.list = element.querySelector('ol');
      this.word = document.querySelector('#follow .word');
      this.mark = document.getElementById('follow');
      this.live = element.hasAttribute('data-live-log');
      this.total = Number(element.dataset.total);
      this.loading = false;
      this.following = this.live && this.last() >= this.total;
      element.addEventListener('scroll', () => this.scrolled(), { passive: true });
      if (!location.hash.startsWith('#L')) this.bottom();
      this.say();
      if (this.live) this.poll(1000);
    }

    first() { const li = this.list.firstElementChild; return li ? Number(li.id.slice(1)) : 1; }
    last() { const li = this.list.lastElementChild; return li ? Number(li.id.slice(1)) : 0; }
    bottom() { this.box.scrollTop = this.box.scrollHeight; }
    atEnd() { return this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 30; }

    say(problem) {
      if (!this.mark) return;
      const state = problem || (this.following ? 'following' : 'paused');
      if (this.mark.dataset.state === state && this.word.textContent === state) return;
      this.mark.dataset.state = state;
      this.word.textContent = state;
    }

    toggle() {
      this.following = !this.following;
      if (this.following) this.jump(); else this.say();
    }

    async jump() {
      if (this.last() < this.total) {
        this.list.replaceChildren();
        await this.load(Math.max(1, this.total - 399), 400, true);
      }
      this.bottom();
      this.say();
    }

    scrolled() {
      if (this.loading) return;
      if (this.live) {
        const end = this.atEnd() && this.last() >= this.total;
        if (end !== this.following) { this.following = end; this.say(); }
      }
      if (this.box.scrollTop < 400 && this.first() > 1) {
        const from = Math.max(1, this.first() - 400);
        this.load(from, this.first() - from, false);
      } else if (this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 400 && this.last() < this.total) {
        this.load(this.last() + 1, 400, true);
      }
    }

    // Lines come from the server as HTML, escaped there.
    // Only counted, they change no more than how many there are.
    async load(from, n, below, counted) {
      if (this.loading) return 0;
      this.loading = true;
      try {
        const answer = await fetch(this.box.dataset.window + '&from=' + from + '&n=' + n, { headers: { 'HX-Request': 'true' } });
        if (!answer.ok) throw new Error(String(answer.status));
        this.total = Number(answer.headers.get('Holdfast-Lines'));
        this.live = answer.headers.get('Holdfast-Live') === 'true';
        const part = new DOMParser().parseFromString('<ol>' + (await answer.text()) + '</ol>', 'text/html').querySelector('ol');
        const lines = Array.from(part.children).map((line) => document.adoptNode(line));
        if (!counted) this.put(lines, below);
        return lines.length;
      } finally {
        this.loading = false;
      }
    }

    put(lines, below) {
      const height = this.box.scrollHeight;
      if (below) {
        for (const line of lines) {
          const same = document.getElementById(line.id); // one that had not ended
          if (same) same.replaceWith(line); else this.list.append(line);
        }
        const over = this.list.children.length - most;
        if (over > 0) {
          const before = this.box.scrollHeight;
          for (let i = 0; i < over; i++) this.list.firstElementChild.remove();
          this.box.scrollTop -= before - this.box.scrollHeight;
        }
      } else {
        this.list.prepend(...lines);
        this.box.scrollTop += this.box.scrollHeight - height;
        while (this.list.children.length > most) this.list.lastElementChild.remove();
      }
      if (this.following) this.bottom();
    }

    async poll(pause) {
      await new Promise((done) => setTimeout(done, pause + Math.random() * 200));
      if (!document.body.contains(this.box)) return;
      let next = Math.min(pause * 1.3, 3000);
      if (!document.hidden) {
        try {
          const got = await this.load(this.following ? Math.max(1, this.last()) : this.total + 1, this.following ? most : 1, true, !this.following);
          if (got > 1) next = 700;
          this.say();
        } catch (problem) {
          this.say('reconnecting');
          next = 3000;
        }
      }
      if (this.live) this.poll(next); else if (this.mark) { this.mark.dataset.state = 'ended'; this.word.textContent = 'ended'; }
    }
  }

  function begin() {
    const log = document.getElementById('log');
    if (log && (!follower || follower.box !== log)) follower = new Log(log);
    if (new URLSearchParams(location.search).get('focus') === 'search') {
      const field = document.querySelector('[data-focus]');
      if (field) field.focus();
    }
  }
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', begin); else begin();
})();
