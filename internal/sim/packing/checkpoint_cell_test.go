package packing

import (
	"math/rand"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestFromCheckpoint checks that the running tasks become the work and the machines
// empty. The work must fit on them.
func TestFromCheckpoint(t *testing.T) {
	c := smallCell(t, 12, 60, rand.New(rand.NewSource(4)))
	p := &cellstate.CellCheckpoint{CellState: cellstate.CellState{Now: time.Unix(1, 0)}}
	s := &match.Snapshot{Machines: c.Machines, Requests: c.Requests}
	claims := map[string][]match.MachineClaim{}
	free := map[string]*gpu.FreeResources{}
	id, units := uint64(0), 0
	for _, g := range match.NewMatcher().Plan(s).Grants {
		f := free[g.Machine.Name]
		if f == nil {
			var err error
			if f, err = gpu.ReadAd(g.Machine.Ad); err != nil {
				t.Fatal(err)
			}
			free[g.Machine.Name] = f
		}
		for range g.Units {
			on, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: g.Request.Class.Resources})
			if err != nil {
				t.Fatal(err)
			}
			f.TakePlacement(on)
			if g.Request.Band.IsProd() {
				f.SetUsageEstimate(&on, g.Request.Class.Resources.CPU/2, g.Request.Class.Resources.Memory)
			}
			id, units = id+1, units+1
			u := g.Request.Class.Resources
			claims[g.Machine.Name] = append(claims[g.Machine.Name], match.MachineClaim{
				ID: id, Submitter: g.Request.Submitter, Band: g.Request.Band, Resources: u, Placement: on,
				Job: "1.host",
			})
		}
	}
	for _, m := range c.Machines {
		ad := m.Ad.Copy()
		if f := free[m.Name]; f != nil {
			f.Describe(ad)
		}
		p.Machines = append(p.Machines, match.NewMachine(m.Name, 1, 1, ad).ReplaceClaims(claims[m.Name], nil, nil))
	}
	got, err := FromCheckpoint(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tasks) != units || len(got.Machines) != len(c.Machines) || got.Total() != c.Total() {
		t.Errorf("%d tasks on %d machines with %v, want %d on %d with %v", len(got.Tasks), len(got.Machines),
			got.Total(), units, len(c.Machines), c.Total())
	}
	sum, want := roost.Resources{}, roost.Resources{}
	for _, r := range got.Requests {
		for range r.Wanted {
			sum = sum.Add(r.Class.Resources)
		}
		if part := got.KnownReserved[r.Key]; r.Band.IsProd() && (part.CPU != 0.5 || part.Memory != 1) ||
			!r.Band.IsProd() && part != (ReservedPart{1, 1}) {
			t.Errorf("%v: %v is reserved", r.Class.Resources, part)
		}
	}
	for _, list := range claims {
		for _, k := range list {
			want = want.Add(k.Resources)
		}
	}
	if sum != want {
		t.Errorf("they ask for %v, want %v", sum, want)
	}
	for _, m := range got.Machines {
		if m.Free.CPU != m.Total.CPU || m.Free.GPUs != m.Total.GPUs || len(m.Claims) > 0 {
			t.Errorf("%s has %v free of %v", m.Name, m.Free, m.Total)
		}
	}
	k := CellCompaction{CellWorkload: got}
	if err := k.GrowToFit(); err != nil || k.Copies != 1 {
		t.Errorf("%d copies, %v", k.Copies, err)
	}
	if _, err := FromCheckpoint(&cellstate.CellCheckpoint{CellState: cellstate.CellState{Machines: c.Machines}}); err ==
		nil {
		t.Error("a cell in which nothing runs is compacted")
	}
}
