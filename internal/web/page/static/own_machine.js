// Loads the page of a machine again when something has changed there, unless its reader is
// at a form or the page is hidden.

const period = 3000; // milliseconds
const heading = document.querySelector("[data-own-machine] h1");

let shown = null;

async function refresh() {
  if (document.hidden || document.activeElement?.closest("form")) return;
  const answer = await fetch("/v1/machine");
  if (!answer.ok) {
    location.reload();
    return;
  }
  const m = await answer.json();
  const now = JSON.stringify([m.lent, m.pause, m.not_lent, m.busy, m.freezes, m.tasks, m.sources.map((s) => s.health)]);
  if (shown !== null && shown !== now) location.reload();
  shown = now;
}

// watch ends when the command has: then there is nobody to ask.
async function watch() {
  for (;;) {
    try {
      await refresh();
    } catch {
      heading.textContent = "Your machine (roost mine has ended: this is how it was)";
      return;
    }
    await new Promise((done) => setTimeout(done, period));
  }
}
watch();
