//go:build !amd64

package shim

// initCode is not written for this architecture: there are no boxes.
var initCode string
