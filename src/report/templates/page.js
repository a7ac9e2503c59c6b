// The page: sections in the order of the questions, then what keeps it alive.
"use strict";

/** Maps that several sections need. */
function prepare(data) {
  data.armPlace = new Map(data.arms.arm.map((arm, place) => [arm, place]));
  data.failureOf = new Map(data.rounds.failure);
  return data;
}

function build(data) {
  const main = document.querySelector("main");
  const kept = main && main.arms ? main.arms.state() : null;
  const {status} = data;
  const arms = armsSection(data, kept);
  const sections = [
    ["use", "What should I use?", answerSection(data)],
    ["tests", "Does it hold?", testsSection(data)],
    ["limit", "Why this limit?", limitSection(data)],
    ["importance", "What matters?", importanceSection(data)],
    ["course", "How did it go?", courseSection(data)],
    ["instances", "Instances", instancesSection(data)],
    ["arms", `All arms (${whole(data.arms.count)})`, arms],
    ["rounds", "Latest rounds", latestSection(data)],
    ["failures", `Failures (${whole(status.failed)})`, failuresSection(data)],
    ["nodes", `Nodes (${whole(data.nodes.length)})`, nodesSection(data)],
    ["grids", "Refined grids", gridsSection(data)],
    ["facts", "Scenario and machine", factsSection(data)],
  ].filter(([, , content]) => content);
  const fact = (value, name) => h("span", {}, h("b", {}, value), ` ${name}`);
  const header = h("header", {class: "top"}, h("div", {class: "inner"},
    h("div", {class: "headline"}, h("h1", {}, data.name), h("span", {class: `chip ${status.state}`, id: "state"}, status.words), h("span", {class: "grow"}),
      data.live && h("span", {class: "note", id: "pulse", role: "status"}, ""), themeButton()),
    h("div", {class: "numbers", id: "numbers"}, numbers(data, fact))));
  const nav = h("nav", {class: "sections", "aria-label": "Sections"}, h("div", {class: "inner"},
    data.live && data.live.index && h("a", {href: data.live.index}, "← all runs"), sections.map(([id, title]) => h("a", {href: `#${id}`}, title))));
  const banners = [];
  if (status.is_torn) banners.push("The last line of the journal is incomplete: captime is writing it, or was killed while writing.");
  if (status.state === "calibrating") banners.push("Limits are being calibrated. Gains and curves appear after that.");
  if (data.rounds.round.length < data.rounds.total) banners.push(`This page lists ${whole(data.rounds.round.length)} of ${whole(data.rounds.total)} rounds. Sums, curves and estimates use all of them.`);
  const next = h("main", {}, h("div", {class: "inner"}, banners.map((text) => h("p", {class: "banner"}, text)),
    sections.map(([id, title, content]) => h("section", {class: "block", id}, h("h2", {}, title), content))));
  next.arms = arms;
  const page = document.getElementById("page");
  const top = scrollY;
  // Redrawing in place: heights are kept so that nothing jumps while you read.
  const height = page.offsetHeight;
  if (main) page.style.minHeight = `${height}px`;
  page.replaceChildren(header, nav, next, footer(`the journal of the run by captime ${data.facts.made_by}`));
  showCharts();
  if (main) { scrollTo(0, top); requestAnimationFrame(() => (page.style.minHeight = "")); }
}

function numbers(data, fact) {
  const {status, resource} = data;
  return [
    fact(whole(status.learned), status.learned === 1 ? "round" : "rounds"), fact(whole(data.arms.pulled), `of ${whole(data.arms.count)} arms pulled`),
    fact(status.learned ? percent(status.censored / status.learned) : "–", "censored"), fact(status.learned ? percent(status.failed / status.learned) : "–", "failed"),
    fact(amount(resource, status.used), {work: "units of work used", memory: "sum of peak memory"}[resource] || `${resource === "cpu" ? "CPU" : "wall"} time used`),
    status.seconds !== null && fact(seconds(status.seconds), "on the clock"), fact(number(status.gain), "total gain"),
    status.in_flight.length > 0 && ["running", "killed", "open", "calibrating"].includes(status.state) && fact(whole(status.in_flight.length), "under way"), fact(data.policy, ""),
  ];
}

function followHash(data) {
  const found = /^#arm-(\d+)$/.exec(location.hash);
  if (!found) return;
  for (const open of document.querySelectorAll("dialog")) open.close();
  openArm(data(), Number(found[1]));
}

function start() {
  const parse = (id) => JSON.parse(document.getElementById(id).textContent);
  const live = parse("live");
  let data = prepare(parse("data"));
  data.live = live;
  build(data);
  addEventListener("hashchange", () => followHash(() => data));
  followHash(() => data);
  if (live) follow(live, () => data, (next) => { data = next; });
  document.documentElement.dataset.ready = "true";
  document.documentElement.dataset.opened = Math.round(performance.now());
}

start();
