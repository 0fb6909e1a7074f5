package schedd

import (
	"errors"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestSpawnPlaceMoved checks that a process with an old node file starts nothing on
// another machine than it named. The process has read the file before the job gave
// machines back.
func TestSpawnPlaceMoved(t *testing.T) {
	r := &spawnCall{lines: []queue.HostProcesses{{Node: "n1"}, {Node: "n3"}}}
	call := func(line uint32, nodes ...string) error {
		return r.checkCommand(&wire.ReachCall{Command: []string{"true"}, Lines: []uint32{line}, Nodes: nodes})
	}
	for _, ok := range []error{call(1), call(1, "n3"), call(0, "n1")} {
		if ok != nil {
			t.Error(ok)
		}
	}
	if err := call(1, "n2"); !errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), "place 1 is on n3 now") {
		t.Error(err)
	}
}
