package condor

import (
	"io"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func statusCommand() *frame.Command {
	return &frame.Command{
		Name: "condor_status", Group: frame.GroupCondor, Summary: "list the machines of the pool", RawArgs: true,
		MaxOperands: -1, Run: runStatus,
		Synopsis: "[-af[:jrlhV,tng] ATTR… | -format FMT ATTR | -json | -long] [-attributes LIST] [-constraint EXPR] " +
			"[-total] [-schedd | -negotiator | -any] [MACHINE]…",
		Description: "Lists the machines of the pool as condor_status of HTCondor does, or with -schedd the " +
			"schedds. The attributes are those of roost ads.",
		Examples: []frame.Example{
			{Line: "condor_status", Description: "a line for each machine"},
			{Line: "condor_status -constraint 'Gpus > 0' -af Name Cpus Memory",
				Description: "what is free on machines with a GPU"},
		},
	}
}

func runStatus(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, append(printOptions(), condor.OptionWord{Word: "compact", Least: 3},
		condor.OptionWord{Word: "total", Least: 1}, condor.OptionWord{Word: "schedd", Least: 2},
		condor.OptionWord{Word: "negotiator", Least: 2}, condor.OptionWord{Word: "any", Least: 2},
		condor.OptionWord{Word: "avail", Least: 2}))
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	constraint, err := condor.NewConstraint(l.Values("constraint"), c.Now())
	if err != nil {
		return refuse(c, err)
	}
	p, err := newPrinter(c, l)
	if err != nil {
		return refuse(c, err)
	}
	ads, err := machineAds(c, l, constraint)
	if err != nil {
		return fail(c, err)
	}
	if ads = limited(l, ads); p != nil {
		return p.print(ads)
	}
	io.WriteString(c.Stdout, condor.MachineTable(ads, c.Now(), !l.Has("total")))
	return nil
}

// machineAds asks for the ads of machines or daemons that the command line chooses.
func machineAds(c *frame.Invocation, l condor.CommandLine, constraint condor.Constraint) ([]*classad.Ad, error) {
	q := &scheddapi.AdQuery{Type: "Machine"}
	switch {
	case l.Has("schedd"):
		q.Type = "Scheduler"
	case l.Has("negotiator"):
		q.Type = "Negotiator"
	case l.Has("any"):
		q.Type = ""
	}
	texts, err := c.QueryAds(q)
	if err != nil {
		return nil, err
	}
	var ads []*classad.Ad
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return nil, frame.KindErrorf(roost.Internal, "an ad cannot be read: %v", err)
		}
		name, _ := ad.Str(roost.AttrName)
		state, _ := ad.Str(roost.AttrState)
		if len(l.Operands) > 0 && !slices.Contains(l.Operands, name) || l.Has("avail") && state != "Unclaimed" ||
			!constraint.Admits(ad) {
			continue
		}
		ads = append(ads, ad)
	}
	slices.SortStableFunc(ads, func(a, b *classad.Ad) int {
		x, _ := a.Str(roost.AttrName)
		y, _ := b.Str(roost.AttrName)
		return document.CompareNames(x, y)
	})
	return ads, nil
}
