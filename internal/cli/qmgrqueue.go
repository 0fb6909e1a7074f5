package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/qmgr"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// queues reads the queues that there are, by name.
func (s *session) queues() (all []ledger.Queue, err error) {
	var entries []entered[ledger.Queue]
	if err := s.shown(string(ledger.KindQueue), &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		all = append(all, e.Object)
	}
	return all, nil
}

// onQueues does a command to each queue that it names.
func (s *session) onQueues(cmd qmgr.Command) error {
	all, err := s.queues()
	if err != nil {
		return err
	}
	names := s.meant(cmd)
	if s.everyOne(cmd, names) {
		for _, q := range all {
			names = append(names, q.Name)
		}
	}
	if len(names) == 0 && cmd.Verb == qmgr.Create {
		return &qmgr.SyntaxError{Why: "qmgr: Syntax error - no object name", Line: "create queue", At: len("create queue")}
	}
	var last error
	for _, name := range names {
		at := slices.IndexFunc(all, func(q ledger.Queue) bool { return q.Name == name })
		if err := s.onQueue(cmd, name, all, at); err != nil {
			if last != nil {
				s.say(last)
			}
			last = &objectError{name, err}
		}
	}
	return last
}

// onQueue does a command to one queue, at that place among all; below 0: it is not there.
func (s *session) onQueue(cmd qmgr.Command, name string, all []ledger.Queue, at int) error {
	if cmd.Verb == qmgr.Create {
		if at >= 0 {
			return &qmgrError{pbseQueueExists, "Queue already exists"}
		}
		return s.changeQueue(ledger.Queue{}, ledger.Queue{Name: name}, cmd.Changes)
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
		fmt.Fprint(s.stdout, printQueue(&q, cmd.Changes))
	default:
		return s.listQueue(&q, cmd.Changes)
	}
	return nil
}

// changeQueue makes changes to a queue, all or none of them.
func (s *session) changeQueue(before, after ledger.Queue, changes []qmgr.Change) error {
	if a := after.Access; a != nil {
		own := *a
		after.Access = &own
	}
	o := &qmgr.Object{Queue: &after}
	if slices.ContainsFunc(changes, func(c qmgr.Change) bool { return c.Resource != "" && !pbs.Builtin(c.Resource) }) {
		var err error
		if o.Counted, o.Words, err = s.customResources(); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := qmgr.Apply(o, c); err != nil {
			return err
		}
	}
	patch, err := qmgr.Patch(before, after)
	if err != nil || len(patch) == 0 {
		return err
	}
	patch["name"] = after.Name
	return s.tell(ledger.KindQueue, patch)
}

// tell has an object made or changed. PBS takes users of whom nobody has heard yet.
func (s *session) tell(kind ledger.Kind, patch map[string]any) error {
	_, err := s.cell(&wire.CellRequest{Verb: string(ledger.Set), Kind: string(kind), Object: wish(patch).text()})
	return err
}

func (s *session) deleteQueue(name string) error {
	counts, _, err := (&pbsList{call: s.call}).tallies("", pbsQueue)
	if err != nil {
		return err
	}
	if c := counts[name]; c != nil && c.Total() > 0 {
		return &qmgrError{pbseBusy, fmt.Sprintf("Cannot delete busy object: %d jobs are in it", c.Total())}
	}
	err = s.undo(ledger.Remove, ledger.KindQueue, name)
	if errors.Is(err, roost.Conflict) { // it is the default one
		return &qmgrError{pbseBusy, "Cannot delete busy object: " + strings.Join(strings.Fields(message(err)), " ")}
	}
	return err
}

// printQueue writes the commands that make a queue.
func printQueue(q *ledger.Queue, only []qmgr.Change) string {
	text := qmgr.Heading("Create and define queue " + q.Name)
	if len(only) == 0 {
		text += "create queue " + q.Name + "\n"
	}
	return text + qmgr.Commands(qmgr.Queue, q.Name, qmgr.Attributes(&qmgr.Object{Queue: q}), only)
}

func (s *session) listQueue(q *ledger.Queue, only []qmgr.Change) error {
	counts, _, err := (&pbsList{call: s.call}).tallies("", pbsQueue)
	if err != nil {
		return err
	}
	values := []qmgr.Value{}
	for _, a := range queueAttributes(q, counts[q.Name]) {
		values = append(values, qmgr.Value{Name: a.Name, Resource: a.Resource, Text: a.Value})
	}
	fmt.Fprint(s.stdout, qmgr.Listing("Queue "+q.Name, values, only))
	return nil
}
