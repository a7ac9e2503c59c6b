// All arms, one arm, what failed, refined grids, the facts.
"use strict";

function armColumns(data) {
  const {arms, resource} = data;
  const columns = [{title: "arm", width: "4.5rem", n: true, value: (row) => arms.arm[row], text: (row) => String(arms.arm[row])}];
  if (arms.names.length) columns.push({title: "name", width: "10rem", value: (row) => arms.names[row], text: (row) => arms.names[row]});
  const count = (title, of, width = "4.5rem") => ({title, width, n: true, value: (row) => of[row], text: (row) => whole(of[row])});
  columns.push(
    {title: "gain", width: "4.5rem", n: true, value: (row) => arms.gain[row], text: (row) => gain(arms.gain[row]), look: (row) => data.answer && arms.arm[row] === data.answer.arm && "best"},
    {title: "95 % interval", width: "9rem", n: true, value: (row) => arms.low[row], text: (row) => (arms.low[row] === null ? "–" : `${gain(arms.low[row])} to ${gain(arms.high[row])}`)},
    {title: "best limit", width: "5.5rem", n: true, value: (row) => arms.limit[row], text: (row) => amount(resource, arms.limit[row])},
    count("pulls", arms.pulls),
    {title: "censored", width: "5rem", n: true, value: (row) => (arms.pulls[row] ? arms.censored[row] / arms.pulls[row] : null), text: (row) => (arms.pulls[row] ? percent(arms.censored[row] / arms.pulls[row]) : "–")},
    count("failed", arms.failed, "4rem"),
    {title: "used", width: "5.5rem", n: true, value: (row) => (arms.pulls[row] ? arms.used[row] : null), text: (row) => (arms.pulls[row] ? amount(resource, arms.used[row]) : "–")},
  );
  arms.parameters.forEach((name, place) => {
    const value = (row) => { const code = arms.codes[place][row]; return code < 0 ? null : arms.values[place][code]; };
    const isNumber = arms.values[place].every((text) => text !== "" && isFinite(text));
    const longest = Math.max(name.length + 1.5, ...arms.values[place].slice(0, 200).map((text) => text.length));
    columns.push({
      title: name, width: `${Math.min(16, Math.max(4, longest * 0.62))}rem`, n: isNumber,
      value: (row) => { const text = value(row); return text === null ? null : isNumber ? Number(text) : text; },
      text: (row) => value(row) ?? "–",
    });
  });
  return columns;
}

function armsSection(data, kept) {
  const {arms} = data;
  const columns = armColumns(data);
  const rows = d3.range(arms.arm.length);
  const table = grid({rows, columns, sort: [columns.findIndex((column) => column.title === "95 % interval"), true], open: (row) => { location.hash = `arm-${arms.arm[row]}`; }, label: "All arms"});
  table.id = "arms-table";
  const texts = rows.map((row) => {
    const values = arms.parameters.map((name, place) => { const code = arms.codes[place][row]; return code < 0 ? "" : `${name}=${arms.values[place][code]}`; });
    return ` ${arms.arm[row]} ${arms.names[row] || ""} ${values.join(" ")} `.toLowerCase();
  });
  const example = arms.parameters.slice(0, 2).map((name, place) => `${name}=${arms.values[place][0]}`).join(" ") || arms.names[0];
  const search = h("input", {type: "search", placeholder: `Search: ${example || "a number"}`, "aria-label": "Search arms", id: "arms-search"});
  const choice = h("select", {"aria-label": "Which arms", id: "arms-filter"},
    [["all", "all arms"], ["pulled", "pulled"], ["never", "never pulled"], ["rewarded", "with rewards"], ["censored", "always censored"], ["failed", "with failures"]].map(([value, text]) => h("option", {value}, text)));
  const shown = h("span", {class: "note"});
  const tests = {
    all: () => true, pulled: (row) => arms.pulls[row] > 0, never: (row) => arms.pulls[row] === 0,
    rewarded: (row) => arms.pulls[row] > arms.censored[row] + arms.failed[row],
    censored: (row) => arms.pulls[row] > 0 && arms.censored[row] === arms.pulls[row], failed: (row) => arms.failed[row] > 0,
  };
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    // `trees=3` means that value, not every one that begins with it.
    const found = (row) => words.every((word) => texts[row].includes(word.includes("=") ? ` ${word} ` : word));
    const count = table.filter((row) => tests[choice.value](row) && found(row));
    shown.textContent = `${whole(count)} of ${whole(arms.count)} arms`;
  };
  search.addEventListener("input", apply);
  choice.addEventListener("change", apply);
  if (kept) { search.value = kept.search; choice.value = kept.choice; }
  apply();
  if (kept) table.restore(kept.table);
  const element = [h("div", {class: "tools"}, search, choice, shown), table,
    h("p", {class: "note"}, arms.arm.length < arms.count ? `Only the ${whole(arms.arm.length)} arms that were pulled most are listed. ` : "", "Sorted by the lower end of the interval, so that evidence counts. Click an arm for its rounds and curves, a heading to sort. Gain and interval are those at the best limit of the arm.")];
  element.state = () => ({search: search.value, choice: choice.value, table: table.state()});
  return element;
}

/** A run's rounds, those at these places, with a link to what the policy thought. */
function roundsTable(data, places, label, isOfOneArm) {
  const {rounds, resource} = data;
  const failure = data.failureOf;
  const columns = [
    {title: "round", width: "5rem", n: true, value: (row) => rounds.round[row], text: (row) => whole(rounds.round[row])},
    !isOfOneArm && {title: "arm", width: "7rem", value: (row) => rounds.arm[row], text: (row) => armLink(rounds.arm[row], armName(data, rounds.arm[row]))},
    {title: "limit", width: "5.5rem", n: true, value: (row) => rounds.limits[rounds.limit[row]], text: (row) => amount(resource, rounds.limits[rounds.limit[row]])},
    {title: "outcome", width: "5.5rem", value: (row) => rounds.kind[row], text: (row) => KINDS[rounds.kind[row]], look: (row) => `k${rounds.kind[row]}`},
    {title: "reward", width: "5rem", n: true, value: (row) => rounds.reward[row], text: (row) => number(rounds.reward[row], 3)},
    {title: "used", width: "5.5rem", n: true, value: (row) => rounds.used[row], text: (row) => amount(resource, rounds.used[row])},
    {title: "gain", width: "5.5rem", n: true, value: (row) => rounds.gain[row], text: (row) => number(rounds.gain[row], 3)},
  ].filter(Boolean);
  if (rounds.at.length) columns.push({title: "at", width: "5.5rem", n: true, value: (row) => rounds.at[row], text: (row) => seconds(rounds.at[row])});
  if (rounds.instance.length) columns.push({title: "instance", width: "minmax(6rem, 11rem)", value: (row) => rounds.instance[row], text: (row) => instanceName(data, rounds.instance[row])});
  columns.push({title: "why", width: "minmax(7.5rem, 1fr)", value: (row) => (failure.has(row) ? data.failures[failure.get(row)].reason : ""), text: (row) => whyCell(data, row, failure)});
  return grid({rows: places, columns, sort: [0, true], label});
}

const instanceName = (data, instance) => (instance === 0 ? "–" : data.instance_names[instance - 1] || `instance ${instance}`);

function whyCell(data, row, failure) {
  const link = h("a", {href: "#", class: "explain", "data-round": data.rounds.round[row], onclick: (event) => { event.preventDefault(); event.stopPropagation(); explain(data, data.rounds.round[row]); }}, "why this pull?");
  return failure.has(row) ? h("span", {title: data.failures[failure.get(row)].reason}, link, ` ${data.failures[failure.get(row)].reason}`) : link;
}

/** Why a pull was chosen: asked of the server where there is one, otherwise of the command that knows. */
async function explain(data, round) {
  const place = h("div", {}, h("p", {class: "note"}, "Asking…"));
  const command = `captime explain ${data.run} ${round}`;
  openDialog(h("h2", {}, `Why round ${whole(round)}?`), place);
  const ask = [h("p", {}, "This command says in words and numbers why this pull was chosen, and what would have had to be different:"), copyable("Command line", command)];
  if (data.live) {
    try {
      const reply = await fetch(`${data.live.explain}?round=${round}`);
      if (reply.ok) { place.replaceChildren(h("pre", {}, await reply.text())); return; }
    } catch { /* the server is gone: the command still knows */ }
  }
  place.replaceChildren(...ask);
}

function openDialog(...content) {
  const dialog = h("dialog", {}, h("button", {type: "button", class: "close", "aria-label": "Close", onclick: () => dialog.close()}, "Close"), content);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.body.append(dialog);
  dialog.showModal();
  showCharts();
  return dialog;
}

function openArm(data, arm) {
  const {arms, rounds, resource} = data;
  const row = data.armPlace.get(arm);
  if (row === undefined) return;
  const places = d3.range(rounds.arm.length).filter((place) => rounds.arm[place] === arm);
  const curves = arms.curves[row];
  const facts = arms.parameters.map((name, place) => [name, arms.codes[place][row]]).filter(([, code]) => code >= 0).map(([name, code], at) => [name, arms.values[arms.parameters.indexOf(name)][code]]);
  const content = [h("h2", {}, arms.names.length ? `${arms.names[row]} (arm ${arm})` : `Arm ${arm}`)];
  if (facts.length) content.push(h("dl", {class: "config"}, facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
  content.push(h("p", {class: "numbers"}, [["pulls", whole(arms.pulls[row])], ["censored", whole(arms.censored[row])], ["failed", whole(arms.failed[row])], ["used", amount(resource, arms.used[row])], ["best limit", amount(resource, arms.limit[row])], ["gain", number(arms.gain[row], 3)]].map(([name, value]) => h("span", {}, `${name} `, h("b", {}, value)))));
  if (curves) {
    const {axis, at} = limitAxis(resource, curves.gain.map((point) => point[0]), curves.survival.map((point) => point[0]));
    const charts = [chart({
      id: "arm-survival", title: "Share of its pulls still running", legend: (colours) => [{label: "Kaplan-Meier, 95 % band", colour: colours.series[0]}, {label: "censored or failed", colour: colours.series[0], symbol: "plus"}],
      draw: ({colours}) => ({
        height: 240, x: axis("consumption"), y: {label: "share still running", domain: [0, 1], tickFormat: "%"},
        marks: [
          Plot.areaY(curves.survival, {x: (point) => at(point[0]), y1: "2", y2: "3", curve: "step-after", fill: colours.series[0], fillOpacity: 0.16}),
          Plot.line(curves.survival, {x: (point) => at(point[0]), y: "1", curve: "step-after", stroke: colours.series[0], strokeWidth: 2}),
          Plot.dot(curves.marks, {x: (point) => at(point[0]), y: "1", symbol: "plus", stroke: colours.series[0], r: 3}),
          Plot.tip(curves.survival, Plot.pointerX({x: (point) => at(point[0]), y: "1", title: (point) => `${percent(point[1])} at ${amount(resource, point[0])}`})),
        ],
      }),
    })];
    if (curves.gain.length) {
      charts.push(chart({
        id: "arm-gain", title: "Its gain by limit", legend: (colours) => [{label: "gain, 95 % band", colour: colours.series[0]}],
        draw: ({colours}) => ({
          height: 240, x: axis("limit"), y: {label: "gain"},
          marks: [
            Plot.areaY(curves.gain, {x: (point) => at(point[0]), y1: "2", y2: "3", fill: colours.series[0], fillOpacity: 0.16}),
            Plot.line(curves.gain, {x: (point) => at(point[0]), y: "1", stroke: colours.series[0], strokeWidth: 2}),
            Plot.dot(curves.gain, {x: (point) => at(point[0]), y: "1", fill: colours.series[0], r: 3}),
            Plot.tip(curves.gain, Plot.pointerX({x: (point) => at(point[0]), y: "1", title: (point) => `limit ${amount(resource, point[0])}\ngain ${number(point[1], 3)} (${number(point[2], 3)} to ${number(point[3], 3)})\n${several(point[4], "pull")}`})),
          ],
        }),
      }));
    }
    content.push(h("div", {class: "charts"}, charts));
  } else if (arms.pulls[row]) {
    content.push(h("p", {class: "note"}, "The curves of this arm are not part of this page: it was among the least often pulled."));
  }
  if (places.length) {
    const table = roundsTable(data, places, `Rounds of arm ${arm}`, true);
    table.classList.add("rounds");
    content.push(h("h3", {}, places.length < arms.pulls[row] ? `${whole(places.length)} of its ${whole(arms.pulls[row])} rounds` : "Its rounds"), table);
  } else {
    content.push(h("p", {class: "empty"}, "It was never pulled."));
  }
  const dialog = openDialog(content);
  dialog.id = "arm";
  dialog.addEventListener("close", () => { if (location.hash === `#arm-${arm}`) history.replaceState(null, "", location.pathname + location.search); });
}

function latestSection(data) {
  const count = data.rounds.round.length;
  const places = d3.range(Math.max(0, count - 200), count);
  if (!places.length) return [h("p", {class: "empty"}, "No round has ended yet.")];
  const table = roundsTable(data, places, "Latest rounds");
  table.id = "latest-rounds";
  table.classList.add("rounds");
  return [table];
}

function failuresSection(data) {
  const groups = d3.sort(data.failures, (group) => -group.count);
  if (!groups.length) return [h("p", {class: "note"}, "No pull has failed.")];
  return groups.map((group) => h("details", {open: groups.length <= 2}, h("summary", {}, h("b", {}, whole(group.count)), ` × ${group.reason} `, h("span", {class: "note"}, group.first === group.last ? `round ${whole(group.first)}` : `rounds ${whole(group.first)} to ${whole(group.last)}`)),
    group.tails.length ? group.tails.map(([round, arm, text]) => h("div", {}, h("p", {class: "note"}, `end of stderr in round ${whole(round)}, `, armLink(arm, armName(data, arm)), ":"), h("pre", {class: "stderr"}, text)))
      : h("p", {class: "note"}, "Nothing was written to stderr.")));
}

function nodesSection(data) {
  const {nodes, facts} = data;
  if (!nodes.length) return null;
  const pace = ({pace}) => (pace ? `${number(pace.factor, 3)} ± ${number(2 * pace.error, 2)} (${whole(pace.runs)} runs)` : "–");
  const row = (node) => [node.node, whole(node.slots), whole(node.rounds), node.lost ? `${whole(node.lost)} (${percent(node.lost / (node.lost + node.rounds))})` : "0", pace(node)];
  const odd = nodes.filter(({pace}) => pace?.is_notable);
  return [
    h("p", {class: "note"}, "The last column compares runs of the same arm on the same instance under the same limit: 1.2 means that they consume a fifth more there than on the mean node (95 % interval)."),
    odd.length > 0 && h("p", {class: "banner"}, `Nodes differ in speed: ${odd.map(({node}) => node).join(", ")}. ${facts.compare === "by-node" ? "What runs consumed was divided by their node's factor." : "`compare: by-node` in the scenario corrects for it."}`),
    h("div", {class: "scroll"}, h("table", {}, h("thead", {}, h("tr", {}, ["Node", "Slots", "Rounds", "Lost", "Consumption beside the mean node"].map((name) => h("th", {}, name)))),
      h("tbody", {}, nodes.map((node) => h("tr", {}, row(node).map((value) => h("td", {}, value))))))),
  ];
}

function gridsSection(data) {
  const {grids, resource} = data;
  if (!grids.length) return null;
  const points = grids.flatMap((of) => of.points.map(([limit, round]) => ({arm: of.arm, label: of.label, limit, round})));
  const {unit, factor} = resourceUnit(resource, d3.max(points, (point) => point.limit));
  const last = d3.max(points, (point) => point.round) || 1;
  const colour = (round) => d3.interpolateCividis(round / last);
  return [h("div", {class: "charts"}, chart({
    id: "grids", title: "Grids as they were refined", wide: true, note: "Every point is a limit of an arm; its colour shows the round in which it was added.",
    legend: () => [0, 0.25, 0.5, 0.75, 1].map((share) => ({label: share === 0 ? "from the start" : `round ${whole(share * last)}`, colour: colour(share * last), fill: 1})),
    draw: () => ({
      marginLeft: 100, height: Math.max(160, 60 + grids.length * 16), x: {label: `limit (${unit})`, zero: true}, y: {label: null, domain: grids.map((of) => of.arm), tickFormat: (arm) => tiny(armName(data, arm))},
      marks: [Plot.dot(points, {x: (point) => point.limit * factor, y: "arm", fill: (point) => colour(point.round), stroke: "currentColor", strokeOpacity: 0.25, r: 3.4, title: (point) => `${armName(data, point.arm)}\nlimit ${amount(resource, point.limit)}\n${point.round ? `joined in round ${whole(point.round)}` : "from the start"}`, tip: true})],
    }),
  }))];
}

function factsSection(data) {
  const {facts} = data;
  const row = (name, value) => (value === "" || value === null || value === undefined ? [] : [h("dt", {}, name), h("dd", {}, value)]);
  const memory = facts.machine.memory ? `, ${number(facts.machine.memory / 2 ** 30, 3)} GiB of memory` : "";
  const options = Object.entries(facts.options).filter(([, value]) => value !== null).map(([name, value]) => `${name}=${value}`).join(", ");
  return [
    h("dl", {class: "config"},
      row("target", `${facts.target}${facts.is_virtual ? ", in virtual time" : ""}`), row("policy", options ? `${data.policy} (${options})` : data.policy),
      row("limits", `${facts.limits.join(", ")}${facts.is_calibrated ? " (measured)" : ""}`), row("seed", String(facts.seed)), row("started", facts.started),
      row("scenario", facts.file), row("folder", facts.folder), row("BLAKE3 of the scenario", facts.hash),
      row("machine", `${facts.machine.host}: ${facts.machine.cpus} CPUs, ${facts.machine.cpu}${memory}, ${facts.machine.kernel}`),
      row("enforcement", facts.enforcement || "nothing was run that limits had to be enforced on"),
      row("versions", `captime ${facts.captime}, journal ${facts.journal}; this page by captime ${facts.made_by}`)),
    facts.sessions.length > 0 && h("h3", {}, "Sessions"),
    facts.sessions.length > 0 && h("div", {class: "scroll"}, h("table", {}, h("thead", {}, h("tr", {}, ["Session", "Started", "Slots", "Budget", "Enforcement"].map((name) => h("th", {}, name)))),
      h("tbody", {}, facts.sessions.slice(-50).map(([session, started, slots, budget, enforcement]) => h("tr", {}, [session, started || "–", slots, budget || "–", enforcement || "–"].map((value) => h("td", {class: "lines"}, String(value)))))))),
    h("h3", {}, "Again"), copyable("Command lines", facts.reproduce.join("\n")), copyable("Scenario", facts.scenario),
  ];
}
