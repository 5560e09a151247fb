// The complex plane, once for every network, all on one scale; the subject's picture is the largest.
const plane = {
  toggles: () => [],

  draw(figure, root, width) {
    const clouds = figure.points.filter((one) => shown(one.entry)).sort((a, b) => entries[b.entry].subject - entries[a.entry].subject);
    const reach = planeReach(figure);
    const { cells, height } = arrange(clouds, width);
    clouds.forEach((one, index) => panel(root, figure, one, cells[index], reach));
    const missing = clouds.reduce((sum, one) => sum + one.re.filter((value, i) => !finite(value) || !finite(one.im[i])).length, 0);
    const note = missing ? `${missing} ${missing === 1 ? "point is" : "points are"} not finite, and left out.` : "";
    return { height, probe: planeProbe(figure, clouds, cells, reach), note };
  },

  table(figure) {
    const rows = figure.points.filter((one) => shown(one.entry)).flatMap((one) => one.re.map((re, i) => [entries[one.entry].label, format(re), format(one.im[i]), format(modulus(re, one.im[i]))]));
    return { columns: ["Network", "Real", "Imaginary", "Modulus"], rows, title: "" };
  },

  csv: (figure) => [["network", "real", "imaginary"], ...figure.points.flatMap((one) => one.re.map((re, i) => [entries[one.entry].label, re, one.im[i]]))],
};

const modulus = (re, im) => (finite(re) && finite(im) ? Math.hypot(re, im) : null);

function planeReach(figure) {
  const radii = figure.points.flatMap((one) => one.re.map((re, i) => modulus(re, one.im[i]))).filter(finite);
  const rings = figure.marks.filter((mark) => mark.kind === "circle" && finite(mark.value)).map((mark) => mark.value);
  return 1.1 * (Math.max(0, ...radii, ...rings) || 1);
}

// A grid of squares; a single subject takes two by two of them where there is room.
function arrange(clouds, width) {
  const gap = 18, title = 24, subjects = clouds.filter((one) => entries[one.entry].subject).length;
  const large = subjects === 1 && clouds.length > 2;
  const few = Math.max(1, Math.min(clouds.length, Math.floor((width + gap) / 150)));
  const columns = large ? Math.max(2, bestColumns(clouds.length - 1, Math.floor((width + gap) / 125))) : few;
  const side = Math.min((width - gap * (columns - 1)) / columns, 320), line = side + title + gap;
  const cells = [], free = [];
  for (let row = 0; free.length < clouds.length; row++) for (let column = 0; column < columns; column++) if (!large || row > 1 || column > 1) free.push([row, column]);
  if (large) cells.push({ x: 0, y: 0, side: 2 * side + gap + title, wide: 2 * side + gap });
  for (const [row, column] of free) if (cells.length < clouds.length) cells.push({ x: column * (side + gap), y: row * line, side, wide: side });
  for (const cell of cells) { cell.side = Math.min(cell.side, cell.wide); cell.top = cell.y + title; }
  return { cells, height: Math.max(40, ...cells.map((cell) => cell.top + cell.side + 6)) };
}

// Of the possible numbers of columns the one that leaves the fewest places empty, the larger of two equal ones.
function bestColumns(others, most) {
  let best = Math.max(2, Math.min(most, 3)), least = Infinity;
  for (let columns = Math.min(4, most); columns <= Math.min(most, 6); columns++) {
    const beside = 2 * (columns - 2), empty = others <= beside ? beside - others : (columns - ((others - beside) % columns)) % columns;
    if (empty <= least) [best, least] = [columns, empty];
  }
  return best;
}

function panel(root, figure, one, cell, reach) {
  const half = cell.side / 2, x = cell.x + half, y = cell.top + half, unit = half / reach, subject = entries[one.entry].subject;
  const group = svg(root, "g", { "data-entry": one.entry });
  marker(group, one.entry, cell.x + 6, cell.y + 9, 0.95);
  svg(group, "text", { class: `name${subject ? " strong" : ""}`, x: cell.x + 18, y: cell.y + 13.5 }, short(entries[one.entry].label, cell.wide - 20, 13.5));
  svg(group, "path", { class: "grid", d: `M${cell.x} ${y}H${cell.x + cell.side}M${x} ${cell.top}V${cell.top + cell.side}` });
  for (const mark of figure.marks) if (mark.kind === "circle" && finite(mark.value)) {
    svg(group, "circle", { class: "mark", cx: x, cy: y, r: mark.value * unit });
    if (cell.side > 200) svg(group, "text", { class: "halo", x: cell.x + cell.side, y: cell.top + cell.side, "text-anchor": "end" }, mark.label);
  }
  if (cell.side > 200) {
    svg(group, "text", { class: "halo", x: cell.x + cell.side, y: y - 6, "text-anchor": "end" }, "Re");
    svg(group, "text", { class: "halo", x: x + 6, y: cell.top + 10 }, "Im");
  }
  if (cell.side > 200) for (const tick of linearTicks(-reach, reach, 4)) {
    if (tick.value) svg(group, "text", { class: "tick halo", x: x + tick.value * unit, y: y + 15, "text-anchor": "middle" }, tick.text);
  }
  one.re.forEach((re, i) => {
    if (finite(re) && finite(one.im[i])) svg(group, "circle", { class: `eigen ${look(one.entry)}`, cx: (x + re * unit).toFixed(1), cy: (y - one.im[i] * unit).toFixed(1), r: cell.side > 200 ? 3.4 : 2 });
  });
}

function planeProbe(figure, clouds, cells, reach) {
  const stops = clouds.flatMap((one, index) => one.re.flatMap((re, i) => {
    if (!finite(re) || !finite(one.im[i])) return [];
    const cell = cells[index], half = cell.side / 2, unit = half / reach;
    return [{ entry: one.entry, re, im: one.im[i], x: cell.x + half + re * unit, y: cell.top + half - one.im[i] * unit }];
  }));
  return {
    count: stops.length,
    nearest: (px, py) => stops.reduce((best, stop, index) => (Math.hypot(stop.x - px, stop.y - py) < Math.hypot(stops[best].x - px, stops[best].y - py) ? index : best), 0),
    at(index) {
      const stop = stops[index], sign = stop.im < 0 ? "−" : "+";
      return {
        x: stop.x, y: stop.y, dots: [stop], line: null, hot: null, title: figure.axis,
        rows: [{ entry: stop.entry, text: `${format(stop.re, 3)} ${sign} ${format(Math.abs(stop.im), 3)}i` }],
        detail: `modulus ${format(Math.hypot(stop.re, stop.im))}`,
      };
    },
  };
}
