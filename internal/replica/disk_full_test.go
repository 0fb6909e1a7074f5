package replica

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/roost-batch/roost"
)

// TestFull checks that only the errors of a full disk get advice about a full disk.
func TestFull(t *testing.T) {
	dir := t.TempDir()
	for _, err := range []error{syscall.ENOSPC, fmt.Errorf("write the log: %w", syscall.EDQUOT)} {
		got := diskFullHint(dir, err)
		if !errors.Is(got, err) || !errors.Is(got, roost.NoOutput) ||
			!strings.Contains(got.Error(), "make room in "+dir) {
			t.Errorf("%v: got %v", err, got)
		}
	}
	if got := diskFullHint(dir, syscall.EIO); got != syscall.EIO {
		t.Errorf("got %v, want %v", got, syscall.EIO)
	}
	if got := diskFullHint(dir, nil); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}
