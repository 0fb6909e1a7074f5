package criu

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// TestAgentStartsNoAgents: a program that is no agent, and is run as one, starts no
// others.
func TestAgentStartsNoAgents(t *testing.T) {
	t.Setenv(agentEnv, "1")
	if _, err := runAgent(t.Context(), "/bin/true", agentRequest{}); !errors.Is(err, roost.Internal) {
		t.Errorf("got %v", err)
	}
}
