//go:build !amd64 && !arm64

package starter

// The programs of a sandbox are not written for this architecture: there are no
// sandboxes.
var initCode, setupCode string
