package startd

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/meter"
)

// What the disk with this machine's claims has to have left for a claim to be given: what
// is written down for a claim, its starter and an attempt takes some kilobytes in a dozen
// files. Without them every attempt is spoiled within milliseconds, and is back in the
// queue for the next claim here.
const (
	minDiskSpace  = 1 << 20 // bytes
	minFreeInodes = 64
)

// checkDiskSpace returns an error if a disk has no room for what a claim needs. It
// returns nil if there is room, or if the room is unknown.
func checkDiskSpace(dir string) error {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return nil
	}
	if free := roost.Bytes(fs.Bfree) * roost.Bytes(fs.Bsize); free < minDiskSpace {
		return fmt.Errorf("%w: the disk of this machine is full: %v are left on that of %s, and %v are needed",
			roost.Exhausted, free, dir, roost.Bytes(minDiskSpace))
	}
	if short := meter.DiskShortage(dir); short != "" {
		return fmt.Errorf("%w: the disk of this machine is nearly full: of that of %s %s", roost.Exhausted, dir, short)
	}
	if fs.Files > 0 && fs.Ffree < minFreeInodes {
		return fmt.Errorf("%w: the disk of this machine is full: that of %s has room for %d more files",
			roost.Exhausted, dir, fs.Ffree)
	}
	return nil
}
