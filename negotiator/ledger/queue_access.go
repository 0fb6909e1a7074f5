package ledger

import (
	"fmt"
	"slices"
	"strings"
)

// QueueAccess contains the lists that control who may submit to a queue. Each enforced
// list must admit the job (OpenPBS, pbs_queue_attributes(7B): acl_users, acl_groups,
// acl_hosts).
type QueueAccess struct {
	Users  ACL `json:"users,omitzero"`  // entries are a user, or user@host
	Groups ACL `json:"groups,omitzero"` // entries are Unix groups
	Hosts  ACL `json:"hosts,omitzero"`  // entries are the hosts where jobs are submitted
}

// ACL is one access list. An entry that begins with + (or nothing) admits and one with -
// denies; a host may be *, or begin with *. to match a suffix. The first matching entry
// decides, then a lone + or -; the default is to deny.
type ACL struct {
	Enforced bool     `json:"enforced,omitempty"`
	Entries  []string `json:"entries,omitempty"`
}

func (a *QueueAccess) check() error {
	if a == nil {
		return nil
	}
	for i, r := range []ACL{a.Users, a.Groups, a.Hosts} {
		what := [...]string{"users", "groups", "hosts"}[i]
		if len(r.Entries) > maxNames {
			return fmt.Errorf("access of %s: %d entries, and %d is the most", what, len(r.Entries), maxNames)
		}
		for k, e := range r.Entries {
			name := strings.TrimLeft(e[:min(1, len(e))], "+-") + e[min(1, len(e)):]
			if e == "+" || e == "-" {
				continue
			}
			if err := checkAccountName("an entry", strings.ReplaceAll(name, "*", "x")); err != nil {
				return fmt.Errorf("access of %s: %w", what, err)
			}
			if at := strings.LastIndex(name, "*"); at > 0 && (i != 0 || name[at-1] != '@') {
				return fmt.Errorf("access of %s: %q: a * stands for the beginning of a host", what, e)
			}
			if slices.Contains(r.Entries[:k], e) {
				return fmt.Errorf("access of %s: %q is listed twice", what, e)
			}
		}
	}
	return nil
}
