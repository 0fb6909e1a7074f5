package qmgr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// schedulingText describes scheduling, which is False while the pool is stopped.
func schedulingText() attributeSpec {
	return attributeSpec{name: "scheduling", server: true,
		text: func(o *Object) []string { return truthText(!o.Pool.Stopped) },
		set: func(o *Object, op, text string) error {
			v, ok := qsub.ParseBool(text)
			if !ok || op != "=" {
				return fmt.Errorf("%w: %q is neither True nor False", errValue, text)
			}
			o.Pool.Stopped = !v
			return nil
		},
		unset: func(o *Object) { o.Pool.Stopped = false },
	}
}

// serverText describes a text of the server.
func serverText(name string, at func(o *Object) *string) attributeSpec {
	return attributeSpec{name: name, server: true,
		text: func(o *Object) []string {
			if *at(o) == "" {
				return nil
			}
			return []string{*at(o)}
		},
		set: func(o *Object, op, value string) error {
			if op == "+=" {
				value = *at(o) + value
			} else if op == "-=" {
				value = strings.ReplaceAll(*at(o), value, "")
			}
			*at(o) = value
			return nil
		},
		unset: func(o *Object) { *at(o) = "" },
	}
}

// usersAttribute describes a list of privileged users, each as user@host.
func usersAttribute(name string, at func(o *Object) *[]string) attributeSpec {
	r := listAttribute(name, at)
	r.queue, r.server = false, true
	change := r.set
	r.set = func(o *Object, op, text string) error {
		for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
			user, host, at := strings.Cut(one, "@")
			if !at || user == "" || host == "" || strings.Contains(user, "*") || strings.Contains(host, "*") &&
				host != "*" {
				return fmt.Errorf("%w: %s: write USER@NODE, or USER@* for a user of that name on any node",
					errValue, one)
			}
		}
		return change(o, op, text)
	}
	return r
}

// availableAmounts describes resources_available. For resources that the pool counts it
// is the total. For machines' resources it is a limit on what may be in use at once.
func availableAmounts() attributeSpec {
	return attributeSpec{name: "resources_available", server: true,
		resourceTexts: func(o *Object) []AttributeValue { return o.Available },
		setResource: func(o *Object, resource, op, text string) error {
			if r, err := findResource(resource); err == nil && r.amount != "" {
				return oldAmountLimitAttribute("", "o:"+anyEntity, func(o *Object) *ledger.AmountLimits {
					return runAmountLimits(o, false)
				}).setResource(o, resource, op, text)
			} else if err == nil {
				return fmt.Errorf("%w: %s is not counted", errResource, r.name)
			}
			resource = strings.ToLower(resource) // like the names of limits
			now := slices.Clone(o.Available)
			at := slices.IndexFunc(now, func(v AttributeValue) bool { return v.Resource == resource })
			if op == "" {
				if at >= 0 {
					o.Available = slices.Delete(now, at, at+1)
				}
				return nil
			}
			n, err := parseCount(text)
			if err != nil || n < 0 {
				return fmt.Errorf("%w: %q of %s, which is counted in whole numbers", errValue, text, resource)
			}
			if at < 0 {
				now, at = append(now, AttributeValue{Name: "resources_available", Resource: resource, Text: "0"}),
					len(now)
			}
			has, _ := parseCount(now[at].Text)
			if op == "+=" {
				n += has
			} else if op == "-=" {
				n = max(has-n, 0)
			}
			now[at].Text = strconv.FormatInt(n, 10)
			slices.SortFunc(now, func(a, b AttributeValue) int { return strings.Compare(a.Resource, b.Resource) })
			o.Available = now
			return nil
		},
	}
}
