// A chart on the page: its buttons, its values under the pointer or the arrow keys, its table.
const KINDS = { curves, ranked, bars, plane, heatmap };
const views = [];

function makeView(box) {
  const name = box.dataset.figure, figure = data.figures[name], kind = KINDS[figure.kind];
  const view = { name, box, figure, kind, plot: box.querySelector(".plot"), values: box.querySelector(".values"), log_x: figure.log_x, log_y: figure.log_y, log: figure.log };
  const tools = box.querySelector(".tools");
  for (const [key, text] of kind.toggles(figure)) toggle(tools, view, key, text);
  if (tools.children.length) html(tools, "span", { class: "gap", "aria-hidden": "true" });
  tableButton(tools, view);
  for (const [text, act] of [["SVG", saveSvg], ["PNG", savePng], ["CSV", saveCsv]]) {
    html(tools, "button", { type: "button", "aria-label": `Download ${text}: ${figure.title}` }, text).addEventListener("click", () => act(view));
  }
  Object.assign(view.plot, { tabIndex: 0 });
  fill(null, view.plot, { role: "group", "aria-label": `Chart: ${figure.title}. Arrow keys read its values.` }, null);
  listen(view);
  return view;
}

function toggle(tools, view, key, text) {
  const button = html(tools, "button", { type: "button", "aria-pressed": String(view[key]), "data-toggle": key }, text);
  button.addEventListener("click", () => {
    view[key] = !view[key];
    button.setAttribute("aria-pressed", String(view[key]));
    drawView(view);
  });
}

function tableButton(tools, view) {
  const button = html(tools, "button", { type: "button", "aria-expanded": "false", "aria-label": `Table of values: ${view.figure.title}` }, "Table");
  button.addEventListener("click", () => {
    view.values.hidden = !view.values.hidden;
    button.setAttribute("aria-expanded", String(!view.values.hidden));
    fillTable(view);
  });
}

function fillTable(view) {
  view.values.replaceChildren();
  if (view.values.hidden) return;
  const { columns, rows, title } = view.kind.table(view.figure);
  const table = html(html(view.values, "div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Values: ${view.figure.title}` }), "table");
  html(table, "caption", { class: "hidden" }, title || view.figure.title);
  const named = columns[0] === "Network";
  const numeric = (index) => (named && index === 0 ? {} : { class: "numeric" });
  const head = html(html(table, "thead"), "tr");
  columns.forEach((text, index) => html(head, "th", { scope: "col", ...numeric(index) }, text));
  const body = html(table, "tbody");
  for (const row of rows) {
    const line = html(body, "tr");
    row.forEach((text, index) => html(line, "td", numeric(index), text));
  }
}

function drawView(view) {
  const width = Math.max(280, Math.round(view.plot.clientWidth));
  const root = svg(null, "svg", { role: "img", "aria-label": view.figure.alt });
  const { height, probe, note } = view.kind.draw(view.figure, root, width, view);
  root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  Object.assign(view, { width, probe, stop: null });
  view.overlay = svg(root, "g", { "data-probe": "" });
  view.tip = html(null, "div", { class: "tip", hidden: "" });
  view.plot.replaceChildren(root, view.tip);
  view.box.querySelector(".cut").textContent = note;
  fillTable(view);
}

function listen(view) {
  const follow = (event) => {
    if (!view.probe?.count) return;
    const frame = view.plot.getBoundingClientRect(), zoom = view.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * zoom, (event.clientY - frame.top) * zoom];
    point(view, view.probe.nearest(x, y), y);
  };
  view.plot.addEventListener("pointermove", follow);
  view.plot.addEventListener("pointerdown", follow);
  // A finger leaves when it is lifted: what it pointed at stays until it points elsewhere.
  view.plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") unpoint(view); });
  view.plot.addEventListener("blur", () => unpoint(view));
  view.plot.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
    if (event.key === "Escape") unpoint(view);
    if (!(event.key in steps) || !view.probe?.count) return;
    event.preventDefault();
    const next = view.stop === null ? (steps[event.key] === Infinity ? view.probe.count - 1 : 0) : clamp(view.stop + steps[event.key], 0, view.probe.count - 1);
    const found = point(view, next);
    say([found.title, ...found.rows.map((row) => `${entries[row.entry].label} ${row.text}`), found.detail ?? ""].join(", "));
  });
}

function point(view, index, y) {
  const found = view.probe.at(index, y);
  view.stop = index;
  view.overlay.replaceChildren();
  if (found.line) svg(view.overlay, "line", { class: "hover", x1: found.x, x2: found.x, y1: found.line[0], y2: found.line[1] });
  for (const dot of found.dots) marker(view.overlay, dot.entry, dot.x, dot.y, dot.entry === found.hot ? 1.5 : 1.15);
  emphasise(view, found.hot);
  showTip(view, found);
  return found;
}

function unpoint(view) {
  if (view.stop === null || !view.tip) return;
  view.stop = null;
  view.overlay.replaceChildren();
  view.tip.hidden = true;
  emphasise(view, null);
}

// The network that is pointed at stays, the others step back.
function emphasise(view, number) {
  for (const node of view.plot.querySelectorAll("svg [data-entry]")) {
    const own = node.dataset.entry === String(number);
    node.classList.toggle("hot", own);
    node.classList.toggle("dim", number !== null && !own);
  }
}

function showTip(view, found) {
  const tip = view.tip;
  tip.replaceChildren();
  html(tip, "b", {}, found.title);
  for (const row of found.rows) {
    const line = html(tip, "div", { class: row.entry === found.hot || entries[row.entry].subject ? "strong" : null });
    sample(line, row.entry, 22, 10);
    html(line, "span", {}, entries[row.entry].label);
    html(line, "span", {}, row.text);
  }
  if (found.detail) html(tip, "span", {}, found.detail);
  tip.hidden = false;
  const zoom = view.plot.clientWidth / view.width, room = view.plot.clientWidth, x = found.x * zoom;
  const left = x + 18 + tip.offsetWidth <= room ? x + 18 : Math.max(0, x - 18 - tip.offsetWidth);
  const overlaps = left < x + 8 && left + tip.offsetWidth > x - 8;
  const top = overlaps ? found.y * zoom - tip.offsetHeight - 18 : clamp(found.y * zoom - tip.offsetHeight / 2, 0, Math.max(0, view.plot.clientHeight - tip.offsetHeight));
  tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
