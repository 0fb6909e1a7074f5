package master

import (
	"os"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
)

// TestUpArgs writes options as arguments and reads them back.
func TestUpArgs(t *testing.T) {
	for _, want := range []UpOptions{
		{Nodes: 1, Stdout: os.Stdout},
		{Dir: "/tmp/a b", Nodes: 4, CPUs: 2500, Memory: 1 << 40, Desktop: true, NoWeb: true, DNS: "127.0.0.1:5353"},
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

// TestDividedPorts checks that each node of one host has ports of its own. They suffice
// for the most ports that a task may ask for.
func TestDividedPorts(t *testing.T) {
	for _, nodes := range []int{1, 2, 3, 16, 199} {
		n := singleHostNode(t.TempDir(), UpOptions{Nodes: nodes, CPUs: 1000, Memory: roost.GiB})
		whole := config.PortRange{}.OrDefault()
		next := int(whole.First)
		for _, d := range n.Startds {
			r := d.Ports.OrDefault()
			if int(r.First) != next || int(r.Last)-int(r.First)+1 < roost.MaxPorts || r.Last > whole.Last {
				t.Errorf("%d nodes: %s has the ports %v, and %d is next", nodes, d.Name, r, next)
			}
			next = int(r.Last) + 1
		}
	}
	if r := dividePorts(150, 200); r != (config.PortRange{}) {
		t.Errorf("200 nodes, whose parts are too small: got %v", r)
	}
}
