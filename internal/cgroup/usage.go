package cgroup

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// GroupUsage is what a group uses now, and has used since it was made, its starter
// included. Quantities that the machine does not count are 0.
type GroupUsage struct {
	GroupTotals
	Memory    roost.Bytes // anonymous and shared memory, which the kernel cannot drop
	Cache     roost.Bytes // page cache, which the kernel can drop
	Processes int         // of the task
	Frozen    bool
}

// GroupTotals is what a group has used since it was made.
type GroupTotals struct {
	UserCPU, SystemCPU time.Duration
	Read, Written      roost.Bytes // from and to block devices
	Kills              int         // processes that the kernel killed because the group reached its memory limit
}

// Usage reads the figures. A missing group is roost.NotFound.
func (g *ClaimGroup) Usage() (GroupUsage, error) {
	var u GroupUsage
	var err error
	if u.GroupTotals, err = g.Totals(); err != nil {
		return u, err
	}
	shared, cache, plain := "shmem", "cache", "rss"
	dir := g.unified
	if dir != "" {
		cache, plain = "file", "anon"
	} else if g.host.v1["memory"] {
		dir = g.version1Dir("memory")
	}
	if dir != "" {
		m := g.readTable(filepath.Join(dir, "memory.stat"))
		u.Memory = roost.Bytes(m[plain] + m[shared])
		u.Cache = roost.Bytes(max(m[cache]-m[shared], 0))
	}
	if g.taskDir != "" {
		u.Processes, u.Frozen = len(processes(g.taskDir)), g.frozen()
	}
	return u, nil
}

// Totals reads what the group has used since it was made. A missing group is
// roost.NotFound.
func (g *ClaimGroup) Totals() (u GroupTotals, err error) {
	if g.host.v1 != nil {
		g.totals1(&u)
	} else if g.unified != "" {
		g.cpu2(&u, g.unified)
		g.read(filepath.Join(g.unified, "io.stat"), func(text []byte) { parseIOStat(text, &u) })
	}
	u.Kills = g.killCount()
	if u != (GroupTotals{}) {
		return u, nil
	}
	for _, dir := range g.allDirs() {
		if _, err := os.Lstat(dir); err == nil {
			return u, nil
		}
	}
	return u, fmt.Errorf("control group %s: %w: %w", g.path, roost.NotFound, fs.ErrNotExist)
}

func (g *ClaimGroup) totals1(u *GroupTotals) {
	if g.host.v1["cpuacct"] {
		u.UserCPU = time.Duration(g.readSingle(filepath.Join(g.version1Dir("cpuacct"), "cpuacct.usage_user")))
		u.SystemCPU = time.Duration(g.readSingle(filepath.Join(g.version1Dir("cpuacct"), "cpuacct.usage_sys")))
	} else if g.taskDir != "" && !g.isVersion1 {
		g.cpu2(u, g.taskDir)
	}
	if g.host.v1["blkio"] {
		g.read(filepath.Join(g.version1Dir("blkio"), "blkio.throttle.io_service_bytes"), func(text []byte) {
			parseBlkio(text, u)
		})
	}
}

// parseBlkio adds up the lines of a blkio file of version 1.
func parseBlkio(text []byte, u *GroupTotals) {
	for line := range bytes.Lines(text) {
		f := bytes.Fields(line)
		if len(f) != 3 {
			continue
		}
		n, _ := strconv.ParseInt(string(f[2]), 10, 64)
		switch string(f[1]) {
		case "Read":
			u.Read += roost.Bytes(n)
		case "Write":
			u.Written += roost.Bytes(n)
		}
	}
}

// parseIOStat adds up the figures of a file io.stat of version 2.
func parseIOStat(text []byte, u *GroupTotals) {
	for word := range bytes.FieldsSeq(text) {
		key, value, _ := bytes.Cut(word, []byte("="))
		n, _ := strconv.ParseInt(string(value), 10, 64)
		switch string(key) {
		case "rbytes":
			u.Read += roost.Bytes(n)
		case "wbytes":
			u.Written += roost.Bytes(n)
		}
	}
}

func (g *ClaimGroup) cpu2(u *GroupTotals, dir string) {
	c := g.readTable(filepath.Join(dir, "cpu.stat"))
	u.UserCPU, u.SystemCPU = time.Duration(c["user_usec"])*time.Microsecond,
		time.Duration(c["system_usec"])*time.Microsecond
}

// read calls f with the text of a control file of the group, which stays open.
func (g *ClaimGroup) read(path string, f func(text []byte)) { g.files.Read(path, f) }

// readTable reads a file of the group with a name and a number on each line.
func (g *ClaimGroup) readTable(path string) (all map[string]int64) {
	g.read(path, func(text []byte) { all = parseTable(text) })
	return all
}

// readSingle reads a file of the group with one number.
func (g *ClaimGroup) readSingle(path string) (n int64) {
	g.read(path, func(text []byte) { n, _ = strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64) })
	return n
}

// readNumber reads one number of a file with a name and a number on each line.
func readNumber(path, name string) (n int64, ok bool) {
	text, _ := kernfs.ReadFile(path)
	n, ok = parseTable(text)[name]
	return n, ok
}

// parseTable reads a text with a name and a number on each line.
func parseTable(text []byte) map[string]int64 {
	all := map[string]int64{}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			all[name] = n
		}
	}
	return all
}
