package cli

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
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
	names := cmd.Names
	if len(names) == 0 {
		names = s.active[qmgr.Queue]
	}
	if len(names) == 0 && cmd.Verb != qmgr.Create {
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
		return &qmgrError{pbseBusy, fmt.Sprintf("Object busy: %d jobs are in it", c.Total())}
	}
	return s.undo(ledger.Remove, ledger.KindQueue, name)
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

// onServer does a command to the server, which is the pool.
func (s *session) onServer(cmd qmgr.Command) error {
	before, err := s.pool()
	if err != nil {
		return err
	}
	name, err := (&pbsList{call: s.call}).serverName()
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
		values := append([]qmgr.Value{{Name: "server_state", Text: "Active"}, {Name: "server_host", Text: name}}, qmgr.Attributes(before)...)
		fmt.Fprint(s.stdout, qmgr.Listing("Server "+name, append(values, qmgr.Value{Name: "pbs_version", Text: pbsVersion()}), cmd.Changes))
		return nil
	}
	return &objectError{name, &qmgrError{pbseNotSupported, "Feature/function not supported: a server is made with its node"}}
}

// pool reads what the server is set to.
func (s *session) pool() (*qmgr.Object, error) {
	var entries []entered[ledger.Pool]
	if err := s.shown(string(ledger.KindPool), &entries); err != nil {
		return nil, err
	}
	o := &qmgr.Object{MaxTasks: roost.MaxTasks}
	for _, e := range entries {
		o.Pool = e.Object
	}
	var settings []entered[ledger.Setting]
	if err := s.shown(string(ledger.KindSetting), &settings); err != nil {
		return nil, err
	}
	for _, e := range settings {
		if e.Name == ledger.DefaultQueue {
			o.DefaultQueue = e.Object.Value
		}
	}
	return o, nil
}

func (s *session) changeServer(before *qmgr.Object, changes []qmgr.Change) error {
	after := *before
	for _, c := range changes {
		if err := qmgr.Apply(&after, c); err != nil {
			return err
		}
	}
	patch, err := qmgr.Patch(before.Pool, after.Pool)
	if err == nil && len(patch) > 0 {
		err = s.tell(ledger.KindPool, patch)
	}
	switch {
	case err != nil || after.DefaultQueue == before.DefaultQueue:
		return err
	case after.DefaultQueue == "":
		return s.undo(ledger.Remove, ledger.KindSetting, ledger.DefaultQueue)
	}
	all, err := s.queues()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(q ledger.Queue) bool { return q.Name == after.DefaultQueue }) {
		return &qmgrError{pbseUnknownQueue, "Unknown queue"}
	}
	return s.tell(ledger.KindSetting, map[string]any{"name": ledger.DefaultQueue, "value": after.DefaultQueue})
}

// printServer writes the commands that make all that is set, queues first, as the server names one of them.
func (s *session) printServer(o *qmgr.Object, only []qmgr.Change) error {
	if len(only) == 0 {
		all, err := s.queues()
		if err != nil {
			return err
		}
		if len(all) > 0 {
			fmt.Fprint(s.stdout, qmgr.Heading("Create queues and set their attributes."))
		}
		for _, q := range all {
			fmt.Fprint(s.stdout, printQueue(&q, nil))
		}
		fmt.Fprint(s.stdout, qmgr.Heading("Set server attributes."))
	}
	fmt.Fprint(s.stdout, qmgr.Commands(qmgr.Server, "", qmgr.Attributes(o), only))
	return nil
}
