package roost

import (
	"fmt"
	"strings"
)

// PilotOwner is the user whose tasks a pilot runs. A pilot is a startd in an allocation
// of another batch system, where all tasks have one uid.
type PilotOwner struct {
	User   string
	Schedd string // the only submit node whose word for the user counts; empty: any of the pool
}

// ParsePilotOwner reads "ada" or "ada@login1".
func ParsePilotOwner(text string) (PilotOwner, error) {
	user, schedd, found := strings.Cut(text, "@")
	if user == "" || found && schedd == "" || len(text) > 256 {
		return PilotOwner{}, fmt.Errorf("owner %q: %w: write it as USER or USER@SUBMIT-NODE", text, Invalid)
	}
	for _, c := range text {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("_-.@+", c) || c == '@' && strings.Count(text, "@") > 1 {
			return PilotOwner{}, fmt.Errorf("owner %q: %w: a name has letters, digits, \".\", \"-\", \"+\" and \"_\"",
				text, Invalid)
		}
	}
	return PilotOwner{user, schedd}, nil
}

// String is what ParsePilotOwner reads.
func (o PilotOwner) String() string {
	if o.Schedd == "" {
		return o.User
	}
	return o.User + "@" + o.Schedd
}

// Admits reports whether a pilot runs tasks of a user for whom a schedd vouches.
func (o PilotOwner) Admits(user, schedd string) bool {
	return o.User == user && (o.Schedd == "" || o.Schedd == schedd)
}

// Requirements is the expression AttrRequirements of the ad of a pilot: its owner alone,
// within its policy.
func (o PilotOwner) Requirements() string {
	return `TARGET.` + AttrOwner + ` == "` + o.User + `" && ` + AttrStart
}
