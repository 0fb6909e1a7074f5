package qmgr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func (o *Object) countLimits(queue func(*ledger.QueuePolicy) *ledger.CountLimits,
	pool func(*ledger.PoolLimits) *ledger.CountLimits) *ledger.CountLimits {
	if o.Queue != nil {
		return queue(o.Queue)
	}
	return pool(&o.Pool)
}

func (o *Object) runLimits() *ledger.CountLimits {
	return o.countLimits(func(q *ledger.QueuePolicy) *ledger.CountLimits {
		return &q.Running
	}, func(p *ledger.PoolLimits) *ledger.CountLimits { return &p.Running })
}

func (o *Object) queueLimits() *ledger.CountLimits {
	return o.countLimits(func(q *ledger.QueuePolicy) *ledger.CountLimits {
		return &q.Queued
	}, func(p *ledger.PoolLimits) *ledger.CountLimits { return &p.Queued })
}

func (o *Object) softRunLimits() *ledger.CountLimits {
	return o.countLimits(func(q *ledger.QueuePolicy) *ledger.CountLimits {
		return &q.RunningSoft
	}, func(p *ledger.PoolLimits) *ledger.CountLimits { return &p.RunningSoft })
}

// extentOf returns an accessor of a resource range that queues and the pool both have.
func extentOf(queue func(*ledger.QueuePolicy) *ledger.ResourceRange,
	pool func(*ledger.PoolLimits) *ledger.ResourceRange) func(o *Object) *ledger.ResourceRange {
	return func(o *Object) *ledger.ResourceRange {
		if o.Queue != nil {
			return queue(o.Queue)
		}
		return pool(&o.Pool)
	}
}

func amountOf(queue func(*ledger.QueuePolicy) *ledger.AmountLimits,
	pool func(*ledger.PoolLimits) *ledger.AmountLimits) func(o *Object) *ledger.AmountLimits {
	return func(o *Object) *ledger.AmountLimits {
		if o.Queue != nil {
			return queue(o.Queue)
		}
		return pool(&o.Pool)
	}
}

// accessOf returns the access lists of a queue or the pool, and creates them if needed.
func accessOf(o *Object) *ledger.QueueAccess {
	at := &o.Pool.Access
	if o.Queue != nil {
		at = &o.Queue.Access
	}
	if *at == nil {
		*at = &ledger.QueueAccess{}
	}
	return *at
}

// attributeTable returns all attributes, in the order in which they are printed.
func attributeTable() []attributeSpec {
	return slices.Concat(generalAttributes(), accessAttributes(), routingAttributes(), rangeAttributes(),
		runLimitAttributes(), oldLimitAttributes(), []attributeSpec{
			fixedAttribute("job_history_enable", "True"),
			boolAttribute("enabled", func(o *Object) *bool {
				return &o.Queue.Enabled
			}, true), boolAttribute("started", func(o *Object) *bool { return &o.Queue.Started }, true),
		})
}

// generalAttributes returns the type and band of queues, the settings of the server, and
// the limits on queued jobs.
func generalAttributes() []attributeSpec {
	return []attributeSpec{
		{name: "queue_type", queue: true, text: typeText, set: setType, unset: func(o *Object) {
			o.Queue.Routing, o.Queue.Destinations = false, nil
		}},
		{name: "band", queue: true, text: bandText, set: setBand, unset: func(o *Object) { o.Queue.Band = "" }},
		{name: "Priority", queue: true, text: priorityText, set: setPriority, unset: func(o *Object) {
			o.Queue.Priority = 0
		}},
		schedulingText(),
		serverText("comment", func(o *Object) *string { return &o.Pool.Comment }),
		usersAttribute("managers", func(o *Object) *[]string {
			return &o.Managers
		}), usersAttribute("operators", func(o *Object) *[]string { return &o.Operators }),
		availableAmounts(),
		{name: "default_queue", server: true, text: defaultText, set: setDefault, unset: func(o *Object) {
			o.DefaultQueue = ""
		}},
		fixedAttribute("query_other_jobs", "True"),
		limitAttribute("max_queued", (*Object).queueLimits),
		amountLimitAttribute("max_queued_res", amountOf(func(q *ledger.QueuePolicy) *ledger.AmountLimits {
			return &q.QueuedAmounts
		}, func(p *ledger.PoolLimits) *ledger.AmountLimits { return &p.QueuedAmounts })),
	}
}

// accessAttributes returns the access lists, each with its switch.
func accessAttributes() (all []attributeSpec) {
	for _, r := range []struct {
		name string
		at   func(o *Object) *ledger.ACL
	}{
		{"acl_user", func(o *Object) *ledger.ACL {
			return &accessOf(o).Users
		}}, {"acl_group", func(o *Object) *ledger.ACL { return &accessOf(o).Groups }},
		{"acl_host", func(o *Object) *ledger.ACL { return &accessOf(o).Hosts }},
	} {
		enable, entries := boolAttribute(r.name+"_enable", func(o *Object) *bool {
			return &r.at(o).Enforced
		}, false), listAttribute(r.name+"s", func(o *Object) *[]string { return &r.at(o).Entries })
		enable.server, entries.server = true, true
		all = append(all, enable, entries)
	}
	return all
}

// routingAttributes returns who may use a queue, and which jobs it routes.
func routingAttributes() []attributeSpec {
	return []attributeSpec{
		listAttribute("allowed_users", func(o *Object) *[]string {
			return &o.Queue.Users
		}), listAttribute("allowed_groups", func(o *Object) *[]string { return &o.Queue.Groups }),
		boolAttribute("route_held_jobs", func(o *Object) *bool {
			return &o.Queue.RouteHeld
		}, false), boolAttribute("route_waiting_jobs", func(o *Object) *bool { return &o.Queue.RouteWaiting }, false),
		boolAttribute("from_route_only", func(o *Object) *bool { return &o.Queue.FromRouteOnly }, false),
	}
}

// rangeAttributes returns the bounds and defaults of a job's resources, and what bounds a
// single job.
func rangeAttributes() []attributeSpec {
	return []attributeSpec{
		amountsAttribute("resources_max", extentOf(func(q *ledger.QueuePolicy) *ledger.ResourceRange {
			return &q.MaxResources
		}, func(p *ledger.PoolLimits) *ledger.ResourceRange { return &p.MaxResources })),
		amountsAttribute("resources_min", extentOf(func(q *ledger.QueuePolicy) *ledger.ResourceRange {
			return &q.MinResources
		}, func(p *ledger.PoolLimits) *ledger.ResourceRange { return &p.MinResources })),
		amountsAttribute("resources_default", extentOf(func(q *ledger.QueuePolicy) *ledger.ResourceRange {
			return &q.Defaults
		}, func(p *ledger.PoolLimits) *ledger.ResourceRange { return &p.Defaults })),
		amountsAttribute("default_chunk", extentOf(func(q *ledger.QueuePolicy) *ledger.ResourceRange {
			return &q.DefaultChunk
		}, func(p *ledger.PoolLimits) *ledger.ResourceRange { return &p.DefaultChunk })),
		listAttribute("route_destinations", func(o *Object) *[]string { return &o.Queue.Destinations }),
		arraySizeAttribute(),
		numberAttribute("kill_delay", func(o *Object) **int64 { return &o.Queue.KillDelay }, parseCount, countText),
	}
}

// arraySizeAttribute returns max_array_size. On a server without one it is the pool's
// default.
func arraySizeAttribute() attributeSpec {
	arrays := numberAttribute("max_array_size", func(o *Object) **int64 {
		if o.Queue != nil {
			return &o.Queue.MaxArray
		}
		return &o.Pool.MaxArray
	}, parseCount, countText)
	arrays.server = true
	own := arrays.text
	arrays.text = func(o *Object) []string {
		if ownValues := own(o); ownValues != nil || o.Queue != nil || o.MaxTasks == 0 {
			return ownValues
		}
		return []string{countText(o.MaxTasks)}
	}
	return arrays
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
	case o.Queue.Priority >= expressPriority: // otherwise reading it back would set another band
		return []string{roost.BatchBand.String()}
	}
	return nil
}

func setBand(o *Object, op, text string) error {
	if _, err := roost.ParsePriorityBand(text); err != nil || op != "=" {
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

// appliesTo reports whether an object has the attribute.
func (r *attributeSpec) appliesTo(o *Object) bool {
	return o.Queue != nil && r.queue || o.Queue == nil && r.server
}

// Attributes returns the attribute values of an object, in order.
func Attributes(o *Object) (all []AttributeValue) {
	if o.Queue != nil {
		q := *o.Queue // a copy: accessors may create missing lists
		o = &Object{Queue: &q, Counted: o.Counted, Words: o.Words}
	} else {
		own := *o // a copy, for the same reason
		o = &own
	}
	for _, r := range attributeTable() {
		switch {
		case !r.appliesTo(o):
		case r.resourceTexts != nil:
			all = append(all, r.resourceTexts(o)...)
		default:
			for _, text := range r.text(o) {
				all = append(all, AttributeValue{Name: r.name, Text: text})
			}
		}
	}
	return all
}

// ApplyChange makes a change. An error leaves the object unchanged.
func ApplyChange(o *Object, c AttributeChange) error {
	for _, r := range attributeTable() {
		// as OpenPBS does; many examples on the web write "priority"
		if !r.appliesTo(o) || !strings.EqualFold(r.name, c.Name) {
			continue
		}
		switch {
		case r.resourceTexts != nil && c.Resource == "" && c.Op == "":
			for _, v := range r.resourceTexts(o) {
				if err := r.setResource(o, v.Resource, "", ""); err != nil {
					return err
				}
			}
			return nil
		case (r.resourceTexts != nil) != (c.Resource != ""):
			return fmt.Errorf("%w: %s", errAttribute, c.Attribute())
		case r.resourceTexts != nil:
			return r.setResource(o, c.Resource, c.Op, c.Value)
		case c.Op == "":
			r.unset(o)
			return nil
		}
		return r.set(o, c.Op, c.Value)
	}
	for _, known := range readOnlyAttributes() {
		if strings.EqualFold(c.Name, known) {
			return fmt.Errorf("%w: %s", errReadOnly, c.Name)
		}
	}
	kind := Server
	if o.Queue != nil {
		kind = Queue
	}
	if err := RefuseForeign(kind, c.Name); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errAttribute, c.Attribute())
}

// readOnlyAttributes lists attributes that are printed and cannot be set.
func readOnlyAttributes() []string {
	return []string{"total_jobs", "state_count", "server_state", "server_host", "pbs_version", "resources_assigned",
		"hasnodes"}
}
