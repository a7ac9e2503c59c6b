// How it went, and the instances.
"use strict";

/** Lines of so few points have dots too: a line of one point is none at all. */
const FEW = 30;

/** Rounds have no fractions. */
const roundAxis = (count) => ({label: "round", ...(count <= 10 && {ticks: d3.range(1, count + 1), tickFormat: "d"})});

function courseSection(data) {
  const {course, resource, rounds, status} = data;
  if (!course.gain.length) return [h("p", {class: "empty"}, "No round has ended yet.")];
  const timed = course.gain.some((point) => point[1] !== null);
  const time = timeUnit(d3.max(course.gain, (point) => point[1]) || 0);
  const charts = [];
  const starts = course.sessions.slice(1);
  const restarts = (at, colours) => starts.length > 0 && starts.length < 200 && Plot.ruleX(starts, {x: at, stroke: colours.faint, strokeDasharray: "2 3", title: (start) => `session ${start[0]}`});
  const restartKey = (colours) => (starts.length ? [{label: "started again", colour: colours.faint, dash: "2 3"}] : []);
  const line = (id, title, x, at, startAt) => chart({
    id, title, legend: (colours) => [{label: "sum of gains", colour: colours.series[0]}, ...restartKey(colours)],
    draw: ({colours}) => ({
      x, y: {label: "cumulative gain"},
      marks: [
        restarts(startAt, colours), Plot.ruleY([0], {strokeOpacity: 0.4}),
        Plot.line(course.gain, {x: at, y: (point) => point[2], stroke: colours.series[0], strokeWidth: 2}),
        course.gain.length <= FEW && Plot.dot(course.gain, {x: at, y: (point) => point[2], fill: colours.series[0], r: 3}),
        Plot.tip(course.gain, Plot.pointerX({x: at, y: (point) => point[2], title: (point) => `after ${whole(point[0])} rounds${point[1] === null ? "" : `, ${seconds(point[1])}`}\ncumulative gain ${number(point[2])}`})),
      ],
    }),
  });
  charts.push(line("cumulative", "Cumulative gain over rounds", roundAxis(status.learned), (point) => point[0], (start) => start[2]));
  if (timed) charts.push(line("cumulative-time", "Cumulative gain over time", {label: `time of the run (${time.unit})`}, (point) => point[1] * time.factor, (start) => start[1] * time.factor));
  if (course.incumbents.length) charts.push(incumbentChart(data, timed, time));
  charts.push(limitsChart(data));
  charts.push(chart({
    id: "shares", title: "Share censored and failed", legend: (colours) => [{label: "censored", colour: colours.kinds[1]}, {label: "failed", colour: colours.kinds[2], dash: DASHES[1]}],
    note: `Of the last ${several(Math.min(course.window, status.learned), "round")} at each point.`,
    draw: ({colours}) => ({
      x: roundAxis(status.learned), y: {label: "share of rounds", domain: [0, 1], tickFormat: "%"},
      marks: [
        Plot.line(course.shares, {x: "0", y: "1", stroke: colours.kinds[1], strokeWidth: 2}),
        Plot.line(course.shares, {x: "0", y: "2", stroke: colours.kinds[2], strokeDasharray: DASHES[1], strokeWidth: 2}),
        course.shares.length <= FEW && [1, 2].map((kind) => Plot.dot(course.shares, {x: "0", y: String(kind), symbol: KIND_SYMBOLS[kind], stroke: colours.kinds[kind], r: 3})),
        Plot.tip(course.shares, Plot.pointerX({x: "0", y: "1", title: (point) => `round ${whole(point[0])}\n${percent(point[1])} censored\n${percent(point[2])} failed`})),
      ],
    }),
  }));
  charts.push(spentChart(data));
  if (course.rate.length > 1) {
    charts.push(chart({
      id: "rate", title: "Rounds per second", legend: (colours) => [{label: "rounds that ended", colour: colours.series[0]}],
      draw: ({colours}) => ({
        x: {label: `time of the run (${time.unit})`}, y: {label: "rounds per second", zero: true},
        marks: [
          Plot.areaY(course.rate, {x: (point) => point[0] * time.factor, y: "1", fill: colours.series[0], fillOpacity: 0.15, curve: "step"}),
          Plot.line(course.rate, {x: (point) => point[0] * time.factor, y: "1", stroke: colours.series[0], curve: "step"}),
          Plot.ruleY([0]),
          Plot.tip(course.rate, Plot.pointerX({x: (point) => point[0] * time.factor, y: "1", title: (point) => `around ${seconds(point[0])}\n${number(point[1], 3)} rounds per second`})),
        ],
      }),
    }));
  }
  if (course.timeline) charts.push(...timelineCharts(data, time));
  const blocks = [h("div", {class: "charts"}, charts)];
  if (!timed) blocks.push(h("p", {class: "note"}, "This run took place in virtual time: there are no times, rates and slots to show."));
  return blocks;
}

function incumbentChart(data, timed, time) {
  const {incumbents} = data.course;
  const at = timed ? (point) => point.at * time.factor : (point) => point.learned;
  const means = incumbents.flatMap((point) => [point.gain, point.now]).filter((value) => value !== null);
  const [low, high] = d3.extent(means);
  const room = (high - low || 1) * 0.25;
  return chart({
    id: "incumbent", title: `The answer's gain over ${timed ? "time" : "rounds"}`,
    legend: (colours) => [{label: "as estimated then, 95 % interval", colour: colours.series[0]}, {label: "the same pair as known now", colour: colours.series[1], dash: DASHES[1]}],
    note: "The pair captime would have recommended if the run had stopped there.",
    draw: ({colours}) => ({
      x: {label: timed ? `time of the run (${time.unit})` : "round"}, y: {label: "gain", domain: [low - room, high + room]},
      marks: [
        Plot.areaY(incumbents, {x: at, y1: "low", y2: "high", curve: "step-after", fill: colours.series[0], fillOpacity: 0.15, clip: true}),
        Plot.line(incumbents, {x: at, y: "now", curve: "step-after", stroke: colours.series[1], strokeDasharray: DASHES[1], strokeWidth: 1.8}),
        Plot.line(incumbents, {x: at, y: "gain", curve: "step-after", stroke: colours.series[0], strokeWidth: 2}),
        incumbents.length <= FEW && Plot.dot(incumbents, {x: at, y: "gain", fill: colours.series[0], r: 3}),
        Plot.tip(incumbents, Plot.pointerX({x: at, y: "gain", title: (point) => `after ${whole(point.learned)} rounds${timed ? `, ${seconds(point.at)}` : ""}\n${armName(data, point.arm)}, limit ${amount(data.resource, point.limit)}\ngain ${number(point.gain, 3)} (${number(point.low, 3)} to ${number(point.high, 3)})\nas known now ${number(point.now, 3)}`})),
      ],
    }),
  });
}

/** Evenly spaced places of a list, so that a chart has at most this many marks. */
const sample = (count, most) => d3.range(0, count, Math.max(1, Math.ceil(count / most)));

function limitsChart(data) {
  const {rounds, resource} = data;
  const places = sample(rounds.round.length, 2500);
  const {unit, factor} = resourceUnit(resource, d3.max(rounds.limits) || 0);
  const isThin = places.length < rounds.total;
  const limit = (place) => rounds.limits[rounds.limit[place]];
  const spread = rounds.limits.length > 1 && d3.min(rounds.limits) > 0 && d3.max(rounds.limits) / d3.min(rounds.limits) > 50;
  return chart({
    id: "limits", title: "Limits chosen", wide: false,
    legend: (colours) => KINDS.map((label, kind) => ({label, colour: colours.kinds[kind], symbol: KIND_SYMBOLS[kind]})),
    note: isThin ? `${whole(places.length)} of ${whole(rounds.total)} rounds are drawn.` : null,
    draw: ({colours}) => ({
      x: roundAxis(rounds.total), y: {label: `limit (${unit})`, type: spread ? "log" : "linear", zero: !spread, insetTop: 5},
      marks: [
        [0, 1, 2].map((kind) => {
          const of = places.filter((place) => rounds.kind[place] === kind);
          const channels = {x: (place) => rounds.round[place], y: (place) => limit(place) * factor, symbol: KIND_SYMBOLS[kind], r: (kind === 0 ? 1.7 : 2.6) + (places.length <= 300 ? 1 : 0)};
          return Plot.dot(of, kind === 1 ? {...channels, stroke: colours.kinds[kind]} : {...channels, fill: colours.kinds[kind], fillOpacity: 0.75});
        }),
        Plot.tip(places, Plot.pointer({x: (place) => rounds.round[place], y: (place) => limit(place) * factor,
          title: (place) => `round ${whole(rounds.round[place])}: ${KINDS[rounds.kind[place]]}\n${armName(data, rounds.arm[place])}, limit ${amount(resource, limit(place))}\nused ${amount(resource, rounds.used[place])}\ngain ${number(rounds.gain[place], 3)}`})),
      ],
    }),
  });
}

function spentChart(data) {
  const {arms, resource} = data;
  const order = d3.sort(d3.range(arms.arm.length).filter((place) => arms.pulls[place] > 0), (place) => -arms.used[place]);
  const shown = order.slice(0, 15).map((place) => ({name: armName(data, arms.arm[place]), arm: arms.arm[place], used: arms.used[place], pulls: arms.pulls[place]}));
  const rest = order.slice(15);
  const others = rest.length ? `The other ${whole(rest.length)} arms that were pulled used ${amount(resource, d3.sum(rest, (place) => arms.used[place]))} in ${whole(d3.sum(rest, (place) => arms.pulls[place]))} pulls.` : null;
  const {unit, factor} = resourceUnit(resource, d3.max(shown, (of) => of.used) || 0);
  return chart({
    id: "spent", title: resource === "work" ? "Work spent per arm" : "Time spent per arm", legend: (colours) => [{label: "consumption of all its pulls", colour: colours.series[0], fill: 0.85}], note: others,
    draw: ({colours}) => ({
      marginLeft: 110, height: Math.max(160, 60 + shown.length * 17), x: {label: `consumption (${unit})`, zero: true}, y: {label: null, grid: false, domain: shown.map((of) => of.arm), tickFormat: (arm) => tiny(armName(data, arm))},
      marks: [Plot.barX(shown, {x: (of) => of.used * factor, y: "arm", fill: colours.series[0], fillOpacity: 0.85, title: (of) => `${of.name}\n${amount(resource, of.used)} in ${several(of.pulls, "pull")}`, tip: true}), Plot.ruleX([0])],
    }),
  });
}

function timelineCharts(data, time) {
  const {timeline} = data.course;
  const bars = timeline.bars;
  const lanes = d3.max(bars, (bar) => bar[0]);
  const span = timeUnit(d3.max(bars, (bar) => bar[2]));
  return [
    chart({
      id: "busy", title: "Slots at work", legend: (colours) => [{label: "pulls at a time, on average", colour: colours.series[2]}],
      draw: ({colours}) => ({
        x: {label: `time of the run (${time.unit})`}, y: {label: "pulls at a time", zero: true},
        marks: [
          Plot.areaY(timeline.busy, {x: (point) => point[0] * time.factor, y: "1", fill: colours.series[2], fillOpacity: 0.2, curve: "step"}),
          Plot.line(timeline.busy, {x: (point) => point[0] * time.factor, y: "1", stroke: colours.series[2], curve: "step"}),
          Plot.ruleY([0]),
          Plot.tip(timeline.busy, Plot.pointerX({x: (point) => point[0] * time.factor, y: "1", title: (point) => `around ${seconds(point[0])}\n${number(point[1], 3)} pulls at a time`})),
        ],
      }),
    }),
    chart({
      id: "timeline", title: timeline.is_cut ? `What ran when: the latest ${whole(bars.length)} pulls` : "What ran when", wide: true,
      legend: (colours) => KINDS.map((label, kind) => ({label, colour: colours.kinds[kind], fill: kind === 0 ? 0.55 : 0.95})),
      note: timeline.is_told || lanes === 1 ? "One line per slot." : "One line per slot. The journal does not say which slot a pull ran in: lines are inferred from when pulls began and ended.",
      draw: ({colours}) => ({
        height: Math.min(460, 70 + lanes * 22), x: {label: `time of the run (${span.unit})`}, y: {label: "slot", domain: d3.range(1, lanes + 1), grid: false, type: "band", padding: 0.15},
        marks: [Plot.rect(bars, {x1: (bar) => bar[1] * span.factor, x2: (bar) => bar[2] * span.factor, y: (bar) => bar[0], fill: (bar) => colours.kinds[bar[5]], fillOpacity: (bar) => (bar[5] === 0 ? 0.55 : 0.95), stroke: colours.ground, strokeWidth: 0.5,
          title: (bar) => `round ${whole(bar[3])}: ${KINDS[bar[5]]}\n${armName(data, bar[4])}\n${seconds(bar[1])} to ${seconds(bar[2])}`, tip: true})],
      }),
    }),
  ];
}

/** Where the answer does worst, and which features go with that. */
function worstInstances({worst, features, featured}) {
  const chance = 2 / Math.sqrt(Math.max(1, featured - 1));
  const blocks = [h("h3", {}, "Instances the answer is worst at"), h("div", {class: "scroll"}, h("table", {id: "worst"},
    h("thead", {}, h("tr", {}, h("th", {}, "Instance"), h("th", {class: "n"}, "Gain"), h("th", {class: "n"}, "Gain of the default"), h("th", {class: "n"}, "Solved"), h("th", {class: "n"}, "Runs"))),
    h("tbody", {}, worst.map((of) => h("tr", {}, h("td", {class: "wrap"}, short(of.name, 90)), h("td", {class: "n"}, number(of.gain, 3)), h("td", {class: "n"}, number(of.default, 3)),
      h("td", {class: "n"}, percent(of.solved)), h("td", {class: "n"}, whole(of.runs)))))))];
  if (features.length) {
    blocks.push(h("h3", {}, "Features that go with it"), h("div", {class: "scroll"}, h("table", {id: "features"},
      h("thead", {}, h("tr", {}, h("th", {}, "Feature"), h("th", {class: "n"}, "Rank correlation with the gain"), h("th", {class: "n"}, "Mean on the worst third"), h("th", {class: "n"}, "Mean on the others"))),
      h("tbody", {}, features.map((of) => h("tr", {}, h("td", {class: "wrap"}, of.name), h("td", {class: "n"}, of.correlation.toFixed(2)), h("td", {class: "n"}, number(of.at_worst, 3)), h("td", {class: "n"}, number(of.elsewhere, 3))))))),
      h("p", {class: "note"}, `Spearman’s correlation over ${several(featured, "instance")} that the answer ran on at its limit: below 0, the answer is worse where the feature is large. By chance alone a feature reaches about ±${chance.toFixed(2)} once in twenty. The model behind “What matters?” uses features; policies do not.`));
  }
  return blocks;
}

function instancesSection(data) {
  const {instances, resource} = data;
  if (!instances) return null;
  const charts = [];
  const both = instances.scatter.filter((of) => of.default > 0 && of.best > 0);
  const {unit, factor} = resourceUnit(resource, d3.max(both, (of) => Math.max(of.default, of.best)) || 0);
  if (both.length && data.answer && data.answer.arm !== 1) {
    const [low, high] = d3.extent(both.flatMap((of) => [of.default * factor, of.best * factor]));
    const kind = (of) => (of.best_unsolved ? 2 : of.default_unsolved ? 1 : 0);
    charts.push(chart({
      id: "scatter", title: "Default against best, by instance",
      legend: (colours) => ["both solve it", "only the best solves it", "the best does not solve it"].map((label, place) => ({label, colour: colours.kinds[place], symbol: KIND_SYMBOLS[place]})),
      note: `${whole(instances.scatter.length)} of ${whole(instances.count)} instances were run with both. Below the line the best is faster. A pull without a reward counts with the limit it ran to.`,
      draw: ({colours}) => ({
        x: {label: `default (${unit})`, type: "log", domain: [low / 1.2, high * 1.2]}, y: {label: `best (${unit})`, type: "log", domain: [low / 1.2, high * 1.2]},
        marks: [
          Plot.line([[low / 1.2, low / 1.2], [high * 1.2, high * 1.2]], {stroke: colours.faint, strokeDasharray: "4 3"}),
          [0, 1, 2].map((which) => Plot.dot(both.filter((of) => kind(of) === which), {x: (of) => of.default * factor, y: (of) => of.best * factor, symbol: KIND_SYMBOLS[which], r: 3.2, [which === 1 ? "stroke" : "fill"]: colours.kinds[which], fillOpacity: 0.75})),
          Plot.tip(both, Plot.pointer({x: (of) => of.default * factor, y: (of) => of.best * factor, title: (of) => `${short(of.name, 80)}\ndefault ${amount(resource, of.default)}${of.default_unsolved ? ", not solved" : ""}\nbest ${amount(resource, of.best)}${of.best_unsolved ? ", not solved" : ""}`})),
        ],
      }),
    }));
  } else {
    charts.push(h("p", {class: "empty"}, data.answer && data.answer.arm === 1 ? "The best arm is the default arm: there is nothing to compare." : "No instance was run with both the default and the best arm yet."));
  }
  const lines = instances.cactus.filter((of) => of.points.length);
  if (lines.length) {
    const most = resourceUnit(resource, d3.max(lines, (of) => of.points.at(-1)[1]) || 0);
    const positive = lines.every((of) => of.points[0][1] > 0);
    charts.push(chart({
      id: "cactus", title: "Instances solved (cactus)", legend: (colours) => lines.map((of, place) => ({label: short(`${of.who} (${of.points.at(-1)[0]} of ${of.tried} tried)`, 70), colour: colours.series[place % 7], dash: DASHES[place % 7]})),
      note: "Instances sorted by what an arm used on them when it solved them; further right and lower is better.",
      draw: ({colours}) => ({
        x: {label: "instances solved"}, y: {label: `consumption (${most.unit})`, type: positive ? "log" : "linear"},
        marks: [
          lines.map((of, place) => [
            Plot.line(of.points, {x: "0", y: (point) => point[1] * most.factor, stroke: colours.series[place % 7], strokeDasharray: DASHES[place % 7], strokeWidth: 1.8}),
            of.points.length < 40 && Plot.dot(of.points, {x: "0", y: (point) => point[1] * most.factor, fill: colours.series[place % 7], r: 2.2}),
          ]),
          Plot.tip(lines.flatMap((of) => of.points.map((point) => ({of, point}))), Plot.pointer({x: ({point}) => point[0], y: ({point}) => point[1] * most.factor, title: ({of, point}) => `${short(of.who)}\n${whole(point[0])} instances within ${amount(resource, point[1])} each`})),
        ],
      }),
    }));
  }
  const blocks = [h("p", {class: "lead"}, `${whole(instances.met)} of ${whole(instances.count)} instances have been run so far.`), h("div", {class: "charts"}, charts)];
  if (instances.worst.length) blocks.push(...worstInstances(instances));
  blocks.push(h("h3", {}, `Instances that no arm solved (${whole(instances.unsolved_count)})`));
  blocks.push(instances.unsolved.length
    ? h("div", {class: "scroll"}, h("table", {id: "unsolved"}, h("thead", {}, h("tr", {}, h("th", {}, "Instance"), h("th", {class: "n"}, "Tries"), h("th", {class: "n"}, "Arms"))),
      h("tbody", {}, instances.unsolved.slice(0, 50).map(([name, tries, arms]) => h("tr", {}, h("td", {class: "wrap"}, name), h("td", {class: "n"}, whole(tries)), h("td", {class: "n"}, whole(arms)))))))
    : h("p", {class: "note"}, "At least one arm solved each of them."));
  if (instances.unsolved_count > 50) blocks.push(h("p", {class: "note"}, `The 50 that were tried most are listed.`));
  return blocks;
}
