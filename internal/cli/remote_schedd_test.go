package cli

import (
	"slices"
	"strings"
	"testing"
)

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
	hosts, of := selectorsByHost(strings.Fields("1 2.n2 3.n3 4 5.n2"))
	if !slices.Equal(hosts, []string{"", "n2", "n3"}) || !slices.Equal(of["n2"], []string{"2.n2", "5.n2"}) ||
		!slices.Equal(of[""], []string{"1", "4"}) {
		t.Errorf("got %q, %q", hosts, of)
	}
}

// TestSchedd holds that a command for another node is never done by this one's schedd,
// where one is not logged in.
func TestSchedd(t *testing.T) {
	for _, line := range []string{"roost --schedd n2 rm 62", "roost --schedd=n2 run -- /bin/true",
		"roost --schedd n2 hold all", "qdel 62@n2x"} {
		f := sampleJobs()
		a, _, stderr := newTestApp(t, f.serve(t))
		code := a.Run(t.Context(), strings.Fields(line))
		if strings.HasPrefix(line, "qdel") { // the schedd is told whose it is, and refuses
			if len(f.acted) != 1 || f.acted[0].GetSelection().GetSelectors()[0] != "62.n2x" {
				t.Errorf("%s: it was asked %v", line, f.acted)
			}
			continue
		}
		if code == 0 || len(f.acted)+len(f.submitted) > 0 {
			t.Errorf("%s: exit status %d, %s", line, code, stderr)
		}
	}
}
