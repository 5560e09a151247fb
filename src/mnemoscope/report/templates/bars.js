// Bars in groups, one for each network, from zero; a thin line over a bar is its interval.
const SLANT = (50 * Math.PI) / 180; // of names that are wider than their place
const bars = {
  toggles: () => [],

  draw(figure, root, width) {
    const series = figure.series.filter((one) => shown(one.entry)), compact = width < 560, room = compact ? 280 : 340;
    const reach = barReach(figure, series);
    const ticks = scale(...reach, room - 50, 34, false).ticks(6);
    const left = Math.max(34, 12 + Math.max(0, ...ticks.map((tick) => wide(tick.text))));
    const fall = slantedFall(figure.groups, (width - left - 10) / Math.max(1, figure.groups.length)), height = room + fall;
    const frame = { left, right: width - 10, top: 34, bottom: room - 50, width, height };
    const y = scale(...reach, frame.bottom, frame.top, false), step = (frame.right - frame.left) / Math.max(1, figure.groups.length);
    svg(root, "text", { class: "title", x: 0, y: 13 }, short(figure.y_title, width, 12.5));
    for (const tick of y.ticks(6)) {
      svg(root, "line", { class: "grid", x1: frame.left, x2: frame.right, y1: y.at(tick.value), y2: y.at(tick.value) });
      svg(root, "text", { class: "tick", x: frame.left - 8, y: y.at(tick.value) + 4, "text-anchor": "end" }, tick.text);
    }
    const crowded = figure.groups.some((_, i) => series.filter((one) => finite(one.y[i])).length > 1), abreast = crowded ? series.length : 1;
    const bar = (step * (series.length > 1 ? 0.8 : 0.92)) / abreast;
    series.forEach((one, index) => barsOf(root, one, frame, y, step, bar, crowded ? (index - (abreast - 1) / 2) * bar : 0));
    groupLabels(root, figure.groups, frame, step, fall);
    svg(root, "text", { class: "title", x: frame.right, y: height - 6, "text-anchor": "end" }, figure.x_title);
    for (const mark of figure.marks) {
      if (mark.kind !== "y" || !finite(mark.value)) continue;
      svg(root, "line", { class: "mark", x1: frame.left, x2: frame.right, y1: y.at(mark.value), y2: y.at(mark.value) });
      svg(root, "text", { class: "halo", x: frame.right, y: y.at(mark.value) - 5, "text-anchor": "end" }, mark.label);
    }
    return { height, probe: barProbe(figure, series, frame, y, step), note: "" };
  },

  table(figure) {
    const series = figure.series.filter((one) => shown(one.entry));
    const rows = figure.groups.map((group, i) => [group, ...series.map((one) => withInterval(one.y[i], one.lower?.[i], one.upper?.[i]))]);
    return { columns: [figure.x_title, ...series.map((one) => entries[one.entry].label)], rows, title: figure.y_title };
  },

  csv(figure) {
    const rows = figure.series.flatMap((one) => figure.groups.map((group, i) => [entries[one.entry].label, group, one.y[i], one.lower?.[i], one.upper?.[i]]));
    return [["network", figure.x_title, figure.y_title, "lower", "upper"], ...rows];
  },
};

function barReach(figure, series) {
  const marks = figure.marks.filter((mark) => mark.kind === "y").map((mark) => mark.value);
  const all = [0, ...marks, ...series.flatMap((one) => [...one.y, ...(one.lower ?? []), ...(one.upper ?? [])])].filter(finite);
  const low = Math.min(...all), high = Math.max(...all), edge = 0.05 * (high - low || 1);
  return [low < 0 ? low - edge : 0, high > 0 ? high + edge : 0];
}

function barsOf(root, one, frame, y, step, bar, offset) {
  const group = svg(root, "g", { "data-entry": one.entry });
  one.y.forEach((value, i) => {
    if (!finite(value)) return;
    const middle = frame.left + step * (i + 0.5) + offset, [top, foot] = [y.at(Math.max(0, value)), y.at(Math.min(0, value))];
    svg(group, "rect", { class: `bar ${look(one.entry)}`, x: middle - bar / 2, y: top, width: Math.max(0.5, bar - 1), height: Math.max(0.5, foot - top) });
    const [low, high] = [one.lower?.[i], one.upper?.[i]];
    if (finite(low) && finite(high)) svg(group, "line", { class: "whisker", x1: middle, x2: middle, y1: y.at(low), y2: y.at(high) });
  });
}

// How far names below a chart reach down: slanted where one is wider than its place, so that none is left out.
function slantedFall(names, step) {
  const widest = Math.max(0, ...names.map((text) => wide(text, 12)));
  return widest + 10 > step ? Math.min(widest, 150) * Math.sin(SLANT) : 0;
}

function groupLabels(root, names, frame, step, fall) {
  const every = Math.max(1, Math.ceil(14 / step));
  names.forEach((text, i) => {
    const x = frame.left + step * (i + 0.5), y = frame.bottom + (fall ? 13 : 17);
    if (!fall) svg(root, "text", { class: "tick", x, y, "text-anchor": "middle" }, text);
    else if (i % every === 0) svg(root, "text", { class: "tick", x, y, "text-anchor": "end", transform: `rotate(${(-180 * SLANT) / Math.PI} ${x} ${y})` }, short(text, Math.min(150, x / Math.cos(SLANT)), 12));
  });
}

function barProbe(figure, series, frame, y, step) {
  return {
    count: figure.groups.length,
    nearest: (px) => clamp(Math.floor((px - frame.left) / step), 0, figure.groups.length - 1),
    at(index) {
      const rows = series.map((one) => ({ entry: one.entry, text: withInterval(one.y[index], one.lower?.[index], one.upper?.[index]) }));
      return { x: frame.left + step * (index + 0.5), y: frame.top, dots: [], line: null, hot: null, title: figure.groups[index], rows };
    },
  };
}
