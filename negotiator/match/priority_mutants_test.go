//go:build plants

package match

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

// TestPriorityMutants checks that random cells find each bug in how priority displaces,
// and nothing without one.
func TestPriorityMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{0, mutant.PriorityUnitsIgnored, mutant.PriorityStepIgnored} {
		mutant.Activate(b)
		s := &stoppedTest{TB: t}
		func() {
			defer func() {
				if r := recover(); r != nil && r != any(s) {
					panic(r)
				}
			}()
			checkRandomPriorities(s, 1000)
		}()
		mutant.Activate(0)
		if found := s.failure != ""; found != (b != 0) {
			t.Errorf("bug %v: found %v, %s", b, found, s.failure)
		}
	}
}
