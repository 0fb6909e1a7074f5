package startd

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
	"github.com/roost-batch/roost/internal/files"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// How often captured output is looked at, and directories are measured. Measuring has to do with every file, so one that takes long is done more seldom.
const (
	outputEvery = time.Second
	diskEvery   = 15 * time.Second
	diskWithin  = 10 * time.Second // that one measurement may take
	diskShare   = 30               // of the time at most one part goes into measuring a task
)

// What a task may have whose machine's owner has set nothing.
const (
	defaultTaskFiles  = 1_000_000
	defaultTaskOutput = roost.GiB
	defaultPart       = 10 // of the machine's disk, and of its file system's inodes, one part
)

// diskLimits are what a task may have on the machine's disk.
type diskLimits struct {
	disk   roost.Bytes // without asking for any
	files  int
	output roost.Bytes // captured
}

// diskLimitsOf is what the owner of a machine with so much disk has set.
func diskLimitsOf(set config.Limits, dir string, disk roost.Bytes) diskLimits {
	l := diskLimits{disk: set.TaskDisk, files: set.TaskFiles, output: set.TaskOutput}
	if l.disk == 0 {
		l.disk = disk / defaultPart
	}
	if l.output == 0 {
		l.output = min(defaultTaskOutput, disk/defaultPart)
	}
	if l.files == 0 {
		l.files = defaultTaskFiles
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Files > 0 { // some make inodes as they are needed, and say 0
			l.files = min(l.files, max(int(fs.Files/defaultPart), 1))
		}
	}
	return l
}

// watchDisks holds attempts to what they may have on disk until ctx ends, one after the other: measuring is what the disk has to do beside their work.
// Between two measurements a task may write more than it may keep.
func (m *machine) watchDisks(ctx context.Context) {
	tick := time.NewTicker(outputEvery)
	defer tick.Stop()
	room := freeOf(m.own.Dir)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, free := time.Now(), freeOf(m.own.Dir)
		hurry := free < room/2
		if hurry || free > room {
			room = free
		}
		for _, t := range m.meters.list() {
			if ctx.Err() != nil {
				return
			}
			if !m.checkOutput(t) && (hurry || !now.Before(t.measureAt)) {
				m.checkDisk(ctx, t)
			}
		}
	}
}

// freeOf is how much room a file system has.
func freeOf(dir string) uint64 {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize)
}

// checkOutput ends an attempt that has written too much to what is captured, and reports whether it did.
func (m *machine) checkOutput(t *meter) bool {
	written := roost.Bytes(0)
	for _, stderr := range []bool{false, true} {
		if info, err := os.Lstat(starter.CapturedPath(t.io, stderr)); err == nil {
			written = max(written, roost.Bytes(info.Size()))
		}
	}
	if written <= m.disks.output {
		return false
	}
	m.endForDisk(t, tooMuchOutput(written, m.disks.output))
	return true
}

// tooMuchOutput is the sentence.
func tooMuchOutput(written, limit roost.Bytes) string {
	return fmt.Sprintf("it wrote too much output: the limit of what is captured of a standard stream is %v here, and it wrote %v; send it to a file with stdout", limit, written)
}

// endForDisk tells an attempt to go, once.
func (m *machine) endForDisk(t *meter, reason string) {
	t.mu.Lock()
	first := !t.full
	t.full = true
	t.mu.Unlock()
	if first {
		t.box.put(vacate{id: t.id, cause: wire.Cause_CAUSE_DISK, reason: reason})
	}
}

// checkDisk measures what an attempt has on disk, and ends it when that is too much.
func (m *machine) checkDisk(ctx context.Context, t *meter) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, diskWithin)
	defer cancel()
	base := cmp.Or(t.temp, t.scratch)
	found, err := m.measureFor(ctx, t, base)
	if err != nil {
		m.log.Info("a scratch directory was not measured", "attempt", t.id, "err", err)
	}
	written, deleted := ofDirectory(t.io), t.deleted(base)
	used := roost.Bytes(found.Used + written + deleted)
	t.mu.Lock()
	if t.last != nil {
		t.last.Disk = int64(used)
	}
	t.measureAt = time.Now().Add(max(diskEvery, diskShare*time.Since(began)))
	t.mu.Unlock()
	limit := cmp.Or(t.disk, m.disks.disk)
	switch {
	case used > limit:
		largest := found.Largest
		if t.scratch != "" && t.temp != "" {
			if own, err := m.measureFor(ctx, t, t.scratch); err == nil {
				largest = own.Largest // for the names that its user knows
			}
		}
		for _, part := range []files.Entry{{Name: "its captured output", Size: written}, {Name: "deleted files that it keeps open", Size: deleted}} {
			if part.Size > int64(used)/2 {
				largest = append([]files.Entry{part}, largest...)
			}
		}
		m.endForDisk(t, tooLarge(used, limit, t.disk > 0, largest, found.Whole))
	case found.Files > m.disks.files:
		m.endForDisk(t, fmt.Sprintf("it made too many files: the limit is %d here, and its directories hold more", m.disks.files))
	}
}

// measureFor measures a directory of an attempt with the rights of its user. There may be none.
func (m *machine) measureFor(ctx context.Context, t *meter, dir string) (files.Measured, error) {
	if dir == "" {
		return files.Measured{Whole: true}, nil
	}
	agent, err := m.agents.take(t.cred)
	if err != nil {
		return files.Measured{}, err
	}
	defer m.agents.giveBack(t.cred)
	return agent.Measure(ctx, dir, m.disks.files)
}

// ofDirectory is how much disk the user's files in an attempt's directory take. Their names belong to us alone.
func ofDirectory(dir string) (used int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && e.Name() != proto.StatusName {
			used += info.Sys().(*syscall.Stat_t).Blocks * 512 // the unit of st_blocks (stat(2))
		}
	}
	return used
}

// maxOpen bounds how many descriptors of a task are looked at.
const maxOpen = 20_000

// deleted is how much disk is in files that have no name any more, and that the attempt's processes keep open, on the file system of its directories.
func (t *meter) deleted(base string) (used int64) {
	var at unix.Stat_t
	if unix.Stat(base, &at) != nil && unix.Stat(t.io, &at) != nil {
		return 0
	}
	seen, looked := map[uint64]bool{}, 0
	for _, pid := range t.processes() {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		open, _ := os.ReadDir(dir)
		for _, fd := range open {
			if looked++; looked > maxOpen {
				return used
			}
			path := filepath.Join(dir, fd.Name())
			if to, err := os.Readlink(path); err != nil || !strings.HasSuffix(to, " (deleted)") {
				continue
			}
			var st unix.Statx_t // without asking a server that may not answer
			if unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS, &st) != nil || st.Nlink > 0 || seen[st.Ino] {
				continue
			}
			if seen[st.Ino] = true; unix.Mkdev(st.Dev_major, st.Dev_minor) == at.Dev {
				used += int64(st.Blocks) * 512
			}
		}
	}
	return used
}

// tooLarge is the sentence.
func tooLarge(used, limit roost.Bytes, asked bool, largest []files.Entry, whole bool) string {
	least := ""
	if !whole {
		least = "at least "
	}
	text := fmt.Sprintf("it used more disk than it asked for: the limit is %v, and its directories hold %s%v", limit, least, used)
	if !asked {
		text = fmt.Sprintf("it used more disk than a task may here that asks for none: the limit is %v, and its directories hold %s%v; ask for more with disk", limit, least, used)
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
