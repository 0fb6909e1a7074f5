// Package authority is the daemon "roost authority", the certificate authority of a pool.
// It lets machines join a pool over an untrusted network, renews their certificates, and
// revokes them. It runs on the first central manager: it alone has the key that signs
// certificates, and it alone owns the join tokens.
//
// An administrator makes a token for one machine and one part in the pool; it is valid
// for an hour. The text that is pasted on the new machine has the token's secret and the
// digest of the authority's certificate, so that each side can authenticate the other
// before it sends anything important:
//
//	new machine                                   authority
//	    │ ── TLS 1.3, no client certificate ─────────▶ │
//	    │ ◀── certificate, signed by the authority ─── │   (1)
//	    │ ── Greet ──────────────────────────────────▶ │   (2)
//	    │ ── Join: the secret, a request for a key ──▶ │   (3)
//	    │ ◀── certificate, where the pool's daemons are│
//
// In (1) the machine checks that this is the authority of the token; if not, it sends
// nothing. In (2) it compares the clocks, because a certificate is useless where clocks
// differ. In (3) the authority uses the token up and records the certificate in one
// transaction, before it sends the certificate.
//
// The private key is made on the new machine and never leaves it. A lost answer does no
// harm: the same secret with the same key gets the same certificate while the token is
// valid; with another key it gets an error that the token is used. Only the digest of a
// secret is stored, so a copy of the store lets no machine join. Only a client with the
// right secret learns whether a token was used, has expired, or is for another part.
//
// Nodes renew their certificates before they expire (package caclient), each with its own
// name and roles. A revoked certificate is refused here at once, and by every other node
// as soon as that has fetched the list of revoked certificates, a CRL of RFC 5280.
//
// Anonymous clients can reach only this daemon, which bounds the work that they cause:
// how many connections they have, for how long, how much they send, and how many wrong
// secrets an address may try (conn_limiter.go, failed_joins.go).
package ca
