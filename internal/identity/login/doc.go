// Package login lets a user act on the jobs of a schedd from other machines. A schedd
// believes its own kernel about who its users are, and no other machine: a node whose
// root is somebody else's could name anybody. So the user vouches for himself, on the
// schedd's host, where the kernel knows him: the schedd gives him a token there, and the
// machine where he spends it gets a certificate with his name.
//
// The schedd signs these certificates with a key of its own, which nothing else in the
// pool believes, and the pool's authority has no part in them. Both kinds of caller come
// to the same address and are told apart by the server name that they ask for (RFC 6066,
// section 3): who asks for ServerName is served with a certificate of the schedd's own
// authority, and may show one of it; who does not is served as a node of the pool.
//
//	user on n2                 schedd of n2                       user elsewhere
//	  │ ── LoginToken (socket) ──▶ │                                    │
//	  │ ◀─ the secret, the digest  │                                    │
//	  │    of n2's own authority ──┼──────── by hand ─────────────────▶ │
//	                               │ ◀── TLS: is that the authority? ── │
//	                               │ ◀── the secret, a request ──────── │
//	                               │ ─── the certificate ─────────────▶ │
//
// A token is good once and for an hour; a lost answer does no harm, for the same secret
// with the same key gets the same certificate. A revoked login is refused from the next
// call on, and its connections are hung up on within seconds.
package login
