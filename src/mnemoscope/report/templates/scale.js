// Axes: from numbers to places, round ticks, and numbers as a reader wants them.
const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const raised = (number) => [...String(number)].map((letter) => RAISED[letter]).join("");

// The rule of mnemoscope.core.numbers: whole numbers in full, four digits, or as many as an uncertainty leaves.
function format(value, digits = 4, error = null) {
  if (value === null || value === undefined) return "–";
  if (!finite(value)) return { inf: "∞", "-inf": "−∞" }[value] ?? "not a number";
  const known = error !== null && error > 0 && Number.isFinite(error), sign = value < 0 ? "−" : "";
  if (Number.isInteger(value) && Math.abs(value) < 1e9 && !known) return sign + Math.abs(value).toLocaleString("en");
  if (known) digits = digitsLeft(value, error);
  const size = Math.abs(Number(value.toPrecision(digits)));
  if (size !== 0 && (size >= 1e6 || size < 1e-3)) {
    const [mantissa, exponent] = Math.abs(value).toExponential(digits - 1).split("e");
    return `${sign}${known ? mantissa : Number(mantissa)}×10${raised(Number(exponent))}`;
  }
  const places = Math.max(0, digits - 1 - (size ? Math.floor(Math.log10(size)) : 0));
  return sign + size.toLocaleString("en", known ? { minimumFractionDigits: places, maximumFractionDigits: places } : { maximumFractionDigits: 10 });
}

function digitsLeft(value, error) {
  const [lead, exponent] = error.toExponential(0).split("e"), last = Number(exponent) - (lead === "1" || lead === "2" ? 1 : 0);
  return clamp((value ? Math.floor(Math.log10(Math.abs(value))) : last) - last + 1, 1, 8);
}

// A number with the interval it lies in, all to the digits that half the interval's width allows.
function withInterval(value, lower, upper) {
  if (!finite(value) || !finite(lower) || !finite(upper) || lower === upper) return format(value);
  const error = (upper - lower) / 2;
  const [middle, low, high] = [value, lower, upper].map((each) => format(each, 4, error));
  return low === middle && high === middle ? format(value) : `${middle} (${low} to ${high})`;
}

// Numbers that differ by less than rounding in single precision are one number: no axis zooms in on that.
const FLAT = 1e-5;
const flat = (low, high) => !(high - low > FLAT * Math.max(Math.abs(low), Math.abs(high)));

function scale(low, high, from, to, log) {
  if (log) return logarithmic(low, high, from, to);
  if (flat(low, high)) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
  const at = (value) => from + ((value - low) / (high - low)) * (to - from);
  return { at, low, high, log, ticks: (count, whole) => linearTicks(low, high, count, whole) };
}

function logarithmic(low, high, from, to) {
  if (flat(low, high)) [low, high] = [low / 2, high * 2];
  const base = Math.log10(low), span = Math.log10(high) - base;
  const at = (value) => from + ((Math.log10(value) - base) / span) * (to - from);
  return { at, low, high, log: true, ticks: (count) => logTicks(low, high, count) };
}

function linearTicks(low, high, count, whole = false) {
  const raw = Math.max((high - low) / Math.max(1, count), whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= raw * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) ticks.push(Number((k * step).toPrecision(12)));
  const plain = ticks.every((tick) => tick === 0 || (Math.abs(tick) >= 1e-3 && Math.abs(tick) < 1e6));
  return ticks.map((value) => ({ value, text: plain ? format(value, 6) : format(value, 3) }));
}

function logTicks(low, high, count) {
  const inside = (value) => value >= low * 0.999 && value <= high * 1.001;
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  for (const multiples of [[1], [1, 3], [1, 2, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const found = [];
    for (let k = first; k <= last; k++) for (const m of multiples) if (inside(Number(`${m}e${k}`))) found.push(Number(`${m}e${k}`));
    if (found.length >= 3) return labelled(thinned(found, count), multiples.length === 1);
  }
  return linearTicks(low, high, count).filter((tick) => tick.value > 0);
}

function thinned(values, count) {
  const every = Math.ceil(values.length / Math.max(2, count));
  // Counted from one where one is on the axis, so that it has a label.
  const start = Math.max(0, values.indexOf(1)) % every;
  return values.filter((_, index) => index % every === start);
}

function labelled(values, powers) {
  const far = values.some((value) => value < 1e-3 || value > 1e5);
  return values.map((value) => ({ value, text: powers && far ? `10${raised(Math.round(Math.log10(value)))}` : format(value, 3) }));
}
