// What to use, why this limit, what matters, how it went.
"use strict";

/** `arm 12`, or its own name. */
const armName = (data, arm) => {
  const place = data.armPlace.get(arm);
  return data.arms.names.length && place !== undefined ? data.arms.names[place] : `arm ${arm}`;
};

function answerSection(data) {
  const {answer, status, resource, facts} = data;
  if (!answer) {
    const words = status.state === "calibrating"
      ? "Limits are still being measured. There is an answer as soon as that is done."
      : status.learned === 0 ? "No round has ended yet, so there is nothing to recommend."
      : facts.limits.length === 0 ? "The run ended while its limits were still being measured. Raise its budget and run it again; `captime best` tells what it would answer by the pulls so far."
      : "There is no answer yet.";
    return [h("p", {class: "empty"}, words)];
  }
  const configuration = answer.configuration.length
    ? h("dl", {class: "config"}, answer.configuration.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))
    : h("p", {}, `${armName(data, answer.arm)}, one of ${several(data.arms.count, "arm")}`);
  const tile = (what, value, more) => h("div", {class: "tile"}, h("div", {class: "what"}, what), h("div", {class: "big"}, value), more && h("div", {class: "more"}, more));
  const blocks = [h("div", {class: "answer"},
    h("div", {},
      h("div", {class: "tiles"},
        tile("Limit", amount(resource, answer.limit), {wall: "wall time", cpu: "CPU time", work: "units of work"}[resource]),
        tile("Gain", number(answer.gain, 3), `95 % interval ${number(answer.low, 3)} to ${number(answer.high, 3)}`),
        tile(status.failed ? "Censored or failed" : "Censored", percent(answer.censored), `of ${several(answer.pulls, "pull")} that reached this limit`)),
      h("h3", {}, `Configuration (arm ${answer.arm})`), configuration),
    h("div", {}, answer.pastes.map((paste) => copyable(paste.title, paste.text))))];
  if (status.rewarded === 0) blocks.unshift(h("p", {class: "banner bad"}, "No pull has brought a reward yet: this is only the least bad pair so far."));
  if (answer.against.length) {
    const sure = (rival) => {
      if (rival.sure === null) return "–";
      const words = rival.sure > 0.99 ? "very sure" : rival.sure > 0.975 ? "sure" : rival.sure > 0.8 ? "likely" : rival.sure >= 0.4 ? "not sure" : "rather not";
      return `${percent(rival.sure)} (${words})`;
    };
    blocks.push(h("h3", {}, "How much better?"), h("div", {class: "scroll"}, h("table", {id: "against"},
      h("thead", {}, h("tr", {}, h("th", {}, "Against"), h("th", {}, "Limit"), h("th", {class: "n"}, "Its gain"), h("th", {class: "n"}, "Pulls"),
        h("th", {class: "n"}, "Better by"), h("th", {class: "n"}, "95 % interval"), h("th", {class: "n"}, "Is it better?"))),
      h("tbody", {}, answer.against.map((rival) => h("tr", {},
        h("td", {class: "wrap"}, `${rival.who}: `, armLink(rival.arm, short(rival.label, 90))), h("td", {class: "tight"}, amount(resource, rival.limit)), h("td", {class: "n"}, number(rival.gain, 3)),
        h("td", {class: "n"}, rival.pulls ? whole(rival.pulls) : "none"), h("td", {class: "n"}, number(rival.difference, 3)),
        h("td", {class: "n"}, `${number(rival.difference_low, 3)} to ${number(rival.difference_high, 3)}`), h("td", {class: "n sure"}, sure(rival))))))),
      h("p", {class: "note"}, data.is_believed
        ? `Gains, here and below, are those that ${data.policy} believes: they rest on the pulls of an arm and, as long as these are few, on what is usual and on what similar arms did. The best limit of an arm is the one with the highest gain among those that its pulls reached.`
        : "The best limit of an arm is the one with the highest gain as if one more of its pulls had earned the penalty: so a limit that one lucky pull speaks for does not win."));
  } else if (data.arms.pulled <= 1) {
    blocks.push(h("p", {class: "note"}, "There is nothing to compare with: no other arm was pulled."));
  }
  if (data.arms.pulls[data.armPlace.get(1)] === 0) blocks.push(h("p", {class: "note"}, "The default (first) arm was never pulled."));
  return blocks;
}

const armLink = (arm, text) => h("a", {href: `#arm-${arm}`}, text);

function limitSection(data) {
  const {best, price, resource, answer} = data;
  if (!best.length || !best.some((arm) => arm.gain.length)) return [h("p", {class: "empty"}, "Nothing is known about limits yet.")];
  const shown = best.slice(0, 6);
  const limits = shown.flatMap((arm) => arm.gain.map((point) => point[0]));
  const used = shown.flatMap((arm) => arm.survival.map((point) => point[0]));
  const {unit, factor} = resourceUnit(resource, Math.max(0, ...limits, ...used));
  const {axis: limitsFor, at} = limitAxis(resource, limits, used);
  const key = (colours) => shown.map((arm, place) => ({
    label: short(`${armName(data, arm.arm)}${place === 0 ? " (the answer)" : arm.arm === 1 ? " (default)" : ""}`),
    colour: colours.series[place % 7], dash: DASHES[place % 7],
  }));
  const rule = (colours) => answer && Plot.ruleX([at(answer.limit)], {stroke: colours.ink, strokeDasharray: "4 3", strokeOpacity: 0.7});
  const charts = [
    chart({
      id: "survival", title: "Share of pulls still running", legend: (colours) => [...key(colours), {label: "censored or failed", colour: colours.ink, symbol: "plus"}],
      note: "Kaplan-Meier with 95 % bands for the answer and the default arm. The dashed line is the limit to use.",
      draw: ({colours}) => ({
        x: limitsFor("consumption"),
        y: {label: "share still running", domain: [0, 1], tickFormat: "%"},
        marks: [
          shown.map((arm, place) => (place === 0 || arm.arm === 1) && Plot.areaY(arm.survival, {x: (point) => at(point[0]), y1: (point) => point[2], y2: (point) => point[3], curve: "step-after", fill: colours.series[place % 7], fillOpacity: 0.16})),
          rule(colours), Plot.ruleY([0]),
          shown.map((arm, place) => [
            Plot.line(arm.survival, {x: (point) => at(point[0]), y: (point) => point[1], curve: "step-after", stroke: colours.series[place % 7], strokeDasharray: DASHES[place % 7], strokeWidth: 1.8}),
            Plot.dot(arm.marks, {x: (point) => at(point[0]), y: (point) => point[1], symbol: "plus", stroke: colours.series[place % 7], r: 3}),
          ]),
          Plot.tip(shown.flatMap((arm) => arm.survival.map((point) => ({arm, point}))), Plot.pointer({
            x: ({point}) => at(point[0]), y: ({point}) => point[1],
            title: ({arm, point}) => `${armName(data, arm.arm)}\n${percent(point[1])} still running at ${amount(resource, point[0])}\n95 % band ${percent(point[2])} to ${percent(point[3])}`,
          })),
        ],
      }),
    }),
    chart({
      id: "gain-by-limit", title: "Gain by limit", legend: key,
      note: data.is_believed ? `What ${data.policy} believes that an arm would gain with each limit that a pull of it reached, with its 95 % band.` : "What an arm would gain with each limit, from all pulls that reached it, with its 95 % band.",
      draw: ({colours}) => ({
        x: limitsFor("limit"), y: {label: "gain", ...gainDomain(shown)},
        marks: [
          shown.map((arm, place) => (place === 0 || arm.arm === 1) && Plot.areaY(arm.gain, {x: (point) => at(point[0]), y1: (point) => point[2], y2: (point) => point[3], fill: colours.series[place % 7], fillOpacity: 0.16, clip: true})),
          rule(colours),
          shown.map((arm, place) => [
            Plot.line(arm.gain, {x: (point) => at(point[0]), y: (point) => point[1], stroke: colours.series[place % 7], strokeDasharray: DASHES[place % 7], strokeWidth: 1.8, clip: true}),
            Plot.dot(arm.gain, {x: (point) => at(point[0]), y: (point) => point[1], fill: colours.series[place % 7], r: 2.6}),
          ]),
          Plot.tip(shown.flatMap((arm) => arm.gain.map((point) => ({arm, point}))), Plot.pointer({
            x: ({point}) => at(point[0]), y: ({point}) => point[1],
            title: ({arm, point}) => `${armName(data, arm.arm)}\nlimit ${amount(resource, point[0])}\ngain ${number(point[1], 3)} (${number(point[2], 3)} to ${number(point[3], 3)})\n${several(point[4], "pull")}`,
          })),
        ],
      }),
    }),
  ];
  const split = shown.filter((arm) => arm.parts);
  if (split.length) {
    const pieces = split.flatMap((arm) => [
      {arm, part: "reward", value: arm.parts.reward}, {arm, part: "cost", value: -arm.parts.cost}, {arm, part: "penalty", value: -arm.parts.penalty},
    ]);
    const named = (arm) => arm.arm;
    const names = ["reward", "cost", "penalty"];
    charts.push(chart({
      id: "parts", title: "What the gain is made of", legend: (colours) => [...names.map((label, place) => ({label, colour: colours.series[place], fill: 0.85})), {label: "gain", colour: colours.ink, symbol: "circle"}],
      note: `Per pull, each arm at its own best limit: rewards, minus the cost of what was consumed, minus the penalty of pulls that were lost.${data.is_believed ? " These are means over its own pulls, so the sum may lie beside the gain believed." : ""}`,
      draw: ({colours}) => ({
        marginLeft: 110, height: 80 + split.length * 38, x: {label: "per pull"}, y: {label: null, domain: split.map(named), grid: false, tickFormat: (arm) => tiny(armName(data, arm))},
        marks: [
          Plot.barX(pieces, {x: "value", y: (piece) => named(piece.arm), fill: (piece) => colours.series[names.indexOf(piece.part)], fillOpacity: 0.85, order: null,
            tip: {format: {fill: false, x: false, y: false}}, channels: {what: {value: (piece) => `${piece.part} ${number(piece.value, 3)} at ${amount(resource, piece.arm.limit)}`, label: ""}}}),
          Plot.dot(split, {x: (arm) => arm.parts.reward - arm.parts.cost - arm.parts.penalty, y: named, fill: colours.ink, r: 4, stroke: colours.ground}),
          Plot.ruleX([0]),
        ],
      }),
    }));
  }
  if (price) {
    charts.push(chart({
      id: "price", title: "Where cost and penalty come from", legend: (colours) => [{label: "cost of a consumption", colour: colours.series[0]}, {label: "penalty of being censored at a limit", colour: colours.series[1], dash: DASHES[1]}],
      note: `cost: ${price.cost}; penalty: ${price.penalty}; x = consumption / ${amount(resource, price.unit)}`,
      draw: ({colours}) => ({
        x: {label: `consumption or limit (${unit})`}, y: {label: "price", zero: true},
        marks: [
          Plot.ruleY([0]),
          Plot.line(price.points, {x: (point) => point[0] * factor, y: (point) => point[1], stroke: colours.series[0], strokeWidth: 2}),
          Plot.line(price.points, {x: (point) => point[0] * factor, y: (point) => point[2], stroke: colours.series[1], strokeDasharray: DASHES[1], strokeWidth: 2}),
          Plot.tip(price.points, Plot.pointerX({x: (point) => point[0] * factor, y: (point) => point[2], title: (point) => `${amount(resource, point[0])}\ncost ${number(point[1], 3)}\npenalty ${number(point[2], 3)}`})),
        ],
      }),
    }));
  }
  return [h("div", {class: "charts"}, charts)];
}

/** From the worst mean worth showing to the best: bands of hardly known limits may leave the picture. */
function gainDomain(arms) {
  const means = arms.flatMap((arm) => arm.gain.map((point) => point[1]));
  const bands = arms.slice(0, 1).flatMap((arm) => arm.gain.flatMap((point) => [point[2], point[3]]));
  const [low, high] = [Math.min(...means), Math.max(...means, ...bands)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return {domain: [low - room, high + room]};
}

function mattersSection(data) {
  const {matters, resource} = data;
  if (!matters) return [h("p", {class: "empty"}, data.arms.parameters.length ? "Nothing is known about parameters yet." : "The arms of this run have no parameters, only numbers or names.")];
  const charts = [];
  const weights = [...matters.parameters.map((of) => ({name: of.name, value: of.importance})), {name: "(the limit)", value: matters.limit_importance}].filter((of) => of.value !== null);
  if (weights.length) {
    charts.push(chart({
      id: "importance", title: "Importance", legend: (colours) => [{label: "growth of the error when shuffled", colour: colours.series[0], fill: 0.85}],
      note: `From a forest of ours that predicts the gain of a round, fitted on ${several(matters.fitted_on, "round")}: by how much its squared error grows, in variances of the gain, so up to about 200 %. Rounds are where the policy went, so this is about those arms.`,
      draw: ({colours}) => ({
        marginLeft: 130, height: Math.max(140, 50 + weights.length * 24), x: {label: "growth of the error / variance", tickFormat: "%", zero: true}, y: {label: null, grid: false, domain: d3.sort(weights, (of) => -of.value).map((of) => of.name), tickFormat: (name) => short(name, 18)},
        marks: [Plot.barX(weights, {x: "value", y: "name", fill: colours.series[0], fillOpacity: 0.85, title: (of) => `${of.name}: ${percent(of.value)}`, tip: true}), Plot.ruleX([0])],
      }),
    }));
  } else {
    charts.push(h("p", {class: "empty"}, "Too few rounds, or gains all alike: importance is not known."));
  }
  if (matters.pair && matters.pair.cells.filter((cell) => cell[2] !== null).length > 1) charts.push(heatMap(matters.pair));
  const cards = matters.parameters.filter((of) => of.values.filter((value) => value.gain !== null).length > 1).slice(0, 12).flatMap((of, place) => marginals(of, resource, place));
  return [h("div", {class: "charts"}, charts),
    cards.length > 0 && h("h3", {}, "Value by value"),
    cards.length > 0 && h("p", {class: "lead"}, "Means over the arms with a value that were pulled, each at its own best limit, every arm counting the same; whiskers are 95 % intervals of these means."),
    h("div", {class: "charts"}, cards)];
}

function heatMap(pair) {
  const known = pair.cells.filter((cell) => cell[2] !== null);
  const [low, high] = d3.extent(known, (cell) => cell[2]);
  const xs = [...new Set(pair.cells.map((cell) => cell[0]))];
  const ys = [...new Set(pair.cells.map((cell) => cell[1]))];
  const colour = (value) => d3.interpolateCividis(high > low ? (value - low) / (high - low) : 0.5);
  const steps = high > low ? [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low)) : [low];
  return chart({
    id: "pair", title: short(`Gain over ${pair.x} and ${pair.y}`, 70), legend: () => known.length ? steps.map((value) => ({label: number(value, 3), colour: colour(value), fill: 1})) : [],
    note: "Mean gain of the arms with both values; empty cells were not pulled.",
    draw: ({width, narrow}) => ({
      marginLeft: 70, marginBottom: xs.length > 8 || narrow ? 76 : 42, padding: 0.03, height: Math.min(460, Math.max(220, ys.length * 30 + 90)),
      x: {label: pair.x, domain: xs, grid: false, type: "band", tickFormat: (text) => short(text, 10), tickRotate: xs.length > 8 || narrow ? -45 : 0, labelOffset: xs.length > 8 || narrow ? 72 : undefined, ticks: undefined},
      y: {label: pair.y, domain: ys, grid: false, type: "band", tickFormat: (text) => short(text, 10)},
      marks: [
        Plot.cell(known, {x: "0", y: "1", fill: (cell) => colour(cell[2]), title: (cell) => `${pair.x} ${cell[0]}, ${pair.y} ${cell[1]}\ngain ${number(cell[2], 3)}\n${several(cell[3], "arm")}`, tip: true}),
        width / xs.length > 70 && Plot.text(known, {x: "0", y: "1", text: (cell) => number(cell[2], 2), fill: (cell) => (d3.lab(colour(cell[2])).l > 60 ? "#000" : "#fff")}),
      ],
    }),
  });
}

function marginals(of, resource, place) {
  const values = of.values.map((value, at) => ({...value, at})).filter((value) => value.gain !== null);
  const {unit, factor} = resourceUnit(resource, d3.max(values, (value) => value.consumption) || 0);
  const domain = of.values.map((value) => value.value);
  const x = {label: of.name, domain, type: "point", grid: false, tickRotate: domain.length > 7 || domain.some((text) => text.length > 9) ? -40 : 0, tickFormat: (text) => short(text, 12), ticks: undefined};
  const told = (value) => `${of.name} = ${value.value}\ngain ${number(value.gain, 3)}${value.low === null ? "" : ` (${number(value.low, 3)} to ${number(value.high, 3)})`}\nconsumption ${amount(resource, value.consumption)}\n${several(value.arms, "arm")}, ${several(value.pulls, "pull")}`;
  if (x.tickRotate) x.labelOffset = 72;
  const common = {height: x.tickRotate ? 260 : 230, marginBottom: x.tickRotate ? 76 : 40};
  return [
    chart({
      id: `gain-${place}`, title: short(`Gain by ${of.name}`), legend: (colours) => [{label: "mean gain", colour: colours.series[0], symbol: "circle"}],
      draw: ({colours}) => ({
        ...common, x, y: {label: "gain", insetTop: 6, insetBottom: 6},
        marks: [
          Plot.ruleX(values.filter((value) => value.low !== null), {x: "value", y1: "low", y2: "high", stroke: colours.series[0], strokeOpacity: 0.6, strokeWidth: 2}),
          Plot.dot(values, {x: "value", y: "gain", fill: colours.series[0], r: 4, title: told, tip: true}),
        ],
      }),
    }),
    chart({
      id: `consumption-${place}`, title: short(`Consumption by ${of.name}`), legend: (colours) => [{label: "mean consumption of a pull", colour: colours.series[1], fill: 0.85}],
      draw: ({colours}) => ({
        ...common, x: {...x, type: "band", padding: 0.25}, y: {label: `consumption (${unit})`, zero: true},
        marks: [Plot.barY(values, {x: "value", y: (value) => value.consumption * factor, fill: colours.series[1], fillOpacity: 0.85, title: told, tip: true}), Plot.ruleY([0])],
      }),
    }),
  ];
}
