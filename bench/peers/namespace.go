package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceConfig describes the environment of a system, for the first process of its
// namespaces.
type namespaceConfig struct {
	System string `json:"system"`
	Root   string `json:"root"` // root of the file system; "": this machine's
	Work   string `json:"work"` // directory for the bench's own files, below that root
	Roost  string `json:"roost"`
	Stock  bool   `json:"stock"`
	Cell   int    `json:"cell"` // not 0: the system only matches jobs with that many machines
}

// The host that every system runs on, and its address. The address is that of one end of
// a virtual cable whose other end is in the same namespace: with only a loopback,
// resolvers would conclude that the host has no network.
const (
	hostName    = "peers"
	hostAddress = "10.99.0.1"
	benchUser   = 1001 // owner of the jobs in the Debian; install.sh creates the user
)

// runInNamespaces runs this program as the first process of new namespaces.
func runInNamespaces(p namespaceConfig) (*exec.Cmd, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", "-inside", string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
		Setpgid: true, // Ctrl-C is for the coordinator, which ends the others in order
	}
	return cmd, nil
}

// startWord is what the first process waits for. Then it is in its control group, and so
// are all its future children.
const startWord = "\n"

// runFirstProcess is the first process of the namespaces. It sets them up, starts the
// agent, and reaps the processes that daemons leave behind. When it ends, the kernel
// kills everything else in the namespaces. It returns its exit status.
func runFirstProcess(args []string) int {
	var p namespaceConfig
	err := json.Unmarshal([]byte(args[0]), &p)
	if err == nil {
		_, err = io.ReadFull(os.Stdin, make([]byte, len(startWord)))
	}
	if err == nil {
		err = p.setUpNamespaces()
	}
	if err == nil {
		var status int
		if status, err = reapProcesses(args[0]); err == nil {
			return status
		}
	}
	fmt.Fprintln(os.Stderr, "peers: namespaces:", err)
	return 1
}

// reapProcesses starts the agent and reaps all processes until the agent has ended.
func reapProcesses(text string) (int, error) {
	agent, err := syscall.ForkExec("/proc/self/exe", []string{"peers", "-serve", text},
		&syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && err != syscall.EINTR {
			return 0, err
		}
		if pid == agent {
			return status.ExitStatus(), nil
		}
	}
}

// setUpNamespaces sets up the namespaces like a machine: processes, devices, a network,
// and for a Debian its files.
func (p namespaceConfig) setUpNamespaces() error {
	runtime.LockOSThread()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Sethostname([]byte(hostName)); err != nil {
		return err
	}
	if p.Root == "" {
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
	} else if err := p.enterRoot(); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"link", "add", "cable0", "type", "veth", "peer", "name", "cable1"},
		{"link", "set", "cable1", "up"}, {"link", "set", "cable0", "up"},
		{"address", "add", hostAddress + "/24", "dev", "cable0"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return nil
}

// enterRoot makes the Debian's directory the root.
func (p namespaceConfig) enterRoot() error {
	hosts := filepath.Join(p.Root, p.Work, "hosts")
	if err := os.MkdirAll(filepath.Dir(hosts), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(hosts, []byte(p.hostsFile()), 0o644); err != nil {
		return err
	}
	for _, m := range []struct {
		source, at, kind string
		flags            uintptr
		data             string
	}{
		{p.Root, "", "", unix.MS_BIND, ""},
		{"proc", "proc", "proc", 0, ""},
		{"/dev", "dev", "", unix.MS_BIND | unix.MS_REC, ""},
		{"sysfs", "sys", "sysfs", unix.MS_RDONLY, ""},
		{"tmpfs", "dev/shm", "tmpfs", 0, "mode=1777"},
		{"tmpfs", "run", "tmpfs", 0, "mode=755"},
		{"tmpfs", "tmp", "tmpfs", 0, "mode=1777"},
		{hosts, "etc/hosts", "", unix.MS_BIND, ""},
	} {
		if err := unix.Mount(m.source, filepath.Join(p.Root, m.at), m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount /%s: %w", m.at, err)
		}
	}
	return errors.Join(unix.Chroot(p.Root), os.Chdir("/"))
}
