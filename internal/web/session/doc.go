// Package session holds who is logged in to the web daemon.
//
// A session is a login at the schedd of the daemon's node, as roost login makes one: the
// daemon has the private key of that login in memory, and asks the schedd with it. So the
// daemon has no right of its own, a revoked login ends its session, and what a user may
// do the schedd decides, as for every other login.
//
// A browser has a cookie of 256 random bits, and a program an API token of as many. Of
// both only digests are stored. The key of an API token's login is encrypted with a key
// that is made of the token, so that the file of tokens alone is of no use.
//
//	schedd's host             browser                    web daemon              schedd
//	  roost web login ────────────────── kernel credentials ────────────────────▶ │
//	  ◀─ link with a login token ───────────────────────────────────────────────  │
//	                          POST /v1/session, token ──▶ │ ── token, request ──▶ │
//	                          ◀── cookie ──────────────── │ ◀─── certificate ──── │
package session
