// Package dns serves the names of a collector over DNS (RFC 1035, 2308, 2782, 6891). It
// is authoritative for one zone and refuses everything else: it resolves nothing for
// others, and transfers no zone.
//
// An answer over UDP has at most 1,232 bytes, so that it needs no fragments. A longer
// one is cut and marked, and the client asks again over TCP. A source that asks more
// often than the bound gets no answers until the next second, because the address of a
// UDP query may be forged and the answer would go to somebody else.
package dns
