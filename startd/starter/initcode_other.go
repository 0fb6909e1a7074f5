//go:build !amd64

package starter

// initCode is not written for this architecture: there are no boxes.
var initCode string
