// A table of any length: only the rows in sight are in the document, so that ten thousand arms scroll like ten.
"use strict";

const ROW = 30;

/**
 * `columns`: {title, width, n (right-aligned), value(row) to sort by, text(row) to show, unit, best}. Rows are numbers.
 * `sort`: [column, descending]. Gives an element with `.filter(test)`.
 */
function grid({rows, columns, sort, open, label}) {
  let order = rows.slice();
  let test = () => true;
  let [by, descending] = sort;
  const template = columns.map((column) => column.width || "6rem").join(" ");
  const body = h("div", {class: "body", role: "rowgroup"});
  const heads = columns.map((column, place) => h("span", {class: column.n ? "cell n" : "cell", role: "columnheader", title: column.title},
    h("button", {type: "button", onclick: () => sortBy(place)}, column.title)));
  const head = h("div", {class: "row head", role: "row"}, heads);
  head.style.gridTemplateColumns = template;
  const element = h("div", {class: "grid", role: "table", "aria-label": label, tabindex: "0"}, head, body);

  function arrange() {
    const column = columns[by];
    const sign = descending ? -1 : 1;
    const rank = (value) => (value === null || value === undefined || Number.isNaN(value) ? 1 : 0);
    const keys = new Map();
    order = rows.filter(test);
    for (const row of order) keys.set(row, column.value(row));
    order.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      if (rank(x) || rank(y)) return rank(x) - rank(y) || a - b;
      const less = typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y), "en", {numeric: true}) : x - y;
      return sign * less || a - b;
    });
    heads.forEach((cell, place) => {
      if (place === by) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
      cell.firstChild.textContent = columns[place].title + (place === by ? (descending ? " ▾" : " ▴") : "");
    });
    body.style.height = `${order.length * ROW}px`;
    element.dataset.rows = order.length;
    show(true);
  }

  function sortBy(place) {
    if (place === by) descending = !descending;
    else [by, descending] = [place, Boolean(columns[place].n)];
    element.scrollTop = 0;
    arrange();
  }

  let [from, to] = [-1, -1];
  function show(anew, all) {
    const height = element.clientHeight || 480;
    const first = all ? 0 : Math.max(0, Math.floor(element.scrollTop / ROW) - 8);
    const last = all ? Math.min(order.length, 60) : Math.min(order.length, Math.ceil((element.scrollTop + height) / ROW) + 8);
    if (!anew && first === from && last === to) return;
    [from, to] = [first, last];
    const cells = (row) => columns.map((column) => {
      const content = column.text(row);
      const isText = typeof content !== "object" || content === null;
      return h("span", {class: ["cell", column.n && "n", column.look && column.look(row)].filter(Boolean).join(" "), role: "cell", title: isText ? content : undefined}, content);
    });
    const made = [];
    for (let place = first; place < last; place++) {
      const row = order[place];
      const line = h("div", {
        class: "row", role: "row", tabindex: open ? "0" : undefined, "data-row": row,
        onclick: open && (() => open(row)),
        onkeydown: open && ((event) => { if (event.key === "Enter") open(row); }),
      }, cells(row));
      line.style.top = `${place * ROW}px`;
      line.style.gridTemplateColumns = template;
      made.push(line);
    }
    body.replaceChildren(...made);
  }

  let isAsked = false;
  element.addEventListener("scroll", () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => { isAsked = false; show(false); });
  });
  addEventListener("beforeprint", () => { if (element.isConnected) { show(true, true); body.style.height = `${Math.min(order.length, 60) * ROW}px`; } });
  addEventListener("afterprint", () => { if (element.isConnected) arrange(); });
  element.filter = (next) => { test = next; element.scrollTop = 0; arrange(); return order.length; };
  element.state = () => ({by, descending, top: element.scrollTop});
  element.restore = (state) => { [by, descending] = [state.by, state.descending]; arrange(); element.scrollTop = state.top; };
  arrange();
  requestAnimationFrame(() => show(true));
  return element;
}
