package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// trial is what a confined child has to try, and what came of it.
type trial struct {
	Rights  Rights
	Home    string // a directory of a person
	Own     string // a directory that it may write
	Address string // of an HTTP server
	Program string // that it may run
}

// TestMain runs the confined child, if that is what the program was started for.
func TestMain(m *testing.M) {
	if text := os.Getenv("ROOST_CONFINED"); text != "" {
		var t trial
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			panic(err)
		}
		json.NewEncoder(os.Stdout).Encode(t.run())
		return
	}
	os.Exit(m.Run())
}

// run confines the process, and returns the errors of what it tries. Those that nobody
// expects are in it with "", too.
func (t *trial) run() map[string]string {
	got := map[string]string{}
	note := func(what string, err error) {
		if got[what] = ""; err != nil {
			got[what] = err.Error()
		}
	}
	stay := make(chan struct{}) // threads that were there before
	for range 4 {
		go func() { runtime.LockOSThread(); <-stay }()
	}
	missing, err := Apply(t.Rights)
	note("apply", err)
	got["missing"] = strings.Join(missing, ", ")
	_, err = os.ReadFile(filepath.Join(t.Home, "secret"))
	note("read home", err)
	note("write home", os.WriteFile(filepath.Join(t.Home, "new"), nil, 0o600))
	_, err = os.ReadFile("/etc/shadow")
	note("read shadow", err)
	note("write own", os.WriteFile(filepath.Join(t.Own, "a"), []byte("x"), 0o600))
	note("rename own", os.Rename(filepath.Join(t.Own, "a"), filepath.Join(t.Own, "b")))
	_, err = net.LookupHost("localhost")
	note("resolve", err)
	answer, err := http.Get("http://" + t.Address)
	if note("connect", err); err == nil {
		answer.Body.Close()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if note("listen", err); err == nil {
		listener.Close()
	}
	out, err := exec.Command(t.Program, "ran").Output()
	if err == nil && string(out) != "ran\n" {
		err = errors.New(string(out))
	}
	note("run", err)
	forbidden := filepath.Join(t.Home, "program")
	note("run of home", exec.Command(forbidden).Run())
	note("user namespace", unix.Unshare(unix.CLONE_NEWUSER))
	clone := exec.Command(t.Program)
	clone.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	note("child in a namespace", clone.Run())
	_, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	note("packet socket", err)
	_, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	note("netlink socket", err)
	note("mount", unix.Mount("none", t.Own, "tmpfs", 0, ""))
	note("trace", unix.PtraceAttach(os.Getppid()))
	note("other account", syscall.Setuid(syscall.Getuid()))
	note("device", unix.Mknod(filepath.Join(t.Own, "dev"), unix.S_IFCHR|0o600, 1))
	_, err = unix.KeyctlInt(unix.KEYCTL_GET_KEYRING_ID, unix.KEY_SPEC_SESSION_KEYRING, 1, 0, 0)
	note("keys", err)
	_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	note("io_uring", e)
	_, _, e = unix.Syscall(unix.SYS_CLONE3, 0, 0, 0)
	note("clone3", e)
	note("threads", checkThreads())
	return got
}

// checkThreads holds that each thread is confined and has no capability.
func checkThreads() error {
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) < 5 {
		return fmt.Errorf("%d threads: %w", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n",
			"CapPrm:\t0000000000000000\n", "CapInh:\t0000000000000000\n"} {
			if !strings.Contains(string(text), want) {
				return fmt.Errorf("%s has no %q", file, want)
			}
		}
	}
	return nil
}

// TestApply has a child confine itself. It tries what a daemon does, and what one that
// was taken over would try.
func TestApply(t *testing.T) {
	if missing := Missing(); len(missing) > 0 {
		t.Skipf("SKIPPED: this kernel lacks %v", missing)
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-confine-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	try := trial{Home: filepath.Join(dir, "home"), Own: filepath.Join(dir, "own"), Program: "/bin/echo"}
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	try.Address = server.Listener.Addr().String()
	try.Rights = Rights{Write: []string{try.Own}, Read: []string{filepath.Join(dir, "gone")}}
	for path, text := range map[string]string{"home/secret": "x", "home/program": "#!/bin/sh\n", "own/old": ""} {
		full := filepath.Join(dir, path)
		err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o755))
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(try)
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own)
	cmd.Env = append(os.Environ(), "ROOST_CONFINED="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var got map[string]string
	if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, what := range []string{"apply", "missing", "write own", "rename own", "resolve", "connect", "listen", "run",
		"threads"} {
		if text, tried := got[what]; text != "" || !tried {
			t.Errorf("%s: %q, want no error", what, text)
		}
		delete(got, what)
	}
	if got["clone3"] != unix.ENOSYS.Error() {
		t.Errorf("clone3: %q, want %q: programs then use clone", got["clone3"], unix.ENOSYS)
	}
	delete(got, "clone3")
	if len(got) < 14 {
		t.Errorf("only %d attacks were tried", len(got))
	}
	for what, text := range got {
		if !strings.HasSuffix(text, "permission denied") && !strings.HasSuffix(text, "operation not permitted") {
			t.Errorf("%s: %q, want a refusal", what, text)
		}
	}
}

// TestCallFilter assembles the filter for the machines that Roost is built for.
func TestCallFilter(t *testing.T) {
	for _, machine := range []string{"amd64", "arm64"} {
		f, err := callFilter(machine)
		if err != nil {
			t.Fatalf("%s: %v", machine, err)
		}
		if names := f.Policy.Syscalls[0].Names; len(names) < 120 {
			t.Errorf("%s: %d system calls are permitted", machine, len(names))
		}
		if machine == runtime.GOARCH {
			if err := f.Policy.Dump(io.Discard); err != nil {
				t.Errorf("%s: %v", machine, err)
			}
		}
	}
}
