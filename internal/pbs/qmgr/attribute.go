package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Object is a queue or the server, whose attributes are told and changed.
type Object struct {
	Queue *ledger.QueuePolicy // nil: it is the server
	Pool  ledger.PoolLimits   // of the server, as are the next two
	// DefaultQueue is where jobs go that name none.
	DefaultQueue        string
	MaxTasks            int64    // of an array, where the pool says nothing
	Managers, Operators []string // each as user@host; a host may be *
	// names of resources that are attributes of machines, and whether one is true or
	// false
	Words     map[string]bool
	Counted   []string         // names of resources that are counted for the pool
	Available []AttributeValue // of the server: resources that are counted for the pool; Text is how many
}

// AttributeValue is one attribute as it is told. Of a list there is one for each item.
type AttributeValue struct{ Name, Resource, Text string }

// attributeSpec is an attribute: where it stands, and how it is told and changed.
type attributeSpec struct {
	name          string
	queue         bool
	server        bool
	text          func(o *Object) []string                         // without a resource
	set           func(o *Object, op, text string) error           // nil: it cannot be changed
	unset         func(o *Object)                                  // nil: likewise
	resourceTexts func(o *Object) []AttributeValue                 // of one with resources, instead of the three
	setResource   func(o *Object, resource, op, text string) error // likewise; op "" takes it away
	alias         bool                                             // another name of one, which is not told
}

func truthText(b bool) []string {
	if b {
		return []string{"True"}
	}
	return []string{"False"}
}

// boolAttribute is a switch of queues.
func boolAttribute(name string, at func(o *Object) *bool, always bool) attributeSpec {
	return attributeSpec{name: name, queue: true,
		text: func(o *Object) []string {
			if !always && !*at(o) {
				return nil
			}
			return truthText(*at(o))
		},
		set: func(o *Object, op, text string) error {
			v, ok := qsub.ParseBool(text)
			if !ok || op != "=" {
				return fmt.Errorf("%w: %q is neither True nor False", errValue, text)
			}
			*at(o) = v
			return nil
		},
		unset: func(o *Object) { *at(o) = false },
	}
}

// listAttribute is a list of words, in the order in which they were set.
func listAttribute(name string, at func(o *Object) *[]string) attributeSpec {
	return attributeSpec{name: name, queue: true,
		text: func(o *Object) []string { return *at(o) },
		set: func(o *Object, op, text string) error {
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

// numberAttribute is a whole number that may be absent.
func numberAttribute(name string, at func(o *Object) **int64, read func(string) (int64, error),
	text func(int64) string) attributeSpec {
	return attributeSpec{name: name, queue: true,
		text: func(o *Object) []string {
			if *at(o) == nil {
				return nil
			}
			return []string{text(**at(o))}
		},
		set: func(o *Object, op, value string) error {
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

// limitAttribute are limits of entities.
func limitAttribute(name string, at func(o *Object) *ledger.CountLimits) attributeSpec {
	return attributeSpec{name: name, queue: true, server: true,
		text:  func(o *Object) []string { return limitTexts(*at(o), countText) },
		set:   func(o *Object, op, text string) error { return changeLimits(at(o), op, text, parseCount) },
		unset: func(o *Object) { *at(o) = ledger.CountLimits{} },
	}
}

// amountLimitAttribute are limits of entities on resources.
func amountLimitAttribute(name string, at func(o *Object) *ledger.AmountLimits) attributeSpec {
	return attributeSpec{name: name, queue: true, server: true,
		resourceTexts: func(o *Object) (all []AttributeValue) {
			for _, r := range builtinResources() {
				if r.amount == "" {
					continue
				}
				_, text := r.countAccess()
				for _, l := range limitTexts((*at(o))[r.amount], text) {
					all = append(all, AttributeValue{name, r.name, l})
				}
			}
			return all
		},
		setResource: func(o *Object, resource, op, text string) error {
			return changeAmount(at(o), resource, op, text)
		},
	}
}

func changeAmount(a *ledger.AmountLimits, name, op, text string) error {
	r, err := findResource(name)
	if err != nil {
		return err
	}
	if r.amount == "" {
		return fmt.Errorf("%w: %s is not counted", errResource, name)
	}
	next := ledger.AmountLimits{}
	for k, v := range *a {
		next[k] = v
	}
	c := next[r.amount]
	if op == "" {
		c = ledger.CountLimits{}
	} else {
		parse, _ := r.countAccess()
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

// amountsAttribute are amounts of resources.
func amountsAttribute(name string, at func(o *Object) *ledger.ResourceRange) attributeSpec {
	return attributeSpec{name: name, queue: true, server: true,
		resourceTexts: func(o *Object) (values []AttributeValue) {
			for _, r := range allResources(at(o)) {
				if get, _ := r.field(at(o)); get() != nil {
					values = append(values, AttributeValue{name, r.name, r.text(*get())})
				}
			}
			for _, word := range slices.Sorted(maps.Keys(at(o).MachineAttrs)) {
				values = append(values, AttributeValue{name, word, at(o).MachineAttrs[word]})
			}
			return values
		},
		setResource: func(o *Object, resource, op, text string) error {
			if _, is := o.Words[resource]; is || at(o).MachineAttrs[resource] != "" {
				return changeWord(o, at(o), name, resource, op, text)
			}
			r, err := findResource(resource)
			if slices.ContainsFunc(o.Counted, func(c string) bool { return strings.EqualFold(c, resource) }) {
				r, err = countedResource(resource), nil
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
func changeWord(o *Object, e *ledger.ResourceRange, attribute, name, op, text string) error {
	own := maps.Clone(e.MachineAttrs)
	switch {
	case attribute == "resources_max" || attribute == "resources_min":
		return fmt.Errorf("%w: %s.%s: what machines have by word has no most and no least", errSupport, attribute, name)
	case op == "":
		delete(own, name)
	case op != "=":
		return fmt.Errorf("%w: %s %s", errValue, name, op)
	default:
		if v, ok := qsub.ParseBool(text); o.Words[name] && !ok {
			return fmt.Errorf("%w: %q is neither True nor False", errValue, text)
		} else if o.Words[name] {
			text = truthText(v)[0]
		}
		if own == nil {
			own = map[string]string{}
		}
		own[name] = text
	}
	if e.MachineAttrs = own; len(own) == 0 {
		e.MachineAttrs = nil
	}
	return nil
}

// oldLimitAttribute is an old limit: a single number of the new ones.
func oldLimitAttribute(name, entity string, at func(o *Object) *ledger.CountLimits, server bool) attributeSpec {
	return attributeSpec{name: name, queue: true, server: server, alias: true,
		text: func(*Object) []string { return nil },
		set: func(o *Object, op, text string) error {
			if op != "=" {
				return fmt.Errorf("%w: %s %s", errValue, name, op)
			}
			return changeLimits(at(o), "+=", "["+entity+"="+text+"]", parseCount)
		},
		unset: func(o *Object) { _ = changeLimits(at(o), "-=", "["+entity+"]", parseCount) },
	}
}

// oldAmountLimitAttribute is whole of amounts of resources.
func oldAmountLimitAttribute(name, entity string, at func(o *Object) *ledger.AmountLimits) attributeSpec {
	return attributeSpec{name: name, queue: true, server: true, alias: true,
		resourceTexts: func(*Object) []AttributeValue { return nil },
		setResource: func(o *Object, resource, op, text string) error {
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

// fixedAttribute is what the server always is: setting it so is no error.
func fixedAttribute(name, value string) attributeSpec {
	return attributeSpec{name: name, server: true,
		text: func(*Object) []string { return []string{value} },
		set: func(_ *Object, op, text string) error {
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

// expressPriority is from which priority on a queue is an express one, whose jobs
// displace others (OpenPBS, preempt_queue_prio).
const expressPriority = 150

// setPriority sets the priority of a queue. Express queues are of band production, unless
// they have a band.
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
		return fmt.Errorf("%w: a priority of %d is not between %d and %d", errValue, n, roost.MinPriority,
			roost.MaxPriority)
	}
	if o.Queue.Priority = int32(n); n >= expressPriority && o.Queue.Band == "" {
		o.Queue.Band = roost.ProductionBand.String()
	}
	return nil
}
