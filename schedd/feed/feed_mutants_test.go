//go:build plants

package feed

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

// TestFeedMutants checks that the crashes of the feed find each bug that loses entries,
// and nothing without one.
func TestFeedMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{0, mutant.FeedCutEarly, mutant.FeedRestartForgets} {
		t.Run(fmt.Sprint(uint8(b)), func(t *testing.T) {
			mutant.Activate(b)
			defer mutant.Activate(0)
			s := &stoppedTest{TB: t}
			func() {
				defer func() {
					if r := recover(); r != nil {
						if _, is := r.(testStopped); !is {
							panic(r)
						}
					}
				}()
				for seed := range uint64(3) {
					runCrashes(s, seed, map[string]bool{})
				}
			}()
			if found := s.failure != ""; found != (b != 0) {
				t.Errorf("found: %v, %s", found, s.failure)
			}
		})
	}
}
