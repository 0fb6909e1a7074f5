// Package rpc connects Roost's processes: gRPC over unix sockets, where the kernel
// identifies the caller, and over TCP with mutual TLS 1.3, where the node's certificate
// does. Addresses are "unix:/path" or "host:port"; a TCP address without an identity is
// refused, so nothing listens unauthenticated.
package rpc
