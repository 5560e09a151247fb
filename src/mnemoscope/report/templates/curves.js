// Curves over one axis: lines, bands, marks, a name at the end of each line.
const curves = {
  toggles(figure) {
    const positive = (name) => figure.series.some((series) => series[name].some((value) => finite(value) && value > 0));
    return [["log_x", "Log x", positive("x")], ["log_y", "Log y", positive("y")]].filter((toggle) => toggle[2]);
  },

  draw(figure, root, width, view) {
    const series = figure.series.filter((one) => shown(one.entry)).sort((a, b) => entries[a.entry].subject - entries[b.entry].subject);
    const compact = width < 560, height = view.box.closest(".board") && innerWidth > 896 ? 390 : compact ? 300 : Math.round(clamp(width * 0.56, 340, 440));
    const kept = series.map((one) => points(one, view));
    const reach = extent(figure, kept, view);
    const written = [...series.map((one) => entries[one.entry].label), ...figure.marks.filter((mark) => mark.kind === "xy").map((mark) => mark.label)];
    const names = compact ? 10 : clamp(Math.max(0, ...written.map((text) => wide(text, 12.5))) + 22, 24, 150);
    const probe = scale(reach.y[0], reach.y[1], height - 44, 34, view.log_y).ticks(6);
    const left = Math.max(34, 12 + Math.max(0, ...probe.map((tick) => wide(tick.text))));
    const frame = { left, right: width - names, top: 34, bottom: height - 44, width, height, compact, whole: kept.every((one) => one.points.every((p) => Number.isInteger(p.x))) };
    const x = scale(...reach.x, frame.left, frame.right, view.log_x), y = scale(...reach.y, frame.bottom, frame.top, view.log_y);
    axes(root, frame, x, y, figure.x_title, figure.y_title);
    const clip = svg(svg(root, "defs"), "clipPath", { id: `clip-${view.name}` });
    svg(clip, "rect", { x: frame.left - 3, y: frame.top - 6, width: frame.right - frame.left + 6, height: frame.bottom - frame.top + 7 });
    const plot = svg(root, "g", { "clip-path": `url(#clip-${view.name})` });
    for (const one of kept) band(plot, one, x, y, view);
    const drawn = kept.flatMap((one) => one.points.map((p) => ({ x: x.at(p.x), y: y.at(p.y) })));
    const taken = [];
    for (const mark of figure.marks) markLine(root, plot, mark, frame, x, y, drawn, taken);
    const bounds = figure.marks.filter((mark) => mark.kind === "xy").map((mark) => markCurve(plot, mark, x, y, frame, view)).filter(Boolean);
    for (const one of kept) line(plot, one, x, y);
    const ends = kept.map((one) => lastPoint(one, x, y, frame)).filter(Boolean);
    for (const one of kept) if (figure.points) for (const p of one.points) if (inside(p, x, y)) marker(root, one.entry, x.at(p.x), y.at(p.y), 0.9);
    for (const end of ends) if (!figure.points && end.y < frame.bottom) marker(root, end.entry, end.x, end.y, 0.9);
    nameEnds(root, [...ends, ...bounds], frame);
    return { height, probe: curveProbe(figure, kept, x, y, frame), note: cutNote(figure, series, reach, view) };
  },

  table(figure) {
    const series = figure.series.filter((one) => shown(one.entry));
    const places = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const rows = places.map((place) => [format(place), ...series.map((one) => {
      const index = one.x.indexOf(place);
      return index < 0 ? "–" : format(one.y[index]);
    })]);
    return { columns: [figure.x_title, ...series.map((one) => entries[one.entry].label)], rows, title: figure.y_title };
  },

  csv(figure) {
    const rows = figure.series.flatMap((one) => one.x.map((x, i) => [entries[one.entry].label, x, one.y[i], one.lower?.[i], one.upper?.[i]]));
    return [["network", figure.x_title, figure.y_title, "lower", "upper"], ...rows];
  },
};

function points(series, view) {
  const fits = (value, log) => finite(value) && (!log || value > 0);
  const all = series.x.map((x, i) => ({ x, y: series.y[i], lower: series.lower?.[i], upper: series.upper?.[i], i }));
  return { entry: series.entry, all, points: all.filter((p) => fits(p.x, view.log_x) && fits(p.y, view.log_y)) };
}

function extent(figure, kept, view) {
  const all = kept.flatMap((one) => one.points);
  const seen = kept.filter((one) => entries[one.entry].subject).flatMap((one) => one.points); // whose bands are drawn
  const xs = all.map((p) => p.x), ys = all.map((p) => p.y);
  for (const p of seen) for (const end of [p.lower, p.upper]) if (finite(end) && (!view.log_y || end > 0)) ys.push(end);
  for (const mark of figure.marks) {
    const along = mark.kind === "y" ? [mark.value] : mark.kind === "xy" ? mark.y : [];
    for (const value of along) if (finite(value) && (!view.log_y || value > 0)) ys.push(value);
    if (mark.kind === "x" && finite(mark.value) && (!view.log_x || mark.value > 0)) xs.push(mark.value);
  }
  let [low, high] = ys.length ? [Math.min(...ys), Math.max(...ys)] : view.log_y ? [0.1, 1] : [0, 1];
  const floor = high * 10 ** -figure.decades;
  const cut = view.log_y && low < floor;
  if (cut) low = floor;
  if (view.log_y) [low, high] = padLog(low, high);
  else if (low > 0 && low < high / 2) [low, high] = [0, high * 1.04];
  else [low, high] = [low === 0 ? 0 : low - (high - low) * 0.04, high + (high - low) * 0.04];
  return { x: xs.length ? [Math.min(...xs), Math.max(...xs)] : view.log_x ? [1, 10] : [0, 1], y: [low, high], cut };
}

function padLog(low, high) {
  const pad = Math.max(1.08, (high / low) ** 0.03);
  return [low / pad, high * pad];
}

function axes(root, frame, x, y, xTitle, yTitle) {
  for (const tick of y.ticks(frame.compact ? 5 : 6)) {
    svg(root, "line", { class: "grid", x1: frame.left, x2: frame.right, y1: y.at(tick.value), y2: y.at(tick.value) });
    svg(root, "text", { class: "tick", x: frame.left - 8, y: y.at(tick.value) + 4, "text-anchor": "end" }, tick.text);
  }
  svg(root, "line", { class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom });
  for (const tick of x.ticks(frame.compact ? 5 : 8, frame.whole)) {
    svg(root, "line", { class: "axis", x1: x.at(tick.value), x2: x.at(tick.value), y1: frame.bottom, y2: frame.bottom + 5 });
    svg(root, "text", { class: "tick", x: x.at(tick.value), y: frame.bottom + 19, "text-anchor": "middle" }, tick.text);
  }
  svg(root, "text", { class: "title", x: 0, y: 13 }, short(yTitle, frame.width, 12.5));
  svg(root, "text", { class: "title", x: frame.right, y: frame.height - 4, "text-anchor": "end" }, short(xTitle, frame.width, 12.5));
}

// A path through what can be drawn; a gap where a value is missing, not a line across it.
function path(list, x, y, name = "y") {
  let text = "", before = null;
  for (const p of list) {
    text += `${before !== null && p.i === before + 1 ? "L" : "M"}${x.at(p.x).toFixed(1)} ${clamp(y.at(p[name]), -9999, 9999).toFixed(1)}`;
    before = p.i;
  }
  return text;
}

function line(plot, one, x, y) {
  svg(plot, "path", { class: `line ${look(one.entry)}`, "data-entry": one.entry, d: path(one.points, x, y), "stroke-dasharray": entries[one.entry].dash || null });
}

function band(plot, one, x, y, view) {
  const known = one.points.filter((p) => finite(p.lower) && finite(p.upper) && (!view.log_y || p.upper > 0));
  if (known.length < 2) return;
  // On a logarithmic axis a lower end of zero or less lies below the picture.
  const ends = known.map((p) => ({ ...p, lower: view.log_y && p.lower <= 0 ? y.low / 1e3 : p.lower }));
  const up = ends.map((p) => `${x.at(p.x).toFixed(1)} ${y.at(p.upper).toFixed(1)}`);
  const down = ends.map((p) => `${x.at(p.x).toFixed(1)} ${y.at(p.lower).toFixed(1)}`).reverse();
  svg(plot, "path", { class: `band ${look(one.entry)}`, "data-entry": one.entry, d: `M${[...up, ...down].join("L")}Z` });
}

function markCurve(plot, mark, x, y, frame, view) {
  const one = points({ entry: null, x: mark.x, y: mark.y }, view);
  svg(plot, "path", { class: "mark", d: path(one.points, x, y) });
  const end = lastPoint(one, x, y, frame);
  return end && { ...end, text: mark.label };
}

function markLine(root, plot, mark, frame, x, y, drawn, taken) {
  const along = mark.kind === "x" ? x : y;
  if (!"xy".includes(mark.kind) || mark.kind === "xy" || !finite(mark.value)) return;
  if ((along.log && mark.value <= 0) || mark.value < along.low || mark.value > along.high) return;
  const place = along.at(mark.value), text = short(mark.label, frame.right - frame.left, 12), size = wide(text);
  const ends = mark.kind === "x" ? { x1: place, x2: place, y1: frame.top, y2: frame.bottom } : { x1: frame.left, x2: frame.right, y1: place, y2: place };
  svg(plot, "line", { class: "mark", ...ends });
  const spots = mark.kind === "x"
    ? [10, 25, 40, 55].map((down) => frame.top + down).concat(frame.bottom - 10).flatMap((base) => [[place + 6, base], [place - 6 - size, base]])
    : [[frame.right - 4 - size, place - 7], [frame.left + 6, place - 7], [frame.right - 4 - size, place + 16], [frame.left + 6, place + 16]];
  const [left, base] = emptiest(spots, size, frame, drawn, taken);
  taken.push({ left, base, right: left + size });
  svg(root, "text", { class: "halo", x: left, y: base }, text);
}

// Of some places for a text the one with the fewest points under it, the first of equal ones; never on another text.
function emptiest(spots, size, frame, drawn, taken) {
  const crowd = ([left, base]) => {
    const out = left < frame.left || left + size > frame.right || base > frame.bottom || base < frame.top ? 1e6 : 0;
    const on = taken.some((one) => Math.abs(one.base - base) < 13 && left < one.right + 6 && left + size > one.left - 6) ? 1e3 : 0;
    return out + on + drawn.filter((p) => p.x > left - 6 && p.x < left + size + 6 && p.y > base - 18 && p.y < base + 8).length;
  };
  return spots.reduce((best, spot) => (crowd(spot) < crowd(best) ? spot : best));
}

const inside = (p, x, y) => p.x >= x.low * (1 - 1e-9) && p.x <= x.high * (1 + 1e-9) && p.y >= y.low && p.y <= y.high;

function cutNote(figure, series, reach, view) {
  const lost = series.reduce((sum, one) => sum + one.x.filter((x, i) => finite(x) && finite(one.y[i]) && ((view.log_x && x <= 0) || (view.log_y && one.y[i] <= 0))).length, 0);
  const missing = series.reduce((sum, one) => sum + one.y.filter((value) => !finite(value)).length, 0);
  const notes = [];
  if (lost) notes.push(`${lost} ${lost === 1 ? "value is" : "values are"} zero or negative, and cannot be shown on a logarithmic axis.`);
  if (missing) notes.push(`${missing} ${missing === 1 ? "value is" : "values are"} missing or not finite, and left out.`);
  if (reach.cut) notes.push(`What is below 10${raised(-Math.round(figure.decades))} of the largest value is cut off.`);
  return notes.join(" ");
}

function curveProbe(figure, kept, x, y, frame) {
  const stops = [...new Set(kept.flatMap((one) => one.points.map((p) => p.x)))].sort((a, b) => a - b);
  const places = stops.map((stop) => x.at(stop));
  return {
    count: stops.length,
    nearest: (px) => places.reduce((best, place, index) => (Math.abs(place - px) < Math.abs(places[best] - px) ? index : best), 0),
    at(index, py) {
      const rows = kept.flatMap((one) => one.all.filter((p) => p.x === stops[index]).map((p) => ({ entry: one.entry, ...p })));
      rows.sort((a, b) => (finite(b.y) ? b.y : -Infinity) - (finite(a.y) ? a.y : -Infinity));
      const dots = rows.filter((p) => finite(p.y) && (!y.log || p.y > 0) && inside(p, x, y)).map((p) => ({ entry: p.entry, x: places[index], y: y.at(p.y) }));
      const near = py === undefined ? null : dots.reduce((best, dot) => (Math.abs(dot.y - py) < Math.abs((best?.y ?? 1e9) - py) ? dot : best), null);
      return {
        x: places[index], y: near?.y ?? dots[0]?.y ?? frame.top, dots, line: [frame.top, frame.bottom],
        hot: near && Math.abs(near.y - py) < 14 ? near.entry : null,
        title: `${figure.x_title}: ${format(stops[index])}`,
        rows: rows.map((p) => ({ entry: p.entry, text: withInterval(p.y, p.lower, p.upper) })),
      };
    },
  };
}
