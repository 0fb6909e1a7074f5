//go:build plants

// Package mutanttest helps tests that prove that another test finds a planted bug.
package mutanttest

import (
	"fmt"
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// stoppedTest is a test that notes its first failure and stops there.
type stoppedTest struct {
	testing.TB
	failure string
}

func (s *stoppedTest) Fatalf(format string, args ...any) {
	s.failure = fmt.Sprintf(format, args...)
	panic(s)
}

func (s *stoppedTest) Errorf(format string, args ...any) { s.Fatalf(format, args...) }
func (s *stoppedTest) Fatal(args ...any)                 { s.Fatalf("%s", fmt.Sprint(args...)) }
func (s *stoppedTest) Error(args ...any)                 { s.Fatal(args...) }

// CheckFound runs a check without a bug and with each of some bugs. The test fails unless
// the check fails with each bug, and passes without. A panic of what is checked counts as
// its failure.
func CheckFound(t *testing.T, check func(testing.TB), bugs ...mutant.Mutant) {
	t.Helper()
	for _, b := range append([]mutant.Mutant{0}, bugs...) {
		failure := firstFailure(t, check, b)
		if found := failure != ""; found != (b != 0) {
			t.Errorf("bug %d: found %v, %s", b, found, failure)
		}
	}
}

// firstFailure runs a check with a bug, and returns how it fails; empty if it passes.
func firstFailure(t *testing.T, check func(testing.TB), b mutant.Mutant) (failure string) {
	mutant.Activate(b)
	defer mutant.Activate(0)
	s := &stoppedTest{TB: t}
	defer func() {
		if r := recover(); r != nil {
			if failure = s.failure; r != any(s) {
				failure = fmt.Sprint("panic: ", r)
			}
		}
	}()
	check(s)
	return ""
}
