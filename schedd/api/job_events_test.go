package api

import "testing"

// TestRequesterText checks that the events of a job name whoever asked for something,
// unless that was the owner.
func TestRequesterText(t *testing.T) {
	for _, c := range []struct{ text, by, want string }{
		{"", "ann", ""}, {"", "root", "by root"}, {"priority: 3", "cat@n2", "priority: 3 by cat@n2"},
		{"by cat@n2", "cat@n2", "by cat@n2"}, {"disk full", "", "disk full"},
	} {
		if got := requesterText(c.text, c.by, "ann"); got != c.want {
			t.Errorf("%q by %q: got %q, want %q", c.text, c.by, got, c.want)
		}
	}
	if got := requesterText("x", "root", ""); got != "x" {
		t.Errorf("the owner is not known: got %q", got)
	}
}
