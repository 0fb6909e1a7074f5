package replica

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/roost-batch/roost"
)

// diskFullHint says of a failure to write below dir what to do where the disk is full;
// others it returns as they are.
//
// The error itself does not always tell: where the log has no room for its next piece,
// only the write after that fails, as the last piece is closed. So the disk is looked at,
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
