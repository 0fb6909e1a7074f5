//go:build plants

package plant

// planted is the bug that is in.
var planted Bug

// Put puts a bug in, in place of the one before; 0 takes that out. It is to be called while nothing runs.
func Put(b Bug) { planted = b }

// Is reports whether a bug is in.
func Is(b Bug) bool { return planted == b }
