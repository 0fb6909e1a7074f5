package qmgr

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func (o *Object) counts(queue func(*ledger.Queue) *ledger.Counts, pool func(*ledger.Pool) *ledger.Counts) *ledger.Counts {
	if o.Queue != nil {
		return queue(o.Queue)
	}
	return pool(&o.Pool)
}

func (o *Object) running() *ledger.Counts {
	return o.counts(func(q *ledger.Queue) *ledger.Counts { return &q.Running }, func(p *ledger.Pool) *ledger.Counts { return &p.Running })
}

func (o *Object) queued() *ledger.Counts {
	return o.counts(func(q *ledger.Queue) *ledger.Counts { return &q.Queued }, func(p *ledger.Pool) *ledger.Counts { return &p.Queued })
}

func (o *Object) runningSoft() *ledger.Counts {
	return o.counts(func(q *ledger.Queue) *ledger.Counts { return &q.RunningSoft }, func(p *ledger.Pool) *ledger.Counts { return &p.RunningSoft })
}

// ofQueues is an attribute that the server has otherwise.
func ofQueues(r row) row {
	r.server = false
	return r
}

// runningAmounts is how much may run, or should.
func runningAmounts(o *Object, soft bool) *ledger.Amount {
	switch {
	case o.Queue != nil && soft:
		return &o.Queue.RunningSoftAmounts
	case o.Queue != nil:
		return &o.Queue.RunningAmounts
	case soft:
		return &o.Pool.RunningSoftAmounts
	}
	return &o.Pool.RunningAmounts
}

// extentOf and amountOf choose between what a queue and the pool have alike.
func extentOf(queue func(*ledger.Queue) *ledger.Extent, pool func(*ledger.Pool) *ledger.Extent) func(o *Object) *ledger.Extent {
	return func(o *Object) *ledger.Extent {
		if o.Queue != nil {
			return queue(o.Queue)
		}
		return pool(&o.Pool)
	}
}

func amountOf(queue func(*ledger.Queue) *ledger.Amount, pool func(*ledger.Pool) *ledger.Amount) func(o *Object) *ledger.Amount {
	return func(o *Object) *ledger.Amount {
		if o.Queue != nil {
			return queue(o.Queue)
		}
		return pool(&o.Pool)
	}
}

// access is a queue's, or the pool's, made if it has none.
func access(o *Object) *ledger.Access {
	at := &o.Pool.Access
	if o.Queue != nil {
		at = &o.Queue.Access
	}
	if *at == nil {
		*at = &ledger.Access{}
	}
	return *at
}

// rows is the table of all attributes, in the order in which they are told.
func rows() []row {
	arrays := number("max_array_size", func(o *Object) **int64 {
		if o.Queue != nil {
			return &o.Queue.MaxArray
		}
		return &o.Pool.MaxArray
	}, readCount, countText)
	arrays.server = true
	own := arrays.tell
	arrays.tell = func(o *Object) []string {
		if said := own(o); said != nil || o.Queue != nil || o.MaxTasks == 0 {
			return said
		}
		return []string{countText(o.MaxTasks)}
	}
	all := []row{
		{name: "queue_type", queue: true, tell: typeText, change: setType, unset: func(o *Object) { o.Queue.Routing, o.Queue.Destinations = false, nil }},
		{name: "band", queue: true, tell: bandText, change: setBand, unset: func(o *Object) { o.Queue.Band = "" }},
		{name: "Priority", queue: true, tell: priorityText, change: setPriority, unset: func(o *Object) { o.Queue.Priority = 0 }},
		scheduling(),
		text("comment", func(o *Object) *string { return &o.Pool.Comment }),
		people("managers", func(o *Object) *[]string { return &o.Managers }), people("operators", func(o *Object) *[]string { return &o.Operators }),
		available(),
		{name: "default_queue", server: true, tell: defaultText, change: setDefault, unset: func(o *Object) { o.DefaultQueue = "" }},
		fixed("query_other_jobs", "True"),
		limits("max_queued", (*Object).queued),
		amounts("max_queued_res", amountOf(func(q *ledger.Queue) *ledger.Amount { return &q.QueuedAmounts }, func(p *ledger.Pool) *ledger.Amount { return &p.QueuedAmounts })),
	}
	for _, r := range []struct {
		name string
		at   func(o *Object) *ledger.Roll
	}{
		{"acl_user", func(o *Object) *ledger.Roll { return &access(o).Users }}, {"acl_group", func(o *Object) *ledger.Roll { return &access(o).Groups }},
		{"acl_host", func(o *Object) *ledger.Roll { return &access(o).Hosts }},
	} {
		enable, entries := truth(r.name+"_enable", func(o *Object) *bool { return &r.at(o).Enforced }, false), list(r.name+"s", func(o *Object) *[]string { return &r.at(o).Entries })
		enable.server, entries.server = true, true
		all = append(all, enable, entries)
	}
	running := func(o *Object) *ledger.Counts { return o.running() }
	return append(all,
		list("allowed_users", func(o *Object) *[]string { return &o.Queue.Users }), list("allowed_groups", func(o *Object) *[]string { return &o.Queue.Groups }),
		truth("route_held_jobs", func(o *Object) *bool { return &o.Queue.RouteHeld }, false), truth("route_waiting_jobs", func(o *Object) *bool { return &o.Queue.RouteWaiting }, false),
		truth("from_route_only", func(o *Object) *bool { return &o.Queue.FromRoute }, false),
		extent("resources_max", extentOf(func(q *ledger.Queue) *ledger.Extent { return &q.Most }, func(p *ledger.Pool) *ledger.Extent { return &p.Most })),
		extent("resources_min", extentOf(func(q *ledger.Queue) *ledger.Extent { return &q.Least }, func(p *ledger.Pool) *ledger.Extent { return &p.Least })),
		extent("resources_default", extentOf(func(q *ledger.Queue) *ledger.Extent { return &q.Default }, func(p *ledger.Pool) *ledger.Extent { return &p.Default })),
		extent("default_chunk", extentOf(func(q *ledger.Queue) *ledger.Extent { return &q.Chunk }, func(p *ledger.Pool) *ledger.Extent { return &p.Chunk })),
		list("route_destinations", func(o *Object) *[]string { return &o.Queue.Destinations }),
		arrays,
		number("kill_delay", func(o *Object) **int64 { return &o.Queue.KillDelay }, readCount, countText),
		limits("max_run", running),
		amounts("max_run_res", amountOf(func(q *ledger.Queue) *ledger.Amount { return &q.RunningAmounts }, func(p *ledger.Pool) *ledger.Amount { return &p.RunningAmounts })),
		limits("max_run_soft", (*Object).runningSoft),
		amounts("max_run_res_soft", amountOf(func(q *ledger.Queue) *ledger.Amount { return &q.RunningSoftAmounts }, func(p *ledger.Pool) *ledger.Amount { return &p.RunningSoftAmounts })),
		ofQueues(wholeAmount("resources_available", "o:"+everybody, func(o *Object) *ledger.Amount { return runningAmounts(o, false) })),
		whole("max_user_run_soft", "u:"+each, (*Object).runningSoft, true), whole("max_group_run_soft", "g:"+each, (*Object).runningSoft, true),
		wholeAmount("max_user_res", "u:"+each, func(o *Object) *ledger.Amount { return runningAmounts(o, false) }), wholeAmount("max_group_res", "g:"+each, func(o *Object) *ledger.Amount { return runningAmounts(o, false) }),
		wholeAmount("max_user_res_soft", "u:"+each, func(o *Object) *ledger.Amount { return runningAmounts(o, true) }), wholeAmount("max_group_res_soft", "g:"+each, func(o *Object) *ledger.Amount { return runningAmounts(o, true) }),
		whole("max_running", "o:"+everybody, running, true), whole("max_user_run", "u:"+each, running, true), whole("max_group_run", "g:"+each, running, true),
		whole("max_queuable", "o:"+everybody, (*Object).queued, false), whole("max_user_queuable", "u:"+each, (*Object).queued, false),
		fixed("job_history_enable", "True"),
		truth("enabled", func(o *Object) *bool { return &o.Queue.Enabled }, true), truth("started", func(o *Object) *bool { return &o.Queue.Started }, true),
	)
}

func typeText(o *Object) []string {
	if o.Queue.Routing {
		return []string{"Route"}
	}
	return []string{"Execution"}
}

func setType(o *Object, op, text string) error {
	switch t := strings.ToLower(text); {
	case op != "=" || t == "":
	case strings.HasPrefix("execution", t):
		o.Queue.Routing = false
		return nil
	case strings.HasPrefix("route", t):
		o.Queue.Routing = true
		return nil
	}
	return fmt.Errorf("%w: %q is neither Execution nor Route", errValue, text)
}

func bandText(o *Object) []string {
	switch {
	case o.Queue.Band != "":
		return []string{o.Queue.Band}
	case o.Queue.Priority >= express: // else it would be another's, were this read back
		return []string{roost.Batch.String()}
	}
	return nil
}

func setBand(o *Object, op, text string) error {
	if _, err := roost.ParseBand(text); err != nil || op != "=" {
		return fmt.Errorf("%w: %q is not a band", errValue, text)
	}
	o.Queue.Band = text
	return nil
}

func defaultText(o *Object) []string {
	if o.DefaultQueue == "" {
		return nil
	}
	return []string{o.DefaultQueue}
}

func setDefault(o *Object, op, text string) error {
	if op != "=" {
		return errValue
	}
	o.DefaultQueue, _, _ = strings.Cut(text, "@")
	return nil
}

// of reports whether an attribute is one of an object.
func (r *row) of(o *Object) bool { return o.Queue != nil && r.queue || o.Queue == nil && r.server }

// Attributes are what an object is set to, in order.
func Attributes(o *Object) (all []Value) {
	if o.Queue != nil {
		q := *o.Queue // to look at a queue's lists does not give it any
		o = &Object{Queue: &q, Counted: o.Counted, Words: o.Words}
	} else {
		own := *o // nor the pool
		o = &own
	}
	for _, r := range rows() {
		switch {
		case !r.of(o):
		case r.parts != nil:
			all = append(all, r.parts(o)...)
		default:
			for _, text := range r.tell(o) {
				all = append(all, Value{Name: r.name, Text: text})
			}
		}
	}
	return all
}

// Apply makes a change. An error leaves the object as it was.
func Apply(o *Object, c Change) error {
	for _, r := range rows() {
		if !r.of(o) || !strings.EqualFold(r.name, c.Name) { // OpenPBS looks them up so, and pages on the web write "priority"
			continue
		}
		switch {
		case r.parts != nil && c.Resource == "" && c.Op == "":
			for _, v := range r.parts(o) {
				if err := r.part(o, v.Resource, "", ""); err != nil {
					return err
				}
			}
			return nil
		case (r.parts != nil) != (c.Resource != ""):
			return fmt.Errorf("%w: %s", errAttribute, c.Attribute())
		case r.parts != nil:
			return r.part(o, c.Resource, c.Op, c.Value)
		case c.Op == "":
			r.unset(o)
			return nil
		}
		return r.change(o, c.Op, c.Value)
	}
	for _, known := range told() {
		if strings.EqualFold(c.Name, known) {
			return fmt.Errorf("%w: %s", errReadOnly, c.Name)
		}
	}
	kind := Server
	if o.Queue != nil {
		kind = Queue
	}
	if err := Foreign(kind, c.Name); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errAttribute, c.Attribute())
}

// told are attributes that are told of objects and that nobody sets.
func told() []string {
	return []string{"total_jobs", "state_count", "server_state", "server_host", "pbs_version", "resources_assigned", "hasnodes"}
}
