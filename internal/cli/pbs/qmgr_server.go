package pbs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// onServer does a command to the server, which is the pool.
func (s *qmgrSession) onServer(cmd qmgr.Command) error {
	before, err := s.pool()
	if err != nil {
		return err
	}
	name, err := (&pbsList{Invocation: s.Invocation}).ServerName()
	if err != nil {
		return err
	}
	switch cmd.Verb {
	case qmgr.Set, qmgr.Unset:
		if err := s.changeServer(before, cmd.Changes); err != nil {
			return &objectError{"", err}
		}
		return nil
	case qmgr.Print:
		return s.printServer(before, cmd.Changes)
	case qmgr.List:
		host := func(s *scheddapi.JobStatus) string { _, host, _ := strings.Cut(s.GetId(), "."); return host }
		all, _, err := (&pbsList{Invocation: s.Invocation}).countJobs(name, host)
		if err != nil {
			return err
		}
		counts := all[name]
		if counts == nil {
			counts = &qstat.StateCounts{}
		}
		values := append([]qmgr.AttributeValue{
			{Name: "server_state", Text: "Active"}, {Name: "server_host", Text: name},
			{Name: "total_jobs", Text: fmt.Sprint(counts.Total())}, {Name: "state_count", Text: counts.Text()},
		}, qmgr.Attributes(before)...)
		fmt.Fprint(s.Stdout, qmgr.ListObject("Server "+name,
			append(values, qmgr.AttributeValue{Name: "pbs_version", Text: pbsframe.Version()}), cmd.Changes))
		return nil
	}
	return &objectError{name, &qmgrError{pbseNotSupported,
		"No support for requested service: a server is made with its node"}}
}

// pool reads what the server is set to.
func (s *qmgrSession) pool() (*qmgr.Object, error) {
	var entries []admin.AttributedObject[ledger.PoolLimits]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindPool), &entries); err != nil {
		return nil, err
	}
	o := &qmgr.Object{MaxTasks: roost.MaxTasks}
	for _, e := range entries {
		o.Pool = e.Object
	}
	var err error
	if o.Counted, o.Words, err = s.customResources(); err != nil {
		return nil, err
	}
	if err := s.people(o); err != nil {
		return nil, err
	}
	var limits []admin.AttributedObject[ledger.ConcurrencyLimit]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindLimit), &limits); err != nil {
		return nil, err
	}
	for _, l := range limits {
		o.Available = append(o.Available, qmgr.AttributeValue{Name: "resources_available", Resource: l.Object.Name,
			Text: fmt.Sprint(l.Object.Count)})
	}
	var settings []admin.AttributedObject[ledger.SettingValue]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindSetting), &settings); err != nil {
		return nil, err
	}
	for _, e := range settings {
		if e.Name == ledger.SettingDefaultQueue {
			o.DefaultQueue = e.Object.Value
		}
	}
	return o, nil
}

func (s *qmgrSession) changeServer(before *qmgr.Object, changes []qmgr.AttributeChange) error {
	after := *before
	if a := after.Pool.Access; a != nil {
		own := *a
		after.Pool.Access = &own
	}
	for _, c := range changes {
		if err := qmgr.ApplyChange(&after, c); err != nil {
			return err
		}
	}
	if err := s.checkCountable(after.Available); err != nil {
		return err
	}
	patch, err := qmgr.PatchFor(before.Pool, after.Pool)
	if err == nil && len(patch) > 0 {
		err = s.setObject(ledger.KindPool, patch)
	}
	if err == nil {
		err = s.setCountedResources(before.Available, after.Available)
	}
	if err == nil {
		err = s.changePeople(before, &after)
	}
	switch {
	case err != nil || after.DefaultQueue == before.DefaultQueue:
		return err
	case after.DefaultQueue == "":
		return admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindSetting, ledger.SettingDefaultQueue)
	}
	all, err := s.queues()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(q ledger.QueuePolicy) bool { return q.Name == after.DefaultQueue }) {
		return &qmgrError{pbseUnknownQueue, "Unknown queue"}
	}
	return s.setObject(ledger.KindSetting,
		map[string]any{"name": ledger.SettingDefaultQueue, "value": after.DefaultQueue})
}

// printServer writes the commands that make all that is set, queues first, as the server
// names one of them.
func (s *qmgrSession) printServer(o *qmgr.Object, only []qmgr.AttributeChange) error {
	if len(only) == 0 {
		all, err := s.queues()
		if err != nil {
			return err
		}
		if err := s.printResources(); err != nil {
			return err
		}
		if len(all) > 0 {
			fmt.Fprint(s.Stdout, qmgr.SectionHeading("Create queues and set their attributes."))
		}
		for _, q := range all {
			fmt.Fprint(s.Stdout, printQueue(&q, nil))
		}
		fmt.Fprint(s.Stdout, qmgr.SectionHeading("Set server attributes."))
	}
	fmt.Fprint(s.Stdout, qmgr.PrintCommands(qmgr.Server, "", qmgr.Attributes(o), only))
	return nil
}
