// Keeps the rows of a table of jobs, or the page of one job, as they are now. While the
// page is hidden nothing is read: a browser may have only a few connections to a server.

import { showTimes } from "/static/roost.js";

const table = document.querySelector('table[data-live="jobs"]');
const page = document.querySelector("[data-live-job]");
const finals = ["completed", "failed", "removed"];

// The parts of a bar, in the order of a life.
const parts = [["completed", "fill-ok"], ["failed", "fill-bad"], ["exiting", "fill-running"], ["running", "fill-running"],
  ["starting", "fill-running"], ["suspended", "fill-warn"], ["held", "fill-warn"], ["blocked", "fill-warn"],
  ["idle", "fill-idle"], ["removed", "fill-free"]];

function drawBar(svg, counts, tasks) {
  const failed = counts.failed || 0;
  const labels = [];
  let at = 0;
  const rects = [];
  for (const [state, fill] of parts) {
    const n = (counts[state] || 0) - (state === "completed" ? failed : 0);
    if (n <= 0) continue;
    const rect = document.createElementNS(svg.namespaceURI, "rect");
    const width = Math.max(1000 * n / tasks, 1);
    for (const [name, value] of [["x", at], ["width", width], ["height", 22], ["class", fill]]) rect.setAttribute(name, value);
    at += width;
    labels.push(`${n} ${state}`);
    rects.push(rect);
  }
  svg.replaceChildren(...rects);
  svg.setAttribute("aria-label", labels.join(", "));
}

function showState(mark, state) {
  mark.className = `state ${state}`;
  mark.textContent = state;
}

function updateRow(job) {
  const row = table.querySelector(`tr[data-job="${CSS.escape(job.id)}"]`);
  if (!row) return;
  row.dataset.state = job.state;
  const mark = row.querySelector(".state");
  if (mark) showState(mark, job.state);
  const bar = row.querySelector("svg.strip");
  if (bar) drawBar(bar, job.counts, job.tasks);
  const note = row.querySelector("[data-where]");
  if (!note) return;
  if (job.state === "running" && job.node) {
    const link = document.createElement("a");
    link.href = `/nodes/${encodeURIComponent(job.node)}`;
    link.textContent = job.node;
    note.replaceChildren(link);
    if (job.service && job.service.state === "lost") {
      const lost = document.createElement("span");
      showState(lost, job.service.state);
      note.append(" ", lost);
    }
  } else {
    note.textContent = job.reason || "";
  }
}

// showTransfers shows the files of a task that are on their way.
function showTransfers(transfers) {
  document.querySelector("[data-transfers]").replaceChildren(...transfers.map((t) => {
    const bar = document.createElement("progress");
    bar.max = t.total_bytes;
    bar.value = t.bytes;
    bar.setAttribute("aria-label", t.kind);
    const text = document.createElement("span");
    text.textContent = t.text;
    const panel = document.createElement("div");
    panel.className = "panel transfer";
    panel.append(bar, text);
    return panel;
  }));
}

// followTask asks for a task of an array while it has files on their way: the stream
// follows jobs.
async function followTask(id) {
  while (document.querySelector("[data-transfers] progress")) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    if (document.hidden) continue;
    const answer = await fetch(`/v1/tasks/${encodeURIComponent(id)}`);
    if (!answer.ok) return;
    updatePage((await answer.json()).job);
  }
}

function updatePage(job) {
  if (finals.includes(job.state) || (job.attempt || 0) !== Number(page.dataset.attempt)) {
    location.reload(); // its events and what it used are new, too
    return;
  }
  showState(page.querySelector(".state"), job.state);
  showTransfers(job.transfers || []);
  followParts();
  const bar = document.querySelector("[data-counts] > svg.strip");
  if (bar) drawBar(bar, job.counts, job.tasks);
}

// followParts reads the page again for what a script does not know: how far the job is,
// and its part about a service. It does so at most once a second. The browser parses the
// answer: Trusted Types would refuse a DOMParser.
let reading = null;

function followParts() {
  const parts = ["[data-progress]", "[data-service]"].filter((name) => document.querySelector(name)?.textContent.trim());
  if (!parts.length || reading) return;
  reading = setTimeout(() => {
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.addEventListener("load", () => {
      for (const name of request.status === 200 ? parts : []) {
        const part = document.querySelector(name), fresh = request.response?.querySelector(name);
        if (!fresh || part.contains(document.activeElement)) continue;
        part.replaceWith(fresh);
        showTimes(fresh);
      }
    });
    request.addEventListener("loadend", () => { reading = null; });
    request.open("GET", location.href);
    request.setRequestHeader("Accept", "text/html");
    request.send();
  }, 1000);
}

function watchedJobs() {
  if (page) return finals.includes(page.dataset.state) || page.dataset.liveJob.includes("[") ? [] : [page.dataset.liveJob];
  return [...table.querySelectorAll("tr[data-job]")]
    .filter((row) => !finals.includes(row.dataset.state)).map((row) => row.dataset.job);
}

let source = null;

// connect opens the stream while the page is seen, and closes it while it is hidden.
function connect() {
  if (document.hidden) {
    source?.close();
    source = null;
    return;
  }
  const jobs = watchedJobs().slice(0, 100);
  if (source || !jobs.length) return;
  source = new EventSource(`/v1/stream?topics=${jobs.map((id) => encodeURIComponent(`job/${id}`)).join(",")}`);
  source.addEventListener("job", (e) => {
    const { job } = JSON.parse(e.data);
    if (page) updatePage(job);
    else updateRow(job);
  });
  source.addEventListener("resync", () => location.reload());
}

if (table || page) {
  document.addEventListener("visibilitychange", connect);
  connect();
  if (page && page.dataset.liveJob.includes("[")) followTask(page.dataset.liveJob);
}
