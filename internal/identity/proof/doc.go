// Package proof has a schedd check by itself who logs in to the web daemon, where neither
// a token of the schedd's nor the kernel says it: by the ID token of an OpenID provider,
// by a password that PAM knows, or by a statement that the key of a login has signed.
//
// The web daemon merely carries the proof. It never learns the secret of the client at
// the provider and sees no ID token, and what it carries is good for one login of the
// user whose browser has brought it. So a web daemon that was taken over cannot make
// logins for users who do not log in. A password is the exception: it passes through the
// web daemon, which could keep it. So passwords are off unless the node file has them.
//
//	browser            web daemon                schedd               child        provider
//	  │ ── log in ────────▶ │ ── BeginLogin ───────▶ │ ── settings ───────▶ │ ─ discovery ─▶ │
//	  │ ◀─ ticket (cookie), │ ◀─ ticket, address ─── │ ◀─ address ───────── │                │
//	  │    address          │                        │                      │                │
//	  │ ───────────────────── state, nonce, challenge of PKCE ────────────────────────────▶ │
//	  │ ◀──────────────────── state, code ────────────────────────────────────────────────── │
//	  │ ── ticket, state, ─▶│ ── Login, key ───────▶ │ ── code, verifier ─▶ │ ─ code ──────▶ │
//	  │    code             │ ◀─ certificate ─────── │ ◀─ claim ─────────── │ ◀─ ID token ── │
//
// A ticket is state of the schedd that the browser holds, sealed with a key that only the
// schedd has. It is good once and for ten minutes. So strangers who begin logins use up
// no memory of the schedd. What comes from providers is parsed in a child without rights.
package proof
