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
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/negotiator/match"
)

// Private attributes of machine ads.
const (
	grantKey = "GrantKey"   // proves grants, in hex
	clockKey = "Clock"      // the machine's CLOCK_BOOTTIME when the ad was made, in nanoseconds
	nameKey  = "GrantNames" // not empty: the machine takes grants that name the schedd which may claim
)

// inventory is the machines that there are, as the collectors tell it. It outlives the cells: a negotiator that does not lead keeps it up to
// date, so that a new leader has the picture at once.
type inventory struct {
	machines map[string]*machine
	sorted   []*match.Machine // the same by name
	total    roost.Resources  // of all machines
	claims   holdings         // what each schedd's tasks hold, as the machines say
	prod     prodHoldings     // what claims of the bands that displace others hold
	licences licences         // what they take of licences, likewise
	common   *classad.Pool    // what their ads share
	synced   bool             // the collectors have told what machines there are
}

// machine is a machine, the key that proves grants to it, and the time there.
type machine struct {
	*match.Machine
	key   []byte
	clock time.Duration // when the ad was made, by the machine's own clock; 0: it does not say
	heard time.Time     // by this one's
	names bool          // it takes grants that name the schedd which may claim
}

func newInventory() *inventory {
	return &inventory{machines: map[string]*machine{}, claims: holdings{}, prod: prodHoldings{}, licences: licences{}, common: classad.NewPool()}
}

// machineNews is a change of a machine's ad, parsed.
type machineNews struct {
	name    string
	machine *machine // nil: gone
}

// readMachine parses a change. An ad that makes no sense, or has no key, is as good as none.
func readMachine(now time.Time, c advertise.Change, log *slog.Logger) machineNews {
	news := machineNews{name: c.Name}
	if c.Removed {
		return news
	}
	ad, err := classad.Parse(c.Ad)
	if err != nil {
		log.Warn("machine ad makes no sense", "machine", c.Name, "err", err)
		return news
	}
	key, err := hex.DecodeString(c.Private[grantKey])
	if err != nil || len(key) == 0 {
		log.Warn("machine ad has no grant key", "machine", c.Name)
		return news
	}
	return newMachineNews(now, c.Name, c.Started, c.Sequence, ad, key, c.Private)
}

func newMachineNews(now time.Time, name string, started int64, sequence uint64, ad *classad.Ad, key []byte, private map[string]string) machineNews {
	there, _ := strconv.ParseInt(private[clockKey], 10, 64)
	return machineNews{name, &machine{match.NewMachine(name, started, sequence, ad), key, time.Duration(max(there, 0)), now, private[nameKey] != ""}}
}

// few is how many machines may come or go at once for it to be cheaper to make room for each than to sort all anew.
const few = 16

// apply takes in what the collectors said.
func (v *inventory) apply(all []machineNews, synced bool) {
	var moved []string
	for _, news := range all {
		old, m := v.machines[news.name], news.machine
		if old != nil {
			v.total = v.total.Sub(old.Total)
			v.claims.add(old, -1)
			v.licences.add(old, -1)
			v.prod.add(old, -1)
			delete(v.machines, news.name)
		}
		if m != nil {
			v.common.Compact(m.Ad)
			v.total = v.total.Add(m.Total)
			v.claims.add(m, 1)
			v.licences.add(m, 1)
			v.prod.add(m, 1)
			v.machines[news.name] = m
		}
		if at, found := v.find(news.name); found && m != nil {
			v.sorted[at] = m.Machine
		} else {
			moved = append(moved, news.name)
		}
	}
	if len(moved) > few {
		v.sort()
	} else {
		for _, name := range moved {
			v.move(name)
		}
	}
	v.synced = v.synced || synced
}

// move puts a machine that has come where it belongs, and takes one that has gone from where it was.
func (v *inventory) move(name string) {
	at, found := v.find(name)
	switch m := v.machines[name]; {
	case m != nil && found:
		v.sorted[at] = m.Machine
	case m != nil:
		v.sorted = slices.Insert(v.sorted, at, m.Machine)
	case found:
		v.sorted = slices.Delete(v.sorted, at, at+1)
	}
}

// find is the place of a machine in order.
func (v *inventory) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(v.sorted, name, func(m *match.Machine, name string) int { return strings.Compare(m.Name, name) })
}

// sort puts the machines in order anew.
func (v *inventory) sort() {
	v.sorted = slices.Grow(v.sorted[:0], len(v.machines))
	for _, m := range v.machines {
		v.sorted = append(v.sorted, m.Machine)
	}
	clear(v.sorted[len(v.sorted):cap(v.sorted)]) // what has gone is not to be kept
	slices.SortFunc(v.sorted, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
}
