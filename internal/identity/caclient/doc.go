// Package member is the other side of an authority: how a machine joins a pool, and how a
// node of it keeps its certificate and its list of revoked ones fresh.
//
// Door is the way in, for one who has no certificate and knows the authority by the
// digest in his token. Keeper is what the master of a node runs for as long as the node
// is a member.
package caclient
