//go:build !attacks

package attack

// Is reports whether this process makes the attack. An ordinary program makes none.
func Is(AttackKind) bool { return false }
