package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// Access says by lists who may put jobs into a queue. Each list that is enforced has to let them in (OpenPBS, pbs_queue_attributes(7B): acl_users,
// acl_groups, acl_hosts).
type Access struct {
	Users  Roll `json:"users,omitzero"`  // entries are a user, or user@host
	Groups Roll `json:"groups,omitzero"` // Unix groups
	Hosts  Roll `json:"hosts,omitzero"`  // where jobs are submitted
}

// Roll is one list. An entry begins with + (or nothing) for those who may and with - for those who may not; a host may be *, or begin with *. for all
// that end so. The first entry that fits decides, then + or - alone, and else it is no.
type Roll struct {
	Enforced bool     `json:"enforced,omitempty"`
	Entries  []string `json:"entries,omitempty"`
}

func (a *Access) check() error {
	if a == nil {
		return nil
	}
	for i, r := range []Roll{a.Users, a.Groups, a.Hosts} {
		what := [...]string{"users", "groups", "hosts"}[i]
		if len(r.Entries) > maxNames {
			return fmt.Errorf("access of %s: %d entries, and %d is the most", what, len(r.Entries), maxNames)
		}
		for k, e := range r.Entries {
			name := strings.TrimLeft(e[:min(1, len(e))], "+-") + e[min(1, len(e)):]
			if e == "+" || e == "-" {
				continue
			}
			if err := account("an entry", strings.ReplaceAll(name, "*", "x")); err != nil {
				return fmt.Errorf("access of %s: %w", what, err)
			}
			if at := strings.LastIndex(name, "*"); at > 0 && (i != 0 || name[at-1] != '@') {
				return fmt.Errorf("access of %s: %q: a * stands for the beginning of a host", what, e)
			}
			if slices.Contains(r.Entries[:k], e) {
				return fmt.Errorf("access of %s: %q stands there twice", what, e)
			}
		}
	}
	return nil
}
