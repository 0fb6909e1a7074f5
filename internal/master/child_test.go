package master

import (
	"slices"
	"testing"

	"github.com/roost-batch/roost/internal/config"
)

// TestWebUnit checks that the master leaves the web daemon to its own unit.
func TestWebUnit(t *testing.T) {
	for _, own := range []bool{false, true} {
		n := &config.Node{Schedd: &config.ScheddSettings{}, Web: &config.WebSettings{OwnUnit: own}}
		starts := slices.ContainsFunc(childrenOf(n), func(c *childProcess) bool { return c.role == webRole })
		if starts == own {
			t.Errorf("own_unit = %v: the master starts the web daemon: %v", own, starts)
		}
	}
}
