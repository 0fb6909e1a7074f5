// What all pages share: times in the reader's zone, the choice of colours, and keys. The
// pages work without it.

// The zone of times: the reader's, unless UTC was chosen.
const zone = document.documentElement.dataset.zone === "utc" ? "UTC" : undefined;

// showTimes writes each time in the zone, and leaves what the server wrote as its title.
export function showTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", timeZone: zone });
  const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", timeZone: zone });
  for (const t of root.querySelectorAll("time[datetime]")) {
    const at = new Date(t.dateTime);
    if (isNaN(at) || t.title) continue;
    t.title = t.textContent;
    t.textContent = t.dataset.form === "ago" ? agoText(at) : format.format(at);
  }
  if (zone) return;
  const dayAndHour = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
  for (const t of root.querySelectorAll("svg.chart text[data-time]")) {
    const at = new Date(t.dataset.time);
    if (isNaN(at)) continue;
    t.textContent = (t.textContent.length > 5 ? dayAndHour : hour).format(at);
    delete t.dataset.time;
  }
}

function agoText(at) {
  const seconds = Math.round((Date.now() - at) / 1000);
  const text = (n) => n < 60 ? `${n} s` : n < 3600 ? `${Math.floor(n / 60)} min` :
    n < 172800 ? `${Math.floor(n / 3600)} h` : `${Math.floor(n / 86400)} days`;
  return seconds >= 0 ? `${text(seconds)} ago` : `in ${text(-seconds)}`;
}

function useThemeButton() {
  const button = document.querySelector("[data-theme-button]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
  });
}

// useKeys: "/" goes to the search; "g" and a letter to a page.
function useKeys() {
  const pages = { o: "/", j: "/jobs", s: "/submit", n: "/nodes", m: "/manual" };
  let pending = false;
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    if (pending && pages[e.key]) location.href = pages[e.key];
    pending = e.key === "g";
    const search = document.getElementById("q");
    if (e.key === "/" && search) {
      e.preventDefault();
      search.focus();
    }
  });
}

const zoneText = document.querySelector("[data-zone-text]");
if (zoneText && !zone) zoneText.textContent = `Times are in your zone, ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`;
showTimes(document);
useThemeButton();
useKeys();
