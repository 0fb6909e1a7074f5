// Package authority lets machines into a pool over a network that nobody trusts, keeps
// them in it, and puts them out of it. It is the daemon "roost authority", on the first
// central manager of a pool: it alone has the key that signs certificates, and it alone
// owns the tokens.
//
// A token is made by the administrator, for one machine and one part in the pool, and
// holds for an hour. What he pastes on the new machine has the token's secret and the
// digest of the authority's certificate, so that each side knows the other before it says
// anything that matters:
//
//	new machine                                   authority
//	    │ ── TLS 1.3, no client certificate ─────────▶ │
//	    │ ◀── certificate, signed by the authority ─── │   is that the authority of the token? if not, nothing is sent
//	    │ ── Greet ──────────────────────────────────▶ │   its clock: a certificate would not hold where clocks are apart
//	    │ ── Join: the secret, a request for a key ──▶ │   the token is used up and the certificate written down, in one step,
//	    │ ◀── certificate, where the pool's daemons are│   before the certificate leaves
//
// The private key is made on the new machine and never travels. A lost answer does no
// harm: the same secret with the same key gets the same certificate for as long as the
// token holds; with another key it gets the news that somebody has used it. Only the
// digest of a secret is kept, so a copy of the store lets nobody in; and only who has the
// right secret learns whether a token was used, ran out, or is for something else.
//
// Nodes renew their certificates before they end (package member), each its own name and
// roles. A revoked one is refused here at once, and by every other node as soon as that
// has fetched the list of revoked certificates, a CRL as RFC 5280 has it.
//
// Strangers reach nothing but this daemon, and this daemon bounds what they can make it
// do: how many of them are connected, for how long, how much they send, and how many
// wrong secrets an address may try (gate.go, failedJoins.go).
package ca
