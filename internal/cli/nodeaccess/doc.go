// Package nodeaccess is what commands reach with files of a node or of a user's logins:
// schedds of other nodes, and the negotiators. It speaks gRPC over TLS. The commands that
// must start fast do not import it: they get it as a frame.Dialer, or do without.
package nodeaccess
