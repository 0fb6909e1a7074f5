//go:build !faults

package failpoint

// Point does nothing in this build.
func Point(string) {}
