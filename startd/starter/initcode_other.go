//go:build !amd64

package starter

// initCode does not exist for this architecture: there are no sandboxes.
var initCode string
