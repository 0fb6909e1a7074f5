package cli

import (
	"fmt"
	"testing"
)

// TestNoCommandIsNamedTwice: a wrong call is told under the command's name, which the error may begin with, too.
func TestNoCommandIsNamedTwice(t *testing.T) {
	a, _, stderr := testApp(t, t.TempDir())
	a.fail("join", fmt.Errorf("join: %w", usage("%q: write it as HOST:PORT", "x")))
	if got, want := stderr.String(), "roost join: \"x\": write it as HOST:PORT\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
