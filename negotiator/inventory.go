package negotiator

import (
	"encoding/hex"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/adclient"
	"github.com/roost-batch/roost/negotiator/match"
)

// Private attributes of machine ads.
const (
	grantKey = "GrantKey"   // proves grants, in hex
	clockKey = "Clock"      // the machine's CLOCK_BOOTTIME when the ad was made, in nanoseconds
	nameKey  = "GrantNames" // not empty: the machine accepts grants that name the schedd which may claim
)

// machineInventory holds the machines, as the collectors report them. It outlives
// leadership: a negotiator that follows updates it, so a new leader has it at once.
type machineInventory struct {
	machines      map[string]*inventoryMachine
	sorted        []*match.Machine    // the same machines, by name
	total         roost.Resources     // of all machines
	usageBySchedd usageBySchedd       // by schedd: resources that its tasks hold, from the machine ads
	guestUsage    guestUsage          // resources that claims of guests hold, from the machine ads
	prod          prodHoldings        // resources of claims in prod bands, from the machine ads
	limitUse      limitUse            // use of concurrency limits, from the machine ads
	commonAttrs   *classad.InternPool // attributes that the ads share
	synced        bool                // the collectors have reported all machines
}

// inventoryMachine is a machine with the key that proves grants to it, and its clock.
type inventoryMachine struct {
	*match.Machine
	grantKey []byte
	clock    time.Duration // the machine's clock when the ad was made; 0: unknown
	heardAt  time.Time     // by this host's clock
	names    bool          // accepts grants that name the schedd which may claim
}

func newInventory() *machineInventory {
	return &machineInventory{machines: map[string]*inventoryMachine{}, usageBySchedd: usageBySchedd{},
		guestUsage: newGuestUsage(),
		prod:       prodHoldings{}, limitUse: limitUse{}, commonAttrs: classad.NewPool()}
}

// machineUpdate is a parsed change of a machine ad.
type machineUpdate struct {
	name    string
	machine *inventoryMachine // nil: removed
}

// parseMachineUpdate parses a change. An invalid ad, or one without a key, counts as
// removed.
func parseMachineUpdate(now time.Time, c adclient.AdChange, log *slog.Logger) machineUpdate {
	update := machineUpdate{name: c.Name}
	if c.Removed {
		return update
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		log.Warn("machine ad makes no sense", "machine", c.Name, "err", err)
		return update
	}
	key, err := hex.DecodeString(c.Private[grantKey])
	if err != nil || len(key) == 0 {
		log.Warn("machine ad has no grant key", "machine", c.Name)
		return update
	}
	return newMachineUpdate(now, c.Name, c.Started, c.Sequence, ad, key, c.Private)
}

func newMachineUpdate(now time.Time, name string, started int64, sequence uint64, ad *classad.Ad, key []byte,
	private map[string]string) machineUpdate {
	there, _ := strconv.ParseInt(private[clockKey], 10, 64)
	return machineUpdate{name, &inventoryMachine{match.NewMachine(name, started, sequence, ad), key,
		time.Duration(max(there, 0)), now, private[nameKey] != ""}}
}

// maxIncrementalMoves is how many machines may come or go before sorting all is cheaper
// than moving each.
const maxIncrementalMoves = 16

// applyUpdates applies changes that the collectors reported.
func (v *machineInventory) applyUpdates(all []machineUpdate, synced bool) {
	var moved []string
	for _, update := range all {
		old, m := v.machines[update.name], update.machine
		if old != nil {
			v.total = v.total.Sub(old.Total)
			v.usageBySchedd.addMachine(old, -1)
			v.guestUsage.addMachine(old, -1)
			v.limitUse.addMachine(old, -1)
			v.prod.add(old, -1)
			delete(v.machines, update.name)
		}
		if m != nil {
			v.commonAttrs.Intern(m.Ad)
			v.total = v.total.Add(m.Total)
			v.usageBySchedd.addMachine(m, 1)
			v.guestUsage.addMachine(m, 1)
			v.limitUse.addMachine(m, 1)
			v.prod.add(m, 1)
			v.machines[update.name] = m
		}
		if at, found := v.indexOf(update.name); found && m != nil {
			v.sorted[at] = m.Machine
		} else {
			moved = append(moved, update.name)
		}
	}
	if len(moved) > maxIncrementalMoves {
		v.sortMachines()
	} else {
		for _, name := range moved {
			v.moveMachine(name)
		}
	}
	v.synced = v.synced || synced
}

// moveMachine inserts a machine that has come into the sorted list, and removes one that
// has gone.
func (v *machineInventory) moveMachine(name string) {
	at, found := v.indexOf(name)
	switch m := v.machines[name]; {
	case m != nil && found:
		v.sorted[at] = m.Machine
	case m != nil:
		v.sorted = slices.Insert(v.sorted, at, m.Machine)
	case found:
		v.sorted = slices.Delete(v.sorted, at, at+1)
	}
}

// indexOf returns the index of a machine in the sorted list.
func (v *machineInventory) indexOf(name string) (at int, found bool) {
	return slices.BinarySearchFunc(v.sorted, name, func(m *match.Machine, name string) int {
		return strings.Compare(m.Name, name)
	})
}

// sortMachines sorts all machines anew.
func (v *machineInventory) sortMachines() {
	v.sorted = slices.Grow(v.sorted[:0], len(v.machines))
	for _, m := range v.machines {
		v.sorted = append(v.sorted, m.Machine)
	}
	clear(v.sorted[len(v.sorted):cap(v.sorted)]) // so that removed machines are not retained
	slices.SortFunc(v.sorted, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
}
