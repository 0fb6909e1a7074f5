// Tells a reader who asked for it that a job has ended. The browser remembers which jobs,
// and one of its tabs asks about all of them at once. Without it pages are as they are.

const storage = "notify";
const period = 10000; // ms
const maxJobs = 50;
const finals = ["completed", "failed", "removed"];
const user = document.querySelector(".account a")?.textContent || "";

// The jobs are those of one user: another one in this browser begins anew.
function watched() {
  try {
    const stored = JSON.parse(localStorage.getItem(storage));
    return stored.user === user && stored.jobs ? stored.jobs : {};
  } catch {
    return {};
  }
}

function watch(jobs) {
  localStorage.setItem(storage, JSON.stringify({ user, jobs }));
}

function endText(job) {
  if (job.tasks > 1) {
    const failed = job.counts.failed || 0;
    const done = (job.counts.completed || 0) - failed;
    return `${job.tasks} tasks: ${done} completed${failed ? `, ${failed} failed` : ""}` +
      (job.counts.removed ? `, ${job.counts.removed} removed` : "");
  }
  return job.exit?.reason || (job.exit && job.state === "failed" ? `exit code ${job.exit.code}` : job.state);
}

function notify(job) {
  const note = new Notification(`${job.name} has ended`, { body: endText(job), tag: job.id, icon: "/static/roost.svg" });
  note.addEventListener("click", () => {
    focus();
    location.href = `/jobs/${encodeURIComponent(job.id)}`;
  });
}

// ask reads the watched jobs. It returns false when there is nothing to wait for any more.
async function ask() {
  const ids = Object.keys(watched()).slice(0, maxJobs);
  if (!ids.length || Notification.permission !== "granted") return false;
  const query = new URLSearchParams({ all: 1, history: 1, limit: maxJobs, select: ids.join(" ") });
  const answer = await fetch(`/v1/jobs?${query}`);
  if (answer.status === 401 || answer.status === 403) return false;
  if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
    watch({}); // one of them is not there any more, and nobody knows which
    return false;
  }
  if (!answer.ok) return true;
  const jobs = watched();
  for (const job of (await answer.json()).jobs) {
    if (!(job.id in jobs) || !finals.includes(job.state)) continue;
    delete jobs[job.id];
    watch(jobs);
    notify(job);
  }
  return Object.keys(jobs).length > 0;
}

// follow asks until all watched jobs have ended. The lock is held by one tab alone.
let following = false;

async function follow() {
  if (following || !Object.keys(watched()).length) return;
  following = true;
  await navigator.locks.request("roost-notify", async () => {
    let more = true;
    while (more) {
      more = await ask().catch(() => true);
      if (more) await new Promise((resolve) => setTimeout(resolve, period));
    }
  });
  following = false;
}

function useButton(button) {
  const id = button.dataset.notify;
  const show = () => {
    const on = id in watched() && Notification.permission === "granted";
    button.setAttribute("aria-pressed", on);
    button.textContent = on ? "You will be notified" : "Notify me when it ends";
  };
  button.hidden = false;
  show();
  addEventListener("storage", show);
  button.addEventListener("click", async () => {
    const jobs = watched();
    if (id in jobs && Notification.permission === "granted") {
      delete jobs[id];
      watch(jobs);
    } else if (await Notification.requestPermission() === "granted") {
      watch({ ...watched(), [id]: button.dataset.notifyName });
      follow();
    } else {
      button.textContent = "The browser does not allow it";
      button.disabled = true;
      return;
    }
    show();
  });
}

if (user && "Notification" in globalThis && navigator.locks) {
  const state = document.querySelector("[data-live-job]")?.dataset.state;
  const button = document.querySelector("[data-notify]");
  if (button && !finals.includes(state) && !button.dataset.notify.includes("[")) useButton(button);
  follow();
}
