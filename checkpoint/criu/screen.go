package criu

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/checkpoint-restore/go-criu/v7/crit/images/creds"
	core "github.com/checkpoint-restore/go-criu/v7/crit/images/criu-core"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/inventory"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/pstree"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/userns"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
	"github.com/roost-batch/roost/internal/userfiles"
)

// A node that has run a task has the key of its images and may forge one. CRIU restores
// an image with root's rights and does what it says: it gives processes any rights,
// mounts anything, makes device files. So the image is checked against what a task can be
// before CRIU reads it. The result is checked again when the processes exist
// (checkRestored), and their open files when they are open (checkAccess).

// screenImage returns what in an image cannot come from a task of the spec's user.
func screenImage(spec *RestoreSpec, n *imageMetadata) error {
	if spec.InitStop && spec.Init == "" {
		return fmt.Errorf("restore: %w: nothing says what its first process is", roost.Internal)
	}
	if err := screenNames(spec.Dir); err != nil {
		return err
	}
	pids, err := screenTree(spec.Dir)
	if err != nil {
		return err
	}
	if err := screenNamespaces(spec.Dir, pids); err != nil {
		return err
	}
	for _, p := range pids {
		first := p.GetPid() == 1
		for _, tid := range p.GetThreads() {
			c, err := readEntry(spec.Dir, fmt.Sprintf("core-%d.img", tid), func() *core.CoreEntry {
				return &core.CoreEntry{}
			})
			if err == nil {
				err = screenThread(c, spec, first)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := screenMounts(spec, n); err != nil {
		return err
	}
	if err := screenFiles(spec); err != nil {
		return err
	}
	if spec.Init == "" {
		return nil
	}
	return screenInit(spec.Dir)
}

// screenNames allows only files that describe processes, their memory and open files, in
// the namespaces of a sandbox. For a file of another name, such as one of a network or
// its rules, CRIU would run programs.
func screenNames(dir string) error {
	entries, err := os.ReadDir(filepath.Join(dir, image.CRIUDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !knownFile().MatchString(e.Name()) {
			return badImageError("there is a file %.100q in it", e.Name())
		}
	}
	return nil
}

func knownFile() *regexp.Regexp {
	return regexp.MustCompile(
		`^(roost\.json|((cgroup|eventpoll-tfd|fifo-data|filelocks|files|inotify-wd|inventory|memfd|pipes-data|pstree|remap-fpath|seccomp|sk-queues|tty-data|tty-info|` +
			`(core|fdinfo|timens|fs|ids|mm|pagemap|pagemap-shmem|pages|tcp-stream|ghost-file|mountpoints|userns|utsns|ipcns-(var|shm|msg|sem)|posix-timers)-[0-9a-f]+)\.img|tmpfs-dev-[0-9]+\.tar\.gz\.img))$`,
	)
}

// screenTree reads the processes. There must be one first process with one thread, and
// all others below it.
func screenTree(dir string) ([]*pstree.PstreeEntry, error) {
	all, err := readEntries(dir, "pstree.img", func() *pstree.PstreeEntry { return &pstree.PstreeEntry{} })
	if err != nil {
		return nil, err
	}
	seen := map[uint32]bool{}
	for i, p := range all {
		if seen[p.GetPid()] {
			return nil, badImageError("process %d is there twice", p.GetPid())
		}
		first := i == 0 && p.GetPid() == 1 && p.GetPpid() == 0 && len(p.GetThreads()) == 1
		if !first && (i == 0 || p.GetPid() <= 1 || !seen[p.GetPpid()]) {
			return nil, badImageError("process %d is below none of its first process", p.GetPid())
		}
		if !slices.Contains(p.GetThreads(), p.GetPid()) { // for a dead process, CRIU writes any number as the thread
			if err := screenDead(dir, p.GetPid()); err != nil {
				return nil, err
			}
			p.Threads = nil
		}
		for _, tid := range append([]uint32{p.GetPid()}, p.GetThreads()...) {
			if seen[tid] && tid != p.GetPid() {
				return nil, badImageError("thread %d is there twice", tid)
			}
			seen[tid] = true
		}
	}
	if len(all) == 0 {
		return nil, badImageError("there are no processes in it")
	}
	return all, nil
}

// screenDead checks that a process without threads is dead and not reaped.
func screenDead(dir string, pid uint32) error {
	c, err := readEntry(dir, fmt.Sprintf("core-%d.img", pid), func() *core.CoreEntry { return &core.CoreEntry{} })
	if err == nil && c.GetTc().GetTaskState() != taskDead {
		err = badImageError("process %d has no threads, and is not dead: %d", pid, c.GetTc().GetTaskState())
	}
	return err
}

// CRIU's states of a process: running, and dead but not reaped.
const (
	taskAlive = 1
	taskDead  = 2
)

// screenNamespaces checks that all processes are in the same namespaces. These are the
// sandbox's own, except for those that sandboxes share with the machine.
func screenNamespaces(dir string, pids []*pstree.PstreeEntry) error {
	all, err := decodeEntries(dir, "inventory.img", func() *inventory.InventoryEntry {
		return &inventory.InventoryEntry{}
	}, true)
	if err != nil {
		return err
	}
	if len(all) != 1 {
		return badImageError("inventory.img has %d entries", len(all))
	}
	root := all[0].GetRootIds()
	var home [8]uint32
	for i, p := range pids {
		if len(p.GetThreads()) == 0 {
			continue
		}
		k, err := readEntry(dir, fmt.Sprintf("ids-%d.img", p.GetPid()), func() *core.TaskKobjIdsEntry {
			return &core.TaskKobjIdsEntry{}
		})
		if err != nil {
			return err
		}
		here := processNamespaces(k)
		if i == 0 {
			home = here
		}
		shared := processNamespaces(root)
		own := here[0] != shared[0] && here[1] != shared[1] && here[2] != shared[2] && here[3] != shared[3]
		if here != home || !own || here[4] != shared[4] || here[5] != shared[5] {
			return badImageError("process %d is not in the namespaces of a sandbox", p.GetPid())
		}
		if c, err := readEntries(dir, fmt.Sprintf("core-%d.img", p.GetPid()), func() *core.CoreEntry {
			return &core.CoreEntry{}
		}); err != nil {
			return err
		} else if len(c) == 1 && c[0].GetIds() != nil {
			return badImageError("process %d is not in the namespaces of a sandbox", p.GetPid())
		}
	}
	if home[7] == processNamespaces(root)[7] {
		return nil // no user namespace of its own
	}
	u, err := readEntry(dir, "userns-"+strconv.FormatUint(uint64(home[7]), 10)+".img", func() *userns.UsernsEntry {
		return &userns.UsernsEntry{}
	})
	if err != nil {
		return err
	}
	for _, m := range [][]*userns.UidGidExtent{u.GetUidMap(), u.GetGidMap()} {
		if len(m) != 1 || m[0].GetFirst() != m[0].GetLowerFirst() {
			return badImageError("its user namespace gives other numbers to users")
		}
	}
	return nil
}

// processNamespaces returns the namespaces of a process. Four are the sandbox's own and
// two are shared with the machine. Then come the time namespace, which is its own after a
// restore, and the user namespace.
func processNamespaces(k *core.TaskKobjIdsEntry) [8]uint32 {
	return [8]uint32{k.GetPidNsId(), k.GetIpcNsId(), k.GetUtsNsId(), k.GetMntNsId(), k.GetNetNsId(), k.GetCgroupNsId(),
		k.GetTimeNsId(), k.GetUserNsId()}
}

// Policies of sched(7) that any user may use.
const (
	schedOther = 0
	schedBatch = 3
	schedIdle  = 5
)

// screenThread checks a thread's future state against its user's rights.
func screenThread(c *core.CoreEntry, spec *RestoreSpec, first bool) error {
	t := c.GetThreadCore()
	if t == nil || t.GetCreds() == nil {
		return badImageError("a thread has no rights of its own in it")
	}
	if p := t.GetSchedPolicy(); p != schedOther && p != schedBatch && p != schedIdle {
		return newForgedError("a thread would run before all others of the machine")
	}
	if c.GetTc().GetOomScoreAdj() < 0 && int(c.GetTc().GetOomScoreAdj()) < ownOOMScore() {
		return badImageError("a process would have a lower OOM score than its starter")
	}
	// only the first thread of a process has a login uid
	if tc := c.GetTc(); tc != nil && tc.Loginuid != nil && !mayUseLoginUID(tc.GetLoginuid()) {
		return badImageError("a process would have the login uid %d", tc.GetLoginuid())
	}
	if first && spec.Init != "" {
		return screenRights(t.GetCreds(), userfiles.UserCredential{}, true)
	}
	return screenRights(t.GetCreds(), spec.User, first || spec.User.UID == 0)
}

// ownOOMScore returns the OOM score adjustment of this process.
func ownOOMScore() int {
	text, _ := os.ReadFile("/proc/self/oom_score_adj")
	n, _ := strconv.Atoi(string(text[:max(0, len(text)-1)]))
	return n
}

// screenRights compares a thread's ids and capabilities with its user's.
func screenRights(c *creds.CredsEntry, user userfiles.UserCredential, capable bool) error {
	if capable && c.GetUid() == 0 && user.UID != 0 { // the first process of a sandbox without an init program, in tests
		user = userfiles.UserCredential{}
	}
	for _, id := range []uint32{c.GetUid(), c.GetEuid(), c.GetSuid(), c.GetFsuid()} {
		if id != user.UID {
			return newForgedError("a process has uid %d, and the task is of uid %d", id, user.UID)
		}
	}
	for _, id := range []uint32{c.GetGid(), c.GetEgid(), c.GetSgid(), c.GetFsgid()} {
		if id != user.GID && !slices.Contains(user.Groups, id) {
			return badImageError("a process has gid %d, and the task is of gid %d", id, user.GID)
		}
	}
	for _, id := range c.GetGroups() {
		if id != user.GID && !slices.Contains(user.Groups, id) {
			return badImageError("a process is of group %d, and the task's user is not", id)
		}
	}
	if capable {
		return nil
	}
	for _, set := range [][]uint32{c.GetCapInh(), c.GetCapPrm(), c.GetCapEff()} {
		for _, word := range set {
			if word != 0 {
				return newForgedError("a process has capabilities")
			}
		}
	}
	if c.GetSecbits() != 0 {
		return newForgedError("a process keeps capabilities when its user changes")
	}
	return nil
}
