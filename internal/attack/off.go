//go:build !attacks

package attack

// Is reports whether this process makes the attack: no ordinary program does.
func Is(AttackKind) bool { return false }
