// The page: which networks are shown, the theme, copying, downloads of tables.
const visible = (view) => view.plot.clientWidth > 0;

function drawAll() {
  for (const view of views) if (visible(view) || !view.probe) drawView(view);
}

function makeChips() {
  const bar = document.getElementById("chips");
  entries.forEach((entry, number) => {
    const chip = html(bar, "button", { type: "button", class: `chip${entry.subject ? " subject" : ""}`, "aria-pressed": "true", title: entry.detail || null });
    sample(chip, number);
    html(chip, "span", {}, entry.label);
    chip.addEventListener("click", () => show(number, hidden.has(number)));
    chip.addEventListener("pointerenter", () => { if (shown(number)) for (const view of views) emphasise(view, number); });
    chip.addEventListener("pointerleave", () => { for (const view of views) emphasise(view, null); });
  });
  const all = document.getElementById("all");
  all.hidden = entries.every((entry) => entry.subject);
  all.addEventListener("click", () => {
    const everything = hidden.size > 0;
    entries.forEach((entry, number) => { if (everything || entry.subject) hidden.delete(number); else hidden.add(number); });
    refresh();
  });
}

function show(number, visible) {
  if (visible) hidden.delete(number);
  else hidden.add(number);
  refresh();
}

function refresh() {
  document.querySelectorAll(".chip").forEach((chip, number) => chip.setAttribute("aria-pressed", String(shown(number))));
  const subjects = entries.filter((entry) => entry.subject).length;
  document.getElementById("all").textContent = hidden.size ? "Show all" : subjects > 1 ? "Only subjects" : "Only subject";
  drawAll();
}

function makeTheme() {
  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const label = () => { button.textContent = dark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("mnemoscope-theme", document.documentElement.dataset.theme); } catch { /* not kept */ }
    label();
  });
  system.addEventListener("change", label);
  label();
}

async function copy(button) {
  const text = document.getElementById(button.dataset.copy).textContent, before = button.textContent;
  let done = true;
  try { await navigator.clipboard.writeText(text); } catch { done = copyBySelection(text); }
  button.textContent = done ? "Copied" : "Select and copy";
  say(done ? "Copied" : "Copying is not allowed here: select the text and copy it");
  setTimeout(() => { button.textContent = before; }, 1600);
}

// For browsers that keep the clipboard from pages on disk.
function copyBySelection(text) {
  const area = html(document.body, "textarea", { class: "hidden" });
  area.value = text;
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function makeTables() {
  for (const box of document.querySelectorAll("[data-table]")) {
    const name = box.dataset.table, tools = box.querySelector(".tools"), texts = data.tables[name];
    for (const [title, ending, type] of [["CSV", "csv", "text/csv"], ["LaTeX", "tex", "application/x-tex"]]) {
      html(tools, "button", { type: "button", "aria-label": `Download ${title}: ${box.querySelector("h3").textContent}` }, title).addEventListener("click", () => download(`${name}.${ending}`, texts[ending], type));
    }
  }
}

// A chart in a fold has no width before the fold is opened; a link into a fold opens it.
function makeFolds() {
  for (const fold of document.querySelectorAll("details.fold")) fold.addEventListener("toggle", () => { if (fold.open) drawWithin(fold); });
  const jump = document.querySelector(".jump");
  addEventListener("click", (event) => { if (!jump.contains(event.target) || event.target.closest("a")) jump.open = false; });
  addEventListener("keydown", (event) => { if (event.key === "Escape") jump.open = false; });
  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let fold = target?.closest("details.fold"); fold; fold = fold.parentElement.closest("details.fold")) fold.open = true;
    target?.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  if (location.hash) reveal();
}

function drawWithin(fold) {
  for (const view of views) if (fold.contains(view.box)) drawView(view);
}

for (const box of document.querySelectorAll("[data-figure]")) views.push(makeView(box));
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
makeChips();
makeTheme();
makeTables();
drawAll();
makeFolds();
let waiting = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { if (views.some((view) => visible(view) && Math.round(view.plot.clientWidth) !== view.width)) drawAll(); });
});
document.documentElement.dataset.ready = "";
