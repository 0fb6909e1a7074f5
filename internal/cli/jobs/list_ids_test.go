package jobs

import (
	"strings"
	"testing"
)

// TestReadIDs holds that only ids are read, so that no word chooses more than is named.
func TestReadIDs(t *testing.T) {
	got, err := readIDs("1 2.n-1\n\n\t3[1-5]\n1\n")
	if want := "1 2.n-1 3[1-5]"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, text := range []string{"1\nall", "last", "@x", "5-9", "-1", "1 2\n3 1-99999"} {
		if got, err := readIDs(text); err == nil {
			t.Errorf("%q: got %q, want an error", text, got)
		}
	}
}
