package queue

import "testing"

// TestSuccessesWithoutUsage: runs of successes that were written before usage was kept
// are read as if nothing had been used.
func TestSuccessesWithoutUsage(t *testing.T) {
	written := taskRecords{tasks: 2}
	r := written.makeOwn(0)
	r.attempt, r.node, r.exit = 1, "n", &AttemptExit{Wall: 5, Used: ResourceUsage{Peak: 1 << 20}}
	written.compact(0)
	b := written.appendSuccesses(nil, 0, 0)
	var old []byte
	if err := eachField(b, func(f encodedField) error {
		switch f.number {
		case 3:
			old = appendMessage(old, 3, func([]byte) []byte { return f.bytes })
		case 1, 2:
			old = appendNumber(old, f.number, f.value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	k := taskRecords{tasks: 2, nodes: written.nodes}
	if err := k.decodeSuccesses(old); err != nil {
		t.Fatal(err)
	}
	if x := k.get(0).exit; x.Wall != 5 || x.Used != (ResourceUsage{}) {
		t.Errorf("got %+v", x)
	}
}
