//go:build plants

package mutant

// activeMutant is the bug that is in.
var activeMutant Mutant

// Activate puts a bug in, in place of the one before; 0 takes that out. It is to be
// called while nothing runs.
func Activate(b Mutant) { activeMutant = b }

// Active reports whether a bug is in.
func Active(b Mutant) bool { return activeMutant == b }
