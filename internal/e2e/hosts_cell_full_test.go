package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// diskSize is the size of a central manager's replica disk. It holds a few segments of
// the log, of 4 MiB each.
const diskSize = 24 << 20

// mountSmallDisk gives the replica of a central manager a disk of its own.
func (h *cellHostPool) mountSmallDisk(name string) {
	h.mountFileSystem(h.replicaDisk(name), diskSize, 0o700)
}

// mountFileSystem mounts a file system of size bytes on a directory.
func (h *hostPool) mountFileSystem(at string, size int, mode os.FileMode) {
	h.Helper()
	if err := os.MkdirAll(at, mode); err != nil {
		h.Fatal(err)
	}
	if err := syscall.Mount("roost-test", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=%o", size, mode)); err != nil {
		h.Skipf("SKIPPED: no file system can be mounted here: %v; full disks are not tested", err)
	}
	h.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			h.Error(err)
		}
	})
}

func (h *cellHostPool) replicaDisk(name string) string {
	return filepath.Join(h.nodes[name].dir, "negotiator", "replica")
}

// fillDisk fills a central manager's disk, and returns a function that frees the space.
func (h *cellHostPool) fillDisk(name string) (free func()) {
	give, err := fillFileSystem(h.replicaDisk(name))
	if err != nil {
		h.Fatal(err)
	}
	return func() {
		if err := give(); err != nil {
			h.Fatal(err)
		}
	}
}

// fillFileSystem fills the file system of a directory, and returns a function that frees
// the space.
func fillFileSystem(dir string) (free func() error, err error) {
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err = io.Copy(f, zeroReader{}); !errors.Is(err, syscall.ENOSPC) {
		return nil, errors.Join(fmt.Errorf("fill the disk of %s: %w", dir, err), os.Remove(path))
	}
	return func() error { return os.Remove(path) }, nil
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) { return len(p), nil }

func (h *cellHostPool) followerIsFull() { h.testFullDisk(otherCentrals(h.awaitLeader())[0]) }
func (h *cellHostPool) leaderIsFull()   { h.testFullDisk(h.awaitLeader()) }

// testFullDisk fills a central manager's disk and commits more than fits. The replica
// must log the problem while the two others continue. When there is space again it must
// resume by itself with all of its state.
func (h *cellHostPool) testFullDisk(victim string) {
	other := otherCentrals(victim)[0]
	answer := len(h.nodes[victim].logText())
	free := h.fillDisk(victim)
	complains := func() bool {
		text := h.nodes[victim].logText()[answer:]
		return strings.Contains(text, "no space left on device") &&
			strings.Contains(text, "make room in "+h.replicaDisk(victim))
	}
	for round := 0; round < 100 && !complains(); round++ {
		h.awaitTrue("something large is decided", func() bool {
			_, err := h.tryAdminister(other, "queue", "set", "large", "--force", "--users",
				strings.Join(manyUsers(round), ","))
			return err == nil
		})
	}
	// the others may commit a lot while it stops
	h.awaitTrue("it says that its disk is full", complains)
	h.awaitArray(h.submitArray("full-" + victim))
	h.awaitTrue("two are enough", func() bool { s := h.status(other); return s.leader() != "" && s.leader() != victim })
	free()
	h.awaitThreeVoters()
	h.awaitAgreement()
	h.nodes[victim].killMaster()
	h.nodes[victim].start() // from what is on its disk
}

// manyUsers returns names for an entry of more than a hundred kilobytes, different ones
// in each round.
func manyUsers(round int) (all []string) {
	for i := range 10000 {
		all = append(all, fmt.Sprintf("u%d.%d", 100+round, i))
	}
	return all
}
