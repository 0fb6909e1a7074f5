// A link of "roost web login" has its token behind #, which browsers send to no server.
// This takes it out of the address and the history, and logs in with it.
"use strict";
(async () => {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", "/login");
  const state = document.getElementById("state");
  state.textContent = "Logging in…";
  try {
    const answer = await fetch("/v1/session", {
      method: "POST",
      headers: {"Content-Type": "application/json"},
      body: JSON.stringify({token}),
    });
    if (answer.ok) {
      location.replace("/");
      return;
    }
    const problem = await answer.json();
    state.textContent = problem.detail + ". " + (problem.cure || "");
  } catch {
    state.textContent = "The server does not answer.";
  }
})();
