// Package localrpc makes the calls of a command to a daemon of this host, over its unix
// socket. The daemon serves gRPC. This package has as much of gRPC and HTTP/2 (RFC 9113)
// as such a call needs, because a program with the library starts in twice the time.
package localrpc
