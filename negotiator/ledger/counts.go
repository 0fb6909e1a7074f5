package ledger

import (
	"fmt"
	"maps"
	"slices"
)

// Counts bounds how many there are, each nil for no bound. What is said of one by name counts for that one, and what is said of each for all others
// (OpenPBS, pbs_server_attributes(7B): limit attributes).
type Counts struct {
	Total        *int64           `json:"total,omitempty"`          // o:PBS_ALL
	PerUser      *int64           `json:"per_user,omitempty"`       // u:PBS_GENERIC
	PerGroup     *int64           `json:"per_group,omitempty"`      // p:PBS_GENERIC: PBS's project is our group
	PerUnixGroup *int64           `json:"per_unix_group,omitempty"` // g:PBS_GENERIC
	Users        map[string]int64 `json:"users,omitempty"`
	Groups       map[string]int64 `json:"groups,omitempty"`
	UnixGroups   map[string]int64 `json:"unix_groups,omitempty"`
}

// Amount bounds how much there is, by what it is of: see [AmountNames].
type Amount map[string]Counts

// AmountNames are what amounts are of, in order: whole cores, bytes, bytes, and whole GPUs.
func AmountNames() []string { return []string{"cpus", "memory_bytes", "disk_bytes", "gpus"} }

// Any reports whether there is a bound.
func (c Counts) Any() bool {
	return c.Total != nil || c.PerUser != nil || c.PerGroup != nil || c.PerUnixGroup != nil || len(c.Users)+len(c.Groups)+len(c.UnixGroups) > 0
}

// Any reports whether there is a bound.
func (a Amount) Any() bool {
	for _, c := range a {
		if c.Any() {
			return true
		}
	}
	return false
}

// Party is of whom something is counted.
type Party struct{ User, Group, UnixGroup string }

// Class is of what sort a party is that a bound is of.
type Class uint8

// The classes, in the order in which bounds are looked at.
const (
	Everybody Class = iota
	OfUser
	OfGroup
	OfUnixGroup
)

// Bound is one limit as it is for a party.
type Bound struct {
	Of    Class
	Name  string // of the user or group; empty for Everybody
	Named bool   // the limit names them; else it is that of each
	Most  int64
}

// Counts reports whether what q has counts for the bound.
func (b Bound) Counts(q Party) bool {
	switch b.Of {
	case OfUser:
		return q.User == b.Name
	case OfGroup:
		return q.Group == b.Name
	case OfUnixGroup:
		return q.UnixGroup == b.Name
	}
	return true
}

// Whose is whose the bound is, for people: "a user", "group sci".
func (b Bound) Whose() string {
	what := [...]string{"all", "user", "group", "Unix group"}[b.Of]
	switch {
	case b.Of == Everybody:
		return what
	case b.Named:
		return what + " " + b.Name
	}
	return "a " + what
}

// For lists the bounds that a party is held to.
func (c Counts) For(p Party) (all []Bound) {
	if c.Total != nil {
		all = append(all, Bound{Most: *c.Total})
	}
	add := func(of Class, name string, each *int64, named map[string]int64) {
		if name == "" {
			return
		}
		if n, ok := named[name]; ok {
			all = append(all, Bound{of, name, true, n})
		} else if each != nil {
			all = append(all, Bound{of, name, false, *each})
		}
	}
	add(OfUser, p.User, c.PerUser, c.Users)
	add(OfGroup, p.Group, c.PerGroup, c.Groups)
	add(OfUnixGroup, p.UnixGroup, c.PerUnixGroup, c.UnixGroups)
	return all
}

func (c Counts) check(most int64) error {
	for i, n := range []*int64{c.Total, c.PerUser, c.PerGroup, c.PerUnixGroup} {
		what := [...]string{"total", "per user", "per group", "per Unix group"}[i]
		if n != nil && (*n < 0 || *n > most) {
			return fmt.Errorf("%s is %d: it is between 0 and %d; leave it out for no bound", what, *n, most)
		}
	}
	for i, named := range []map[string]int64{c.Users, c.Groups, c.UnixGroups} {
		what := [...]string{"a user", "a group", "a Unix group"}[i]
		names := slices.Sorted(maps.Keys(named))
		if err := accounts(what, names); err != nil {
			return err
		}
		for _, name := range names {
			if n := named[name]; n < 0 || n > most {
				return fmt.Errorf("that of %s is %d: it is between 0 and %d; leave it out for no bound", name, n, most)
			}
		}
	}
	return nil
}

func (a Amount) check() error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(AmountNames(), name) {
			return fmt.Errorf("%q cannot be counted%s", name, suggest(name, AmountNames()))
		}
		most := int64(largest)
		if name == "cpus" || name == "gpus" {
			most = mostCount
		}
		if err := a[name].check(most); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkCounts checks what a queue, or the pool, bounds.
func checkCounts(running, queued Counts, runs, queues Amount) error {
	for i, c := range []interface{ check() error }{counted{running}, counted{queued}, runs, queues} {
		if err := c.check(); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"running", "queued", "running amounts", "queued amounts"}[i], err)
		}
	}
	return nil
}

// counted are counts of tasks.
type counted struct{ Counts }

func (c counted) check() error { return c.Counts.check(mostCount) }
