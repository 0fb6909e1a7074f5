package replica

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/roost-batch/roost"
)

// diskFullHint adds advice to an error of a write below dir if the disk is full. Other
// errors are returned as they are.
//
// The error itself is not always clear: if the log has no room for its next segment, only
// the following write fails, because the last segment is closed. So the disk is checked,
// too.
func diskFullHint(dir string, err error) error {
	if err == nil {
		return nil
	}
	var disk syscall.Statfs_t
	short := syscall.Statfs(dir, &disk) == nil && disk.Bavail*uint64(disk.Bsize) < segmentSize
	if !short && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	return fmt.Errorf("%w: %w; the disk is full: make room in %s, %d MiB at least, and it goes on; nothing that "+
		"was decided is lost",
		roost.NoOutput, err, dir, 2*segmentSize>>20)
}
