package startd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starter/proto"
)

// decideBoxes says whether tasks are shut in boxes (package startd/starter/shim), or why the startd must not start.
func (m *machine) decideBoxes() error {
	if m.own.Limits.Sandbox == config.EnforceNever {
		return nil
	}
	err := tryBox()
	m.boxes = err == nil
	switch {
	case err == nil:
	case m.own.Limits.Sandbox == config.EnforceMust:
		return fmt.Errorf("startd %s: %w: tasks must be in sandboxes: %w (sandbox = \"auto\" goes without)", m.own.Name, roost.BadConfig, err)
	default:
		m.log.Warn("tasks run without a sandbox", "err", err)
	}
	return nil
}

// tryBox says why this process cannot make boxes; nil when it can.
func tryBox() error {
	switch {
	case os.Geteuid() != 0:
		return fmt.Errorf("%w: only root can make sandboxes", roost.PermissionDenied)
	case runtime.GOARCH != "amd64":
		return fmt.Errorf("%w: sandboxes are not written for %s", roost.Unavailable, runtime.GOARCH)
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: this machine gives no namespaces: %w", roost.Unavailable, err)
	}
	return nil
}

// boxOf is the box of an attempt.
func (h *hand) boxOf(a *attempt) proto.Box {
	b := proto.Box{Wanted: a.record.Boxed}
	if a.record.OwnTemp {
		b.Temp = a.record.Base
	}
	for _, n := range h.m.gpus.nodes(h.file.gpus()) {
		b.Devices = append(b.Devices, proto.Device{Path: n.Path, Major: n.Major, Minor: n.Minor})
	}
	return b
}

// inside is a path of ours as the attempt sees it.
func (a *attempt) inside(path string) string {
	r := &a.record
	if !r.Boxed {
		return path
	}
	if rest, ok := under(r.IO, path); ok {
		return proto.IOInside + rest
	}
	if rest, ok := under(r.Base, path); ok && r.OwnTemp {
		return proto.TempInside + rest
	}
	return path
}

// under cuts dir off a path that is in it, or is it.
func under(dir, path string) (rest string, ok bool) {
	if dir == "" {
		return "", false
	}
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// namesTemp reports whether a program needs the machine's /tmp: the job names files there, and they are not copied.
func namesTemp(p *wire.Program) bool {
	paths := []string{interpreter(p)[0], p.GetStdin(), p.GetStdout(), p.GetStderr()}
	if !p.GetScratch() {
		paths = append(paths, p.GetCwd())
		paths = append(paths, texts(p.GetArguments())...)
	}
	for _, path := range paths {
		if _, ok := under(proto.TempInside, filepath.Clean(path)); ok {
			return true
		}
	}
	return false
}
