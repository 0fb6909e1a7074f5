package rpc

// MessageSizes says how long messages may be.
var MessageSizes = messageSizes

// MaxCallsPerPeer is how many calls a peer may have at once.
const MaxCallsPerPeer = maxCallsPerPeer
