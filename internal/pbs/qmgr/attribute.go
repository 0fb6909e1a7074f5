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

// Object is a queue or the server, whose attributes are printed and changed.
type Object struct {
	Queue *ledger.QueuePolicy // nil: the server
	Pool  ledger.PoolLimits   // the pool's limits; for the server, as are the next two
	// DefaultQueue is the queue of jobs that name none.
	DefaultQueue        string
	MaxTasks            int64    // pool default for the size of an array
	Managers, Operators []string // user@host each; the host may be *
	// names of resources that are machine attributes, and whether each is a boolean
	Words     map[string]bool
	Counted   []string         // names of resources that the pool counts
	Available []AttributeValue // server: resources that the pool counts, with the amounts in Text
}

// AttributeValue is the value of an attribute. A list has one for each item.
type AttributeValue struct{ Name, Resource, Text string }

// attributeSpec describes an attribute: its objects, and how it is read and changed.
type attributeSpec struct {
	name   string
	queue  bool
	server bool
	text   func(o *Object) []string               // values of an attribute without resources
	set    func(o *Object, op, text string) error // nil: read-only
	unset  func(o *Object)                        // nil: read-only
	// values of an attribute with resources, in place of text
	resourceTexts func(o *Object) []AttributeValue
	// sets a resource's value, in place of set; op "" removes it
	setResource func(o *Object, resource, op, text string) error
	alias       bool // an older name of another attribute, not printed
}

func truthText(b bool) []string {
	if b {
		return []string{"True"}
	}
	return []string{"False"}
}

// boolAttribute describes a boolean of queues.
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

// listAttribute describes a list of words, in the order in which they were set.
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

// numberAttribute describes an optional whole number.
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

// limitAttribute describes limits by entity.
func limitAttribute(name string, at func(o *Object) *ledger.CountLimits) attributeSpec {
	return attributeSpec{name: name, queue: true, server: true,
		text:  func(o *Object) []string { return limitTexts(*at(o), countText) },
		set:   func(o *Object, op, text string) error { return changeLimits(at(o), op, text, parseCount) },
		unset: func(o *Object) { *at(o) = ledger.CountLimits{} },
	}
}

// amountLimitAttribute describes limits on resources by entity.
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

// amountsAttribute describes amounts of resources.
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

// changeWord changes which value of a machine attribute jobs require.
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

// oldLimitAttribute describes an old limit: one number that sets one of the new limits.
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

// oldAmountLimitAttribute describes an old limit on resources, as oldLimitAttribute does.
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

// fixedAttribute describes a server attribute with a constant value. Setting it to that
// value is no error.
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

// expressPriority is the lowest priority of an express queue, whose jobs preempt others
// (OpenPBS, preempt_queue_prio).
const expressPriority = 150

// setPriority sets the priority of a queue. An express queue without a band gets band
// production.
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
