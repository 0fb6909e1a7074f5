//go:build attacks

package attack

import (
	"os"
	"slices"
	"strings"
)

// Is reports whether ROOST_ATTACK names the attack.
func Is(a AttackKind) bool {
	return slices.Contains(strings.Split(os.Getenv("ROOST_ATTACK"), ","), string(a))
}
