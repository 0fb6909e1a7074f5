package negotiation

import (
	"testing"
)

// TestLocation checks that a location in the log says whose certificate is wanted there.
// That holds for older logs too. An address cannot name another node.
func TestLocation(t *testing.T) {
	for _, tt := range []struct{ machine, host, address, text, wanted, at string }{
		{"n1", "n1", "10.0.0.1:9703", "10.0.0.1:9703", "n1", "10.0.0.1:9703"},
		{"n1", "", "10.0.0.1:9703", "10.0.0.1:9703", "n1", "10.0.0.1:9703"},
		{"gpu.n1", "n1", "10.0.0.1:9703", "n1@10.0.0.1:9703", "n1", "10.0.0.1:9703"},
		{"evil", "evil", "n1@10.0.0.1:9703", "evil@n1@10.0.0.1:9703", "evil", "n1@10.0.0.1:9703"},
		{"evil", "", "n1@10.0.0.1:9703", "evil@n1@10.0.0.1:9703", "evil", "n1@10.0.0.1:9703"},
		{"n1", "n1", "unix:/home/n2@lab/x.sock", "unix:/home/n2@lab/x.sock", "n1", "unix:/home/n2@lab/x.sock"},
		{"n1", "n1", "", "", "n1", ""},
	} {
		text := formatLocation(tt.machine, tt.host, tt.address)
		if wanted, at := ParseLocation(tt.machine, text); text != tt.text || wanted != tt.wanted || at != tt.at {
			t.Errorf("%s of %q at %q: %q, which is %q at %q; want %q, %q, %q", tt.machine, tt.host, tt.address, text,
				wanted, at, tt.text, tt.wanted, tt.at)
		}
	}
}
