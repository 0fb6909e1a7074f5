package meter

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/reclaim"
	"github.com/roost-batch/roost/startd/slot"
)

// When the file system of the tasks runs full, every task on it fails sooner or later.
// So some leave first, and give back what they hold, in this order:
//
//  1. tasks that are not production and hold more than they asked for, the largest excess
//     first; a task that asked for none holds all in excess
//  2. tasks of the lower bands, and of one band the youngest
//  3. production that holds more than it asked for
//
// Production that holds what it asked for stays. Inodes run out like bytes do.

// DiskHost hears which claims have to leave because of the disk.
type DiskHost interface {
	OnDiskFull(DiskFull)
}

// DiskFull says which claims have to leave because the disk is nearly full. Claims has
// the reason for each.
type DiskFull struct{ Claims map[slot.ClaimID]string }

// fileSystemState is how full a file system is. Files are 0 where it makes inodes as they
// are needed.
type fileSystemState struct{ freeBytes, bytes, freeFiles, files int64 }

// Bounds of what stays free of a file system.
const (
	reserveShare  = 100 // one part of its bytes, and of its inodes
	reserveMost   = 20  // but at most one such part of a small one,
	reserveLeast  = int64(32 * roost.MiB)
	reserveEnough = int64(roost.GiB)
	reserveFiles  = 1000
)

// readFileSystem returns how full the file system of a directory is. ok is false if that
// is not known.
func readFileSystem(dir string) (s fileSystemState, ok bool) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Blocks == 0 {
		return s, false
	}
	size := int64(fs.Bsize)
	return fileSystemState{int64(fs.Bavail) * size, int64(fs.Blocks) * size, int64(fs.Ffree), int64(fs.Files)}, true
}

// shortBytes returns how many bytes must become free; 0: there are enough. Twice the
// reserve is restored, so that the disk is not short again at once.
func (s fileSystemState) shortBytes() int64 {
	least := min(max(s.bytes/reserveShare, reserveLeast), s.bytes/reserveMost, reserveEnough)
	if s.freeBytes >= least {
		return 0
	}
	return 2*least - s.freeBytes
}

// shortFiles is shortBytes for inodes.
func (s fileSystemState) shortFiles() int64 {
	least := min(max(s.files/reserveShare, reserveFiles), s.files/reserveMost)
	if s.freeFiles >= least {
		return 0
	}
	return 2*least - s.freeFiles
}

// DiskShortage says that the file system of a directory is nearly full; empty if it is
// not.
func DiskShortage(dir string) string {
	s, ok := readFileSystem(dir)
	if !ok || s.shortBytes() == 0 && s.shortFiles() == 0 {
		return ""
	}
	return s.String()
}

func (s fileSystemState) String() string {
	if s.shortBytes() == 0 {
		return fmt.Sprintf("%d of %d inodes are left", s.freeFiles, s.files)
	}
	return fmt.Sprintf("%v of %v are left", roost.Bytes(s.freeBytes), roost.Bytes(s.bytes))
}

// diskHolder is a task with what it holds on disk.
type diskHolder struct {
	claim        slot.ClaimID
	band         roost.PriorityBand
	began        roost.BootTime
	bytes, files int64
	asked        int64 // bytes; 0: none
	isLeaving    bool
}

// selectDiskVictims returns which tasks leave so that need is met. amount returns what a
// task holds of what is short, and excess what of that is beyond its request. Nobody
// leaves if all together could not give back half of it: then others fill the disk.
func selectDiskVictims(need int64, all []diskHolder, amount, excess func(diskHolder) int64) []uint64 {
	var ordinary, production []reclaim.EvictionCandidate
	sum := int64(0)
	for _, h := range all {
		c := reclaim.EvictionCandidate{ID: uint64(h.claim), Band: h.band, Began: h.began,
			Excess: roost.Bytes(excess(h)), Freed: roost.Bytes(amount(h)), IsVacating: h.isLeaving}
		switch {
		case h.isLeaving || !h.band.IsProd():
			ordinary = append(ordinary, c)
		case c.Excess > 0:
			production = append(production, c)
		default:
			continue
		}
		sum += amount(h)
	}
	if need <= 0 || sum < need/2 {
		return nil
	}
	victims := reclaim.SelectVictims(roost.Bytes(need), ordinary)
	for _, c := range ordinary {
		need -= int64(c.Freed)
	}
	if need > 0 {
		victims = append(victims, reclaim.SelectVictims(roost.Bytes(need), production)...)
	}
	return victims
}

// relieveDisk has tasks leave if the file system is nearly full. Their directories were
// just measured.
func (s *Meters) relieveDisk(host DiskHost) {
	state, ok := readFileSystem(s.opt.Dir)
	if !ok || state.shortBytes() == 0 && state.shortFiles() == 0 {
		return
	}
	var all []diskHolder
	byID := map[uint64]diskHolder{}
	for _, t := range s.sortedMeters() {
		h := t.diskHolder()
		all, byID[uint64(h.claim)] = append(all, h), h
	}
	victims := selectDiskVictims(state.shortBytes(), all, func(h diskHolder) int64 { return h.bytes },
		func(h diskHolder) int64 { return max(h.bytes-h.asked, 0) })
	if state.shortBytes() == 0 {
		victims = selectDiskVictims(state.shortFiles(), all, func(h diskHolder) int64 { return h.files },
			func(h diskHolder) int64 { return h.files })
	}
	full := DiskFull{Claims: map[slot.ClaimID]string{}}
	for _, id := range victims {
		h := byID[id]
		full.Claims[h.claim] = h.reason(state)
	}
	if len(full.Claims) > 0 {
		s.noteLeaving(full)
		host.OnDiskFull(full)
	}
}

// reason says why a task leaves.
func (h diskHolder) reason(state fileSystemState) string {
	text := fmt.Sprintf("the disk of its machine is nearly full (%v), and it holds %v", state, roost.Bytes(h.bytes))
	switch {
	case state.shortBytes() == 0:
		text = fmt.Sprintf("the disk of its machine is nearly full (%v), and it holds %d files", state, h.files)
	case h.asked == 0:
		text += " and asked for none; ask for it with disk"
	case h.bytes > h.asked:
		text += fmt.Sprintf(", %v more than it asked for", roost.Bytes(h.bytes-h.asked))
	default:
		text += ", which it asked for, in band " + h.band.String()
	}
	return text
}

// diskHolder returns what the attempt holds on disk.
func (m *attemptMeter) diskHolder() diskHolder {
	m.mu.Lock()
	defer m.mu.Unlock()
	return diskHolder{claim: m.Claim, band: m.Band, began: m.Baseline.Began, bytes: m.last.GetDisk(), files: m.files,
		asked: int64(m.Disk), isLeaving: m.diskExceeded}
}

// noteLeaving notes that claims have been told to leave because of the disk.
func (s *Meters) noteLeaving(full DiskFull) {
	for _, t := range s.sortedMeters() {
		if _, leaves := full.Claims[t.Claim]; leaves {
			t.mu.Lock()
			t.diskExceeded = true
			t.mu.Unlock()
		}
	}
}
