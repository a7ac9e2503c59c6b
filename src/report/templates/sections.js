// What to use, why this limit, what matters, how it went.
"use strict";

/** `arm 12`, or its own name. */
const armName = (data, arm) => {
  const place = data.armPlace.get(arm);
  return data.arms.names.length && place !== undefined ? data.arms.names[place] : `arm ${arm}`;
};

/** What a pair brings, in its users' terms: name and value of each. */
function inTerms(values, resource) {
  if (!values) return [];
  const time = [{work: "Mean work", memory: "Mean peak memory"}[resource] || "Mean time", amount(resource, values.mean_consumption)];
  if (values.terms === "solved") return [["Solved", percent(values.solved)], ["PAR10", amount(resource, values.par10)], time];
  if (values.terms === "score" && values.score !== null) return [[`Mean ${values.score_name}`, number(values.score)], time];
  return [["Mean reward", number(values.reward)], time];
}

function answerSection(data) {
  const {answer, status, resource} = data;
  if (!answer) {
    const [why, fix] = data.no_answer || ["no pull has earned a reward", "let it run longer"];
    return [h("p", {class: "empty"}, `There is no answer yet: ${why}. To get one, ${fix}.`)];
  }
  const configuration = answer.configuration.length
    ? h("dl", {class: "config"}, answer.configuration.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))
    : h("p", {}, `${armName(data, answer.arm)}, one of ${several(data.arms.count, "arm")}`);
  const tile = (what, value, more) => h("div", {class: "tile"}, h("div", {class: "what"}, what), h("div", {class: "big"}, value), more && h("div", {class: "more"}, more));
  const [first, ...others] = inTerms(answer.values, resource);
  const blocks = [h("p", {class: "lead", id: "learned"}, answer.sentences.join(" ").replaceAll("`", "")), h("div", {class: "answer"},
    h("div", {},
      h("div", {class: "tiles"},
        tile("Limit", amount(resource, answer.limit), {wall: "wall time", cpu: "CPU time", work: "units of work", memory: "peak memory"}[resource]),
        first && tile(first[0], first[1], others.map(([name, value]) => `${name} ${value}`).join(", ")),
        tile("Gain", gain(answer.gain), `95 % interval ${gain(answer.low)} to ${gain(answer.high)}`),
        tile(status.failed ? "Censored or failed" : "Censored", percent(answer.censored), `of ${several(answer.pulls, "pull")} that reached this limit`)),
      h("h3", {}, `Configuration (arm ${answer.arm})`), configuration),
    h("div", {}, answer.pastes.map((paste) => copyable(paste.title, paste.text))))];
  if (answer.against.length) {
    const names = inTerms(answer.values, resource).map(([name]) => name);
    const cells = (values) => names.map((name) => h("td", {class: "n"}, (inTerms(values, resource).find(([own]) => own === name) || ["", "–"])[1]));
    const none = (value, text) => h("td", {class: "n"}, value === null ? "–" : text);
    blocks.push(h("h3", {}, "How much better?"), h("div", {class: "scroll"}, h("table", {id: "against"},
      h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, "Limit"), names.map((name) => h("th", {class: "n"}, name)), h("th", {class: "n"}, "Gain"), h("th", {class: "n"}, "Pulls"),
        h("th", {class: "n"}, "Answer is better by"), h("th", {class: "n"}, "95 % interval"), h("th", {class: "n"}, "Probability"))),
      h("tbody", {},
        h("tr", {}, h("td", {class: "wrap"}, "the answer: ", armLink(answer.arm, short(answer.label, 90))), h("td", {class: "tight"}, amount(resource, answer.limit)), cells(answer.values),
          h("td", {class: "n"}, gain(answer.gain)), h("td", {class: "n"}, whole(answer.pulls)), h("td", {}), h("td", {}), h("td", {})),
        answer.against.map((rival) => h("tr", {},
          h("td", {class: "wrap"}, `${rival.who}: `, armLink(rival.arm, short(rival.label, 90))), h("td", {class: "tight"}, amount(resource, rival.limit)), cells(rival.values),
          h("td", {class: "n"}, gain(rival.gain)), h("td", {class: "n"}, whole(rival.pulls)), h("td", {class: "n"}, gain(rival.difference)),
          none(rival.difference_low, `${gain(rival.difference_low)} to ${gain(rival.difference_high)}`),
          h("td", {class: "n sure"}, rival.probability === null ? "–" : rival.probability > 0.999 ? "> 99.9 %" : rival.probability >= 0.99 ? `${(100 * rival.probability).toFixed(1)} %` : percent(rival.probability))))))),
      h("p", {class: "note"}, "The probability says how likely it is that the answer really is better. It allows for the answer being the luckiest of many arms, so the difference it goes with is smaller than that of the gains. Below 75 % it is too early to tell, and no number is given."));
  }
  if (answer.default_words) blocks.push(h("p", {class: "note", id: "default"}, `Compared with the default: ${answer.default_words}.`));
  if (answer.path.length) blocks.push(...pathTable(answer.path));
  blocks.push(h("p", {class: "note"}, `Afforded: ${answer.afforded}.`));
  const front = frontChart(data);
  if (front) blocks.push(h("div", {class: "charts"}, front));
  return blocks;
}

/** What changed from the default, and what a model says each change is worth. */
function pathTable(path) {
  const signed = (value) => `${value < 0 ? "−" : "+"}${gain(Math.abs(value))}`;
  const largest = Math.max(...path.map(([, worth]) => Math.abs(worth)), 1e-12);
  return [h("h3", {}, "What changed from the default?"), h("div", {class: "scroll"}, h("table", {id: "path"},
    h("thead", {}, h("tr", {}, h("th", {}, "Change"), h("th", {class: "n"}, "Gain, by the model"), h("th", {}, ""))),
    h("tbody", {}, path.map(([change, worth]) => h("tr", {}, h("td", {class: "wrap"}, short(change, 160)), h("td", {class: "n"}, signed(worth)),
      h("td", {}, h("meter", {min: 0, max: largest, value: Math.max(0, worth), "aria-label": `${change}: ${signed(worth)}`}))))))),
    h("p", {class: "note"}, "From the default to the answer, one parameter at a time: at each step the change that helps most. Gains are what the random forest of “What matters?” predicts at the limits of the comparison; captime test --ablation measures them.")];
}

/** All arms by reward and consumption, and those that no other beats in both. */
function frontChart(data) {
  const {front, resource, answer} = data;
  if (front.length < 2) return null;
  // The policy may prefer an arm off the front: one that more pulls vouch for.
  const isOff = answer && answer.values && !front.some((of) => of.arm === answer.arm);
  const shown = isOff ? [...front, answer] : front;
  const times = shown.map((of) => of.values.mean_consumption);
  const {unit, factor} = resourceUnit(resource, d3.max(times));
  const isLog = d3.min(times) > 0 && d3.max(times) / d3.min(times) > 25;
  const byScore = front.every((of) => of.values.terms === "score" && of.values.score !== null);
  const worth = (of) => (byScore ? of.values.score : of.values.terms === "solved" ? of.values.solved : of.values.reward);
  const label = byScore ? `mean ${front[0].values.score_name}` : front[0].values.terms === "solved" ? "share solved" : "mean reward";
  return chart({
    id: "front", title: "Arms that no other arm beats in both", wide: true, legend: (colours) => [{label: "arm on the Pareto front", colour: colours.series[0], symbol: "circle"}, {label: "the answer", colour: colours.series[1], symbol: "circle"}],
    note: "Move along the front to trade reward against time yourself: every other arm is beaten in both by one of these, as far as the pulls show. Arms with fewer than 3 pulls are left out.",
    draw: ({colours}) => ({
      x: {label: `mean consumption (${unit})`, type: isLog ? "log" : "linear", nice: true}, y: {label, tickFormat: label === "share solved" ? "%" : undefined, insetTop: 8, insetBottom: 8},
      marks: [
        Plot.line(front, {x: (of) => of.values.mean_consumption * factor, y: worth, stroke: colours.series[0], strokeOpacity: 0.5, curve: "step-after"}),
        Plot.dot(shown, {x: (of) => of.values.mean_consumption * factor, y: worth, r: 4.5, fill: (of) => (answer && of.arm === answer.arm ? colours.series[1] : colours.series[0]), href: (of) => `#arm-${of.arm}`,
          title: (of) => `${armName(data, of.arm)}\n${of.label}\n${inTerms(of.values, resource).map(([name, value]) => `${name}: ${value}`).join("\n")}\n${several(of.values.runs, "pull")}`, tip: true}),
      ],
    }),
  });
}

/** Arms side by side on held-out instances: what `captime test` measured. */
function testsSection(data) {
  const {tests, resource} = data;
  if (!tests.length) return null;
  return tests.map((test) => {
    const names = inTerms(test.arms.length ? test.arms[0].values : null, resource).map(([name]) => name);
    const shown = names.includes("Solved") ? names : ["Solved", ...names];
    const cells = (values) => shown.map((name) => h("td", {class: "n"}, name === "Solved" ? percent(values.solved) : (inTerms(values, resource).find(([own]) => own === name) || ["", "–"])[1]));
    const where = test.instances ? `${several(test.instances, "instance")}${test.seeds > 1 ? `, ${test.seeds} seeds each` : ""}` : several(test.seeds, "seed");
    return h("div", {}, h("h3", {}, `${test.is_path ? "From the default to the answer, on" : "On"} ${test.on}: ${where}, limit ${amount(resource, test.limit)}`),
      test.done < test.total && h("p", {class: "note"}, `Not finished: ${whole(test.done)} of ${whole(test.total)} runs. Run the same captime test command to resume.`),
      h("div", {class: "scroll"}, h("table", {class: "tested"},
        h("thead", {}, h("tr", {}, h("th", {}, "Arm"), shown.map((name) => h("th", {class: "n"}, name)), h("th", {}, test.is_path ? "Difference from the step before" : "Difference from the default"))),
        h("tbody", {}, test.arms.map((of, place) => h("tr", {},
          h("td", {class: "wrap"}, test.is_path && place > 0 ? `step ${place}: ` : of.is_answer ? "answer: " : of.arm === 1 ? "default: " : "", data.armPlace.has(of.arm) ? armLink(of.arm, short(of.label, 90)) : short(of.label, 90)), cells(of.values), h("td", {class: "wrap"}, of.difference || "–")))))));
  });
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
      note: "What an arm would gain with each limit, from all pulls that reached it, with its 95 % band.",
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
      note: "Per pull, each arm at its own best limit: rewards, minus the cost of what was consumed, minus the penalty of pulls that were censored or failed.",
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
  return [answer && h("p", {class: "lead"}, `${answer.why_limit[0].toUpperCase()}${answer.why_limit.slice(1)}.`), h("div", {class: "charts"}, charts)];
}

/** From the worst mean worth showing to the best: bands of hardly known limits may leave the picture. */
function gainDomain(arms) {
  const means = arms.flatMap((arm) => arm.gain.map((point) => point[1]));
  const bands = arms.slice(0, 1).flatMap((arm) => arm.gain.flatMap((point) => [point[2], point[3]]));
  const [low, high] = [Math.min(...means), Math.max(...means, ...bands)];
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return {domain: [low - room, high + room]};
}

function importanceSection(data) {
  const {importance, resource} = data;
  if (!importance) return [h("p", {class: "empty"}, data.arms.parameters.length ? "Nothing is known about parameters yet." : "The arms of this run have no parameters, only numbers or names.")];
  const charts = [];
  const weights = [...importance.parameters.map((of) => ({name: of.name, value: of.importance})), {name: "(the limit)", value: importance.of_limit}, ...importance.features.map(([name, value]) => ({name: `${name} (feature)`, value}))].filter((of) => of.value !== null);
  if (weights.length) {
    charts.push(chart({
      id: "importance", title: "Importance", legend: (colours) => [{label: "growth of the error when shuffled", colour: colours.series[0], fill: 0.85}],
      note: `Permutation importance in a random forest that predicts the gain of a round, fitted on ${several(importance.fitted_on, "round")}: how much its squared error grows when a column is shuffled, in units of the variance of the gain (up to about 200 %). The policy chose the rounds, so this says most about the arms it pulled often.`,
      draw: ({colours}) => ({
        marginLeft: 130, height: Math.max(140, 50 + weights.length * 24), x: {label: "growth of the error / variance", tickFormat: "%", zero: true}, y: {label: null, grid: false, domain: d3.sort(weights, (of) => -of.value).map((of) => of.name), tickFormat: (name) => short(name, 18)},
        marks: [Plot.barX(weights, {x: "value", y: "name", fill: colours.series[0], fillOpacity: 0.85, title: (of) => `${of.name}: ${percent(of.value)}`, tip: true}), Plot.ruleX([0])],
      }),
    }));
  } else {
    charts.push(h("p", {class: "empty"}, "Too few rounds, or all gains are alike, so importance cannot be estimated."));
  }
  if (importance.pair && importance.pair.cells.filter((cell) => cell[2] !== null).length > 1) charts.push(heatMap(importance.pair));
  if (importance.scatter && importance.scatter.points.length > 1) charts.push(scatter(importance.scatter));
  const cards = importance.parameters.filter((of) => of.values.filter((value) => value.arms > 0).length > 1).slice(0, 12).flatMap((of, place) => marginals(of, resource, place));
  return [h("div", {class: "charts"}, charts),
    cards.length > 0 && h("h3", {}, "Value by value"),
    cards.length > 0 && h("p", {class: "lead"}, "Mean over the pulled arms with this value, each at its own best limit and each with the same weight. Whiskers are 95 % intervals of the mean. Arms that never earned a reward have no gain: triangles at the bottom show where they are."),
    h("div", {class: "charts"}, cards)];
}

/** Colours for gains from low to high, with the steps of a legend. */
function gainColours(low, high) {
  const colour = (value) => d3.interpolateCividis(high > low ? (value - low) / (high - low) : 0.5);
  const steps = high > low ? [0, 0.25, 0.5, 0.75, 1].map((share) => low + share * (high - low)) : [low];
  return {colour, legend: steps.map((value) => ({label: number(value, 3), colour: colour(value), fill: 1}))};
}

/** A scale for a parameter: a number on its axis, or words side by side. */
const parameterScale = ([name, axis], values) => axis ? {label: name, type: axis, nice: true} : {label: name, type: "point", domain: values, grid: false, tickFormat: (text) => short(text, 10), padding: 0.5};

/** Arms over two parameters, coloured by gain: the darkest tenth of the gains share a colour, so that the good ones differ. */
function scatter({x, y, points}) {
  const known = points.filter((point) => point[3] !== null);
  const without = points.filter((point) => point[3] === null);
  const gains = d3.sort(known, (point) => point[3]).map((point) => point[3]);
  const low = d3.quantile(gains, 0.1);
  const {colour, legend} = gainColours(low, gains[gains.length - 1]);
  const words = (place) => d3.sort(new Set(points.map((point) => point[place])));
  return chart({
    id: "scatter", title: short(`Gain over ${x[0]} and ${y[0]}`, 70), legend: (colours) => [...(known.length ? legend : []), ...noReward(without.length, colours)],
    note: `One mark per arm with both parameters, at its own best limit.${known.length ? ` Arms below ${number(low, 3)} share one colour.` : ""}`,
    draw: ({colours}) => ({
      marginLeft: 70, height: 340, x: parameterScale(x, words(1)), y: parameterScale(y, words(2)),
      marks: [
        Plot.dot(without, {x: "1", y: "2", symbol: "triangle", stroke: colours.kinds[2], r: 3.5, title: (point) => `arm ${point[0]}\n${x[0]} ${point[1]}, ${y[0]} ${point[2]}\nno reward`, tip: true}),
        Plot.dot(known, {x: "1", y: "2", fill: (point) => colour(Math.max(low, point[3])), stroke: "currentColor", strokeOpacity: 0.25, r: 3.5, title: (point) => `arm ${point[0]}\n${x[0]} ${point[1]}, ${y[0]} ${point[2]}\ngain ${number(point[3], 3)}`, tip: true}),
      ],
    }),
  });
}

/** The entry of a legend for arms that never earned a reward, if there are any. */
const noReward = (count, colours) => (count ? [{label: "no reward", colour: colours.kinds[2], symbol: "triangle"}] : []);

/** An axis of words or few numbers, and the room below it: labels side by side if they fit, tilted if not, and some left out if even that is too narrow. */
function labelled(axis, width, most) {
  const tickFormat = (text) => short(text, most);
  const longest = d3.max(axis.domain, (text) => tickFormat(text).length) || 1;
  const room = (width - 90) / axis.domain.length;
  if (room >= 7 * longest + 5) return {x: {...axis, tickFormat}, marginBottom: 42};
  const every = Math.max(1, Math.ceil(16 / room));
  const labelOffset = 28 + 4 * longest;
  return {x: {...axis, tickFormat, tickRotate: -40, labelOffset, ticks: axis.domain.filter((_, at) => at % every === 0)}, marginBottom: labelOffset + 4};
}

function heatMap(pair) {
  const known = pair.cells.filter((cell) => cell[2] !== null);
  const without = pair.cells.filter((cell) => cell[2] === null && cell[4] > 0);
  const {colour, legend} = gainColours(...d3.extent(known, (cell) => cell[2]));
  const xs = [...new Set(pair.cells.map((cell) => cell[0]))];
  const ys = [...new Set(pair.cells.map((cell) => cell[1]))];
  return chart({
    id: "pair", title: short(`Gain over ${pair.x} and ${pair.y}`, 70), legend: (colours) => [...(known.length ? legend : []), ...noReward(without.length, colours)],
    note: "Mean gain of the arms with both values; empty cells were not pulled.",
    draw: ({width, colours}) => ({
      marginLeft: 70, padding: 0.03, height: Math.min(640, Math.max(220, ys.length * 22 + 110)), ...labelled({label: pair.x, domain: xs, grid: false, type: "band"}, width, 10),
      y: {label: pair.y, labelAnchor: "top", labelArrow: "none", domain: ys, grid: false, type: "band", tickFormat: (text) => short(text, 10)},
      marks: [
        Plot.cell(known, {x: "0", y: "1", fill: (cell) => colour(cell[2]), title: (cell) => `${pair.x} ${cell[0]}, ${pair.y} ${cell[1]}\ngain ${number(cell[2], 3)}\n${several(cell[3], "arm")}${cell[4] ? `, ${whole(cell[4])} without a reward` : ""}`, tip: true}),
        Plot.dot(without, {x: "0", y: "1", symbol: "triangle", fill: colours.kinds[2], r: 3, title: (cell) => `${pair.x} ${cell[0]}, ${pair.y} ${cell[1]}\nno reward\n${several(cell[4], "arm")}`, tip: true}),
        width / xs.length > 70 && Plot.text(known, {x: "0", y: "1", text: (cell) => cell[2].toFixed(2), fill: (cell) => (d3.lab(colour(cell[2])).l > 60 ? "#000" : "#fff")}),
      ],
    }),
  });
}

/** How visible arms without a reward are: as much as their share. */
const share = (value) => Math.max(0.25, value.unrewarded / value.arms);

/** The same for numbers, on their own axis. */
function onAxis(of, all, {place, tooltip, unit, factor}) {
  const [values, without] = [all.filter((value) => value.gain !== null), all.filter((value) => value.unrewarded > 0)];
  const x = {label: of.name, type: of.axis, nice: true};
  const mean = (value) => value.consumption * factor;
  return [
    chart({
      id: `gain-${place}`, title: short(`Gain by ${of.name}`), legend: (colours) => [{label: "mean gain of arms in a range", colour: colours.series[0], symbol: "circle"}, ...noReward(without.length, colours)],
      draw: ({colours}) => ({
        height: 230, x, y: {label: "gain", insetTop: 6, insetBottom: 6},
        marks: [
          Plot.areaY(values.filter((value) => value.low !== null), {x: "number", y1: "low", y2: "high", fill: colours.series[0], fillOpacity: 0.15}),
          Plot.lineY(values, {x: "number", y: "gain", stroke: colours.series[0], strokeOpacity: 0.5}),
          Plot.dot(values, {x: "number", y: "gain", fill: colours.series[0], r: 3.5, title: tooltip, tip: true}),
          Plot.dot(without, {x: "number", frameAnchor: "bottom", dy: -4, symbol: "triangle", fill: colours.kinds[2], fillOpacity: share, r: 4, title: tooltip}),
        ],
      }),
    }),
    chart({
      id: `consumption-${place}`, title: short(`Consumption by ${of.name}`), legend: (colours) => [{label: "mean consumption of a pull", colour: colours.series[1], symbol: "circle"}],
      draw: ({colours}) => ({
        height: 230, x, y: {label: `consumption (${unit})`, zero: true},
        marks: [
          Plot.lineY(all, {x: "number", y: mean, stroke: colours.series[1], strokeOpacity: 0.5}),
          Plot.dot(all, {x: "number", y: mean, fill: colours.series[1], r: 3.5, title: tooltip, tip: true}), Plot.ruleY([0]),
        ],
      }),
    }),
  ];
}

function marginals(of, resource, place) {
  const all = of.values.filter((value) => value.arms > 0);
  const values = all.filter((value) => value.gain !== null);
  const without = all.filter((value) => value.unrewarded > 0);
  const {unit, factor} = resourceUnit(resource, d3.max(all, (value) => value.consumption) || 0);
  const domain = of.values.map((value) => value.value);
  const x = {label: of.name, domain, type: "point", grid: false};
  const tooltip = (value) => `${of.name} = ${value.value}\n${value.unrewarded ? `${whole(value.unrewarded)} of ${several(value.arms, "arm")} without a reward\n` : ""}gain ${number(value.gain, 3)}${value.low === null ? "" : ` (${number(value.low, 3)} to ${number(value.high, 3)})`}\nconsumption ${amount(resource, value.consumption)}\n${several(value.arms, "arm")}, ${several(value.pulls, "pull")}`;
  if (of.axis) return onAxis(of, all, {place, tooltip, unit, factor});
  return [
    chart({
      id: `gain-${place}`, title: short(`Gain by ${of.name}`), legend: (colours) => [{label: "mean gain", colour: colours.series[0], symbol: "circle"}, ...noReward(without.length, colours)],
      draw: ({colours, width}) => ({
        height: 240, ...labelled(x, width, 12), y: {label: "gain", insetTop: 6, insetBottom: 6},
        marks: [
          Plot.ruleX(values.filter((value) => value.low !== null), {x: "value", y1: "low", y2: "high", stroke: colours.series[0], strokeOpacity: 0.6, strokeWidth: 2}),
          Plot.dot(values, {x: "value", y: "gain", fill: colours.series[0], r: 4, title: tooltip, tip: true}),
          Plot.dot(without, {x: "value", frameAnchor: "bottom", dy: -4, symbol: "triangle", fill: colours.kinds[2], fillOpacity: share, r: 4, title: tooltip}),
        ],
      }),
    }),
    chart({
      id: `consumption-${place}`, title: short(`Consumption by ${of.name}`), legend: (colours) => [{label: "mean consumption of a pull", colour: colours.series[1], fill: 0.85}],
      draw: ({colours, width}) => ({
        height: 240, ...labelled({...x, type: "band", padding: 0.25}, width, 12), y: {label: `consumption (${unit})`, zero: true},
        marks: [Plot.barY(all, {x: "value", y: (value) => value.consumption * factor, fill: colours.series[1], fillOpacity: 0.85, title: tooltip, tip: true}), Plot.ruleY([0])],
      }),
    }),
  ];
}
