package rpc

// What tests of other packages' eyes see.
var (
	DialOver = dial // over connections that the test makes
	Sizes    = sizes
)

// MaxCallsOf is how many calls a peer may have at once.
const MaxCallsOf = maxCallsOf
