package transfer

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestAnnouncedOutput checks that a node's list of output is compared with what the job
// asked for. It also checks who is at fault when they differ.
func TestAnnouncedOutput(t *testing.T) {
	stored := int64(0)
	for _, test := range []struct {
		name     string
		patterns []string
		scratch  bool
		list     []*wire.FileEntry
		bad      bool // at all
		byNode   bool
	}{
		{"named", []string{"result.txt"}, true, []*wire.FileEntry{{Name: "result.txt", Size: 5}}, false, false},
		{"not named", []string{"result.txt"}, true,
			[]*wire.FileEntry{{Name: "result.txt"}, {Name: ".ssh/authorized_keys"}}, true, true},
		{"twice", []string{"*"}, true, []*wire.FileEntry{{Name: "a"}, {Name: "a"}}, true, true},
		{"new files", nil, true, []*wire.FileEntry{{Name: "a"}, {Name: "b"}}, false, false},
		{"new and below", nil, true, []*wire.FileEntry{{Name: "a/b"}}, true, true},
		{"in place", nil, false, []*wire.FileEntry{{Name: "a"}}, true, true},
		{"too much", []string{"*"}, true, []*wire.FileEntry{{Name: "a", Size: 600}, {Name: "b", Size: 600}},
			true, false},
		{"holes", []string{"*"}, true, []*wire.FileEntry{{Name: "a", Size: 1 << 40, Stored: &stored}}, false, false},
	} {
		c := OutputFetch{sandboxFiles: sandboxFiles{TaskProgram: queue.TaskProgram{Outputs: test.patterns},
			scratch: test.scratch}, Exited: &wire.Exited{Outputs: test.list}, diskLimit: 1000}
		err := c.CheckManifest()
		if _, byNode := isNodeFault(err); (err != nil) != test.bad || byNode != test.byNode ||
			test.bad && !byNode && !errors.Is(err, roost.Exhausted) {
			t.Errorf("%s: got %v, the node's fault: %v", test.name, err, byNode)
		}
	}
	c := OutputFetch{Exited: &wire.Exited{Outputs: []*wire.FileEntry{{Name: ".profile"}, {Name: "a"}}}}
	if list := c.requestedFiles(); len(list) != 1 || list[0].GetName() != "a" {
		t.Errorf("of a job that names no outputs come %v", list)
	}
}
