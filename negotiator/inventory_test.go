package negotiator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/negotiator/match"
)

// TestInventory checks the sorted list and the total of machines. They come, change and
// go at random, few and many at once.
func TestInventory(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 9))
		v, latest := newInventory(), map[string]*inventoryMachine{}
		for round := range 40 {
			var all []machineUpdate
			for range rng.IntN(3 * maxIncrementalMoves) {
				update := machineUpdate{name: fmt.Sprintf("m%02d", rng.IntN(60))}
				delete(latest, update.name)
				if rng.IntN(3) > 0 {
					ad := classad.New()
					ad.SetInt(roost.AttrTotalCpus, int64(rng.IntN(64)))
					update.machine = &inventoryMachine{Machine: match.NewMachine(update.name, 1, uint64(round), ad)}
					latest[update.name] = update.machine
				}
				all = append(all, update)
			}
			v.applyUpdates(all, true)
			var total roost.Resources
			for _, m := range v.sorted {
				if latest[m.Name] == nil || latest[m.Name].Machine != m || v.machines[m.Name].Machine != m {
					t.Fatalf("seed %d round %d: %s is not the latest", seed, round, m.Name)
				}
				total = total.Add(m.Total)
			}
			ordered := slices.IsSortedFunc(v.sorted, func(a, b *match.Machine) int {
				return strings.Compare(a.Name, b.Name)
			})
			if !ordered || len(v.sorted) != len(latest) || len(v.machines) != len(latest) || v.total != total {
				t.Fatalf("seed %d round %d: %d machines of %d, in order %v, total %v of %v", seed, round, len(v.sorted),
					len(latest), ordered, v.total, total)
			}
		}
	}
}
