// Package relay carries connections to nodes that nobody can dial: pilots in other batch
// systems, and desktops behind a firewall. Such a node opens a connection to one or more
// relays, which are on the central managers, and whoever wants it asks a relay for it.
//
// The relay copies bytes. Both ends do the same mutual TLS 1.3 inside as they would on a
// connection of their own, so the relay sees ciphertext only, and can do no more than cut
// a connection. All connections of a node share the one that it has opened.
package relay
