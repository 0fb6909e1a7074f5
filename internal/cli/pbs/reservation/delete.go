package reservation

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func pbsRdel(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "")
	if err != nil {
		return pbsframe.PrintUsage(c, err.Error())
	}
	if len(o.Operands) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	all, _, err := admin.Reservations(c)
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	code := 0
	for _, text := range o.Operands {
		r, ok := reservation(c, text, all)
		if !ok {
			code = pbsframe.UnknownReservation
			continue
		}
		if err := admin.DeleteReservation(c, r.Name); err != nil {
			pbsframe.Fail(c, err)
			code = pbsframe.ExitStatus(err)
		}
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// reservedResources is what a reservation keeps, as pbs_rsub would say it.
func reservedResources(r *ledger.AdvanceReservation) (w qsub.ReservationRequest) {
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

// checkRoom refuses what the machines that there are do not have, less what other
// reservations keep at that time. Where nobody knows the machines nothing is refused.
func checkRoom(c *frame.Invocation, asked *qsub.ReservationRequest, name string, when ledger.Period,
	all []admin.AttributedObject[ledger.AdvanceReservation]) error {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine",
		Projection: []string{roost.AttrName, roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalGpus}})
	if err != nil || len(texts) == 0 {
		return nil
	}
	left, nodes := qsub.ReservationRequest{}, slices.Clone(asked.Nodes)
	for _, r := range all {
		o := &r.Object
		if r.Name == name || o.Deleting || !o.From.Before(when.Until) || !when.From.Before(o.Until) {
			continue
		}
		reserved := reservedResources(o)
		left.CPUs, left.GPUs, left.Memory = left.CPUs-reserved.CPUs, left.GPUs-reserved.GPUs,
			left.Memory-reserved.Memory
		nodes = append(nodes, reserved.Nodes...)
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
		left.CPUs, left.GPUs, left.Memory = left.CPUs+int(cpus), left.GPUs+int(gpus), left.Memory+
			roost.Bytes(memory)*roost.MiB
	}
	switch {
	case asked.CPUs > left.CPUs:
		return lackText("ncpus", asked, asked.CPUs, max(left.CPUs, 0))
	case asked.GPUs > left.GPUs:
		return lackText("ngpus", asked, asked.GPUs, max(left.GPUs, 0))
	case asked.Memory > left.Memory:
		return lackText("mem", asked, asked.Memory, max(left.Memory, 0))
	}
	return nil
}

// lackText says of which resource there is too little.
func lackText(resource string, asked *qsub.ReservationRequest, wanted, left any) error {
	why := fmt.Sprintf("%v of %s are asked for, and the pool has %v that no reservation keeps at that time", wanted,
		resource, left)
	if len(asked.Nodes) > 0 {
		why = "without these machines the pool has less of " + resource + " than other reservations keep at that time"
	}
	return &qsub.RefusalError{Text: "Resources temporarily unavailable: " + why, ExitStatus: pbsframe.TooMany}
}
