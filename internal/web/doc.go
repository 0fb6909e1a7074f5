// Package web is the web daemon of a node: pages and the HTTP API, beside the schedd.
//
// It has no right of its own. Whoever logs in does so at the schedd, and the daemon asks
// the schedd with the key of that login (package session). Nothing of the pool depends on
// it: submits and starts of tasks do not pass through it, and it stores nothing but API
// tokens and the log of writes.
//
// Packages: session (who is logged in), route (the table of routes and what each request
// passes), view (what is shown), page (how it looks).
package web
