//go:build !faults

package failpoint

// Enabled reports whether Point may kill the process.
const Enabled = false

// Point does nothing in this build.
func Point(string) {}
