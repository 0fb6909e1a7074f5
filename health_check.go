package roost

import (
	"fmt"
	"strings"
	"time"
)

// The defaults and bounds of health checks, and of how tasks of services are stopped.
const (
	DefaultCheckEvery   = 10 * time.Second
	DefaultCheckTimeout = 5 * time.Second // of http and tcp at most as long as every
	DefaultCheckStart   = time.Minute     // start_within
	DefaultCheckFails   = 3
	DefaultCheckPasses  = 1
	MinCheckEvery       = time.Second
	MinCheckTimeout     = 10 * time.Millisecond
	MaxCheckEvery       = time.Hour
	MaxCheckStart       = 24 * time.Hour
	MaxCheckCount       = 1000
	MaxChecks           = 16      // of a task
	maxCheckText        = 4 << 10 // bytes of a path or a header
	DefaultDrain        = 5 * time.Second
	MaxDrain            = 10 * time.Minute
	MaxChecksHold       = 24 * time.Hour // health checks are not held longer at a time
)

// The values of AttrCheckFor.
const (
	CheckForReady = "ready" // a task that fails gets no new work
	CheckForLive  = "live"  // and is started again
)

// CheckCheckName returns what is wrong with the name of a health check, nil if nothing
// is.
func CheckCheckName(name string) error {
	for i := range len(name) {
		c := name[i]
		letter, other := c >= 'a' && c <= 'z', c >= '0' && c <= '9' || c == '-'
		if !letter && (i == 0 || !other) {
			return fmt.Errorf("%w: a name has small letters, digits and -, and begins with a letter", Invalid)
		}
	}
	if name == "" || len(name) > 15 || strings.HasSuffix(name, "-") || strings.Contains(name, "--") {
		return fmt.Errorf("%w: a name has from 1 to 15 characters, and hyphens only between others", Invalid)
	}
	return nil
}

// CheckRequestPath returns what is wrong with the path of an HTTP request, nil if nothing
// is.
func CheckRequestPath(path string) error {
	if !strings.HasPrefix(path, "/") || len(path) > maxCheckText ||
		strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%w: a path begins with / and has printable characters without spaces", Invalid)
	}
	return nil
}

// CheckHeader returns what is wrong with a header of an HTTP request, nil if nothing is.
func CheckHeader(name, value string) error {
	badName := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	badValue := func(r rune) bool { return r < ' ' || r >= 0x7f }
	if name == "" || strings.ContainsFunc(name, badName) || strings.ContainsFunc(value, badValue) ||
		len(name)+len(value) > maxCheckText {
		return fmt.Errorf("%w: a header has a name of letters, digits and hyphens, and a value on one line", Invalid)
	}
	return nil
}
