package match

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestMoves checks in random cells that tasks move only if they may, and that all of them
// have room elsewhere. With advice, and without the policy, plans are the same.
func TestMoves(t *testing.T) {
	moved, advised := 0, 0
	for seed := range uint64(3000) {
		s := randomTenants(t, rand.New(rand.NewPCG(seed, 7)))
		s.Machines = append(s.Machines, randomRoom(t, seed))
		slices.SortFunc(s.Machines, func(a, b *Machine) int { return int(a.Name[0]) - int(b.Name[0]) })
		r := s.Requests[0]
		r.Band, r.WaitingSince, r.Explain = roost.BatchBand, s.Now.Unix()-60, true
		off := NewMatcher().Plan(newMatcherCopy(s))
		s.Preemption.Moves = &MovePolicy{OnlyAdvise: true, MinWait: 30 * time.Second, MinRuntime: 5 * time.Second}
		advice := NewMatcher().Plan(newMatcherCopy(s))
		if got, want := grantsText(advice.Grants), grantsText(off.Grants); got != want {
			t.Fatalf("seed %d: with advice %q, without %q", seed, got, want)
		}
		if len(advice.Unplaced) > 0 &&
			len(advice.Unplaced[0].Explanation.Advice) > len(off.Unplaced[0].Explanation.Advice) {
			advised++
		}
		s.Preemption.Moves.OnlyAdvise = false
		for _, g := range NewMatcher().Plan(newMatcherCopy(s)).Grants {
			if moves := movesOf(s, &g); len(moves) > 0 {
				moved++
				checkMoves(t, seed, s, &g, moves)
			}
		}
	}
	if moved < 8 || advised < 6 {
		t.Errorf("only %d grants moved tasks, and %d advices were given", moved, advised)
	}
}

// randomRoom returns a machine with some room and no claims.
func randomRoom(t *testing.T, seed uint64) *Machine {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 8))
	total := roost.Resources{CPU: 8000, Memory: 8 * roost.GiB, Disk: roost.TiB}
	free := total
	free.CPU = roost.MilliCPU(rng.IntN(5)) * 1000
	return NewMachine("z", 1, 1, machineAd(t, "z", total, free, ""))
}

// movesOf returns the victims of a grant that neither a lower band nor Rank explains.
func movesOf(s *Snapshot, g *Grant) (moves []*MachineClaim) {
	for i := range g.Machine.Claims {
		c := &g.Machine.Claims[i]
		if !slices.Contains(g.Victims, c.ID) || c.Band < g.Request.Band {
			continue
		}
		if e, _ := g.Machine.Ad.Lookup("Rank"); e.String() == "TARGET.Worth" && c.Rank < 2 && !c.losesTask() {
			continue
		}
		moves = append(moves, c)
	}
	return moves
}

// checkMoves checks the tasks that move for a grant.
func checkMoves(t *testing.T, seed uint64, s *Snapshot, g *Grant, moves []*MachineClaim) {
	t.Helper()
	var total roost.Resources
	for _, m := range s.Machines {
		total = total.Add(m.Total)
	}
	worth := 0.0
	for _, c := range moves {
		worth += fairshare.CoresWorth(c.Resources, total)
		if !c.Checkpointable || c.Resources.GPUs > 0 || s.Now.Unix()-c.TaskStarted < 5 {
			t.Errorf("seed %d: claim %d may not move: %+v", seed, c.ID, c)
		}
	}
	if worth > fairshare.CoresWorth(g.Request.Class.Resources, total)/2 {
		t.Errorf("seed %d: %d tasks move, and are together %v", seed, len(moves), worth)
	}
	free := map[*Machine]roost.Resources{}
	for _, m := range s.Machines {
		if m.Name == g.Machine.Name {
			continue
		}
		if free[m] = m.Free; m.units != nil {
			free[m] = m.units.LeftForBatch()
		}
	}
	if !haveRoom(free, moves) {
		t.Errorf("seed %d: %d tasks move, and there is no room for them elsewhere", seed, len(moves))
	}
}

// haveRoom tries all ways to place claims on machines.
func haveRoom(free map[*Machine]roost.Resources, claims []*MachineClaim) bool {
	if len(claims) == 0 {
		return true
	}
	for m, room := range free {
		has := room
		if claims[0].AppClass() == gpu.StreamClass {
			has.CPU = m.streamFree
		}
		if !claims[0].Resources.FitsIn(has) {
			continue
		}
		free[m] = room.Sub(claims[0].Resources)
		fits := haveRoom(free, claims[1:])
		if free[m] = room; fits {
			return true
		}
	}
	return false
}
