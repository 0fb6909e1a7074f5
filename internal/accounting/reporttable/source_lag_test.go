package reporttable

import (
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/accounting/query"
)

// TestSourceLag compares how far the accounts are behind with when all was stored.
func TestSourceLag(t *testing.T) {
	now := time.UnixMilli(10_000)
	for _, c := range []struct {
		line query.SourceLine
		want string
	}{{query.SourceLine{}, ""}, {query.SourceLine{Complete: 7_500}, "2.500"},
		{query.SourceLine{Complete: 10_001}, "0.000"}} {
		if got := sourceLag(&c.line, now); got != c.want {
			t.Errorf("complete to %d: got %q, want %q", c.line.Complete, got, c.want)
		}
	}
}
