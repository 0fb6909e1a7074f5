package cli

import (
	"strings"
	"testing"
)

// TestSubmitAgain holds that a submit whose answer is lost is sent again under the same
// key.
func TestSubmitAgain(t *testing.T) {
	f := &fakeSchedd{lostReplies: 2}
	a, stdout, stderr := newJobsApp(t, f.serve(t))
	a.stdin = strings.NewReader("job \"hello\" {\n  executable = \"/bin/echo\"\n}\n")
	if code := a.Run(t.Context(), []string{"roost", "submit", "-"}); code != 0 || stdout.String() != "70.pool\n" {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if n := len(f.submitted); n != 3 || f.submitted[0].GetKey() != f.submitted[2].GetKey() ||
		len(f.submitted[0].GetKey()) < 16 {
		t.Errorf("%d submits, keys %q and %q", n, f.submitted[0].GetKey(), f.submitted[n-1].GetKey())
	}
}
