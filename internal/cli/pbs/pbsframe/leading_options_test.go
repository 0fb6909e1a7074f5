package pbsframe

import (
	"slices"
	"testing"
)

// TestLeading holds which words are options of a command that runs another, and which are
// the other's.
func TestLeading(t *testing.T) {
	for _, c := range []struct {
		args, own, rest []string
	}{
		{[]string{"-n", "1", "ls", "-l"}, []string{"-n", "1"}, []string{"ls", "-l"}},
		{[]string{"-v", "--", "-odd", "-n"}, []string{"-v"}, []string{"-odd", "-n"}},
		{[]string{"-n1", "-s", "ls"}, []string{"-n1", "-s"}, []string{"ls"}},
		{[]string{"ls", "--", "-n"}, []string{}, []string{"ls", "--", "-n"}},
		{[]string{"-c", "2"}, []string{"-c", "2"}, nil},
		{[]string{"-c"}, []string{"-c"}, nil},
	} {
		if own, rest := CutLeadingOptions(c.args, "cn"); !slices.Equal(own, c.own) || !slices.Equal(rest, c.rest) {
			t.Errorf("%q: %q and %q", c.args, own, rest)
		}
	}
}
