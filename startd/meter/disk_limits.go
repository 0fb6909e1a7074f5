package meter

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// How often captured output is looked at, and directories are measured. Measuring has to
// do with every file, so one that takes long is done more seldom.
const (
	outputCheckInterval = time.Second
	diskCheckInterval   = 15 * time.Second
	diskMeasureTimeout  = 10 * time.Second // that one measurement may take
	diskMeasureShare    = 30               // of the time at most one part goes into measuring a task
)

// What a task may have whose machine's owner has set nothing.
const (
	defaultTaskFiles  = 1_000_000
	defaultTaskOutput = roost.GiB
	defaultDiskPart   = 10 // of the machine's disk, and of its file system's inodes, one part
)

// DiskLimits are what a task may have on the machine's disk.
type DiskLimits struct {
	Disk   roost.Bytes // without asking for any
	Files  int
	Output roost.Bytes // captured, of each standard stream
}

// DiskLimitsOf returns what the owner of a machine with so much disk has set.
func DiskLimitsOf(set config.LimitSettings, dir string, disk roost.Bytes) DiskLimits {
	l := DiskLimits{Disk: set.TaskDisk, Files: set.TaskFiles, Output: set.TaskOutput}
	if l.Disk == 0 {
		l.Disk = disk / defaultDiskPart
	}
	if l.Output == 0 {
		l.Output = min(defaultTaskOutput, disk/defaultDiskPart)
	}
	if l.Files == 0 {
		l.Files = defaultTaskFiles
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Files > 0 { // some make inodes as they are needed, and say 0
			l.Files = min(l.Files, max(int(fs.Files/defaultDiskPart), 1))
		}
	}
	return l
}

// WatchDisks ends attempts that have too much on disk, until ctx ends. It measures one
// after the other: that is what the disk has to do beside their work. Between two
// measurements a task may write more than it may have. When the disk fills all are
// measured, and some leave before it is full.
func (s *Meters) WatchDisks(ctx context.Context, host DiskHost) {
	tick := time.NewTicker(outputCheckInterval)
	defer tick.Stop()
	room := freeSpace(s.opt.Dir)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, free := time.Now(), freeSpace(s.opt.Dir)
		hurry := free < room/2 || DiskShortage(s.opt.Dir) != ""
		if hurry || free > room {
			room = free
		}
		for _, t := range s.sortedMeters() {
			if ctx.Err() != nil {
				return
			}
			if !s.checkOutput(t) && (hurry || !now.Before(t.measureAt)) {
				s.checkDisk(ctx, t)
			}
		}
		if DiskShortage(s.opt.Dir) != "" {
			s.relieveDisk(host)
		}
	}
}

// freeSpace is how much room a file system has.
func freeSpace(dir string) uint64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}

// checkOutput ends an attempt that has written too much to what is captured, and reports
// whether it did.
func (s *Meters) checkOutput(t *attemptMeter) bool {
	written := roost.Bytes(0)
	if t.Logs.Files > 0 && !t.untrimmed.Load() {
		return false
	}
	for _, stderr := range []bool{false, true} {
		if info, err := os.Lstat(starterclient.CapturedPath(t.IO, stderr)); err == nil {
			written = max(written, roost.Bytes(info.Size()))
		}
	}
	if written <= s.opt.Disks.Output {
		return false
	}
	s.endForDiskLimit(t, OutputLimitReason(written, s.opt.Disks.Output))
	return true
}

// OutputLimitReason says that an attempt wrote more captured output than it may.
func OutputLimitReason(written, limit roost.Bytes) string {
	return fmt.Sprintf("it wrote too much output: the limit of what is captured of a standard stream is %v here, "+
		"and it wrote %v; send it to a file with stdout", limit, written)
}

// endForDiskLimit tells an attempt to go, once.
func (s *Meters) endForDiskLimit(t *attemptMeter, reason string) {
	t.mu.Lock()
	first := !t.diskExceeded
	t.diskExceeded = true
	t.mu.Unlock()
	if first {
		t.End(wire.Cause_CAUSE_DISK, reason)
	}
}

// checkDisk measures what an attempt has on disk, and ends it when that is too much.
func (s *Meters) checkDisk(ctx context.Context, t *attemptMeter) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, diskMeasureTimeout)
	defer cancel()
	base := cmp.Or(t.Temp, t.Scratch)
	found, err := s.measureFor(ctx, t, base)
	if err != nil {
		s.opt.Log.Info("a scratch directory was not measured", "attempt", t.ID, "err", err)
	}
	written, deleted := directoryUsage(t.IO), t.deletedFileUsage(base)
	used := roost.Bytes(found.DiskUsed + written + deleted)
	t.mu.Lock()
	if t.last != nil {
		t.last.Disk = int64(used)
	}
	t.files = int64(found.Files)
	t.measureAt = time.Now().Add(max(diskCheckInterval, diskMeasureShare*time.Since(began)))
	t.mu.Unlock()
	limit := cmp.Or(t.Disk, s.opt.Disks.Disk)
	switch {
	case used > limit:
		largest := found.Largest
		if t.Scratch != "" && t.Temp != "" {
			if own, err := s.measureFor(ctx, t, t.Scratch); err == nil {
				largest = own.Largest // for the names that its user knows
			}
		}
		for _, part := range []userfiles.TransferEntry{{Name: "its captured output", Size: written},
			{Name: "deleted files that it keeps open", Size: deleted}} {
			if part.Size > int64(used)/2 {
				largest = append([]userfiles.TransferEntry{part}, largest...)
			}
		}
		s.endForDiskLimit(t, diskLimitReason(used, limit, t.Disk > 0, largest, found.Complete))
	case found.Files > s.opt.Disks.Files:
		s.endForDiskLimit(t, fmt.Sprintf("it made too many files: the limit is %d here, and its directories hold more",
			s.opt.Disks.Files))
	}
}

// measureFor measures a directory of an attempt with the rights of its user. There may be
// none.
func (s *Meters) measureFor(ctx context.Context, t *attemptMeter, dir string) (userfiles.TreeSize, error) {
	if dir == "" {
		return userfiles.TreeSize{Complete: true}, nil
	}
	agent, err := s.opt.Agents.Acquire(t.Credential)
	if err != nil {
		return userfiles.TreeSize{}, err
	}
	defer s.opt.Agents.Release(t.Credential)
	return agent.Measure(ctx, dir, s.opt.Disks.Files)
}

// directoryUsage is how much disk the user's files in an attempt's directory take. Their
// names belong to us alone.
func directoryUsage(dir string) (used int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && e.Name() != proto.StatusFile &&
			!strings.HasSuffix(e.Name(), outputfile.TimesSuffix) {
			used += info.Sys().(*syscall.Stat_t).Blocks * 512 // the unit of st_blocks (stat(2))
		}
	}
	return used
}

// maxOpenFiles bounds how many descriptors of a task are looked at.
const maxOpenFiles = 20_000

// deletedFileUsage returns how much disk the attempt's processes hold in deleted files
// that are open. Only the file system of its directories counts.
func (t *attemptMeter) deletedFileUsage(base string) (used int64) {
	var at unix.Stat_t
	if unix.Stat(base, &at) != nil && unix.Stat(t.IO, &at) != nil {
		return 0
	}
	seen, looked := map[uint64]bool{}, 0
	for _, pid := range t.processes() {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		open, _ := os.ReadDir(dir)
		for _, fd := range open {
			if looked++; looked > maxOpenFiles {
				return used
			}
			path := filepath.Join(dir, fd.Name())
			if to, err := os.Readlink(path); err != nil || !strings.HasSuffix(to, " (deleted)") {
				continue
			}
			var st unix.Statx_t // without asking a server that may not answer
			if unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st) != nil ||
				st.Nlink > 0 || seen[st.Ino] {
				continue
			}
			if seen[st.Ino] = true; unix.Mkdev(st.Dev_major, st.Dev_minor) == at.Dev {
				used += int64(st.Blocks) * 512
			}
		}
	}
	return used
}

// diskLimitReason is the sentence.
func diskLimitReason(used, limit roost.Bytes, asked bool, largest []userfiles.TransferEntry, whole bool) string {
	least := ""
	if !whole {
		least = "at least "
	}
	text := fmt.Sprintf("it used more disk than it asked for: the limit is %v, and its directories hold %s%v", limit,
		least, used)
	if !asked {
		text = fmt.Sprintf("it used more disk than a task may here that asks for none: the limit is %v, and its "+
			"directories hold %s%v; ask for more with disk", limit, least, used)
	}
	if len(largest) == 0 {
		return text
	}
	parts := make([]string, len(largest))
	for i, e := range largest {
		parts[i] = fmt.Sprintf("%s (%v)", e.Name, roost.Bytes(e.Size))
	}
	return text + "; most of it in " + strings.Join(parts, ", ")
}
