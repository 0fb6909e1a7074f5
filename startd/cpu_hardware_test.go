package startd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/roost-batch/roost/classad"
)

// smtHardware is a machine of 8 CPUs. The cores 0,4 and 1,5 are on node 0, and 2,6 and
// 3,7 on node 1.
func smtHardware(t *testing.T) cpuHardware {
	t.Helper()
	dir := t.TempDir()
	for id := range 8 {
		at := filepath.Join(dir, fmt.Sprintf("cpu%d", id), "topology")
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%d,%d\n", id%4, id%4+4)
		if err := os.WriteFile(filepath.Join(at, "thread_siblings_list"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	nodes := map[int]int{0: 0, 1: 0, 4: 0, 5: 0, 2: 1, 3: 1, 6: 1, 7: 1}
	return hardwareOf([]int{0, 1, 2, 3, 4, 5, 6, 7}, dir, nodes)
}

func TestCPUHardware(t *testing.T) {
	h := smtHardware(t)
	ad := classad.New()
	h.describe(ad)
	want := "[ ThreadsPerCore = 2; PhysicalCores = 4; NumaNodes = 2; NumaNodeCpus = 4 ]"
	if got := ad.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	taken := map[int]bool{}
	take := func(cpus int, want ...int) {
		t.Helper()
		got := h.chooseCores(cpus, taken)
		if !slices.Equal(got, want) {
			t.Errorf("%d CPUs: got %v, want %v", cpus, got, want)
		}
		for _, id := range got {
			taken[id] = true
		}
	}
	take(3)       // no whole number of cores
	take(2, 0, 4) // a core of a node
	take(4, 2, 3, 6, 7)
	take(4) // there is only one left
	take(2, 1, 5)
	taken = map[int]bool{4: true}
	take(6, 1, 2, 3, 5, 6, 7) // no node has three
	if got := h.usedThreads([]int{0, 1, 4, 5}, 1); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("one thread of each core: %v", got)
	}
	if got := h.wholeCoresOf([]int{0, 7}); !slices.Equal(got, []int{0, 3, 4, 7}) {
		t.Errorf("their cores: %v", got)
	}
	if got := h.cpusOfNode(1); !slices.Equal(got, []int{2, 3, 6, 7}) {
		t.Errorf("node 1: %v", got)
	}
}

// TestUnevenCPUHardware: a machine whose cores differ has no tasks with whole cores. A
// CPU of which the kernel says nothing is a core.
func TestUnevenCPUHardware(t *testing.T) {
	h := append(smtHardware(t), hardwareCore{cpus: []int{8}})
	if n := h.threads(); n != 0 {
		t.Errorf("got %d threads", n)
	}
	if h := hardwareOf([]int{3, 5}, t.TempDir(), nil); h.threads() != 1 || len(h) != 2 {
		t.Errorf("got %v", h)
	}
}

// TestLinkSpeed reads the link with the default route.
func TestLinkSpeed(t *testing.T) {
	dir := t.TempDir()
	routes := filepath.Join(dir, "route")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("route", "Iface\tDestination\tGateway\nlo\t0000007F\t0\neth1\t00000000\t0100000A\n")
	for text, want := range map[string]int64{"10000\n": 1_250_000_000, "-1\n": 0, "": 0, "x": 0} {
		write("net/eth1/speed", text)
		if got := linkSpeed(routes, filepath.Join(dir, "net")); int64(got) != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	if got := linkSpeed(routes+"x", dir); got != 0 {
		t.Errorf("without routes: %v", got)
	}
}
