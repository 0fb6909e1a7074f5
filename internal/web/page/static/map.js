// Draws the machines of the pool, four bytes each: state, and which part of the cores, the
// memory and the GPUs is held. Their names come after the first picture.

const panel = document.querySelector("[data-map]");
const canvas = panel.querySelector("canvas");
const note = panel.querySelector("#map-node");
const legend = panel.querySelector("[data-legend]");
const query = panel.dataset.map;

// The states by number, with a word and the variable of a colour.
const states = [["other", "--idle"], ["free", "--ok"], ["held", "--accent"], ["not lent", "--warn"], ["drained", "--bad"],
  ["preempting", "--idle"], ["down", "--line-strong"]];
const kinds = ["state", "cores", "memory", "GPUs"];
const none = 255, full = 254, marked = 0x80;
const labelHeight = 16, blockGap = 12;

let bytes = new Uint8Array();
let order = "";
let groups = null; // [{name, nodes}], once they are there
let names = [];
let cells = []; // places of the machines, by number
let cursor = -1;
let size = 10;

const count = () => bytes.length / 4;
const kind = () => Number(panel.querySelector("input[name=colour]:checked").value);

// layOut gives each machine a place. Groups are blocks that flow like words.
function layOut() {
  const width = panel.clientWidth - 32;
  const blocks = groups || [{ name: "", nodes: { length: count() } }];
  const titled = blocks.length > 1 || Boolean(blocks[0]?.name);
  size = count() > 4000 ? 7 : count() > 600 ? 10 : 16;
  const step = size + 2;
  cells = [];
  const labels = [];
  let x = 0, y = 0, rowHeight = 0;
  for (const b of blocks) {
    const n = b.nodes.length;
    const most = Math.max(1, Math.floor(width / step));
    const columns = blocks.length === 1 ? most : Math.min(most, Math.max(Math.ceil(Math.sqrt(n * 1.6)), Math.ceil(70 / step)));
    const rows = Math.ceil(n / columns);
    const blockWidth = columns * step;
    if (x > 0 && x + blockWidth > width) {
      x = 0;
      y += rowHeight + blockGap;
      rowHeight = 0;
    }
    const top = y + (titled ? labelHeight : 0);
    if (titled) labels.push([b.name || "without", x, y + labelHeight - 5, blockWidth]);
    for (let i = 0; i < n; i++) cells.push([x + (i % columns) * step, top + Math.floor(i / columns) * step]);
    rowHeight = Math.max(rowHeight, rows * step + (titled ? labelHeight : 0));
    x += blockWidth + blockGap;
  }
  const height = y + rowHeight + 2;
  const ratio = devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.setAttribute("width", canvas.width);
  canvas.setAttribute("height", canvas.height);
  return labels;
}

function draw() {
  if (!count()) return;
  const labels = layOut();
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const colours = states.map(([, name]) => colour(name));
  const [sunken, text, accent, muted] = ["--sunken", "--text", "--accent", "--muted"].map(colour);
  const c = canvas.getContext("2d");
  const ratio = devicePixelRatio || 1;
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.clearRect(0, 0, canvas.width, canvas.height);
  c.font = `11px ${style.getPropertyValue("--sans") || "sans-serif"}`;
  c.fillStyle = muted;
  for (const [name, x, y, width] of labels) c.fillText(fit(c, name, width), x, y);
  const byte = kind();
  for (let i = 0; i < count(); i++) {
    const [x, y] = cells[i];
    const state = bytes[4 * i] & ~marked, value = bytes[4 * i + byte];
    c.globalAlpha = 1;
    if (byte === 0) {
      c.fillStyle = colours[state] || colours[0];
      c.globalAlpha = state === 6 ? .55 : 1;
      c.fillRect(x, y, size, size);
    } else {
      c.fillStyle = sunken;
      c.fillRect(x, y, size, size);
      if (value !== none && state !== 6) {
        c.fillStyle = accent;
        const height = size * value / full;
        c.fillRect(x, y + size - height, size, height);
      }
    }
    c.globalAlpha = 1;
    if (bytes[4 * i] & marked) {
      c.strokeStyle = text;
      c.lineWidth = 1.5;
      c.strokeRect(x + .75, y + .75, size - 1.5, size - 1.5);
    }
  }
  if (cursor >= 0) {
    c.strokeStyle = text;
    c.lineWidth = 2;
    c.strokeRect(cells[cursor][0] - 1, cells[cursor][1] - 1, size + 2, size + 2);
  }
}

function fit(c, name, width) {
  while (name.length > 1 && c.measureText(name).width > width) name = `${name.slice(0, -2)}…`;
  return name;
}

function showLegend() {
  const seen = new Map();
  for (let i = 0; i < count(); i++) seen.set(bytes[4 * i] & ~marked, (seen.get(bytes[4 * i] & ~marked) || 0) + 1);
  const words = kind() === 0 ? [...seen].sort((a, b) => b[1] - a[1]).map(([s, n]) => [`map-${s}`, `${n} ${states[s]?.[0] || "other"}`]) :
    [["map-2", `part of the ${kinds[kind()]} that is held`], ["map-empty", "not held, or none"]];
  legend.replaceChildren(...words.map(([style, word]) => {
    const item = document.createElement("li");
    const mark = document.createElement("i");
    mark.className = style;
    item.append(mark, word);
    return item;
  }));
}

function showNode() {
  if (cursor < 0 || cursor >= count()) return;
  const part = (b) => b === none ? "none" : `${Math.round(100 * b / full)} %`;
  const [state, cpu, memory, gpu] = bytes.slice(4 * cursor, 4 * cursor + 4);
  note.textContent = `${names[cursor] || "…"}: ${states[state & ~marked]?.[0] || "other"}; cores ${part(cpu)} held, memory ${part(memory)}` +
    (gpu === none ? "" : `, GPUs ${part(gpu)}`) + (state & marked ? "; it runs such tasks" : "");
}

function select(i) {
  if (i < 0 || i >= count()) return;
  cursor = i;
  draw();
  showNode();
}

// neighbour returns the nearest machine above or below.
function neighbour(down) {
  const [x, y] = cells[cursor];
  let best = cursor, distance = Infinity;
  for (let i = 0; i < cells.length; i++) {
    const dy = (cells[i][1] - y) * (down ? 1 : -1);
    const d = dy * 4 + Math.abs(cells[i][0] - x);
    if (dy > 0 && d < distance) [best, distance] = [i, d];
  }
  return best;
}

function at(e) {
  const box = canvas.getBoundingClientRect();
  const x = e.clientX - box.left, y = e.clientY - box.top;
  return cells.findIndex(([cx, cy]) => x >= cx && x < cx + size + 2 && y >= cy && y < cy + size + 2);
}

function open() {
  if (names[cursor]) location.href = `/nodes/${encodeURIComponent(names[cursor])}`;
}

canvas.addEventListener("keydown", (e) => {
  const here = Math.max(cursor, 0);
  const moves = { ArrowRight: here + (cursor < 0 ? 0 : 1), ArrowLeft: here - 1, Home: 0, End: count() - 1 };
  if (e.key === "Enter") open();
  else if (e.key === "ArrowDown" || e.key === "ArrowUp") select(cursor < 0 ? 0 : neighbour(e.key === "ArrowDown"));
  else if (e.key in moves) select(Math.min(Math.max(moves[e.key], 0), count() - 1));
  else return;
  e.preventDefault();
});
canvas.addEventListener("mousemove", (e) => {
  const i = at(e);
  if (i >= 0 && i !== cursor) select(i);
});
canvas.addEventListener("click", (e) => {
  select(at(e));
  open();
});
panel.addEventListener("change", () => {
  draw();
  showLegend();
  showNode();
});
addEventListener("resize", draw);
new MutationObserver(draw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

// load reads the bytes, and the names if the machines are others than before.
async function load() {
  const answer = await fetch(`/v1/map?${query}`);
  if (!answer.ok) return;
  const next = new Uint8Array(await answer.arrayBuffer());
  const changed = answer.headers.get("Roost-Map-Order") !== order;
  if (changed) {
    groups = null;
    names = [];
    cursor = -1;
  }
  bytes = next;
  order = answer.headers.get("Roost-Map-Order");
  panel.hidden = false;
  draw();
  showLegend();
  showNode();
  performance.mark("map-painted");
  if (!changed) return;
  const list = await fetch(`/v1/map/nodes?${query}`);
  if (!list.ok) return;
  const found = await list.json();
  if (found.order !== order) return; // the next reading has both
  groups = found.groups;
  names = groups.flatMap((g) => g.nodes);
  draw();
  panel.dataset.ready = "1";
}

// showPast draws a past instant, which the page has in itself.
function showPast() {
  bytes = Uint8Array.from(atob(panel.dataset.bytes), (c) => c.charCodeAt(0));
  groups = JSON.parse(panel.dataset.groups);
  names = groups.flatMap((g) => g.nodes);
  panel.hidden = false;
  draw();
  showLegend();
  panel.dataset.ready = "1";
}

async function refresh() {
  try {
    if (!document.hidden) await load();
  } catch {
    // the daemon does not answer: the next time may be better
  }
  setTimeout(refresh, 5000);
}
if (panel.dataset.bytes) showPast();
else refresh();
