// Follows the output of a task and shows its colours. Only the sequences of a terminal that
// set colours have an effect; all others are shown as text.

const pre = document.querySelector("pre[data-log]");
const status = document.querySelector("[data-log-status]");
const follow = document.querySelector("[data-log-follow]");
const maxText = 4 << 20; // characters in the page: of more the oldest go

let offset = Number(pre.dataset.offset);
let colours = new Set();
let rest = ""; // the beginning of a sequence whose end has not come
let size = 0; // characters in the page

function appendText(text) {
  text = rest + text;
  const cut = text.lastIndexOf("\x1b");
  rest = "";
  if (cut >= 0 && text.length - cut < 32 && /^\x1b(\[[0-9;]*)?$/.test(text.slice(cut))) {
    rest = text.slice(cut);
    text = text.slice(0, cut);
  }
  const atEnd = pre.scrollTop + pre.clientHeight >= pre.scrollHeight - 4;
  for (const part of text.split(/(\x1b\[[0-9;]{0,32}m)/)) {
    if (/^\x1b\[[0-9;]*m$/.test(part)) {
      setColours(part.slice(2, -1).split(";").map(Number));
    } else if (part) {
      const span = document.createElement("span");
      span.className = [...colours].map((n) => `ansi-${n}`).join(" ");
      span.textContent = visibleText(part);
      pre.append(span);
      size += span.textContent.length;
    }
  }
  while (size > maxText && pre.firstChild) {
    size -= pre.firstChild.textContent.length;
    pre.firstChild.remove();
  }
  if (atEnd && follow.checked) pre.scrollTop = pre.scrollHeight;
}

// visibleText shows control characters as their pictures, and what changes the direction of
// text as its number.
function visibleText(text) {
  return text.replace(/\r\n?/g, "\n")
    .replace(/[\x00-\x08\x0b-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/\x7f/g, "\u2421")
    .replace(/[\x80-\x9f\u202a-\u202e\u2066-\u2069]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function setColours(codes) {
  const isColour = (n) => n >= 30 && n <= 37 || n >= 90 && n <= 97;
  for (const n of codes) {
    if (n === 0) colours.clear();
    else if (isColour(n) || n === 39) {
      for (const c of colours) if (isColour(c)) colours.delete(c);
      if (n !== 39) colours.add(n);
    } else if (n === 1 || n === 2) colours.add(n);
    else if (n === 22) { colours.delete(1); colours.delete(2); }
  }
}

// readStream shows what comes until the task ends, and reports whether it has.
async function readStream(signal) {
  const answer = await fetch(`${pre.dataset.log}?follow=1&offset=${offset}`, { signal });
  if (answer.status === 401 || answer.status === 404) {
    status.textContent = answer.status === 401 ? "You are logged out." : "There is no such output any more.";
    return true;
  }
  if (!answer.ok) throw new Error(answer.statusText);
  const reader = answer.body.getReader();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    offset += value.length;
    appendText(decoder.decode(value, { stream: true }));
    status.textContent = `${offset.toLocaleString()} bytes`;
  }
  status.textContent = `${offset.toLocaleString()} bytes, complete.`;
  return true;
}

// run follows while the box is ticked, and tries again when the daemon was away.
async function run() {
  for (let wait = 1000;; wait = Math.min(2 * wait, 30000)) {
    while (!follow.checked) await new Promise((done) => follow.addEventListener("change", done, { once: true }));
    const stop = new AbortController();
    const stopIfOff = () => { if (!follow.checked) stop.abort(); };
    follow.addEventListener("change", stopIfOff);
    try {
      if (await readStream(stop.signal)) return;
    } catch {
      if (follow.checked) status.textContent = "No answer; trying again.";
    } finally {
      follow.removeEventListener("change", stopIfOff);
    }
    await new Promise((done) => setTimeout(done, follow.checked ? wait : 0));
  }
}

const first = pre.textContent;
if (pre.dataset.final !== "1") {
  pre.textContent = "";
  appendText(first);
  run();
}
