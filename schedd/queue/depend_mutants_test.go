//go:build plants

package queue

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

type testStopped struct{}

func (s *stoppedTest) Fatalf(format string, args ...any) {
	s.failure = fmt.Sprintf(format, args...)
	panic(testStopped{})
}

func (s *stoppedTest) Errorf(format string, args ...any) { s.Fatalf(format, args...) }
func (s *stoppedTest) Fatal(args ...any)                 { s.Fatalf("%s", fmt.Sprint(args...)) }

// TestDependencyMutants checks that the tests of dependencies find each bug in them, and
// nothing without one.
func TestDependencyMutants(t *testing.T) {
	for _, c := range []struct {
		bug   mutant.Mutant
		check func(testing.TB)
	}{
		{mutant.AlternativesJoined, func(t testing.TB) { checkRandomDependencies(t, 250) }},
		{mutant.IndexUnchecked, checkAfterCorr},
	} {
		for _, b := range []mutant.Mutant{0, c.bug} {
			mutant.Activate(b)
			s := &stoppedTest{TB: t}
			func() {
				defer func() {
					if r := recover(); r != nil && s.failure == "" { // a check of the queue itself
						s.failure = fmt.Sprint(r)
					}
				}()
				c.check(s)
			}()
			mutant.Activate(0)
			if found := s.failure != ""; found != (b != 0) {
				t.Errorf("bug %d: found %v, %s", b, found, s.failure)
			}
		}
	}
}
