// One number of every network, in order: a dot, the interval behind it, the number beside it.
const ranked = {
  toggles(figure) {
    const numbers = figure.values.map((one) => one.value).filter(finite);
    return numbers.length && numbers.every((value) => value > 0) ? [["log", "Log scale", true]] : [];
  },

  draw(figure, root, width, view) {
    const rows = inOrder(figure).filter((one) => shown(one.entry));
    const compact = width < 560, step = 34, top = 42, height = top + step * Math.max(1, rows.length) + 34;
    const texts = rows.map((one) => (one.value === null ? "no value" : one.text));
    const names = clamp(Math.max(0, ...rows.map((one) => wide(entries[one.entry].label, 13.5))) + 34, 70, compact ? 132 : 190);
    const numbers = Math.max(40, ...texts.map((text) => wide(text, 13))) + 14;
    const frame = { left: names + 8, right: width - numbers - 14, top: top - 6, bottom: height - 34, width };
    const x = scale(...reachOf(figure, rows, view.log), frame.left, frame.right, view.log);
    rankedAxis(root, figure, frame, x, height);
    rows.forEach((one, index) => rankedRow(root, one, texts[index], top + step * index, step, frame, x));
    return { height, probe: rankedProbe(figure, rows, texts, x, top, step), note: "" };
  },

  table(figure) {
    const rows = inOrder(figure).filter((one) => shown(one.entry));
    return {
      columns: ["Network", figure.axis + (figure.unit ? ` (${figure.unit})` : ""), "Lower", "Upper"], title: "",
      rows: rows.map((one) => [entries[one.entry].label, format(one.value), format(one.lower), format(one.upper)]),
    };
  },

  csv(figure) {
    const title = figure.axis + (figure.unit ? ` (${figure.unit})` : "");
    return [["network", title, "lower", "upper"], ...figure.values.map((one) => [entries[one.entry].label, one.value, one.lower, one.upper])];
  },
};

function inOrder(figure) {
  const key = (one) => (finite(one.value) ? one.value : one.value === "inf" ? Infinity : one.value === "-inf" ? -Infinity : NaN);
  const sign = figure.better === "lower" ? 1 : -1;
  return [...figure.values].sort((a, b) => Number.isNaN(key(a)) - Number.isNaN(key(b)) || (key(a) === key(b) ? 0 : sign * (key(a) - key(b))));
}

function reachOf(figure, rows, log) {
  const all = rows.flatMap((one) => (finite(one.value) ? [one.value, one.lower, one.upper] : []));
  const known = [...all, ...figure.marks.map((mark) => mark.value)].filter((value) => finite(value) && (!log || value > 0));
  if (!known.length) return log ? [0.1, 1] : [0, 1];
  const low = Math.min(...known), high = Math.max(...known);
  if (log) return padLog(Math.max(low, high * 10 ** -figure.decades), high);
  if (low >= 0 && low < high * 0.6) return [0, high * 1.03];
  if (high <= 0 && high > low * 0.6) return [low * 1.03, 0];
  return [low - (high - low) * 0.06, high + (high - low) * 0.06];
}

function rankedAxis(root, figure, frame, x, height) {
  svg(root, "text", { class: "title", x: 0, y: 13 }, short(figure.axis + (figure.unit ? ` (${figure.unit})` : ""), frame.width * 0.62, 12.5));
  if (figure.better) {
    const words = figure.better === "higher" ? "higher is better →" : "← lower is better";
    svg(root, "text", { x: frame.width, y: 13, "text-anchor": "end" }, words);
  }
  let last = -Infinity;
  for (const tick of x.ticks(frame.right - frame.left < 260 ? 3 : 6)) {
    const place = x.at(tick.value), half = wide(tick.text) / 2;
    svg(root, "line", { class: "grid", x1: place, x2: place, y1: frame.top, y2: frame.bottom });
    if (place - half < last + 6) continue;  // its number would lie on the last one
    svg(root, "text", { class: "tick", x: place, y: frame.bottom + 17, "text-anchor": "middle" }, tick.text);
    last = place + half;
  }
  for (const mark of figure.marks) {
    if (!finite(mark.value) || (x.log && mark.value <= 0)) continue;
    const place = x.at(mark.value), late = place > (frame.left + frame.right) / 2;
    svg(root, "line", { class: "mark", x1: place, x2: place, y1: frame.top - 4, y2: frame.bottom });
    svg(root, "text", { class: "halo", x: place + (late ? 3 : -3), y: frame.top - 9, "text-anchor": late ? "end" : "start" }, mark.label);
  }
}

function rankedRow(root, one, text, top, step, frame, x) {
  const middle = top + step / 2, subject = entries[one.entry].subject, strong = subject ? " strong" : "";
  const group = svg(root, "g", { "data-entry": one.entry });
  if (subject) svg(group, "rect", { class: "row", x: 0, y: top + 2, width: frame.width, height: step - 4, rx: 8 });
  marker(group, one.entry, 14, middle, 0.95);
  svg(group, "text", { class: `name${strong}`, x: 28, y: middle + 4.5 }, short(entries[one.entry].label, frame.left - 40, 13.5));
  svg(group, "text", { class: `name tick${strong}`, x: frame.width - 10, y: middle + 4.5, "text-anchor": "end" }, text);
  if (!finite(one.value) || (x.log && one.value <= 0)) return;
  if (one.value < x.low) {
    svg(group, "path", { class: `dot ${look(one.entry)}`, d: `M${frame.left} ${middle}l8-5v10Z` }); // far to the left of the axis
    return;
  }
  if (finite(one.lower) && finite(one.upper) && one.upper > one.lower) {
    const low = Math.max(x.low, one.lower);
    svg(group, "line", { class: `spread ${look(one.entry)}`, x1: x.at(low), x2: x.at(one.upper), y1: middle, y2: middle });
  }
  marker(group, one.entry, x.at(one.value), middle, subject ? 1.5 : 1.15);
}

function rankedProbe(figure, rows, texts, x, top, step) {
  return {
    count: rows.length,
    nearest: (px, py) => clamp(Math.floor((py - top) / step), 0, rows.length - 1),
    at(index) {
      const one = rows[index], drawn = finite(one.value) && (!x.log || one.value > 0);
      return {
        x: drawn ? x.at(Math.max(x.low, one.value)) : x.at(x.low), y: top + step * (index + 0.5), dots: [], line: null, hot: one.entry,
        title: figure.axis + (figure.unit ? ` (${figure.unit})` : ""),
        rows: [{ entry: one.entry, text: finite(one.value) ? withInterval(one.value, one.lower, one.upper) : texts[index] }], detail: entries[one.entry].detail,
      };
    },
  };
}
