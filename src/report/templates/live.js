// What keeps a live page alive.
"use strict";

/** Listens to the server. News are small and come often; the whole page is fetched as often as that is cheap. */
function follow(live, current, take) {
  let isFetching = false;
  let isStale = false;
  let timer = null;
  let rest = 0;
  const say = (text) => { const pulse = document.getElementById("pulse"); if (pulse) pulse.textContent = text; };
  const isAway = () => document.hidden || document.querySelector("dialog[open]");
  function schedule() {
    isStale = true;
    if (isFetching || timer !== null || isAway()) return;
    timer = setTimeout(refresh, Math.max(0, rest - performance.now()));
  }
  async function refresh() {
    timer = null;
    if (isAway()) return;
    isFetching = true;
    isStale = false;
    const began = performance.now();
    try {
      const reply = await fetch(live.data);
      if (reply.ok) {
        const next = prepare(await reply.json());
        next.live = live;
        if (isAway()) isStale = true;
        else { take(next); build(next); }
      }
    } catch { isStale = true; }
    // At most a quarter of the time goes into redrawing, however large the run is.
    rest = performance.now() + Math.max(900, 3 * (performance.now() - began));
    isFetching = false;
    if (isStale) schedule();
  }
  let seen = null;
  const events = new EventSource(live.events);
  events.addEventListener("news", (event) => {
    const news = JSON.parse(event.data);
    const chip = document.getElementById("state");
    if (chip) { chip.textContent = news.words; chip.className = `chip ${news.state}`; }
    const rounds = document.querySelector("#numbers b");
    if (rounds) rounds.textContent = whole(news.learned);
    say(news.problem || `live: ${whole(news.learned)} rounds${news.last ? `, last ${KINDS[news.last.kind]} with gain ${number(news.last.gain, 3)}` : ""}`);
    document.documentElement.dataset.learned = news.learned;
    if (news.version !== seen) { seen = news.version; schedule(); }
  });
  events.addEventListener("error", () => say("the server is gone; this is the last it said"));
  document.addEventListener("visibilitychange", () => { if (isStale) schedule(); });
  document.addEventListener("close", () => { if (isStale) schedule(); }, true);
}
