package claim

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPlainReason(t *testing.T) {
	long := PrintableReason(strings.Repeat("ä", maxReason))
	if !utf8.ValidString(long) || len(long) > maxReason+8 || !strings.HasSuffix(long, " …") {
		t.Errorf("%d bytes, which end in %q", len(long), long[len(long)-8:])
	}
	if got := PrintableReason("a\xff"); got != "a\uFFFD" {
		t.Errorf("got %q", got)
	}
}
