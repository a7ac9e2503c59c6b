// Charts: Observable Plot draws, this file adds what every chart has: a title, a legend that is part of the saved
// file, colours for light, dark and paper, redrawing when the width changes, and saving as SVG.
"use strict";

/** Makes an element; children that are strings become text, never markup. */
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
  return element;
}

// Okabe and Ito's colours, distinguishable with any kind of colour blindness, and brighter ones on a dark background.
const PALETTES = {
  light: {
    series: ["#0072b2", "#d55e00", "#009e73", "#b5518b", "#8c6a00", "#3a8fc2", "#444444"],
    kinds: ["#0072b2", "#d55e00", "#b5518b"],
    ink: "#1c2227", faint: "#8a939b", ground: "#ffffff", ramp: "light",
  },
  dark: {
    series: ["#56b4e9", "#f0a020", "#2cc99b", "#e79ac8", "#f0e442", "#9fd3f2", "#d0d4d8"],
    kinds: ["#56b4e9", "#f0a020", "#e79ac8"],
    ink: "#e6e9ec", faint: "#7f8a94", ground: "#1b2026", ramp: "dark",
  },
};
const DASHES = [null, "7 3", "2 3", "9 3 2 3", "5 2", "1 2", "12 4"];
const KINDS = ["rewarded", "censored", "failed"];
const KIND_SYMBOLS = ["circle", "times", "triangle"];

/** The theme in force: the reader's choice, or the system's. */
let isPrinting = false;
function theme() {
  if (isPrinting) return "light";
  const chosen = document.documentElement.dataset.theme;
  if (chosen === "light" || chosen === "dark") return chosen;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

const number = (value, digits = 4) => {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1e7 || magnitude < 1e-4) return value.toExponential(2).replace("e+", "e");
  // Five digits are all there are, and `captime best` shows them too.
  const text = Number(value.toPrecision(magnitude >= 1e4 ? 5 : digits));
  return text.toLocaleString("en-US", {maximumFractionDigits: 8});
};
/** A gain, as `captime best` shows it. */
const gain = (value) => (value === null || value === undefined || !isFinite(value) ? "–" : value.toFixed(4));
const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));
const percent = (share) => {
  if (share === null || share === undefined || !isFinite(share)) return "–";
  const value = share * 100;
  return `${value > 0 && value < 0.1 ? "<0.1" : Number(value.toFixed(value < 10 ? 1 : 0))} %`;
};
const seconds = (value) => {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const magnitude = Math.abs(value);
  if (magnitude === 0) return "0 s";
  if (magnitude < 1e-3) return `${number(value * 1e6, 3)} µs`;
  if (magnitude < 1) return `${number(value * 1e3, 3)} ms`;
  if (magnitude < 120) return `${number(value, 3)} s`;
  const total = Math.round(value);
  const two = (part) => String(part).padStart(2, "0");
  if (total < 7200) return `${Math.floor(total / 60)} min ${two(total % 60)} s`;
  return `${Math.floor(total / 3600)} h ${two(Math.floor((total % 3600) / 60))} min`;
};

/** Where only a few letters fit: names of arms often begin alike, so both ends are kept. */
const tiny = (text, most = 16) => (text.length > most ? `${text.slice(0, 5)}…${text.slice(6 - most)}` : text);
const short = (text, most = 60) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** The unit an axis of seconds is best read in, and what to multiply with. */
function timeUnit(largest) {
  if (!(largest > 0)) return {unit: "s", factor: 1};
  if (largest < 2e-3) return {unit: "µs", factor: 1e6};
  if (largest < 1.2) return {unit: "ms", factor: 1e3};
  if (largest < 600) return {unit: "s", factor: 1};
  if (largest < 4 * 3600) return {unit: "min", factor: 1 / 60};
  return {unit: "h", factor: 1 / 3600};
}

/** The unit that bytes are best read in, and how many bytes it has. */
const byteUnit = (value) => [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]].find(([, bytes]) => value >= bytes) ?? ["B", 1];

/** Unit and factor for the resource that is limited: a kind of seconds, a plain count, or bytes. */
function resourceUnit(resource, largest) {
  if (resource === "work") return largest >= 1e6 ? {unit: "million units of work", factor: 1e-6} : {unit: "units of work", factor: 1};
  if (resource === "memory") {
    const [unit, bytes] = byteUnit(largest);
    return {unit: `${unit} of memory`, factor: 1 / bytes};
  }
  const {unit, factor} = timeUnit(largest);
  return {unit: `${unit} ${resource === "cpu" ? "CPU" : "wall"}`, factor};
}
const count = (value) => (Math.abs(value) >= 1e6 ? `${number(value / 1e6, 3)} million` : Math.abs(value) >= 1e3 ? whole(value) : number(value));
const inBytes = (value) => {
  const [unit, bytes] = byteUnit(Math.abs(value));
  return `${number(value / bytes, 3)} ${unit}`;
};
const amount = (resource, value) => (resource === "work" ? count(value) : resource === "memory" ? inBytes(value) : seconds(value));

/** `1 round`, `2 rounds`. */
const several = (value, word) => `${whole(value)} ${word}${value === 1 ? "" : "s"}`;

/**
 * An axis for `limits` and what was `used`, in the resource's unit: logarithmic where limits differ so much that the small ones would lie on top
 * of each other. `at` gives a value's place; nothing is left of the axis, not even 0.
 */
function limitAxis(resource, limits, used) {
  const largest = Math.max(0, ...limits, ...used);
  const {unit, factor} = resourceUnit(resource, largest);
  const isLog = largest / (d3.min(limits.filter((limit) => limit > 0)) || largest) > 25;
  const from = isLog ? d3.min([...limits, ...used].filter((value) => value > largest / 2000)) : 0;
  return {
    axis: (label) => ({label: `${label} (${unit})`, type: isLog ? "log" : "linear", domain: [from * factor, (largest || 1) * factor]}),
    at: (value) => Math.max(value, from) * factor,
  };
}

const drawn = new Set();
let waiting = [];

const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting && entry.target.redraw) {
      nearby.unobserve(entry.target);
      entry.target.redraw();
    }
  }
}, {rootMargin: "800px"});

const widths = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const figure = entry.target.closest("figure.chart");
    const width = Math.round(entry.contentRect.width);
    if (figure && figure.isDrawn && width > 0 && Math.abs(width - figure.drawnWidth) > 1) figure.redraw();
  }
});

/**
 * A chart: `draw({width, colours, narrow})` gives the marks of Plot and its options. `legend` lists what is seen.
 */
function chart({id, title, note, legend, draw, wide}) {
  const place = h("div", {class: "plot"});
  const button = h("button", {
    type: "button", class: "save", title: "Save this chart as an SVG file", "aria-label": `Save “${title}” as SVG`,
    onclick: () => save(figure, id || title),
  }, "SVG");
  const legendPlace = h("div", {class: "legend"});
  const figure = h("figure", {class: wide ? "chart wide" : "chart", id: id && `chart-${id}`},
    h("figcaption", {}, h("span", {}, title), button), legendPlace, place, note && h("p", {class: "note"}, note));
  figure.parts = {title, legend, draw};
  figure.redraw = () => {
    const width = Math.round(place.clientWidth);
    if (!width) return;
    const colours = PALETTES[theme()];
    figure.drawnWidth = width;
    figure.isDrawn = true;
    figure.classList.add("drawn");
    drawn.add(figure);
    legendPlace.replaceChildren(...entries(legend, colours).map(legendItem));
    try {
      place.replaceChildren(Plot.plot(options(draw, width, colours, title)));
    } catch (error) {
      place.replaceChildren(h("p", {class: "empty"}, "This chart cannot be drawn from this data."));
      console.error(error);
    }
  };
  waiting.push(figure);
  return figure;
}

/** Starts to draw the charts that were made since the last call, each when it comes near. */
function showCharts() {
  for (const figure of waiting) {
    nearby.observe(figure);
    widths.observe(figure.querySelector(".plot"));
  }
  waiting = [];
  for (const figure of drawn) if (!figure.isConnected) drawn.delete(figure);
}

/** Draws all charts again, or for the first time: another theme, or paper. */
function redrawAll(also) {
  for (const figure of document.querySelectorAll("figure.chart")) {
    if (figure.redraw && (also || figure.isDrawn)) figure.redraw();
  }
}

function options(draw, width, colours, title) {
  const narrow = width < 460;
  const own = draw({width, colours, narrow});
  return {
    width,
    height: narrow ? 260 : 320,
    marginTop: 26,
    marginLeft: 56,
    marginBottom: 38,
    ariaLabel: title,
    style: {fontSize: "12px", fontFamily: "system-ui, sans-serif", overflow: "visible", color: colours.ink},
    ...own,
    marks: own.marks.flat(Infinity).filter(Boolean),
    x: axis({grid: true, ticks: narrow ? 5 : undefined, ...(own.x || {})}),
    y: axis({grid: true, ...(own.y || {})}),
  };
}

/** Plain numbers on logarithmic axes, where Plot would write 400m for 0.4; at 1, 2 and 5 where there are few powers of ten. */
const axis = (options) => (options.type === "log" ? {tickFormat: (value) => number(value, 3), ticks: options.domain ? logTicks(options.domain) : 5, ...options} : options);
function logTicks([from, to]) {
  if (!(from > 0) || !(to > from)) return 5;
  const powers = d3.range(Math.floor(Math.log10(from)), Math.ceil(Math.log10(to)) + 1);
  const steps = powers.length > 4 ? [1] : powers.length > 3 ? [1, 3] : [1, 2, 5];
  const ticks = powers.flatMap((power) => steps.map((step) => step * 10 ** power)).filter((tick) => tick >= from * 0.999 && tick <= to * 1.001);
  return ticks.length > 1 ? ticks : [from, to];
}

const entries = (legend, colours) => (typeof legend === "function" ? legend(colours) : legend || []);

function legendItem({label, colour, dash, symbol, fill}) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", 26);
  svg.setAttribute("height", 12);
  svg.setAttribute("aria-hidden", "true");
  svg.append(swatch({colour, dash, symbol, fill}));
  return h("span", {class: "key"}, svg, label);
}

function swatch({colour, dash, symbol, fill}) {
  const make = (tag, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(name, value);
    return element;
  };
  if (symbol === "circle") return make("circle", {cx: 13, cy: 6, r: 3.5, fill: colour});
  if (symbol === "times") return make("path", {d: "M9.5 2.5l7 7m0-7l-7 7", stroke: colour, "stroke-width": 1.8, fill: "none"});
  if (symbol === "plus") return make("path", {d: "M13 2v8m-4-4h8", stroke: colour, "stroke-width": 1.6, fill: "none"});
  if (symbol === "triangle") return make("path", {d: "M13 1.5l4.5 8.5h-9z", fill: colour});
  if (fill) return make("rect", {x: 4, y: 1, width: 18, height: 10, fill: colour, "fill-opacity": fill});
  return make("path", {d: "M1 6h24", stroke: colour, "stroke-width": 2.4, "stroke-dasharray": dash, fill: "none"});
}

/** The chart as a file: on white, with its title and legend inside. */
function toSvg(figure) {
  const width = 760;
  const colours = PALETTES.light;
  const {title, legend, draw} = figure.parts;
  const space = "http://www.w3.org/2000/svg";
  const plot = Plot.plot(options(draw, width, colours, title));
  const inner = plot.tagName.toLowerCase() === "svg" ? plot : plot.querySelector("svg");
  const height = Number(inner.getAttribute("height"));
  const outer = document.createElementNS(space, "svg");
  const text = (x, y, content, weight) => {
    const element = document.createElementNS(space, "text");
    for (const [name, value] of Object.entries({x, y, fill: colours.ink, "font-weight": weight})) if (value) element.setAttribute(name, value);
    element.textContent = content;
    return element;
  };
  const parts = [text(12, 24, title, "bold")];
  let [x, y] = [12, 46];
  for (const entry of entries(legend, colours)) {
    const taken = 44 + entry.label.length * 6.6;
    if (x > 12 && x + taken > width - 12) [x, y] = [12, y + 18];
    const key = document.createElementNS(space, "g");
    key.setAttribute("transform", `translate(${x} ${y - 10})`);
    key.append(swatch(entry));
    parts.push(key, text(x + 32, y, entry.label));
    x += taken;
  }
  const top = y + 10;
  inner.setAttribute("x", 0);
  inner.setAttribute("y", top);
  inner.setAttribute("color", colours.ink);
  for (const [name, value] of Object.entries({
    xmlns: space, width, height: height + top + 8, viewBox: `0 0 ${width} ${height + top + 8}`,
    "font-family": "system-ui, sans-serif", "font-size": 12,
  })) outer.setAttribute(name, value);
  const ground = document.createElementNS(space, "rect");
  for (const [name, value] of Object.entries({width: "100%", height: "100%", fill: "#fff"})) ground.setAttribute(name, value);
  outer.append(ground, ...parts, inner);
  return new XMLSerializer().serializeToString(outer);
}

function save(figure, name) {
  const file = new Blob([toSvg(figure)], {type: "image/svg+xml"});
  const address = URL.createObjectURL(file);
  const plain = String(name).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "chart";
  h("a", {href: address, download: `${plain}.svg`}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

addEventListener("beforeprint", () => { isPrinting = true; redrawAll(true); });
addEventListener("afterprint", () => { isPrinting = false; redrawAll(false); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawAll(false));

/** A block to copy from. */
function copyable(title, text) {
  const button = h("button", {
    type: "button",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(block);
        button.textContent = "Press Ctrl-C";
      }
      setTimeout(() => (button.textContent = "Copy"), 2000);
    },
  }, "Copy");
  // A command line may be broken anywhere to be read; YAML must not be.
  const block = h("pre", {class: text.includes("\n") ? null : "line"}, text);
  return h("div", {class: "paste"}, h("div", {class: "paste-head"}, h("span", {}, title), button), block);
}

function themeButton() {
  const names = {light: "Theme: light", dark: "Theme: dark", auto: "Theme: auto"};
  const current = () => document.documentElement.dataset.theme || "auto";
  const button = h("button", {type: "button", class: "theme", title: "Light, dark, or as the system has it", onclick: () => {
    const next = {auto: "dark", dark: "light", light: "auto"}[current()];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    button.textContent = names[current()];
    redrawAll(false);
  }}, names[current()]);
  return button;
}

const footer = (from) => h("footer", {}, h("div", {class: "inner"}, `Made from ${from}. Charts: Observable Plot 0.6.17 (ISC), © Observable, Inc.; D3 7.9.0 (ISC), © Mike Bostock.`));
