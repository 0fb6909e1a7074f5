package localrpc

import "time"

// Bounds on one connection; see roost-security(7).
const (
	PingInterval   = 20 * time.Second // of silence; a peer that does not answer within PingTimeout is dead
	PingTimeout    = 10 * time.Second
	StreamWindow   = 1 << 20  // bytes of a call that are sent before they are taken
	MaxMessageSize = 64 << 20 // bytes of a submission, and of a reply
	maxHeaderBytes = 4 << 20  // bytes of the headers of a reply: the text of a refusal is a header
)
