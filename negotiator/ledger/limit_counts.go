package ledger

import (
	"fmt"
	"maps"
	"slices"
)

// CountLimits bounds counts; nil means no bound. A bound for a named user or group
// replaces the bound for each (OpenPBS, pbs_server_attributes(7B): limit attributes).
type CountLimits struct {
	Total        *int64           `json:"total,omitempty"`          // o:PBS_ALL
	PerUser      *int64           `json:"per_user,omitempty"`       // u:PBS_GENERIC
	PerGroup     *int64           `json:"per_group,omitempty"`      // p:PBS_GENERIC; a PBS project is a Roost group
	PerUnixGroup *int64           `json:"per_unix_group,omitempty"` // g:PBS_GENERIC
	Users        map[string]int64 `json:"users,omitempty"`
	Groups       map[string]int64 `json:"groups,omitempty"`
	UnixGroups   map[string]int64 `json:"unix_groups,omitempty"`
}

// AmountLimits bounds amounts by resource name: see [AmountNames].
type AmountLimits map[string]CountLimits

// AmountNames lists the resources of amounts, in order: whole cores, bytes, bytes and
// whole GPUs.
func AmountNames() []string { return []string{"cpus", "memory_bytes", "disk_bytes", "gpus"} }

// Any reports whether any bound is set.
func (c CountLimits) Any() bool {
	return c.Total != nil || c.PerUser != nil || c.PerGroup != nil || c.PerUnixGroup != nil ||
		len(c.Users)+len(c.Groups)+len(c.UnixGroups) > 0
}

// Any reports whether any bound is set.
func (a AmountLimits) Any() bool {
	for _, c := range a {
		if c.Any() {
			return true
		}
	}
	return false
}

// LimitSubject is the user with the groups against whose limits a task counts.
type LimitSubject struct{ User, Group, UnixGroup string }

// SubjectKind is the kind of subject that a bound applies to.
type SubjectKind uint8

// The kinds, in the order in which bounds are checked.
const (
	AllSubjects SubjectKind = iota
	OfUser
	OfGroup
	OfUnixGroup
)

// LimitBound is one limit as it applies to one subject.
type LimitBound struct {
	SubjectKind  SubjectKind
	Name         string // name of the user or group; empty for AllSubjects
	NamesSubject bool   // the limit names the subject; false: it is the bound for each
	Max          int64
}

// Includes reports whether the usage of q counts against the bound.
func (b LimitBound) Includes(q LimitSubject) bool {
	switch b.SubjectKind {
	case OfUser:
		return q.User == b.Name
	case OfGroup:
		return q.Group == b.Name
	case OfUnixGroup:
		return q.UnixGroup == b.Name
	}
	return true
}

// SubjectText names the subject of the bound for people: "a user", "group sci".
func (b LimitBound) SubjectText() string {
	what := [...]string{"all", "user", "group", "Unix group"}[b.SubjectKind]
	switch {
	case b.SubjectKind == AllSubjects:
		return what
	case b.NamesSubject:
		return what + " " + b.Name
	}
	return "a " + what
}

// BoundsFor lists the bounds that apply to a subject.
func (c CountLimits) BoundsFor(p LimitSubject) (all []LimitBound) {
	if c.Total != nil {
		all = append(all, LimitBound{Max: *c.Total})
	}
	add := func(of SubjectKind, name string, each *int64, named map[string]int64) {
		if name == "" {
			return
		}
		if n, ok := named[name]; ok {
			all = append(all, LimitBound{of, name, true, n})
		} else if each != nil {
			all = append(all, LimitBound{of, name, false, *each})
		}
	}
	add(OfUser, p.User, c.PerUser, c.Users)
	add(OfGroup, p.Group, c.PerGroup, c.Groups)
	add(OfUnixGroup, p.UnixGroup, c.PerUnixGroup, c.UnixGroups)
	return all
}

func (c CountLimits) check(most int64) error {
	for i, n := range []*int64{c.Total, c.PerUser, c.PerGroup, c.PerUnixGroup} {
		what := [...]string{"total", "per user", "per group", "per Unix group"}[i]
		if n != nil && (*n < 0 || *n > most) {
			return fmt.Errorf("%s is %d: it must be between 0 and %d; leave it out for no bound", what, *n, most)
		}
	}
	for i, named := range []map[string]int64{c.Users, c.Groups, c.UnixGroups} {
		what := [...]string{"a user", "a group", "a Unix group"}[i]
		names := slices.Sorted(maps.Keys(named))
		if err := checkAccountNames(what, names); err != nil {
			return err
		}
		for _, name := range names {
			if n := named[name]; n < 0 || n > most {
				return fmt.Errorf("that of %s is %d: it must be between 0 and %d; leave it out for no bound",
					name, n, most)
			}
		}
	}
	return nil
}

func (a AmountLimits) check() error {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(AmountNames(), name) {
			return fmt.Errorf("%q cannot be counted%s", name, suggestName(name, AmountNames()))
		}
		most := int64(maxAmount)
		if name == "cpus" || name == "gpus" {
			most = maxCount
		}
		if err := a[name].check(most); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// checkCounts checks the limits of a queue or of the pool.
func checkCounts(running, queued CountLimits, runs, queues AmountLimits) error {
	for i, c := range []interface{ check() error }{taskCounts{running}, taskCounts{queued}, runs, queues} {
		if err := c.check(); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"running", "queued", "running amounts", "queued amounts"}[i], err)
		}
	}
	return nil
}

// taskCounts are limits on numbers of tasks.
type taskCounts struct{ CountLimits }

func (c taskCounts) check() error { return c.CountLimits.check(maxCount) }
