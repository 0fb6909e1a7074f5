package frame

import (
	"strings"
	"testing"
)

// TestHostOf holds which node the ids on a command line name.
func TestHostOf(t *testing.T) {
	for operands, want := range map[string]string{
		"12.n2": "n2", "12[3].n2 9.n2": "n2", "12[1-5:2].n2.example.org": "n2.example.org", "12.n2@server": "n2",
		"": "", "12": "", "12.n2 13": "", "12.n2 12.n3": "", "last": "", "@name.x": "", "all": "", "sweep.hcl": "",
		"-W force 12.n2": "", "1x.n2": "", "12[3": "",
	} {
		if got := operandsHost(strings.Fields(operands)); got != want {
			t.Errorf("%q: got %q, want %q", operands, got, want)
		}
	}
}
