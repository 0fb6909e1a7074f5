package rpc

// Sizes says how long messages may be.
var Sizes = sizes

// MaxCallsOf is how many calls a peer may have at once.
const MaxCallsOf = maxCallsOf
