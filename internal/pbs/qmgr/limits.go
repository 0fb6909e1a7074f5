package qmgr

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/negotiator/ledger"
)

// Limits are lists like "[u:ada=10]". The letter is o (overall), u (users), g (Unix
// groups) or p (projects, which are Roost's groups). The name is that of an entity,
// PBS_GENERIC for each entity without a limit of its own, or PBS_ALL with o (OpenPBS
// Administrator's Guide, "Managing Resource Usage").

const (
	anyEntity  = "PBS_ALL"
	eachEntity = "PBS_GENERIC"
)

// limitEntry is one bracketed limit.
type limitEntry struct {
	who, name string
	max       string // empty in a removal: any value
}

// readLimits parses a list of limits.
func readLimits(text string) ([]limitEntry, error) {
	var all []limitEntry
	for rest := strings.TrimSpace(text); rest != ""; {
		body, after, closed := strings.Cut(rest, "]")
		body, opened := strings.CutPrefix(body, "[")
		if !opened || !closed {
			return nil, fmt.Errorf("%w: write limits as in [u:PBS_GENERIC=3],[u:ada=10]", errValue)
		}
		spec, most, _ := strings.Cut(body, "=")
		who, name, ok := strings.Cut(strings.TrimSpace(spec), ":")
		name = strings.Trim(strings.TrimSpace(name), `"'`)
		if !ok || len(who) != 1 || !strings.Contains("oupg", who) || name == "" || (who == "o") != (name == anyEntity) {
			return nil, fmt.Errorf("%w: [%s] is none of [o:PBS_ALL=N], [u:NAME=N], [g:NAME=N] and [p:NAME=N]",
				errValue, body)
		}
		all = append(all, limitEntry{who, name, strings.TrimSpace(most)})
		rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(after), ","))
	}
	if len(all) == 0 {
		return nil, errValue
	}
	return all, nil
}

// singleLimit returns the place of a limit that is not of a named entity.
func singleLimit(c *ledger.CountLimits, l limitEntry) **int64 {
	switch {
	case l.who == "o":
		return &c.Total
	case l.name != eachEntity:
		return nil
	case l.who == "u":
		return &c.PerUser
	case l.who == "p":
		return &c.PerGroup
	}
	return &c.PerUnixGroup
}

func namedLimit(c *ledger.CountLimits, who string) *map[string]int64 {
	switch who {
	case "u":
		return &c.Users
	case "p":
		return &c.Groups
	}
	return &c.UnixGroups
}

// changeLimits sets, adds or removes limits. parse reads the amounts.
func changeLimits(c *ledger.CountLimits, op, text string, parse func(string) (int64, error)) error {
	list, err := readLimits(text)
	if err != nil {
		return err
	}
	next := *c
	if op == "=" {
		next = ledger.CountLimits{}
	}
	next.Users, next.Groups, next.UnixGroups = maps.Clone(next.Users), maps.Clone(next.Groups),
		maps.Clone(next.UnixGroups)
	for _, l := range list {
		if err := nextUnquoted(&next, op, l, parse); err != nil {
			return err
		}
	}
	*c = next
	return nil
}

func nextUnquoted(c *ledger.CountLimits, op string, l limitEntry, parse func(string) (int64, error)) error {
	one, many := singleLimit(c, l), namedLimit(c, l.who)
	if op == "-=" {
		if one != nil {
			*one = nil
		} else {
			delete(*many, l.name)
		}
		return nil
	}
	n, err := parse(l.max)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: %q of %s", errValue, l.max, l.name)
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

// limitTexts formats limits, each as a text of its own.
func limitTexts(c ledger.CountLimits, text func(int64) string) (all []string) {
	add := func(who, name string, n *int64) {
		if n != nil {
			all = append(all, fmt.Sprintf("[%s:%s=%s]", who, name, text(*n)))
		}
	}
	add("o", anyEntity, c.Total)
	add("u", eachEntity, c.PerUser)
	add("g", eachEntity, c.PerUnixGroup)
	add("p", eachEntity, c.PerGroup)
	for _, who := range []string{"u", "g", "p"} {
		many := *namedLimit(&c, who)
		for _, name := range slices.Sorted(maps.Keys(many)) {
			n := many[name]
			add(who, name, &n)
		}
	}
	return all
}

func parseCount(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

func countText(n int64) string { return strconv.FormatInt(n, 10) }
