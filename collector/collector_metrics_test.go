package collector

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost/collector/adstore"
	"github.com/roost-batch/roost/internal/metrics"
)

// TestMetricsSnapshot counts 10,000 machines by state and class.
func TestMetricsSnapshot(t *testing.T) {
	const machines = 10_000
	store := adstore.New(adstore.DefaultLimits())
	classes := []string{`Arch = "X86_64"`, `GpuModels = {"A100", "V100"}; Arch = "X86_64"`,
		`NodeClass = "bigmem"; GpuModels = {"A100"}`, `Site = "east"`}
	for i := range machines {
		state, owned := []string{"Unclaimed", "Claimed", "Drained", "Owner"}[i/4%4], ""
		if i%8 < 4 {
			owned = "; OwnerBusy = false"
		}
		name := fmt.Sprintf("n%d", i)
		free := 8
		if state == "Claimed" {
			free = 2
		}
		ad := fmt.Sprintf(`[MyType = "Machine"; Name = %q; TotalCpus = 8; Cpus = %d; State = %q; %s%s]`, name, free, state,
			classes[i%4], owned)
		if _, err := store.Update(time.Unix(1, 0), adstore.AdUpdate{Type: "Machine", Name: name, Sequence: 1,
			Started: 1, Lease: time.Hour, Ad: ad}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	s := metricsSnapshot(store.List(""))
	took := time.Since(began)
	if s.Ads["Machine"] != machines {
		t.Errorf("ads: %v", s.Ads)
	}
	for _, class := range []string{"X86_64", "A100", "bigmem", metrics.OtherValue} {
		for _, state := range []string{"Unclaimed", "Claimed", "Drained", "Owner"} {
			if n := s.Nodes[metrics.NodeState(state)][class]; n != machines/16 {
				t.Errorf("%v nodes of %s are %s", n, class, state)
			}
		}
		for state, want := range map[int]float64{metrics.HeldAmount: 6, metrics.FreeAmount: 10,
			metrics.DrainedAmount: 8, metrics.OwnerAmount: 8} {
			if n := s.Cores[state][class]; n != want*machines/16 {
				t.Errorf("%v cores of %s are in state %d, want %v", n, class, state, want*machines/16)
			}
		}
	}
	if s.Desktops != machines/2 || s.UsableDesktops == 0 || s.UsableDesktops >= s.Desktops {
		t.Errorf("%d desktops, %d usable", s.Desktops, s.UsableDesktops)
	}
	t.Logf("a snapshot of %d machines takes %v", machines, took)
}
