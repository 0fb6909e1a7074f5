package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/kernfs"
)

// BlockDevice is a whole disk. The zero value is none.
type BlockDevice struct{ Major, Minor uint32 }

func (d BlockDevice) String() string { return fmt.Sprintf("%d:%d", d.Major, d.Minor) }

// blockDevicesDir has a directory for each block device (sysfs).
const blockDevicesDir = "/sys/dev/block"

// BlockDeviceOf returns the disk with a directory. For a directory on a partition it is
// the disk with the partition, because the kernel limits I/O of whole disks only. A
// directory on no single disk is roost.Unavailable, as on tmpfs, overlayfs or NFS.
func BlockDeviceOf(dir string) (BlockDevice, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return BlockDevice{}, fmt.Errorf("disk of %s: %w", dir, err)
	}
	d := BlockDevice{unix.Major(st.Dev), unix.Minor(st.Dev)}
	path := filepath.Join(blockDevicesDir, d.String())
	if _, err := os.Stat(path); err != nil {
		return BlockDevice{}, fmt.Errorf("disk of %s: %w: its file system is on no single disk of this machine", dir,
			roost.Unavailable)
	}
	if _, err := os.Stat(filepath.Join(path, "partition")); err != nil {
		return d, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return BlockDevice{}, fmt.Errorf("disk of %s: %w", dir, err)
	}
	text, err := kernfs.ReadFile(filepath.Join(filepath.Dir(real), "dev"))
	if err != nil {
		return BlockDevice{}, fmt.Errorf("disk of %s: %w", dir, err)
	}
	major, minor, _ := strings.Cut(strings.TrimSpace(string(text)), ":")
	n, err1 := strconv.ParseUint(major, 10, 32)
	m, err2 := strconv.ParseUint(minor, 10, 32)
	return BlockDevice{uint32(n), uint32(m)}, errors.Join(err1, err2)
}

// Files that limit the bytes per second of a group, on a device.
const (
	readLimitFile1  = "blkio.throttle.read_bps_device"
	writeLimitFile1 = "blkio.throttle.write_bps_device"
	limitFile2      = "io.max"
)

// LimitIO limits what the group reads from a disk and writes to it, each, in bytes per
// second. In version 1 the limit holds for reads, and for writes that do not go through
// the page cache: the kernel writes cached pages back for nobody in particular. A kernel
// that cannot do it is roost.Unavailable.
func (g *ClaimGroup) LimitIO(d BlockDevice, rate roost.ByteRate) error {
	err := error(nil)
	switch {
	case d == (BlockDevice{}):
		err = errors.New("its file system is on no single disk of this machine")
	case !g.host.enforcement.IOLimits:
		err = errors.New("the kernel does not offer limits of I/O here")
	case g.unified != "":
		text := fmt.Appendf(nil, "%v rbps=%d wbps=%d", d, rate, rate)
		err = kernfs.WriteFile(filepath.Join(g.unified, limitFile2), text)
	default:
		text := fmt.Appendf(nil, "%v %d", d, rate)
		err = errors.Join(kernfs.WriteFile(filepath.Join(g.version1Dir("blkio"), readLimitFile1), text),
			kernfs.WriteFile(filepath.Join(g.version1Dir("blkio"), writeLimitFile1), text))
	}
	if err != nil {
		return fmt.Errorf("control group %s: disk I/O: %w: %w", g.path, roost.Unavailable, err)
	}
	return nil
}

// detectIOLimits finds out whether the kernel limits I/O.
func (h *ParentGroup) detectIOLimits() {
	if !h.enforcement.IO {
		return
	}
	if h.enforcement.Version == 2 {
		h.enforcement.IOLimits = true // LimitIO fails on a kernel without BLK_DEV_THROTTLING
		return
	}
	_, err := os.Stat(filepath.Join(h.mounts.v1, "blkio", readLimitFile1))
	h.enforcement.IOLimits = err == nil
}
