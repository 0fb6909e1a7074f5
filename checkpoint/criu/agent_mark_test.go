package criu

import (
	"errors"
	"testing"

	"github.com/roost-batch/roost"
)

// TestAgentStartsNoAgents checks that a program which is no agent, and is run as one,
// starts no other agents.
func TestAgentStartsNoAgents(t *testing.T) {
	t.Setenv(agentEnv, "1")
	if _, err := runAgent(t.Context(), "/bin/true", agentRequest{}); !errors.Is(err, roost.Internal) {
		t.Errorf("got %v", err)
	}
}
