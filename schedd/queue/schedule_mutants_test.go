//go:build plants

package queue

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// TestScheduleMutants checks that the random schedules find a run that is doubled and one
// that is lost.
func TestScheduleMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{mutant.RunDoubled, mutant.RunLost} {
		t.Run(b.String(), func(t *testing.T) {
			mutant.Activate(b)
			defer mutant.Activate(0)
			for seed := range uint64(300) {
				if problem := playUnchecked(t, seed); problem != "" {
					t.Logf("found by seed %d: %s", seed, problem)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// TestFlowMutants checks that the random flows find a part that has two jobs, and one
// whose job is lost.
func TestFlowMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{mutant.FlowPartDoubled, mutant.FlowPartLost} {
		t.Run(b.String(), func(t *testing.T) {
			mutant.Activate(b)
			defer mutant.Activate(0)
			for seed := range uint64(300) {
				if problem := flowUnchecked(t, seed); problem != "" {
					t.Logf("found by seed %d: %s", seed, problem)
					return
				}
			}
			t.Error("not found")
		})
	}
}

// flowUnchecked runs a random flow twice until a check fails, or the two end differently.
func flowUnchecked(t *testing.T, seed uint64) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = fmt.Sprint(r)
		}
	}()
	calm, _ := runRandomFlow(t, seed, 0)
	if wild, _ := runRandomFlow(t, seed, 4); wild != calm {
		return calm + "is " + wild + "with restarts"
	}
	return ""
}

// TestBudgetMutant checks that the random work finds a drain that has its own budget.
func TestBudgetMutant(t *testing.T) {
	mutant.Activate(mutant.BudgetOfOneCause)
	defer mutant.Activate(0)
	for seed := range uint64(500) {
		if problem := workUnchecked(t, seed); problem != "" {
			t.Logf("found by seed %d: %s", seed, problem)
			return
		}
	}
	t.Error("not found")
}

// workUnchecked does random work until a check fails.
func workUnchecked(t *testing.T, seed uint64) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = r.(string)
		}
	}()
	d, rng := newTestQueue(t), rand.New(rand.NewPCG(seed, 7))
	for range 300 {
		d.randomStep(rng)
	}
	return ""
}

// playUnchecked is playSchedule where a panic of the queue's own check counts, too.
func playUnchecked(t *testing.T, seed uint64) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = r.(string)
		}
	}()
	return playSchedule(t, seed)
}

// TestEpochMutants checks that the random epochs of gangs find one that is committed too
// early.
func TestEpochMutants(t *testing.T) {
	mutant.Activate(mutant.HalfEpochSaved)
	defer mutant.Activate(0)
	for seed := range uint64(20) {
		if problem := epochsUnchecked(t, seed); problem != "" {
			t.Logf("found by seed %d: %s", seed, problem)
			return
		}
	}
	t.Error("not found")
}

// epochsUnchecked plays random epochs until a check fails.
func epochsUnchecked(t *testing.T, seed uint64) (problem string) {
	defer func() {
		if r := recover(); r != nil {
			problem = fmt.Sprint(r)
		}
	}()
	runRandomEpochs(t, seed)
	return ""
}
