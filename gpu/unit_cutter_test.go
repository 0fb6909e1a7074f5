package gpu

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
)

// TestCut checks the three layouts of HRM figure 2, and the other settings of a layout.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		name   string
		in     MachineTopology
		layout LayoutConfig
		want   string
	}{
		{"shared", testMachine(8, 2), LayoutConfig{},
			"shared [0 1 2 3 4 5 6 7] 8 32GiB -1; gpu0 [] 0 0B -1 GPU-0; gpu1 [] 0 0B -1 GPU-1"},
		{"pinned", testMachine(8, 2), LayoutConfig{Shape: PinnedLayout, CoresPerGPU: 1},
			"cpu [1 2 3 5 6 7] 6 24GiB -1; gpu0 [0] 1 4GiB 0 GPU-0; gpu1 [4] 1 4GiB 1 GPU-1"},
		{"pinned, as usual", testMachine(8, 2), LayoutConfig{Shape: PinnedLayout},
			"cpu [2 3 6 7] 4 16GiB -1; gpu0 [0 1] 2 8GiB 0 GPU-0; gpu1 [4 5] 2 8GiB 1 GPU-1"},
		{"pinned, a unit for each node", testMachine(8, 2),
			LayoutConfig{Shape: PinnedLayout, CPUUnits: OnePerMemoryNode},
			"numa0 [2 3] 2 8GiB 0; numa1 [6 7] 2 8GiB 1; gpu0 [0 1] 2 8GiB 0 GPU-0; gpu1 [4 5] 2 8GiB 1 GPU-1"},
		{"even", testMachine(8, 2), LayoutConfig{Shape: EvenLayout},
			"gpu0 [0 1 2 3] 4 16GiB 0 GPU-0; gpu1 [4 5 6 7] 4 16GiB 1 GPU-1"},
		{"even, of an odd number", testMachine(7, 2), LayoutConfig{Shape: EvenLayout},
			"gpu0 [0 1 2] 3 12GiB 0 GPU-0; gpu1 [3 4 5 6] 4 16GiB -1 GPU-1"},
		{"no GPUs", testMachine(4, 0), LayoutConfig{Shape: EvenLayout}, "shared [0 1 2 3] 4 16GiB -1"},
		{"no GPUs, two units", testMachine(4, 0), LayoutConfig{CPUUnits: 2},
			"cpu0 [0 1] 2 8GiB 0; cpu1 [2 3] 2 8GiB 1"},
		{"more than there is", MachineTopology{CPU: 64000, Memory: roost.GiB, Cores: []CPUCore{{0, 0}}}, LayoutConfig{},
			"shared [0] 64 1GiB 0"},
		{"less than there is", func() MachineTopology {
			m := testMachine(8, 2)
			m.CPU = 3500
			return m
		}(), LayoutConfig{Shape: EvenLayout},
			"gpu0 [0 1] 1.75 16GiB 0 GPU-0; gpu1 [4 5] 1.75 16GiB 1 GPU-1"},
		{"too few cores", testMachine(2, 4), LayoutConfig{Shape: PinnedLayout},
			"error: layout pinned: bad configuration: 2 cores are too few for 4 GPUs: use layout shared, or fewer " +
				"cores_per_gpu"},
		{"more cores than real", func() MachineTopology {
			m := testMachine(2, 1)
			m.CPU = 3000
			return m
		}(), LayoutConfig{Shape: EvenLayout},
			"error: layout even: bad configuration: cpus = 3, and there are 2 cores to cut: leave cpus out"},
	} {
		units, err := CutUnits(c.in, c.layout)
		var words []string
		for _, u := range units {
			text := fmt.Sprintf("%s %v %v %v %d", u.Name, u.Cores, u.CPU, u.Memory, u.NUMA)
			for _, d := range u.Devices {
				text += " " + d.UUID
			}
			words = append(words, text)
		}
		got := strings.Join(words, "; ")
		if err != nil {
			got = "error: " + err.Error()
			if !errors.Is(err, roost.BadConfig) {
				t.Errorf("%s: %v is not of kind BadConfig", c.name, err)
			}
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestCutInstances checks that a card with MIG instances is not allocated beside them.
func TestCutInstances(t *testing.T) {
	m := testMachine(4, 1)
	for i := range 2 {
		m.Devices = append(m.Devices, Device{UUID: fmt.Sprintf("MIG-%d", i), MIG: "3g.20gb", ParentUUID: "GPU-0",
			Index: i + 1, Memory: 20 * roost.GiB, NUMANode: 0, Health: HealthyDevice()})
	}
	units, err := CutUnits(m, LayoutConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := NewFree(units, 0).Total().GPUs, 2; got != want {
		t.Errorf("%d devices, want %d", got, want)
	}
}
