package cli

import (
	"flag"
	"slices"
	"testing"

	ucli "github.com/urfave/cli/v2"
)

// TestDoctorNamesTheSources: each is a line, and what is to be done about one that is broken is its cure.
func TestDoctorNamesTheSources(t *testing.T) {
	c := &call{App: &App{env: []string{"ROOST_DIR=" + (&fakeGuard{}).serve(t)}}, ctx: t.Context(), flags: ucli.NewContext(nil, flag.NewFlagSet("doctor", flag.ContinueOnError), nil)}
	want := []finding{
		{"owner", warn, "input devices: /dev/input/event3: permission denied", "run roost guard as root"},
		{"owner", fine, "terminals: 3, of which the kernel tells at once", ""},
		{"owner", fine, "battery: none", ""},
	}
	if got := c.examineGuard(); !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
