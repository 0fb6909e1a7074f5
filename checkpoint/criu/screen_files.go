package criu

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/checkpoint-restore/go-criu/v7/crit/images/fdinfo"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/fown"
	ghost "github.com/checkpoint-restore/go-criu/v7/crit/images/ghost-file"
	remap "github.com/checkpoint-restore/go-criu/v7/crit/images/remap-file-path"
	"github.com/checkpoint-restore/go-criu/v7/crit/images/tty"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// createFlags are the flags with which opening a file changes something. They are not
// among the flags of an open file (open(2), F_GETFL).
const createFlags = unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC

// screenFiles checks the open files of the processes before CRIU opens them with root's
// rights. Nothing may be created, truncated, sent or received that the user may not.
// Whether the user may have a file open is checked when it is open (checkAccess).
func screenFiles(spec *RestoreSpec) error {
	all, err := readEntries(spec.Dir, "files.img", func() *fdinfo.FileEntry { return &fdinfo.FileEntry{} })
	if err != nil {
		return err
	}
	names := map[uint32]string{}
	var made []string
	for _, f := range all {
		if err := screenFile(f, spec.User.UID); err != nil {
			return err
		}
		if !sendsSignals(f.ProtoReflect(), spec.User.UID) {
			return badImageError("an open file signals with the rights of another")
		}
		if hasPacketMark(f.ProtoReflect()) {
			return newForgedError("a socket marks its packets")
		}
		names[f.GetId()] = f.GetReg().GetName()
		if name := string(f.GetUsk().GetName()); name != "" && name[0] != 0 {
			made = append(made, filepath.Join("/", f.GetUsk().GetNameDir(), strings.TrimRight(name, "\x00")))
		}
	}
	ttys, err := readEntries(spec.Dir, "tty-info.img", func() *tty.TtyInfoEntry { return &tty.TtyInfoEntry{} })
	if err != nil {
		return err
	}
	for _, t := range ttys {
		if t.GetType() != tty.TtyType_PTY {
			return badImageError("it has the machine's terminal open")
		}
	}
	ghosts, err := screenRemaps(spec, names)
	if err != nil {
		return err
	}
	return mayCreate(spec, append(made, ghosts...))
}

// pidfd is the type of a pidfd of a process of the sandbox.
const pidfd fdinfo.FdTypes = 20

// screenFile checks one open file.
func screenFile(f *fdinfo.FileEntry, uid uint32) error {
	switch f.GetType() {
	case fdinfo.FdTypes_REG:
		if r := f.GetReg(); r == nil || r.GetFlags()&createFlags != 0 || r.GetExt() {
			return newForgedError("it would make or cut the file %.200q", r.GetName())
		}
	case fdinfo.FdTypes_INETSK:
		s := f.GetIsk()
		if s.GetIpOpts().GetRaw() != nil {
			return badImageError("it has a socket that only root may open")
		}
		plain := s.GetType() == unix.SOCK_STREAM && s.GetProto() == unix.IPPROTO_TCP ||
			s.GetType() == unix.SOCK_DGRAM && slices.Contains([]uint32{unix.IPPROTO_UDP, unix.IPPROTO_UDPLITE},
				s.GetProto())
		if !plain || uid != 0 && s.GetSrcPort() != 0 && s.GetSrcPort() < firstUnprivilegedPort() {
			return badImageError("it has a socket that only root may open")
		}
	case fdinfo.FdTypes_NETLINKSK:
		if slices.ContainsFunc(f.GetNlsk().GetGroups(), func(g uint32) bool { return g != 0 }) {
			return badImageError("it has a socket that only root may open")
		}
	case fdinfo.FdTypes_UNIXSK:
		if p := f.GetUsk().GetFilePerms(); p != nil && p.GetUid() != uid {
			return badImageError("it has a socket of uid %d", p.GetUid())
		}
	case fdinfo.FdTypes_PIPE, fdinfo.FdTypes_FIFO, fdinfo.FdTypes_EVENTFD, fdinfo.FdTypes_EVENTPOLL,
		fdinfo.FdTypes_INOTIFY, fdinfo.FdTypes_SIGNALFD,
		fdinfo.FdTypes_TTY, fdinfo.FdTypes_TIMERFD, fdinfo.FdTypes_MEMFD, pidfd:
	default:
		return badImageError("it has something open that no task may open: %v", f.GetType())
	}
	return nil
}

// firstUnprivilegedPort returns the first port on which every user may listen.
func firstUnprivilegedPort() uint32 {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	n, perr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil || perr != nil {
		return 1024
	}
	return uint32(n)
}

// sendsSignals reports whether an open file sends its signals (F_SETOWN) with the user's
// rights, in all fields of its entry.
func sendsSignals(m protoreflect.Message, uid uint32) bool {
	good := true
	if o, ok := m.Interface().(*fown.FownEntry); ok {
		return o.GetPid() == 0 || o.GetUid() == uid && o.GetEuid() == uid
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() != nil && !f.IsList() && !f.IsMap() {
			good = good && sendsSignals(v.Message(), uid)
		}
		return good
	})
	return good
}

// screenRemaps checks files without a name. CRIU creates them at the names that they had,
// which are the result.
func screenRemaps(spec *RestoreSpec, names map[uint32]string) (made []string, err error) {
	all, err := readEntries(spec.Dir, "remap-fpath.img", func() *remap.RemapFilePathEntry {
		return &remap.RemapFilePathEntry{}
	})
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		switch r.GetRemapType() {
		case remap.RemapType_GHOST:
			if err := screenGhost(spec, r.GetRemapId()); err != nil {
				return nil, err
			}
			made = append(made, filepath.Join("/", names[r.GetOrigId()]))
		case remap.RemapType_LINKED: // CRIU made a name for it at the dump, and removes the name
			if !regexp.MustCompile(`^link_remap\.[0-9]+$`).MatchString(filepath.Base(names[r.GetRemapId()])) {
				return nil, badImageError("it would take away the file %.200q", names[r.GetRemapId()])
			}
			made = append(made, filepath.Join("/", names[r.GetRemapId()]))
		case remap.RemapType_PROCFS:
		default:
			return nil, badImageError("it has a file of an unknown kind")
		}
	}
	return made, nil
}

// screenGhost checks one such file: it is the user's, and no device.
func screenGhost(spec *RestoreSpec, id uint32) error {
	name := fmt.Sprintf("ghost-file-%x.img", id)
	g, err := firstEntry(spec.Dir, name, func() *ghost.GhostFileEntry { return &ghost.GhostFileEntry{} })
	if err != nil {
		return err
	}
	kind := g.GetMode() & unix.S_IFMT
	plain := kind == unix.S_IFREG || kind == unix.S_IFDIR || kind == unix.S_IFIFO || kind == unix.S_IFLNK
	mine := g.GetUid() == spec.User.UID &&
		(g.GetGid() == spec.User.GID || slices.Contains(spec.User.Groups, g.GetGid()))
	if !plain || !mine || g.GetMode()&(unix.S_ISUID|unix.S_ISGID) != 0 && spec.User.UID != 0 {
		return badImageError("it has a deleted file open that is not the task's: mode %o, uid %d", g.GetMode(),
			g.GetUid())
	}
	return nil
}

// mayCreate checks that the user may create files where CRIU will create them with root's
// rights, even temporarily.
func mayCreate(spec *RestoreSpec, paths []string) error {
	if spec.User.UID == 0 || len(paths) == 0 {
		return nil
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread with the user's rights ends with the goroutine
		err := assumeUser(spec.User)
		for _, path := range paths {
			if err == nil && !mayCreateAt(hostPath(spec, path)) {
				err = badImageError("it would make the file %.200q, where its user may make none", path)
			}
		}
		done <- err
	}()
	return <-done
}

// mayCreateAt reports whether this thread may create a file. If directories of its path
// do not exist, the nearest existing one counts.
func mayCreateAt(path string) bool {
	if path == "" {
		return true
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		err := unix.Faccessat2(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		if err == nil || !errors.Is(err, fs.ErrNotExist) || dir == "/" {
			return err == nil
		}
	}
}

// hostPath returns the machine's path for a path that the task sees. It is empty for a
// file that belongs to the sandbox alone.
func hostPath(spec *RestoreSpec, path string) string {
	best, from := "", ""
	for inside, outside := range spec.External {
		if (path == inside || strings.HasPrefix(path, inside+"/")) && len(inside) > len(best) {
			best, from = inside, outside
		}
	}
	for inside := range sandboxMounts() {
		if strings.HasPrefix(path, inside+"/") && len(inside) > len(best) {
			return ""
		}
	}
	return filepath.Join("/", from, strings.TrimPrefix(path, best))
}
