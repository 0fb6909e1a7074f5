package negotiator

import (
	"encoding/hex"
	"log/slog"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/negotiator/match"
)

// grantKey is the private attribute of machine ads that proves grants, in hex.
const grantKey = "GrantKey"

// inventory is the machines that there are, as the collectors tell it. It outlives the cells: a negotiator that does not lead keeps it up to
// date, so that a new leader has the picture at once.
type inventory struct {
	machines map[string]*machine
	total    roost.Resources // of all machines
	synced   bool            // the collectors have told what machines there are
}

// machine is a machine and the key that proves grants to it.
type machine struct {
	*match.Machine
	key []byte
}

func newInventory() *inventory { return &inventory{machines: map[string]*machine{}} }

// machineNews is a change of a machine's ad, parsed.
type machineNews struct {
	name    string
	machine *machine // nil: gone
}

// readMachine parses a change. An ad that makes no sense, or has no key, is as good as none.
func readMachine(c advertise.Change, log *slog.Logger) machineNews {
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
	news.machine = &machine{match.NewMachine(c.Name, c.Started, c.Sequence, ad), key}
	return news
}

// apply takes in what the collectors said.
func (v *inventory) apply(all []machineNews, synced bool) {
	for _, news := range all {
		if old := v.machines[news.name]; old != nil {
			v.total = v.total.Sub(old.Total)
			delete(v.machines, news.name)
		}
		if m := news.machine; m != nil {
			v.total = v.total.Add(m.Total)
			v.machines[news.name] = m
		}
	}
	v.synced = v.synced || synced
}
