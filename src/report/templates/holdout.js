// A study by CPU time: what the answers of policies are worth on held-out instances, with the charts of the report.
"use strict";

function examSection(all) {
  const [first] = all;
  const {unit, factor} = timeUnit(first.curve[first.curve.length - 1].cpu);
  const spread = ({mean, se}) => (mean === null ? "unknown" : se === null ? number(mean, 4) : `${number(mean, 4)} ± ${number(se, 2)}`);
  const key = (colours) => all.map((of, place) => ({label: of.label, colour: colours.series[place % 7], dash: DASHES[place % 7]}));
  const known = (name) => [["best possible", first.baselines.best_test], ["best training arm", first.baselines.best_training], ["median arm", first.baselines.median_training]]
    .map(([label, arm]) => ({label, arm: arm.arm, value: arm[name]}));
  const curve = ({title, name, label, of, wide, baselines, log, note}) => {
    const points = (one) => one.curve.map((mark) => ({one, cpu: mark.cpu * factor, seconds: mark.cpu, seen: of(mark)})).filter((point) => point.seen.mean !== null);
    const flat = all.flatMap(points);
    const rules = baselines ? known(baselines) : [];
    // Lines that lie on each other share their words.
    const words = d3.sort(rules, (rule) => rule.value).reduce((all, {label, value}) => {
      const last = all[all.length - 1];
      if (last && value < 1.08 * last.value) last.label += `\n${label}`;
      else all.push({label, value});
      return all;
    }, []);
    // Bands of a logarithmic axis must stay above 0.
    const least = log ? d3.min([...flat.map((point) => point.seen.mean), ...rules.map((rule) => rule.value)]) / 10 : -Infinity;
    return chart({
      title, wide, note: note || `Mean over ${several(first.repetitions, "repetition")}; bands are one standard error.`,
      legend: (colours) => [...key(colours), ...(rules.length ? [{label: "known only afterwards", colour: colours.faint, dash: "2 3"}] : [])],
      draw: ({colours, narrow}) => ({
        marginRight: rules.length ? 110 : undefined,
        x: {label: `CPU time (${unit})`, type: "log", ticks: narrow ? 3 : 6},
        y: {label, type: log ? "log" : "linear", zero: !log},
        marks: [
          rules.length && Plot.ruleY(rules, {y: "value", stroke: colours.faint, strokeDasharray: "2 3"}),
          rules.length && Plot.text(words, {y: "value", text: "label", frameAnchor: "right", textAnchor: "start", dx: 4, fill: colours.ink}),
          all.map((one, place) => points(one).some((point) => point.seen.se !== null) && Plot.areaY(points(one).filter((point) => point.seen.se !== null), {
            x: "cpu", y1: (point) => Math.max(least, point.seen.mean - point.seen.se), y2: (point) => point.seen.mean + point.seen.se, fill: colours.series[place % 7], fillOpacity: 0.18})),
          all.map((one, place) => Plot.line(points(one), {x: "cpu", y: (point) => point.seen.mean, stroke: colours.series[place % 7], strokeDasharray: DASHES[place % 7], strokeWidth: 2})),
          Plot.tip(flat, Plot.pointer({x: "cpu", y: (point) => point.seen.mean, title: (point) => `${point.one.label}\nafter ${seconds(point.seconds)}\n${name} ${spread(point.seen)}`})),
        ],
      }),
    });
  };
  const head = (name) => h("th", {class: "n"}, name);
  const tables = first.budgets.map((budget, place) => {
    const rows = all.map((of) => ({of, mark: of.budgets[place]})).sort((a, b) => a.mark.test.mean - b.mark.test.mean);
    return [h("h3", {}, `After ${seconds(budget.cpu)} of CPU time`), h("div", {class: "scroll"}, h("table", {},
      h("thead", {}, h("tr", {}, h("th", {}, "Policy"), ["Test PAR10", "Train PAR10", "Test PAR10 of the pair", "CPU time", "Runs", "Censored", "Gain", "Answered"].map(head))),
      h("tbody", {}, rows.map(({of, mark}) => h("tr", {}, h("td", {}, of.label),
        [spread(mark.test), spread(mark.train), spread(mark.pair), seconds(mark.spent.mean), whole(mark.runs.mean), percent(mark.censored.mean), spread(mark.gain), percent(mark.answered)].map((text) => h("td", {class: "n"}, text)))))))];
  });
  const [best, trained, middle] = known("test");
  return h("section", {class: "block"}, h("h2", {}, first.problem),
    h("p", {class: "lead"}, `${several(first.arms, "arm")}, ${several(first.limits, "limit")}, ${several(first.training, "training instance")}, ${several(first.test, "test instance")}, ${several(first.repetitions, "repetition")}. `
      + `PAR10 is the mean time over instances, ten times the cutoff of ${seconds(first.cutoff)} where nothing was solved. On the test instances the best arm has ${number(best.value)} (arm ${best.arm}), the best training arm ${number(trained.value)} (arm ${trained.arm}), the median arm ${number(middle.value)}.`),
    tables,
    h("div", {class: "charts"},
      curve({title: "Test PAR10 of the answer", name: "test PAR10", label: "test PAR10 (s)", of: (mark) => mark.test, wide: true, log: true, baselines: "test"}),
      curve({title: "Training PAR10 of the answer", name: "training PAR10", label: "training PAR10 (s)", of: (mark) => mark.train, log: true}),
      curve({title: "Test PAR10 of the best pair's arm", name: "test PAR10", label: "test PAR10 (s)", of: (mark) => mark.pair, log: true}),
      curve({title: "Share censored", name: "share", label: "share of runs without a reward", of: (mark) => mark.censored}),
      curve({title: "Gain", name: "gain", label: "cumulative gain", of: (mark) => mark.gain})));
}

function startHoldout() {
  const marks = JSON.parse(document.getElementById("data").textContent);
  document.getElementById("page").replaceChildren(
    h("header", {class: "top"}, h("div", {class: "inner"}, h("div", {class: "headline"}, h("h1", {}, "Study by CPU time"), h("span", {class: "grow"}), themeButton()))),
    h("main", {}, h("div", {class: "inner"}, marks.length > 0 && examSection(marks))),
    footer("a study; `study.json`, `study.csv` and `curves.csv` beside this page hold the data"));
  showCharts();
  document.documentElement.dataset.ready = "true";
}

startHoldout();
