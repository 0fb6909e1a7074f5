//go:build plants

package schedd

import (
	"testing"

	"github.com/roost-batch/roost/internal/mutant"
)

// failedTest is a test that stops at its first failure, with a panic.
type failedTest struct{ testing.TB }

func (f *failedTest) Errorf(string, ...any) { panic(f) }
func (f *failedTest) Fatalf(string, ...any) { panic(f) }

// TestOutcomeMutants checks that an outcome that is told before it is on disk is found.
func TestOutcomeMutants(t *testing.T) {
	for _, b := range []mutant.Mutant{0, mutant.OutcomeReportedEarly} {
		mutant.Activate(b)
		f, failed := &failedTest{t}, false
		func() {
			defer func() {
				r := recover()
				if failed = r == any(f); r != nil && !failed {
					panic(r)
				}
			}()
			checkOutcomes(f)
		}()
		mutant.Activate(0)
		if failed != (b != 0) {
			t.Errorf("bug %v: found %v", b, failed)
		}
	}
}
