// Package login lets a user act on the jobs of a schedd from other machines. A schedd
// trusts its own kernel about the identity of its users, and no other machine: root of
// another node could name any user. So the user gets a token on the schedd's host, where
// the kernel identifies the user, and another machine exchanges the token for a
// certificate with the user's name.
//
// The schedd signs these certificates with a key of its own, which nothing else in the
// pool trusts, and the pool's authority has no part in them. Users and nodes connect to
// the same address and are distinguished by the server name that they ask for (RFC 6066,
// section 3): a client that asks for ServerName is served with a certificate of the
// schedd's own authority, and may show one of it; another client is served as a node of
// the pool.
//
//	user on n2                 schedd of n2                       user elsewhere
//	  │ ── LoginToken (socket) ──▶ │                                    │
//	  │ ◀─ the secret, the digest  │                                    │
//	  │    of n2's own authority ──┼──────── by hand ─────────────────▶ │
//	                               │ ◀── TLS: is that the authority? ── │
//	                               │ ◀── the secret, a request ──────── │
//	                               │ ─── the certificate ─────────────▶ │
//
// A token can be used once and for an hour. A lost answer does no harm, because the same
// secret with the same key gets the same certificate. A revoked login is refused from the
// next call on, and its connections are closed within seconds.
package login
