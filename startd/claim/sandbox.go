package claim

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/gpudriver"
	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

// DetectSandbox says whether tasks run in sandboxes (package startd/starter), or why the
// startd must not start.
func DetectSandbox(own *config.StartdSettings, log *slog.Logger) (bool, error) {
	if own.Limits.Sandbox == config.EnforceNever {
		return false, nil
	}
	err := TrySandbox()
	if err == nil {
		return true, nil
	}
	if own.Limits.Sandbox == config.EnforceRequired {
		return false, fmt.Errorf("startd %s: %w: tasks must be in sandboxes: %w (sandbox = \"auto\" goes without)",
			own.Name, roost.BadConfig, err)
	}
	log.Warn("tasks run without a sandbox", "err", err)
	return false, nil
}

// TrySandbox says why this process cannot make sandboxes; nil when it can.
func TrySandbox() error {
	if runtime.GOARCH != "amd64" {
		return fmt.Errorf("%w: sandboxes are not written for %s", roost.Unavailable, runtime.GOARCH)
	}
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
		syscall.CLONE_NEWUTS}
	cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // which changes a mount, too
	nested := makesNestedSandboxes()
	if nested {
		starterclient.NestUser(cmd.SysProcAttr)
	}
	switch err := cmd.Run(); {
	case err != nil && nested:
		return fmt.Errorf("%w: this machine gives only root namespaces (sysctl user.max_user_namespaces, "+
			"kernel.apparmor_restrict_unprivileged_userns, kernel.unprivileged_userns_clone): %w",
			roost.PermissionDenied, err)
	case err != nil:
		return fmt.Errorf("%w: this machine gives no namespaces: %w", roost.Unavailable, err)
	}
	return nil
}

// makesNestedSandboxes reports whether sandboxes are made in user namespaces, as this
// process is not root's.
func makesNestedSandboxes() bool { return os.Geteuid() != 0 }

// sandboxOf is the sandbox of an attempt.
func (h launcher) sandboxOf(a *Attempt) proto.Sandbox {
	b := proto.Sandbox{Wanted: a.record.Boxed}
	if a.record.OwnTemp {
		b.TempDir = a.record.Base
	}
	if c := a.record.Container; c != nil {
		b.Image = c.Root
	}
	for _, m := range a.record.Packages {
		b.Packages = append(b.Packages, proto.PackageMount{Root: m.Root, Inside: m.Target})
		b.Namespace = ownMountNamespace()
	}
	if a.container.driver != "" {
		b.Packages = append(b.Packages, proto.PackageMount{Root: a.container.driver, Inside: gpudriver.Inside})
		b.Namespace = ownMountNamespace()
	}
	for _, n := range h.machine.gpus.DeviceNodes(h.file.gpuShares()) {
		b.Devices = append(b.Devices, proto.DeviceNode{Path: n.Path, Major: n.Major, Minor: n.Minor})
	}
	return b
}

// sandboxPath is a path of ours as the attempt sees it.
func (a *Attempt) sandboxPath(path string) string {
	r := &a.record
	if !r.Boxed {
		return path
	}
	if rest, ok := relativeTo(r.IO, path); ok {
		return proto.SandboxIODir + rest
	}
	if rest, ok := relativeTo(r.Base, path); ok && r.OwnTemp {
		return proto.SandboxTempDir + rest
	}
	return path
}

// relativeTo cuts dir off a path that is in it, or is it.
func relativeTo(dir, path string) (rest string, ok bool) {
	if dir == "" {
		return "", false
	}
	rest, ok = strings.CutPrefix(path, dir)
	return rest, ok && (rest == "" || rest[0] == '/')
}

// usesHostTemp reports whether a program needs the machine's /tmp: the job names files
// there, and they are not copied.
func usesHostTemp(p *wire.Program) bool {
	paths := []string{resolveInterpreter(p)[0], p.GetStdin(), p.GetStdout(), p.GetStderr()}
	if !p.GetScratch() {
		paths = append(paths, p.GetCwd())
		paths = append(paths, programTexts(p.GetArguments())...)
	}
	for _, path := range paths {
		if _, ok := relativeTo(proto.SandboxTempDir, filepath.Clean(path)); ok {
			return true
		}
	}
	return false
}
