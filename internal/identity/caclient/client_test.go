package caclient

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
)

func TestClockSkew(t *testing.T) {
	theirs := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for off, says := range map[time.Duration]string{
		0: "", maxClockSkew: "", -maxClockSkew: "",
		3 * time.Hour:      "3h0m0s ahead of the pool's, where it is 2026-03-01 12:00:00 UTC",
		-87600 * time.Hour: "87600h0m0s behind the pool's",
	} {
		err := clockSkewError(theirs.Add(off), theirs)
		if says == "" && err != nil || says != "" &&
			(!errors.Is(err, roost.Conflict) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%v: got %v, want %q", off, err, says)
		}
	}
}

// TestClosedConnection distinguishes three kinds of errors. An authority that closed the
// connection is asked again for its reason; one that cannot be reached and one that has
// answered are not.
func TestClosedConnection(t *testing.T) {
	for text, want := range map[string]bool{
		"write tcp 10.0.0.2:59334->10.0.0.1:9700: write: broken pipe":            true,
		"read tcp 10.0.0.2:59334->10.0.0.1:9700: read: connection reset by peer": true,
		"error reading server preface: EOF":                                      true,
		`connection error: desc = "error reading server preface: EOF"`:           true,
		`write: use of closed network connection`:                                true,
		"dial tcp 10.0.0.1:9700: connect: connection refused":                    false,
		"remote error: tls: bad certificate":                                     false,
	} {
		if got := isHungUp(fmt.Errorf("%w: %s", roost.Unavailable, text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if isHungUp(fmt.Errorf("%w: EOF", roost.Invalid)) || isHungUp(nil) {
		t.Error("an answer is taken for none")
	}
}
