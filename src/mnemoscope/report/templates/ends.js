// Names at the ends of lines, moved apart where they would lie on each other.
function lastPoint(one, x, y, frame) {
  const seen = one.points.filter((p) => p.y >= y.low).at(-1);
  if (!seen) return null; // nothing of it is in the picture
  // A line that leaves through the floor is named where it leaves.
  const next = one.points[one.points.indexOf(seen) + 1];
  let place = { x: x.at(seen.x), y: y.at(seen.y) };
  if (next && y.at(next.y) > frame.bottom) {
    const share = (frame.bottom - place.y) / (y.at(next.y) - place.y);
    place = { x: place.x + share * (x.at(next.x) - place.x), y: frame.bottom };
  }
  return { entry: one.entry, ...place };
}

// The name at the end of its line; a curve of a theorem has no network, and its own text.
function nameEnds(root, ends, frame) {
  const wanted = ends.filter((end) => !frame.compact || end.entry === null || entries[end.entry].subject);
  const near = frame.right - 0.3 * (frame.right - frame.left), beside = (end) => end.x > frame.right - 28 || (end.x > near && end.y < frame.bottom - 2);
  const late = wanted.filter(beside), early = wanted.filter((end) => !beside(end));
  const taken = [];
  if (frame.compact) early.push(...late);
  else for (const end of spread(late, frame)) nameBeside(root, end, frame);
  for (const end of early.sort((a, b) => a.x - b.x)) nameAbove(root, end, frame, taken);
}

function nameBeside(root, end, frame) {
  const away = Math.abs(end.to - end.y) > 5 || end.x < frame.right - 10;
  if (away && end.entry !== null) svg(root, "path", { class: `leader ${look(end.entry)}`, "data-entry": end.entry, d: `M${end.x + 6} ${end.y}L${frame.right + 13} ${end.to}` });
  label(root, end, frame.right + 16, end.to + 4, frame);
}

function nameAbove(root, end, frame, taken) {
  const size = wide(written(end, frame), 12.5), x = clamp(end.x + 8, 0, frame.right - size), y = end.y - 9;
  const clash = (at) => taken.some((box) => x < box.right + 4 && x + size > box.left && Math.abs(at - box.y) < 14);
  const free = [0, -15, -30, -45, -60].map((shift) => y + shift).find((at) => !clash(at) && at > frame.top - 12);
  if (free === undefined) return;
  taken.push({ left: x, right: x + size, y: free });
  label(root, end, x, free, frame);
}

function label(root, end, x, y, frame) {
  const own = end.entry === null, strong = !own && entries[end.entry].subject ? " strong" : "";
  svg(root, "text", { class: own ? "halo" : `label halo ${look(end.entry)}${strong}`, "data-entry": end.entry, x, y }, written(end, frame));
}

const written = (end, frame) => short(end.text ?? entries[end.entry].label, frame.compact ? frame.width * 0.6 : 128, 12.5);

// Names that would lie on each other are moved apart, keeping their order.
function spread(ends, frame, gap = 16) {
  const order = [...ends].sort((a, b) => a.y - b.y).map((end) => ({ ...end, to: end.y }));
  for (let i = 1; i < order.length; i++) order[i].to = Math.max(order[i].to, order[i - 1].to + gap);
  const over = order.length ? order.at(-1).to - frame.bottom : 0;
  if (over > 0) {
    order.at(-1).to -= over;
    for (let i = order.length - 2; i >= 0; i--) order[i].to = Math.min(order[i].to, order[i + 1].to - gap);
  }
  return order;
}
