package store

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
)

// Blobs never fill a disk completely, because it may hold more important files.
const (
	maxSpareBytes = 1 << 30
	spareDivisor  = 20 // divides the size of the disk
)

// freeBytes returns how many more bytes of blobs the disk has room for.
func (d *Directory) freeBytes() (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(d.path, &disk); err != nil {
		return 0, fmt.Errorf("store %s: %w", d.path, err)
	}
	free, total := int64(disk.Bavail)*disk.Bsize, int64(disk.Blocks)*disk.Bsize
	return free - min(maxSpareBytes, total/spareDivisor), nil
}

// reservation is the room for a blob that is on its way.
type reservation struct {
	directory *Directory
	owner     string
	bytes     int64 // not written yet
	total     int64 // that the owner is charged for
}

// reserve takes room for size bytes of an owner. Without room it returns
// roost.Exhausted, and says whether a bound or the disk is the cause. Blobs that nobody
// uses give way, where the options say so.
func (d *Directory) reserve(owner string, size int64) (*reservation, error) {
	r, err := d.tryReserve(owner, size)
	if d.copies != nil && errors.Is(err, errNoDiskRoom) {
		if derr := d.copies.dropLocal(max(0, d.localBytes()-size)); derr == nil {
			r, err = d.tryReserve(owner, size)
		}
		if errors.Is(err, errNoDiskRoom) {
			return r, err // no blob without chunks here takes room on the disk
		}
	}
	if d.options.SpareAfter > 0 && errors.Is(err, roost.Exhausted) {
		if _, cerr := d.collectFor(size, time.Now().Add(-d.options.SpareAfter)); cerr == nil {
			r, err = d.tryReserve(owner, size)
		}
	}
	return r, err
}

// errNoDiskRoom is the disk, not a bound, as the reason for which there is no room.
var errNoDiskRoom = errors.New("the disk of the store")

// localBytes sums what the blobs take of the disk.
func (d *Directory) localBytes() (sum int64) {
	for _, e := range d.List() {
		sum += AllocatedBytes(d.blobPath(e.Digest))
	}
	return sum
}

func (d *Directory) tryReserve(owner string, size int64) (*reservation, error) {
	free, err := d.maxDiskBytes()
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fits(owner, size, free); err != nil {
		return nil, err
	}
	d.arriving += size
	d.arrivingOf[owner] += size
	return &reservation{d, owner, size, size}, nil
}

// fits returns why there is no room for a blob. d.mu is held.
func (d *Directory) fits(owner string, size, free int64) error {
	if most := d.options.MaxBytesOfOwner; most > 0 && owner != "" {
		if used := d.usedBytes(owner) + d.arrivingOf[owner]; size > most-used {
			return fmt.Errorf("%w: the blob has %v, and those of %s have %v of the %v that they may have; "+
				"remove some, or have an administrator raise the bound", roost.Exhausted, roost.Bytes(size), owner,
				roost.Bytes(used), roost.Bytes(most))
		}
	}
	if most := d.options.MaxBytes; most > 0 {
		if used := d.usedBytes("") + d.arriving; size > most-used {
			return fmt.Errorf("%w: the blob has %v, and the store %s has %v of the %v that it may have",
				roost.Exhausted, roost.Bytes(size), d.path, roost.Bytes(used), roost.Bytes(most))
		}
	}
	if size > free-d.arriving {
		return fmt.Errorf("%w: the blob has %v, and %w %s has room for %v", roost.Exhausted, roost.Bytes(size),
			errNoDiskRoom, d.path, roost.Bytes(max(0, free-d.arriving)))
	}
	return nil
}

// written notes that n bytes of the blob are on the disk, where they are no longer free.
func (r *reservation) written(n int64) {
	r.directory.mu.Lock()
	defer r.directory.mu.Unlock()
	n = min(n, r.bytes)
	r.bytes -= n
	r.directory.arriving -= n
}

// end gives back what was not written.
func (r *reservation) end() {
	d := r.directory
	d.mu.Lock()
	defer d.mu.Unlock()
	d.arriving -= r.bytes
	if d.arrivingOf[r.owner] -= r.total; d.arrivingOf[r.owner] == 0 {
		delete(d.arrivingOf, r.owner)
	}
	r.bytes, r.total = 0, 0
}

// diskError has errors.Is(err, roost.Exhausted) report a full disk, or a quota of one.
func (d *Directory) diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk of the store %s is full: %w", roost.Exhausted, d.path, err)
	}
	return err
}
