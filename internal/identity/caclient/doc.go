// Package caclient is the client side of a certificate authority. With it a machine joins
// a pool, and a node of the pool renews its certificate and its list of revoked
// certificates.
//
// Client is for a machine without a certificate, which knows the authority by the digest
// in its join token. CertRenewer is what the master of a node runs as long as the node is
// a member.
package caclient
