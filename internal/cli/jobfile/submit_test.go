package jobfile

import (
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/cli/clitest"
)

// TestSubmitAgain holds that a submit whose answer is lost is sent again under the same
// key.
func TestSubmitAgain(t *testing.T) {
	f := &clitest.FakeSchedd{LostReplies: 2}
	a, stdout, stderr := newJobsApp(t, f.Serve(t))
	a.Stdin = strings.NewReader("job \"hello\" {\n  executable = \"/bin/echo\"\n}\n")
	if code := a.Run(t.Context(), []string{"roost", "submit", "-"}); code != 0 || stdout.String() != "70.pool\n" {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if n := len(f.Submitted); n != 3 || f.Submitted[0].GetKey() != f.Submitted[2].GetKey() ||
		len(f.Submitted[0].GetKey()) < 16 {
		t.Errorf("%d submits, keys %q and %q", n, f.Submitted[0].GetKey(), f.Submitted[n-1].GetKey())
	}
}
