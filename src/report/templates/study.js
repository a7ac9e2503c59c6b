// A study: policies against each other, problem by problem, with the charts of the report.
"use strict";

function studySection(group) {
  const [first] = group;
  const key = (colours) => group.map((of, place) => ({label: of.label, colour: colours.series[place % 7], dash: DASHES[place % 7]}));
  const spread = (mean, half) => (mean === null ? "unknown" : half === null ? number(mean, 4) : `${number(mean, 4)} ± ${number(half, 2)}`);
  // Regret is unknown on real targets: then there is no curve.
  const isKnown = first.best !== null;
  const curve = (title, name, of) => {
    const points = group.flatMap((one, place) => of(one).map(([round, mean, se]) => ({one, place, round, mean, se})));
    return chart({
      title, wide: true, legend: key, note: `Cumulative, mean over ${whole(first.repetitions)} repetitions; bands are one standard error.`,
      draw: ({colours}) => ({
        x: {label: "round"}, y: {label: `cumulative ${name}`, zero: true},
        marks: [
          group.map((one, place) => of(one).some((point) => point[2] !== null) && Plot.areaY(of(one), {x: "0", y1: (point) => point[1] - point[2], y2: (point) => point[1] + point[2], fill: colours.series[place % 7], fillOpacity: 0.18})),
          Plot.ruleY([0]),
          group.map((one, place) => Plot.line(of(one), {x: "0", y: "1", stroke: colours.series[place % 7], strokeDasharray: DASHES[place % 7], strokeWidth: 2})),
          Plot.tip(points, Plot.pointer({x: "round", y: "mean", title: (point) => `${point.one.label}\nround ${whole(point.round)}\n${name} ${spread(point.mean, point.se)}`})),
        ],
      }),
    });
  };
  // Expected where gains are known, else as they were seen.
  const gain = (of) => (isKnown ? of.best.gain - of.regret.mean / of.rounds : of.gain.mean / of.rounds);
  const gainError = (of) => { const se = isKnown ? of.regret.se : of.gain.se; return se === null ? null : se / of.rounds; };
  const bars = (title, unit, value, error, format, note) => chart({
    title, legend: (colours) => [{label: unit, colour: colours.series[0], symbol: "circle"}], note,
    draw: ({colours}) => {
      const rows = group.map((of) => ({of, value: value(of), error: error(of)})).filter((row) => row.value !== null);
      return {
        marginLeft: 150, height: 70 + group.length * 30, x: {label: unit, tickFormat: format, inset: 8}, y: {label: null, domain: group.map((of) => of.label), grid: true, type: "point", tickFormat: (label) => short(label, 22)},
        marks: [
          Plot.ruleY(rows.filter((row) => row.error !== null), {y: (row) => row.of.label, x1: (row) => row.value - row.error, x2: (row) => row.value + row.error, stroke: colours.series[0], strokeWidth: 2, strokeOpacity: 0.6}),
          Plot.dot(rows, {y: (row) => row.of.label, x: "value", fill: colours.series[0], r: 4.5, title: (row) => `${row.of.label}\n${spread(row.value, row.error)}`, tip: true}),
        ],
      };
    },
  });
  const table = h("div", {class: "scroll"}, h("table", {},
    h("thead", {}, h("tr", {}, h("th", {}, "Policy"), [isKnown && "Regret", "Reward", "Gain", "Gain per round", "Censored", isKnown && "Simple regret"].filter(Boolean).map((name) => h("th", {class: "n"}, name)))),
    h("tbody", {}, group.map((of) => h("tr", {}, h("td", {class: "wrap"}, of.label), [isKnown && spread(of.regret.mean, of.regret.se), spread(of.reward.mean, of.reward.se), spread(of.gain.mean, of.gain.se), spread(gain(of), gainError(of)), percent(of.censored.mean), isKnown && spread(of.simple_regret.mean, of.simple_regret.se)].filter(Boolean).map((text) => h("td", {class: "n"}, text)))))));
  return h("section", {class: "block"}, h("h2", {}, `${first.problem} on ${first.grid}`),
    h("p", {class: "lead"}, `${whole(first.arms)} arms, ${whole(first.limits)} limits, ${whole(first.rounds)} rounds, ${whole(first.repetitions)} repetitions.${isKnown ? ` The pair to find is arm ${first.best.arm} up to ${number(first.best.limit)}, with a gain of ${number(first.best.gain, 4)}.` : ""}`),
    table,
    h("div", {class: "charts"}, isKnown && curve("Regret", "regret", (of) => of.curve),
      curve("Reward", "reward", (of) => of.reward_curve), curve("Gain", "gain", (of) => of.gain_curve),
      bars("Gain per policy", "mean gain of a round", gain, gainError, undefined, "Whiskers are one standard error."),
      bars("Share censored", "share of rounds without a reward", (of) => of.censored.mean, (of) => of.censored.sd, "%", "Whiskers are one standard deviation over repetitions."),
      isKnown && bars("Simple regret", "regret of the pair recommended at the end", (of) => of.simple_regret.mean, (of) => of.simple_regret.se, undefined, "Whiskers are one standard error. Lower is better.")));
}

function startStudy() {
  const standings = JSON.parse(document.getElementById("data").textContent);
  const groups = d3.groups(standings, (of) => JSON.stringify([of.problem, of.grid])).map(([, group]) => group);
  document.getElementById("page").replaceChildren(
    h("header", {class: "top"}, h("div", {class: "inner"}, h("div", {class: "headline"}, h("h1", {}, "Study"), h("span", {class: "grow"}), themeButton()))),
    h("main", {}, h("div", {class: "inner"}, groups.map(studySection))),
    footer("a study; `study.json`, `study.csv` and `curves.csv` beside this page hold the data"));
  showCharts();
  document.documentElement.dataset.ready = "true";
}

startStudy();
