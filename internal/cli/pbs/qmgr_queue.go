package pbs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// queues reads the queues that there are, by name.
func (s *qmgrSession) queues() (all []ledger.QueuePolicy, err error) {
	var entries []admin.AttributedObject[ledger.QueuePolicy]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindQueue), &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		all = append(all, e.Object)
	}
	return all, nil
}

// onQueues does a command to each queue that it names.
func (s *qmgrSession) onQueues(cmd qmgr.Command) error {
	all, err := s.queues()
	if err != nil {
		return err
	}
	names := s.selectedObjects(cmd)
	if s.selectsAll(cmd, names) {
		for _, q := range all {
			names = append(names, q.Name)
		}
	}
	if len(names) == 0 && cmd.Verb == qmgr.Create {
		return &qmgr.SyntaxError{Reason: "qmgr: Syntax error - no object name", Line: "create queue",
			At: len("create queue")}
	}
	var last error
	for _, name := range names {
		at := slices.IndexFunc(all, func(q ledger.QueuePolicy) bool { return q.Name == name })
		if err := s.onQueue(cmd, name, all, at); err != nil {
			if last != nil {
				s.printQmgrError(last)
			}
			last = &objectError{name, err}
		}
	}
	return last
}

// onQueue does a command to one queue, at that place among all; below 0: it is not there.
func (s *qmgrSession) onQueue(cmd qmgr.Command, name string, all []ledger.QueuePolicy, at int) error {
	if cmd.Verb == qmgr.Create {
		if at >= 0 {
			return &qmgrError{pbseQueueExists, "Queue already exists"}
		}
		return s.changeQueue(ledger.QueuePolicy{}, ledger.QueuePolicy{Name: name}, cmd.Changes)
	}
	if at < 0 {
		return &qmgrError{pbseUnknownQueue, "Unknown queue"}
	}
	switch q := all[at]; cmd.Verb {
	case qmgr.Set, qmgr.Unset:
		return s.changeQueue(q, q, cmd.Changes)
	case qmgr.Delete:
		return s.deleteQueue(name)
	case qmgr.Print:
		fmt.Fprint(s.Stdout, printQueue(&q, cmd.Changes))
	default:
		return s.listQueue(&q, cmd.Changes)
	}
	return nil
}

// changeQueue makes changes to a queue, all or none of them.
func (s *qmgrSession) changeQueue(before, after ledger.QueuePolicy, changes []qmgr.AttributeChange) error {
	if a := after.Access; a != nil {
		own := *a
		after.Access = &own
	}
	o := &qmgr.Object{Queue: &after}
	if slices.ContainsFunc(changes, func(c qmgr.AttributeChange) bool {
		return c.Resource != "" && !qsub.IsBuiltinResource(c.Resource)
	}) {
		var err error
		if o.Counted, o.Words, err = s.customResources(); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := qmgr.ApplyChange(o, c); err != nil {
			return err
		}
	}
	patch, err := qmgr.PatchFor(before, after)
	if err != nil || len(patch) == 0 {
		return err
	}
	patch["name"] = after.Name
	return s.setObject(ledger.KindQueue, patch)
}

// setObject has an object made or changed. PBS takes users of whom nobody has heard yet.
func (s *qmgrSession) setObject(kind ledger.ObjectKind, patch map[string]any) error {
	_, err := s.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(kind),
		Object: admin.ObjectPatch(patch).JSONText()})
	return err
}

func (s *qmgrSession) deleteQueue(name string) error {
	counts, _, err := (&pbsList{Invocation: s.Invocation}).countJobs("", pbsQueue)
	if err != nil {
		return err
	}
	if c := counts[name]; c != nil && c.Total() > 0 {
		return &qmgrError{pbseBusy, fmt.Sprintf("Cannot delete busy object: %d jobs are in it", c.Total())}
	}
	err = admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindQueue, name)
	if errors.Is(err, roost.Conflict) { // it is the default one
		return &qmgrError{pbseBusy, "Cannot delete busy object: " + strings.Join(strings.Fields(frame.ErrorText(err)),
			" ")}
	}
	return err
}

// printQueue writes the commands that make a queue.
func printQueue(q *ledger.QueuePolicy, only []qmgr.AttributeChange) string {
	text := qmgr.SectionHeading("Create and define queue " + q.Name)
	if len(only) == 0 {
		text += "create queue " + q.Name + "\n"
	}
	return text + qmgr.PrintCommands(qmgr.Queue, q.Name, qmgr.Attributes(&qmgr.Object{Queue: q}), only)
}

func (s *qmgrSession) listQueue(q *ledger.QueuePolicy, only []qmgr.AttributeChange) error {
	counts, _, err := (&pbsList{Invocation: s.Invocation}).countJobs("", pbsQueue)
	if err != nil {
		return err
	}
	values := []qmgr.AttributeValue{}
	for _, a := range queueAttributes(q, counts[q.Name]) {
		values = append(values, qmgr.AttributeValue{Name: a.Name, Resource: a.Resource, Text: a.Value})
	}
	fmt.Fprint(s.Stdout, qmgr.ListObject("Queue "+q.Name, values, only))
	return nil
}
