// Small helpers. Text from users only ever becomes a text node.
const data = JSON.parse(document.getElementById("data").textContent);
const entries = data.entries;
const hidden = new Set();
const SVG = "http://www.w3.org/2000/svg";

function html(parent, name, attributes = {}, text = null) {
  return fill(parent, document.createElement(name), attributes, text);
}

function svg(parent, name, attributes = {}, text = null) {
  return fill(parent, document.createElementNS(SVG, name), attributes, text);
}

function fill(parent, node, attributes, text) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== false) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  if (parent) parent.append(node);
  return node;
}

const finite = (value) => typeof value === "number" && Number.isFinite(value);
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const shown = (number) => !hidden.has(number);
const look = (number) => `c${number}${entries[number].subject ? " subject" : ""}`;
const say = (text) => { document.getElementById("said").textContent = text; };

// Widths of text in the page's own font, which is another one on every machine.
const pen = document.createElement("canvas").getContext("2d");
const family = getComputedStyle(document.body).fontFamily;

function wide(text, size = 12) {
  pen.font = `${size}px ${family}`;
  return pen.measureText(text).width;
}

function short(text, room, size = 12) {
  if (wide(text, size) <= room) return text;
  let kept = [...text];
  while (kept.length > 1 && wide(kept.join("") + "…", size) > room) kept.pop();
  return kept.join("") + "…";
}

const SHAPES = {
  circle: ["", "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0Z"],
  square: ["", "M-3.6-3.6h7.2v7.2h-7.2Z"],
  triangle: ["", "M0-4.8L4.6 3.4H-4.6Z"],
  diamond: ["", "M0-5L5 0L0 5L-5 0Z"],
  cross: ["thin", "M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5"],
  wedge: ["", "M0 4.8L4.6-3.4H-4.6Z"],
  ring: ["open", "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z"],
  plus: ["thin", "M-4.4 0H4.4M0-4.4V4.4"],
  box: ["open", "M-3.4-3.4h6.8v6.8h-6.8Z"],
  kite: ["open", "M0-5L4.4 0L0 5L-4.4 0Z"],
};

function marker(parent, number, x, y, size = 1) {
  const [kind, path] = SHAPES[entries[number].marker];
  return svg(parent, "path", { class: `dot ${kind} ${look(number)}`, d: path, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})` });
}

// A line with its marker: what stands for a network in the legend and beside its values.
function sample(parent, number, width = 30, height = 12) {
  const box = svg(parent, "svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  svg(box, "path", { class: `line ${look(number)}`, d: `M1 ${height / 2}H${width - 1}`, "stroke-dasharray": entries[number].dash || null });
  marker(box, number, width / 2, height / 2, 0.85);
  return box;
}
