// Downloads: the chart as it is, on light ground, with everything in the file.
const KEPT = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity", "font-size", "font-weight", "font-family", "paint-order"];

function picture(view) {
  const live = view.plot.querySelector("svg"), copy = live.cloneNode(true);
  view.plot.dataset.theme = "light"; // for a moment, unseen: the colours are read from it
  const from = [live, ...live.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, index) => {
    const style = getComputedStyle(node);
    for (const name of KEPT) to[index].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "data-entry", "tabindex"]) to[index].removeAttribute(name);
  });
  delete view.plot.dataset.theme;
  const [, , width, height] = live.getAttribute("viewBox").split(" ").map(Number), head = 38, edge = 16;
  copy.querySelector("[data-probe]")?.remove();
  const [full, tall] = [width + 2 * edge, height + head + 2 * edge];
  for (const [name, value] of [["xmlns", SVG], ["viewBox", `${-edge} ${-head - edge} ${full} ${tall}`], ["width", full], ["height", tall]]) copy.setAttribute(name, value);
  const ground = document.createElementNS(SVG, "rect");
  fill(null, ground, { x: -edge, y: -head - edge, width: full, height: tall, fill: "#ffffff" }, null);
  const title = document.createElementNS(SVG, "text");
  fill(null, title, { x: 0, y: -head + 16, "font-size": 17, "font-weight": 600, fill: "#16181d", "font-family": getComputedStyle(document.body).fontFamily }, view.figure.title);
  copy.prepend(ground, title);
  return { text: new XMLSerializer().serializeToString(copy), width: full, height: tall };
}

function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  html(null, "a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  say(`Downloading ${name}`);
}

const saveSvg = (view) => download(`${view.name}.svg`, picture(view).text, "image/svg+xml");

function savePng(view) {
  const { text, width, height } = picture(view), image = new Image(), canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.round(width * 3), Math.round(height * 3)];
  image.onload = () => {
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => download(`${view.name}.png`, blob, "image/png"));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function saveCsv(view) {
  const cell = (value) => (/[",\n\r]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : value ?? "");
  download(`${view.name}.csv`, view.kind.csv(view.figure).map((row) => row.map(cell).join(",")).join("\n") + "\n", "text/csv");
}
