package cgroup

import (
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
	UserCPU, SystemCPU time.Duration
	Memory             roost.Bytes // anonymous and shared memory, which the kernel cannot drop
	Cache              roost.Bytes // page cache, which the kernel can drop
	Read, Written      roost.Bytes // from and to block devices
	Processes          int         // of the task
	Frozen             bool
	Kills              int // processes that the kernel killed because the group reached its memory limit
}

// Usage reads the figures. A missing group is roost.NotFound.
func (g *ClaimGroup) Usage() (GroupUsage, error) {
	var u GroupUsage
	if g.host.v1 != nil {
		g.usage1(&u)
	} else if g.unified != "" {
		g.usage2(&u)
	}
	if g.taskDir != "" {
		u.Processes, u.Frozen = len(processes(g.taskDir)), g.frozen()
	}
	for _, dir := range g.allDirs() {
		if _, err := os.Lstat(dir); err == nil {
			return u, nil
		}
	}
	return u, fmt.Errorf("control group %s: %w: %w", g.path, roost.NotFound, fs.ErrNotExist)
}

func (g *ClaimGroup) usage1(u *GroupUsage) {
	if g.host.v1["cpuacct"] {
		u.UserCPU = time.Duration(readSingle(filepath.Join(g.version1Dir("cpuacct"), "cpuacct.usage_user")))
		u.SystemCPU = time.Duration(readSingle(filepath.Join(g.version1Dir("cpuacct"), "cpuacct.usage_sys")))
	} else if g.taskDir != "" && !g.isVersion1 {
		g.cpu2(u, g.taskDir)
	}
	if g.host.v1["memory"] {
		m := readTable(filepath.Join(g.version1Dir("memory"), "memory.stat"))
		u.Memory = roost.Bytes(m["rss"] + m["shmem"])
		u.Cache = roost.Bytes(max(m["cache"]-m["shmem"], 0))
		u.Kills = g.killCount()
	}
	if g.host.v1["blkio"] {
		text, _ := kernfs.ReadFile(filepath.Join(g.version1Dir("blkio"), "blkio.throttle.io_service_bytes"))
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, _ := strconv.ParseInt(f[2], 10, 64)
			switch f[1] {
			case "Read":
				u.Read += roost.Bytes(n)
			case "Write":
				u.Written += roost.Bytes(n)
			}
		}
	}
}

func (g *ClaimGroup) usage2(u *GroupUsage) {
	g.cpu2(u, g.unified)
	m := readTable(filepath.Join(g.unified, "memory.stat"))
	u.Memory = roost.Bytes(m["anon"] + m["shmem"])
	u.Cache = roost.Bytes(max(m["file"]-m["shmem"], 0))
	u.Kills = g.killCount()
	text, _ := kernfs.ReadFile(filepath.Join(g.unified, "io.stat"))
	for word := range strings.FieldsSeq(string(text)) {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "rbytes":
			u.Read += roost.Bytes(n)
		case "wbytes":
			u.Written += roost.Bytes(n)
		}
	}
}

func (g *ClaimGroup) cpu2(u *GroupUsage, dir string) {
	c := readTable(filepath.Join(dir, "cpu.stat"))
	u.UserCPU, u.SystemCPU = time.Duration(c["user_usec"])*time.Microsecond,
		time.Duration(c["system_usec"])*time.Microsecond
}

// readTable reads a file with a name and a number on each line.
func readTable(path string) map[string]int64 {
	text, _ := kernfs.ReadFile(path)
	all := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			all[name] = n
		}
	}
	return all
}

// readNumber reads one number of such a file.
func readNumber(path, name string) (n int64, ok bool) {
	n, ok = readTable(path)[name]
	return n, ok
}

// readSingle reads a file with one number.
func readSingle(path string) int64 {
	text, _ := kernfs.ReadFile(path)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}
