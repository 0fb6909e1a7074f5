package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Object is a queue or the server, whose attributes are told and changed.
type Object struct {
	Queue *ledger.Queue // nil: it is the server
	Pool  ledger.Pool   // of the server, as are the next two
	// DefaultQueue is where jobs go that name none.
	DefaultQueue        string
	MaxTasks            int64           // of an array, where the pool says nothing
	Managers, Operators []string        // each as user@host; a host may be *
	Words               map[string]bool // names of resources that are attributes of machines, and whether one is true or false
	Counted             []string        // names of resources that are counted for the pool
	Available           []Value         // of the server: resources that are counted for the pool; Text is how many
}

// Value is one attribute as it is told. Of a list there is one for each item.
type Value struct{ Name, Resource, Text string }

// row is an attribute: where it stands, and how it is told and changed.
type row struct {
	name   string
	queue  bool
	server bool
	tell   func(o *Object) []string                         // without a resource
	change func(o *Object, op, text string) error           // nil: it cannot be changed
	unset  func(o *Object)                                  // nil: likewise
	parts  func(o *Object) []Value                          // of one with resources, instead of the three
	part   func(o *Object, resource, op, text string) error // likewise; op "" takes it away
	also   bool                                             // another name of one, which is not told
}

func truthText(b bool) []string {
	if b {
		return []string{"True"}
	}
	return []string{"False"}
}

// truth is a switch of queues.
func truth(name string, at func(o *Object) *bool, always bool) row {
	return row{name: name, queue: true,
		tell: func(o *Object) []string {
			if !always && !*at(o) {
				return nil
			}
			return truthText(*at(o))
		},
		change: func(o *Object, op, text string) error {
			v, ok := pbs.Truth(text)
			if !ok || op != "=" {
				return fmt.Errorf("%w: %q is neither True nor False", errValue, text)
			}
			*at(o) = v
			return nil
		},
		unset: func(o *Object) { *at(o) = false },
	}
}

// list is a list of words, in the order in which they were set.
func list(name string, at func(o *Object) *[]string) row {
	return row{name: name, queue: true,
		tell: func(o *Object) []string { return *at(o) },
		change: func(o *Object, op, text string) error {
			items := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
			now := slices.Clone(*at(o))
			if op == "=" {
				now = nil
			}
			for _, item := range items {
				if op == "-=" {
					now = slices.DeleteFunc(now, func(old string) bool { return old == item })
				} else if !slices.Contains(now, item) {
					now = append(now, item)
				}
			}
			*at(o) = now
			return nil
		},
		unset: func(o *Object) { *at(o) = nil },
	}
}

// number is a whole number that may be absent.
func number(name string, at func(o *Object) **int64, read func(string) (int64, error), text func(int64) string) row {
	return row{name: name, queue: true,
		tell: func(o *Object) []string {
			if *at(o) == nil {
				return nil
			}
			return []string{text(**at(o))}
		},
		change: func(o *Object, op, value string) error {
			n, err := read(value)
			if err != nil {
				return fmt.Errorf("%w: %q", errValue, value)
			}
			if has := *at(o); has != nil && op == "+=" {
				n += *has
			} else if op == "-=" {
				if n = -n; has != nil {
					n += *has
				}
			}
			*at(o) = &n
			return nil
		},
		unset: func(o *Object) { *at(o) = nil },
	}
}

// limits are limits of entities.
func limits(name string, at func(o *Object) *ledger.Counts) row {
	return row{name: name, queue: true, server: true,
		tell:   func(o *Object) []string { return limitTexts(*at(o), countText) },
		change: func(o *Object, op, text string) error { return changeLimits(at(o), op, text, readCount) },
		unset:  func(o *Object) { *at(o) = ledger.Counts{} },
	}
}

// amounts are limits of entities on resources.
func amounts(name string, at func(o *Object) *ledger.Amount) row {
	return row{name: name, queue: true, server: true,
		parts: func(o *Object) (all []Value) {
			for _, r := range resources() {
				if r.amount == "" {
					continue
				}
				_, text := r.counter()
				for _, l := range limitTexts((*at(o))[r.amount], text) {
					all = append(all, Value{name, r.name, l})
				}
			}
			return all
		},
		part: func(o *Object, resource, op, text string) error { return changeAmount(at(o), resource, op, text) },
	}
}

func changeAmount(a *ledger.Amount, name, op, text string) error {
	r, err := resourceOf(name)
	if err != nil {
		return err
	}
	if r.amount == "" {
		return fmt.Errorf("%w: %s is not counted", errResource, name)
	}
	next := ledger.Amount{}
	for k, v := range *a {
		next[k] = v
	}
	c := next[r.amount]
	if op == "" {
		c = ledger.Counts{}
	} else {
		parse, _ := r.counter()
		if err := changeLimits(&c, op, text, parse); err != nil {
			return err
		}
	}
	if next[r.amount] = c; !c.Any() {
		delete(next, r.amount)
	}
	if *a = next; len(next) == 0 {
		*a = nil
	}
	return nil
}

// extent are amounts of resources.
func extent(name string, at func(o *Object) *ledger.Extent) row {
	return row{name: name, queue: true, server: true,
		parts: func(o *Object) (values []Value) {
			for _, r := range all(at(o)) {
				if get, _ := r.field(at(o)); get() != nil {
					values = append(values, Value{name, r.name, r.text(*get())})
				}
			}
			for _, word := range slices.Sorted(maps.Keys(at(o).Words)) {
				values = append(values, Value{name, word, at(o).Words[word]})
			}
			return values
		},
		part: func(o *Object, resource, op, text string) error {
			if _, is := o.Words[resource]; is || at(o).Words[resource] != "" {
				return changeWord(o, at(o), name, resource, op, text)
			}
			r, err := resourceOf(resource)
			if slices.ContainsFunc(o.Counted, func(c string) bool { return strings.EqualFold(c, resource) }) {
				r, err = counted(resource), nil
			}
			if err != nil {
				return err
			}
			get, set := r.field(at(o))
			if op == "" {
				set(nil)
				return nil
			}
			n, err := r.parse(text)
			if err != nil {
				return fmt.Errorf("%w: %s of %q", errValue, resource, text)
			}
			if has := get(); has != nil && op == "+=" {
				n += *has
			} else if has != nil && op == "-=" {
				n = *has - n
			}
			set(&n)
			return nil
		},
	}
}

// changeWord changes what a job is to ask of machines.
func changeWord(o *Object, e *ledger.Extent, attribute, name, op, text string) error {
	own := maps.Clone(e.Words)
	switch {
	case attribute == "resources_max" || attribute == "resources_min":
		return fmt.Errorf("%w: %s.%s: what machines have by word has no most and no least", errSupport, attribute, name)
	case op == "":
		delete(own, name)
	case op != "=":
		return fmt.Errorf("%w: %s %s", errValue, name, op)
	default:
		if v, ok := pbs.Truth(text); o.Words[name] && !ok {
			return fmt.Errorf("%w: %q is neither True nor False", errValue, text)
		} else if o.Words[name] {
			text = truthText(v)[0]
		}
		if own == nil {
			own = map[string]string{}
		}
		own[name] = text
	}
	if e.Words = own; len(own) == 0 {
		e.Words = nil
	}
	return nil
}

// whole is an old limit: a single number of the new ones.
func whole(name, entity string, at func(o *Object) *ledger.Counts, server bool) row {
	return row{name: name, queue: true, server: server, also: true,
		tell: func(*Object) []string { return nil },
		change: func(o *Object, op, text string) error {
			if op != "=" {
				return fmt.Errorf("%w: %s %s", errValue, name, op)
			}
			return changeLimits(at(o), "+=", "["+entity+"="+text+"]", readCount)
		},
		unset: func(o *Object) { _ = changeLimits(at(o), "-=", "["+entity+"]", readCount) },
	}
}

// wholeAmount is whole of amounts of resources.
func wholeAmount(name, entity string, at func(o *Object) *ledger.Amount) row {
	return row{name: name, queue: true, server: true, also: true,
		parts: func(*Object) []Value { return nil },
		part: func(o *Object, resource, op, text string) error {
			switch op {
			case "":
				return changeAmount(at(o), resource, "-=", "["+entity+"]")
			case "=":
				return changeAmount(at(o), resource, "+=", "["+entity+"="+text+"]")
			}
			return fmt.Errorf("%w: %s %s", errValue, name, op)
		},
	}
}

// fixed is what the server always is: setting it so is no error.
func fixed(name, value string) row {
	return row{name: name, server: true,
		tell: func(*Object) []string { return []string{value} },
		change: func(_ *Object, op, text string) error {
			if op != "=" || !strings.EqualFold(text, value) {
				return fmt.Errorf("%w: %s is always %s here", errValue, name, value)
			}
			return nil
		},
		unset: func(*Object) {},
	}
}

func priorityText(o *Object) []string {
	if o.Queue.Priority == 0 {
		return nil
	}
	return []string{strconv.Itoa(int(o.Queue.Priority))}
}

// express is from which priority on a queue is an express one, whose jobs displace others (OpenPBS, preempt_queue_prio).
const express = 150

// setPriority sets the priority of a queue. Express queues are of band production, unless they have a band.
func setPriority(o *Object, op, text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %q", errValue, text)
	case op == "+=":
		n += int64(o.Queue.Priority)
	case op == "-=":
		n = int64(o.Queue.Priority) - n
	}
	if n < roost.MinPriority || n > roost.MaxPriority {
		return fmt.Errorf("%w: a priority of %d is not between %d and %d", errValue, n, roost.MinPriority, roost.MaxPriority)
	}
	if o.Queue.Priority = int32(n); n >= express && o.Queue.Band == "" {
		o.Queue.Band = roost.Production.String()
	}
	return nil
}
