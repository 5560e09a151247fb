// A matrix in colours, its first row on top, with the scale of its colours below it.
const heatmap = {
  toggles: () => [],

  draw(figure, root, width) {
    const { rows, columns } = figure, tall = Math.max(1, rows.length), broad = Math.max(1, columns.length);
    const left = Math.min(width * 0.3, Math.max(34, 14 + Math.max(0, ...rows.map((text) => wide(text)))));
    const cell = Math.min((width - left - 10) / broad, Math.max(22, 420 / tall), 60), high = Math.min(cell, 420 / tall);
    const fall = columns.every((text) => finite(Number(text))) ? 0 : slantedFall(columns, cell);
    const frame = { left, top: 34, cell, high, right: left + cell * broad, bottom: 34 + high * tall, fall };
    const colour = colourOf(figure);
    svg(root, "text", { class: "title", x: 0, y: 13 }, short(`${figure.y_title} ↓   ${figure.x_title} →`, width, 12.5));
    figure.values.forEach((row, i) => row.forEach((value, j) => {
      if (!finite(value) || (figure.log && value <= 0)) return;
      svg(root, "rect", { x: left + cell * j, y: frame.top + high * i, width: cell + 0.4, height: high + 0.4, fill: colour.at(value) });
    }));
    heatLabels(root, figure, frame);
    colourBar(root, colour, frame, figure.axis);
    return { height: frame.bottom + 74 + fall, probe: heatProbe(figure, frame), note: "" };
  },

  table: (figure) => ({ columns: [figure.y_title, ...figure.columns], rows: figure.values.map((row, i) => [figure.rows[i], ...row.map((value) => format(value))]), title: figure.axis }),
  csv: (figure) => [[figure.x_title, figure.y_title, figure.axis], ...figure.values.flatMap((row, i) => row.map((value, j) => [figure.columns[j], figure.rows[i], value]))],
};

// From numbers to colours, straight between the given ones.
function colourOf(figure) {
  const known = figure.values.flat().filter((value) => finite(value) && (!figure.log || value > 0)), far = Math.max(0, ...known.map(Math.abs)) || 1;
  let [low, high] = figure.diverging ? [-far, far] : [Math.min(...known, Infinity), Math.max(...known, -Infinity)];
  if (figure.reach) [low, high] = figure.reach;
  if (!known.length) [low, high] = figure.log ? [0.1, 1] : [0, 1];
  const place = (value) => (high === low ? 0.5 : figure.log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low));
  const stops = figure.colours.map((text) => [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)));
  const at = (value) => {
    const share = clamp(place(value), 0, 1) * (stops.length - 1), i = Math.min(stops.length - 2, Math.floor(share));
    return `rgb(${stops[i].map((part, k) => Math.round(part + (share - i) * (stops[i + 1][k] - part))).join(",")})`;
  };
  return { at, low, high, value: (share) => (figure.log ? low * (high / low) ** share : low + share * (high - low)) };
}

function heatLabels(root, figure, frame) {
  const every = (count, room, size) => Math.max(1, Math.ceil(size / room), Math.ceil(count / 12));
  const across = every(figure.columns.length, frame.cell, Math.max(0, ...figure.columns.map((text) => wide(text))) + 8);
  if (frame.fall) groupLabels(root, figure.columns, frame, frame.cell, frame.fall);
  else figure.columns.forEach((text, j) => {
    if (j % across === 0) svg(root, "text", { class: "tick", x: frame.left + frame.cell * (j + 0.5), y: frame.bottom + 16, "text-anchor": "middle" }, text);
  });
  const down = every(figure.rows.length, frame.high, 15);
  figure.rows.forEach((text, i) => {
    if (i % down === 0) svg(root, "text", { class: "tick", x: frame.left - 8, y: frame.top + frame.high * (i + 0.5) + 4, "text-anchor": "end" }, short(text, frame.left - 10));
  });
}

function colourBar(root, colour, frame, title) {
  const top = frame.bottom + 30 + frame.fall, wideBar = Math.min(240, frame.right - frame.left), parts = 48;
  for (let k = 0; k < parts; k++) svg(root, "rect", { x: frame.left + (wideBar * k) / parts, y: top, width: wideBar / parts + 0.5, height: 9, fill: colour.at(colour.value((k + 0.5) / parts)) });
  svg(root, "text", { class: "tick", x: frame.left, y: top + 23 }, format(colour.low, 3));
  svg(root, "text", { class: "tick", x: frame.left + wideBar, y: top + 23, "text-anchor": "end" }, format(colour.high, 3));
  svg(root, "text", { x: frame.left + wideBar + 12, y: top + 9 }, title);
}

function heatProbe(figure, frame) {
  const broad = figure.columns.length;
  return {
    count: broad * figure.rows.length,
    nearest: (px, py) => clamp(Math.floor((py - frame.top) / frame.high), 0, figure.rows.length - 1) * broad + clamp(Math.floor((px - frame.left) / frame.cell), 0, broad - 1),
    at(index) {
      const i = Math.floor(index / broad), j = index % broad;
      const title = `${figure.x_title} ${figure.columns[j]}, ${figure.y_title} ${figure.rows[i]}`;
      return { x: frame.left + frame.cell * (j + 0.5), y: frame.top + frame.high * (i + 0.5), dots: [], line: null, hot: null, title, rows: [], detail: `${figure.axis}: ${format(figure.values[i][j])}` };
    },
  };
}
