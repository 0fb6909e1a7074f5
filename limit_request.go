package roost

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LimitRequest is how many units of one concurrency limit a claim takes while it exists.
// Administrators set how many units of each name the pool has (HTCondor's concurrency
// limits).
type LimitRequest struct {
	Name  string // in lower case; names are compared without regard to case
	Count int    // > 0
}

// Bounds on the limits that one job may name.
const (
	MaxLimitRequests = 16
	maxLimitName     = 64
	MaxLimitCount    = 1_000_000
)

// String returns the form that [ParseLimitRequests] reads.
func (l LimitRequest) String() string {
	if l.Count == 1 {
		return l.Name
	}
	return l.Name + ":" + strconv.Itoa(l.Count)
}

// ParseLimitRequests reads a list such as "matlab, ansys:2", HTCondor's form of
// ConcurrencyLimits. Each name has the number of units that a claim takes, 1 if absent.
// The result is in order of names. An error wraps Invalid and names the bad entry.
func ParseLimitRequests(text string) ([]LimitRequest, error) {
	var all []LimitRequest
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for _, part := range strings.Split(text, ",") {
		l, err := parseLimitRequest(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o LimitRequest) bool { return o.Name == l.Name }) {
			return nil, fmt.Errorf("limit %s: %w: it is named twice; write %s:2 to take two", l.Name, Invalid, l.Name)
		}
		all = append(all, l)
	}
	if len(all) > MaxLimitRequests {
		return nil, fmt.Errorf("limits: %w: there are %d, and %d is the most", Invalid, len(all), MaxLimitRequests)
	}
	slices.SortFunc(all, func(a, b LimitRequest) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

func parseLimitRequest(part string) (LimitRequest, error) {
	name, count, counted := strings.Cut(part, ":")
	l := LimitRequest{Name: strings.ToLower(strings.TrimSpace(name)), Count: 1}
	if !IsLimitName(l.Name) {
		return l, fmt.Errorf("limit %.80q: %w: a name is a letter followed by letters, digits, dots, _ and -, "+
			"at most %d in all", part, Invalid, maxLimitName)
	}
	if counted {
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil || n < 1 || n > MaxLimitCount {
			return l, fmt.Errorf("limit %s: %w: %.40q is not a whole number from 1 to %d", l.Name, Invalid, count,
				MaxLimitCount)
		}
		l.Count = n
	}
	return l, nil
}

// IsLimitName reports whether s, in lower case, is a valid name of a limit.
func IsLimitName(s string) bool {
	for i, c := range s {
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '.' || c == '_' || c == '-')) {
			return false
		}
	}
	return s != "" && len(s) <= maxLimitName
}
