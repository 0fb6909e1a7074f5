package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/negotiator/ledger"
)

// Limits are written as lists of "[u:ada=10]": a letter for whom it is (o overall, u of users, g of Unix groups, p of projects, which are our groups), a
// name, PBS_GENERIC for each that is not named, and PBS_ALL of o (OpenPBS Administrator's Guide, "Managing Resource Usage").

const (
	everybody = "PBS_ALL"
	each      = "PBS_GENERIC"
)

// limit is one in brackets.
type limit struct {
	who, name string
	most      string // empty, of what is to be taken away: any
}

// readLimits takes a list of limits apart.
func readLimits(text string) ([]limit, error) {
	var all []limit
	for rest := strings.TrimSpace(text); rest != ""; {
		body, after, closed := strings.Cut(rest, "]")
		body, opened := strings.CutPrefix(body, "[")
		if !opened || !closed {
			return nil, fmt.Errorf("%w: write limits as in [u:PBS_GENERIC=3],[u:ada=10]", errValue)
		}
		spec, most, _ := strings.Cut(body, "=")
		who, name, ok := strings.Cut(strings.TrimSpace(spec), ":")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if !ok || len(who) != 1 || !strings.Contains("oupg", who) || name == "" || (who == "o") != (name == everybody) {
			return nil, fmt.Errorf("%w: [%s] is none of [o:PBS_ALL=N], [u:NAME=N], [g:NAME=N] and [p:NAME=N]", errValue, body)
		}
		all = append(all, limit{who, name, strings.TrimSpace(most)})
		rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), ","))
	}
	if len(all) == 0 {
		return nil, errValue
	}
	return all, nil
}

// single and named are where in counts a limit stands.
func single(c *ledger.Counts, l limit) **int64 {
	switch {
	case l.who == "o":
		return &c.Total
	case l.name != each:
		return nil
	case l.who == "u":
		return &c.PerUser
	case l.who == "p":
		return &c.PerGroup
	}
	return &c.PerUnixGroup
}

func named(c *ledger.Counts, who string) *map[string]int64 {
	switch who {
	case "u":
		return &c.Users
	case "p":
		return &c.Groups
	}
	return &c.UnixGroups
}

// changeLimits sets, adds to or takes from counts. Amounts are read by parse.
func changeLimits(c *ledger.Counts, op, text string, parse func(string) (int64, error)) error {
	list, err := readLimits(text)
	if err != nil {
		return err
	}
	next := *c
	if op == "=" {
		next = ledger.Counts{}
	}
	next.Users, next.Groups, next.UnixGroups = maps.Clone(next.Users), maps.Clone(next.Groups), maps.Clone(next.UnixGroups)
	for _, l := range list {
		if err := next1(&next, op, l, parse); err != nil {
			return err
		}
	}
	*c = next
	return nil
}

func next1(c *ledger.Counts, op string, l limit, parse func(string) (int64, error)) error {
	one, many := single(c, l), named(c, l.who)
	if op == "-=" {
		if one != nil {
			*one = nil
		} else {
			delete(*many, l.name)
		}
		return nil
	}
	n, err := parse(l.most)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: %q of %s", errValue, l.most, l.name)
	}
	if one != nil {
		*one = &n
		return nil
	}
	if *many == nil {
		*many = map[string]int64{}
	}
	(*many)[l.name] = n
	return nil
}

// limitTexts writes counts, one limit in each text.
func limitTexts(c ledger.Counts, text func(int64) string) (all []string) {
	add := func(who, name string, n *int64) {
		if n != nil {
			all = append(all, fmt.Sprintf("[%s:%s=%s]", who, name, text(*n)))
		}
	}
	add("o", everybody, c.Total)
	add("u", each, c.PerUser)
	add("g", each, c.PerUnixGroup)
	add("p", each, c.PerGroup)
	for _, who := range []string{"u", "g", "p"} {
		many := *named(&c, who)
		for _, name := range slices.Sorted(maps.Keys(many)) {
			n := many[name]
			add(who, name, &n)
		}
	}
	return all
}

func readCount(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func countText(n int64) string { return strconv.FormatInt(n, 10) }
