// A terminal in a running task. Keys and output travel as bytes over a WebSocket, for which
// the page gets a ticket first. Both sides say how much they have dealt with, so that neither
// a fast program nor a long paste fills the memory of the browser.

import { Terminal } from "/static/xterm.mjs";

const box = document.querySelector("[data-terminal]");
const status = document.querySelector("[data-terminal-status]");
const again = document.querySelector("[data-terminal-again]");
const path = `/v1/tasks/${encodeURIComponent(box.dataset.terminal)}/terminal`;
const inputWindow = 64 << 10; // bytes that the shell may not have taken, as in the daemon
const inputChunk = 16 << 10;
const maxPending = 8 << 20; // bytes of input that wait here
const encoder = new TextEncoder();

let socket = null;
let pending = []; // input that waits for its turn
let pendingSize = 0;
let untaken = 0; // bytes of input that the shell has not taken
let ended = false;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  return { background: of("--surface"), foreground: of("--text"), cursor: of("--accent"), cursorAccent: of("--surface"),
    selectionBackground: of("--accent-soft"), selectionForeground: of("--text") };
}

const terminal = new Terminal({
  fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize: 14, lineHeight: 1.2,
  scrollback: 5000, minimumContrastRatio: 4.5, theme: colours(), cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
});
// Programs set no links, which could lead anywhere, and do not write to the clipboard.
for (const code of [8, 52]) terminal.parser.registerOscHandler(code, () => true);
terminal.open(box);

// fit gives the terminal as many rows and columns as there is room for.
function fit() {
  const screen = box.querySelector(".xterm-screen");
  const width = screen.offsetWidth / terminal.cols;
  const height = screen.offsetHeight / terminal.rows;
  if (!width || !height) return;
  const columns = Math.floor((box.clientWidth - 32) / width); // beside the scroll bar
  const rows = Math.floor((box.clientHeight - 16) / height);
  const bounded = (n) => Math.max(2, Math.min(n, 1000));
  terminal.resize(bounded(columns), bounded(rows));
}

function report(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

// send queues input, and sends what the window of the daemon permits.
function send(bytes) {
  if (ended || pendingSize + bytes.length > maxPending) {
    if (!ended) status.textContent = "Too much was pasted at once: the rest is left out.";
    return;
  }
  for (let at = 0; at < bytes.length; at += inputChunk) pending.push(bytes.subarray(at, at + inputChunk));
  pendingSize += bytes.length;
  flush();
}

function flush() {
  while (pending.length && socket?.readyState === WebSocket.OPEN && untaken + pending[0].length <= inputWindow) {
    const piece = pending.shift();
    pendingSize -= piece.length;
    untaken += piece.length;
    socket.send(piece);
  }
}

function finish(text) {
  if (ended) return;
  ended = true;
  pending = [];
  pendingSize = 0;
  terminal.options.disableStdin = true;
  terminal.options.cursorBlink = false;
  status.textContent = text;
  again.hidden = false;
  socket?.close();
}

function endText(m) {
  if (m.error) return m.cure ? `${m.error}. ${m.cure}.` : `${m.error}.`;
  return m.signal ? `The shell was ended by signal ${m.signal}.` : `The shell has ended with exit code ${m.code || 0}.`;
}

async function open() {
  ended = false;
  untaken = 0;
  again.hidden = true;
  terminal.reset();
  terminal.options.disableStdin = false;
  status.textContent = "Connecting…";
  let ticket;
  try {
    const answer = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" } });
    const body = await answer.json();
    if (!answer.ok) return finish(endText({ error: body.detail, cure: body.cure }));
    ticket = body.ticket;
  } catch {
    return finish("The web daemon does not answer.");
  }
  fit();
  const address = new URL(`${path}?rows=${terminal.rows}&columns=${terminal.cols}`, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(address, ["roost-terminal", `roost-ticket.${ticket}`]);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", () => {
    status.textContent = "Connected.";
    flush();
    terminal.focus();
  });
  socket.addEventListener("message", (e) => {
    if (typeof e.data !== "string") {
      const bytes = new Uint8Array(e.data);
      terminal.write(bytes, () => report({ shown: bytes.length }));
      return;
    }
    const m = JSON.parse(e.data);
    if (m.taken) {
      untaken -= m.taken;
      flush();
    }
    if (m.ended) finish(endText(m));
  });
  socket.addEventListener("close", () => finish("The connection is lost, and the shell has ended with it."));
}

terminal.onData((text) => send(encoder.encode(text)));
terminal.onBinary((text) => send(Uint8Array.from(text, (c) => c.charCodeAt(0) & 255)));
terminal.onResize(({ rows, cols }) => report({ rows, columns: cols }));
// Tab and all other keys are the program's: this one leads out.
terminal.attachCustomKeyEventHandler((e) => {
  if (e.key !== "F6" || !e.ctrlKey || !e.shiftKey) return true;
  if (e.type === "keydown") {
    e.preventDefault();
    document.querySelector("[data-terminal-reader]").focus();
  }
  return false;
});
document.querySelector("[data-terminal-reader]").addEventListener("change", (e) => {
  terminal.options.screenReaderMode = e.target.checked;
});
again.addEventListener("click", open);
new ResizeObserver(fit).observe(box);
const recolour = () => { terminal.options.theme = colours(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
new MutationObserver(recolour).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
open();
