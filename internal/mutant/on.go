//go:build plants

package mutant

// activeMutant is the active bug.
var activeMutant Mutant

// Activate activates a bug instead of the present one; 0 activates none. Nothing else may
// run meanwhile.
func Activate(b Mutant) { activeMutant = b }

// Active reports whether a bug is active.
func Active(b Mutant) bool { return activeMutant == b }
