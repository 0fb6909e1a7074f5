package master

import (
	"os"
	"testing"
)

// TestUpArgs writes options as arguments and reads them back.
func TestUpArgs(t *testing.T) {
	for _, want := range []UpOptions{
		{Nodes: 1, Stdout: os.Stdout},
		{Dir: "/tmp/a b", Nodes: 4, CPUs: 2500, Memory: 1 << 40, Desktop: true, NoWeb: true},
	} {
		if got, err := ParseUpArgs(want.Args()); got != want || err != nil {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	for _, args := range [][]string{{"--nodes", "x"}, {"--node", "1"}, {"more"}} {
		if got, err := ParseUpArgs(args); err == nil {
			t.Errorf("%q: got %+v", args, got)
		}
	}
}
