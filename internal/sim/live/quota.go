package live

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// A quota is looked at when a job is submitted, and never afterwards (Borg §2.5): to set one evicts nobody. What it would do is that new jobs are refused of
// those who ask for more already.

// asked is what somebody's tasks that wait and run ask for, in one band.
type asked struct {
	roost.Resources
	tasks int64
}

// of is one dimension, in its unit.
func (a asked) of(dimension string) (n int64, text string) {
	switch dimension {
	case "cpus":
		return int64(a.CPU), a.CPU.String()
	case "memory":
		return int64(a.Memory), a.Memory.String()
	case "disk":
		return int64(a.Disk), a.Disk.String()
	case "gpus":
		return int64(a.GPUs), fmt.Sprint(a.GPUs)
	}
	return a.tasks, fmt.Sprint(a.tasks)
}

// demand is what each submitter asks for by band.
func demand(c *picture.Checkpoint) map[share.Submitter]map[roost.Band]asked {
	all := map[share.Submitter]map[roost.Band]asked{}
	add := func(who share.Submitter, band roost.Band, r roost.Resources, n int) {
		if all[who] == nil {
			all[who] = map[roost.Band]asked{}
		}
		sum := all[who][band]
		for range n {
			sum.Resources = sum.Add(r)
		}
		sum.tasks += int64(n)
		all[who][band] = sum
	}
	for _, a := range c.Asks {
		add(a.Submitter, a.Band, a.Class.Resources, a.Own)
	}
	for _, m := range c.Machines {
		for i := range m.Claims {
			add(m.Claims[i].Submitter, m.Claims[i].Band, m.Claims[i].Resources, 1)
		}
	}
	return all
}

// quotas says how the quotas that the change sets stand to what is asked for.
func (c *Change) quotas(of *picture.Checkpoint) (all []Quota) {
	for _, command := range c.Commands {
		var q ledger.Quota
		if command.Kind == ledger.KindQuota && command.Verb == ledger.Set && json.Unmarshal(command.Object, &q) == nil {
			all = append(all, held(q, demand(of))...)
		}
	}
	return all
}

// held is how a quota stands to what those ask for whom it binds.
func held(q ledger.Quota, sums map[share.Submitter]map[roost.Band]asked) (all []Quota) {
	whose := map[string]asked{}
	for _, who := range slices.SortedFunc(maps.Keys(sums), share.Submitter.Compare) {
		name := ""
		switch {
		case q.Group != "" && (who.Group == q.Group || strings.HasPrefix(who.Group, q.Group+".")):
			name = "group " + q.Group
		case q.Group == "" && (q.User == who.Owner || q.User == ledger.EachUser):
			name = "user " + who.Owner
		default:
			continue
		}
		for band, a := range sums[who] { // the order does not matter: one of them counts
			if band.String() == q.Band {
				sum := whose[name]
				whose[name] = asked{sum.Add(a.Resources), sum.tasks + a.tasks}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(whose)) {
		one := Quota{Whose: name, Band: q.Band}
		var asks, most []string
		for _, d := range q.Most.Bounds() {
			n, text := whose[name].of(d.Name)
			asks, most = append(asks, d.Name+" "+text), append(most, d.Name+" "+d.Text)
			one.Over = one.Over || n > d.Value
		}
		one.Asks, one.Most = strings.Join(asks, ", "), strings.Join(most, ", ")
		all = append(all, one)
	}
	return all
}
