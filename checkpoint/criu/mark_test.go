package criu

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// TestAgentsStartNone: a program that is no agent, and is run as one, starts no others.
func TestAgentsStartNone(t *testing.T) {
	t.Setenv(agentMark, "1")
	if _, err := ask(t.Context(), "/bin/true", request{}); !errors.Is(err, roost.Internal) {
		t.Errorf("got %v", err)
	}
}
