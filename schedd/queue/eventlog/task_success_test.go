package eventlog

import "testing"

// TestSuccessesWithoutUsage: runs of successes that were written before usage was kept
// are read as if nothing had been used.
func TestSuccessesWithoutUsage(t *testing.T) {
	written := TaskRecords{Tasks: 2}
	r := written.MakeOwn(0)
	r.Attempt, r.Node, r.Exit = 1, "n", &AttemptExit{Wall: 5, Used: ResourceUsage{Peak: 1 << 20}}
	written.Compact(0)
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
	k := TaskRecords{Tasks: 2, recordStore: &recordStore{nodes: written.nodes}}
	if err := k.decodeSuccesses(old); err != nil {
		t.Fatal(err)
	}
	if x := k.Get(0).Exit; x.Wall != 5 || x.Used != (ResourceUsage{}) {
		t.Errorf("got %+v", x)
	}
}
