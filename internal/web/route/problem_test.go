package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// TestTimeoutIsNoFailure checks that a call whose time is over is to be tried again. A
// bug is still one.
func TestTimeoutIsNoFailure(t *testing.T) {
	for err, want := range map[error]int{
		context.DeadlineExceeded:                  http.StatusServiceUnavailable,
		fmt.Errorf("nodes: %w", context.Canceled): http.StatusServiceUnavailable,
		errors.New("index out of range"):          http.StatusInternalServerError,
	} {
		if p := ProblemOf(err); p.Status != want || (p.RetryAfter > 0) != (want == http.StatusServiceUnavailable) {
			t.Errorf("%v: got %d, again after %d s, want %d", err, p.Status, p.RetryAfter, want)
		}
	}
}
