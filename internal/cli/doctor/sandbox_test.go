package doctor

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestHasRight holds what the kernel says of this process's rights in two ways.
func TestHasRight(t *testing.T) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("there is no /proc: %v", err)
	}
	found := regexp.MustCompile(`(?m)^CapEff:\s*([0-9a-f]+)`).FindSubmatch(text)
	if found == nil {
		t.Skip("the kernel does not tell a process's rights")
	}
	want, err := strconv.ParseUint(string(found[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint(41) {
		if got := hasRight(n); got != (want>>n&1 == 1) {
			t.Errorf("capability %d: got %v of %x", n, got, want)
		}
	}
}

// TestChecksReportVerdicts holds that each check of this machine comes to a verdict that
// says something.
func TestChecksReportVerdicts(t *testing.T) {
	for _, f := range []checkResult{checkSandbox(), checkImages(), examineShell()} {
		if f.Text == "" || f.Level == levelError || f.Level == levelWarning && f.Hint == "" {
			t.Errorf("got %+v", f)
		}
	}
}
