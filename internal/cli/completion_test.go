package cli

import "testing"

// TestClassadWords holds that shells complete what may follow.
func TestClassadWords(t *testing.T) {
	for last, want := range map[string]string{"m": "match\tsay whether two ads match, and why not\n",
		"--ta": "--target\teval: the ad of FILE is the other side, TARGET\n"} {
		a, stdout, _ := newFullApp(t, t.TempDir())
		if a.Run(t.Context(), []string{"roost", "words", "--", "classad", last}); stdout.String() != want {
			t.Errorf("%s: got %q, want %q", last, stdout, want)
		}
	}
}
