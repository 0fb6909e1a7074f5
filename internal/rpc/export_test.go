package rpc

// DialOver is Dial over connections that the test makes.
var DialOver = dial
