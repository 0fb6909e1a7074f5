package rpc

// MessageSizes returns the limits of messages.
var MessageSizes = messageSizes

// MaxCallsPerPeer is how many calls in progress a peer may have.
const MaxCallsPerPeer = maxCallsPerPeer
