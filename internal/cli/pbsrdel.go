package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func pbsRdel(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	if len(o.operands) == 0 {
		return c.pbsUsage("")
	}
	all, _, err := c.reservations()
	if err != nil {
		return c.pbsFail(err)
	}
	code := 0
	for _, text := range o.operands {
		r, ok := c.reservation(text, all)
		if !ok {
			code = pbsUnknownReservation
			continue
		}
		if err := c.deleteReservation(r.Name); err != nil {
			c.pbsFail(err)
			code = pbsCode(err)
		}
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}

// deletionPatience is how long a deletion waits for the jobs of a reservation to end.
const deletionPatience = time.Minute

// deleteReservation takes a reservation away and its jobs with it. The ledger notes that it is being deleted, whereupon it keeps nothing and lets nobody in, and
// each schedd removes its jobs; when none is left the reservation goes. If this program ends before, who runs it again goes on.
func (c *call) deleteReservation(name string) error {
	w := wish{"name": name, "deleting": true}
	if _, err := c.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(ledger.KindReservation), Object: w.text(), Strange: true}); err != nil {
		return err
	}
	late := time.After(deletionPatience)
	for {
		jobs, missing, err := c.reservedJobs(name)
		if err != nil {
			return err
		}
		if jobs == 0 && len(missing) == 0 {
			return c.undo(ledger.Remove, ledger.KindReservation, name)
		}
		select {
		case <-time.After(deletionPoll):
		case <-c.ctx.Done():
			return c.ctx.Err()
		case <-late:
			if jobs > 0 {
				return problem(roost.Unavailable, "reservation %s: %d of its jobs have not ended yet: it keeps nothing any more, and goes when this is done again after they have", name, jobs)
			}
			return problem(roost.Unavailable, "reservation %s: node %s does not say whether it has jobs of it, and removes them when it can be reached again: do this again then", name, missing[0].Node)
		}
	}
}

// deletionPoll is how often it is looked whether jobs have ended.
const deletionPoll = 200 * time.Millisecond

// reservedJobs counts the jobs of a reservation that have not ended, and says which nodes are silent.
func (c *call) reservedJobs(name string) (n int, missing []silent, err error) {
	l := &pbsList{call: c}
	missing, err = l.ask("", &wire.QueryRequest{Selection: &wire.Selection{}, Table: true}, func(s *wire.JobStatus) error {
		if s.GetReservation() == name {
			n++
		}
		return nil
	})
	return n, missing, err
}

// keptBy is what a reservation keeps, as pbs_rsub would say it.
func keptBy(r *ledger.Reservation) (w pbs.ReservationWish) {
	w.Nodes = r.Nodes
	if a := r.Amount; a != nil {
		if a.CPUs != nil {
			w.CPUs = int((*a.CPUs + 999) / 1000)
		}
		if a.GPUs != nil {
			w.GPUs = int(*a.GPUs)
		}
		if a.Memory != nil {
			w.Memory = *a.Memory
		}
	}
	return w
}

// room refuses what the machines that there are do not have, less what other reservations keep at that time. Where nobody knows the machines nothing is refused.
func (c *call) room(asked *pbs.ReservationWish, name string, when ledger.Period, all []entered[ledger.Reservation]) error {
	texts, err := c.ads(&wire.AdQuery{Type: "Machine", Projection: []string{roost.AttrName, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalGpus}})
	if err != nil || len(texts) == 0 {
		return nil
	}
	left, nodes := pbs.ReservationWish{}, slices.Clone(asked.Nodes)
	for _, r := range all {
		o := &r.Object
		if r.Name == name || o.Deleting || !o.From.Before(when.Until) || !when.From.Before(o.Until) {
			continue
		}
		kept := keptBy(o)
		left.CPUs, left.GPUs, left.Memory = left.CPUs-kept.CPUs, left.GPUs-kept.GPUs, left.Memory-kept.Memory
		nodes = append(nodes, kept.Nodes...)
	}
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			continue
		}
		if node, _ := ad.Str(roost.AttrName); slices.Contains(nodes, node) {
			continue
		}
		cpus, _ := ad.Int(roost.AttrTotalCpus)
		memory, _ := ad.Int(roost.AttrTotalMemory)
		gpus, _ := ad.Int(roost.AttrTotalGpus)
		left.CPUs, left.GPUs, left.Memory = left.CPUs+int(cpus), left.GPUs+int(gpus), left.Memory+roost.Bytes(memory)*roost.MiB
	}
	switch {
	case asked.CPUs > left.CPUs:
		return lacking("ncpus", asked, asked.CPUs, max(left.CPUs, 0))
	case asked.GPUs > left.GPUs:
		return lacking("ngpus", asked, asked.GPUs, max(left.GPUs, 0))
	case asked.Memory > left.Memory:
		return lacking("mem", asked, asked.Memory, max(left.Memory, 0))
	}
	return nil
}

// lacking says of which resource there is too little.
func lacking(resource string, asked *pbs.ReservationWish, wanted, left any) error {
	why := fmt.Sprintf("%v of %s are asked for, and the pool has %v that no reservation keeps at that time", wanted, resource, left)
	if len(asked.Nodes) > 0 {
		why = "without these machines the pool has less of " + resource + " than other reservations keep at that time"
	}
	return &pbs.Error{Text: "Resources temporarily unavailable: " + why, Code: pbsTooMany}
}
