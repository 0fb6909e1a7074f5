package match

import (
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// ioMachine returns a machine of 8 cores with rates in MiB per second; by sums, or with a
// resource unit.
func ioMachine(t *testing.T, name string, unit bool, total, free roost.IORates) *Machine {
	t.Helper()
	sum := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB}
	ad := machineAd(t, name, sum, sum, "")
	gpu.DescribeIORates(ad, total, total, roost.AttrTotalDiskIO, roost.AttrTotalNetwork)
	gpu.DescribeIORates(ad, free, total, roost.AttrDiskIO, roost.AttrNetwork)
	if unit {
		f, err := gpu.ReadAd(ad)
		if err != nil {
			t.Fatal(err)
		}
		f.Describe(ad)
	}
	return NewMachine(name, 1, 1, ad)
}

// TestPlaceByIORates: machines get as many tasks as their disks and networks can serve.
// There are cores for more. Machines that state no rate get none.
func TestPlaceByIORates(t *testing.T) {
	const mb = 1 << 20
	for _, unit := range []bool{false, true} {
		r := roost.Resources{CPU: 1000, Memory: roost.MiB, IO: roost.IORates{Disk: 30 * mb, Network: 10 * mb}}
		c, err := NewClass("", fairshare.Submitter{Owner: "ann"}, roost.BatchBand, r)
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := c.Ad.Int(roost.AttrRequestDiskIO); n != 30*1024 {
			t.Errorf("the machine's policy sees %d", n)
		}
		s := &Snapshot{
			Machines: []*Machine{
				ioMachine(t, "disk", unit, roost.IORates{Disk: 100 * mb, Network: 1000 * mb},
					roost.IORates{Disk: 100 * mb, Network: 1000 * mb}),
				ioMachine(t, "network", unit, roost.IORates{Disk: 1000 * mb, Network: 50 * mb},
					roost.IORates{Disk: 1000 * mb, Network: 25 * mb}),
				ioMachine(t, "none", unit, roost.IORates{}, roost.IORates{}),
			},
			Requests: []*Request{{Key: RequestKey{"s", 1}, Submitter: fairshare.Submitter{Owner: "ann"}, Wanted: 20,
				Class: c, Band: roost.BatchBand}},
		}
		got := map[string]int{}
		for _, g := range NewMatcher().Plan(s).Grants {
			got[g.Machine.Name] += g.Units
		}
		if got["disk"] != 3 || got["network"] != 2 || got["none"] != 0 {
			t.Errorf("with units %v: %v", unit, got)
		}
	}
}

// TestExplainIORates: what keeps a request waiting is named, with the most there is.
func TestExplainIORates(t *testing.T) {
	r := roost.Resources{IO: roost.IORates{Disk: 30 << 20, Network: 7}}
	if got := diskIO.amountText(diskIO.amountOf(r), true); got != "30MiB/s disk_io" {
		t.Errorf("got %q", got)
	}
	if got := network.amountText(network.amountOf(r), false); got != "7B/s" {
		t.Errorf("got %q", got)
	}
}

// TestClaimWithIORates: what a claim in a machine's ad holds is returned when it leaves.
func TestClaimWithIORates(t *testing.T) {
	ad, err := classad.Parse(`[ Id = 7; Owner = "ann"; Band = "batch"; Cpus = 1; Memory = 1; Disk = 0; Gpus = 0;
		DiskIo = 2048; Network = 1024; RUs = {} ]`)
	if err != nil {
		t.Fatal(err)
	}
	var c MachineClaim
	if err := c.readAd(ad); err != nil {
		t.Fatal(err)
	}
	if want := (roost.IORates{Disk: 2 << 20, Network: 1 << 20}); c.Resources.IO != want || c.Placement.IO != want {
		t.Errorf("got %v and %v", c.Resources.IO, c.Placement.IO)
	}
}
