package criu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	gocriu "github.com/checkpoint-restore/go-criu/v7"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// CheckResult states whether a CRIU works on this machine.
type CheckResult struct {
	Path    string
	Version string // such as "4.2.1"
	Works   bool
	Why     string `json:",omitempty"` // why it does not work, a sentence
}

// selfTestTimeout bounds the self-test, which usually takes a third of a second.
const selfTestTimeout = 30 * time.Second

// cachedCheckName is the file of the last result, in the directory that Check gets.
const cachedCheckName = "criu.verdict"

// cachedCheck is a result with everything that it depends on.
type cachedCheck struct {
	Kernel  string
	Changed time.Time // modification time of the program
	Verdict CheckResult
}

// Check tests whether the CRIU at path works on this kernel. "criu check" is not
// sufficient: versions before 4.2 pass it on Linux 6.16 and fail on the first TCP socket.
// So an agent dumps and restores a process that listens on TCP, which takes a third of a
// second. The result is stored in dir, and the test is repeated only when kernel, version
// or program have changed.
func Check(ctx context.Context, exe, path, dir string) CheckResult {
	v := CheckResult{Path: path}
	if os.Geteuid() != 0 {
		v.Why = "only root can dump and restore"
		return v
	}
	info, err := os.Stat(path)
	if err == nil {
		err = checkRootOwned(path)
	}
	if err == nil {
		v.Version, err = criuVersion(ctx, path)
	}
	if err != nil {
		v.Why = err.Error()
		return v
	}
	now := cachedCheck{kernelRelease(), info.ModTime(), v}
	file := filepath.Join(dir, cachedCheckName)
	var last cachedCheck
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &last) == nil && last.Kernel == now.Kernel &&
		last.Changed.Equal(now.Changed) && last.Verdict.Path == path && last.Verdict.Version == v.Version {
		return last.Verdict
	}
	work, err := os.MkdirTemp(dir, "criu-")
	if err == nil {
		defer os.RemoveAll(work)
		limited, stop := context.WithTimeout(ctx, selfTestTimeout)
		_, err = runAgent(limited, exe, agentRequest{Try: &selfTestSpec{path, work}})
		stop()
	}
	if v.Works = err == nil; err != nil {
		v.Why = err.Error()
	}
	now.Verdict = v
	if ctx.Err() == nil {
		if text, err := json.Marshal(now); err == nil {
			atomicfile.Write(file, text, 0o600) // if it cannot be stored, it is found out again
		}
	}
	return v
}

func kernelRelease() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

func criuVersion(ctx context.Context, path string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	text, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("criu: %s --version: %w", path, err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	_, v, ok := strings.Cut(first, "Version: ")
	if !ok {
		return "", fmt.Errorf("criu: %w: %s does not tell its version", roost.Unavailable, path)
	}
	return v, nil
}

// selfTestSpec is the request for a self-test.
type selfTestSpec struct {
	CRIU string
	Dir  string // empty, and accessible to root only
}

// listenReady, in place of a spec, makes an agent the process that the self-test dumps.
const listenReady = "listen"

// runListener opens a TCP listener, reports that on ready, and waits for ever.
func runListener(ready io.Writer) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, 1)
	}
	if err != nil {
		return err
	}
	if null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0); err == nil {
		ready.Write([]byte{'.'})
		for fd := range 3 {
			unix.Dup3(int(null.Fd()), fd, 0)
		}
		null.Close()
	}
	for {
		unix.Pause()
	}
}

// runSelfTest dumps and restores a process that listens.
func runSelfTest(spec *selfTestSpec, exe string) error {
	c := exec.Command(exe, AgentName)
	c.Dir, c.Env, c.Stdin = "/", []string{}, strings.NewReader(listenReady)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		c.Process.Kill()
		c.Wait()
		return fmt.Errorf("criu: the process of the self-test did not start: %w", err)
	}
	io.Copy(io.Discard, out) // until it has closed the descriptors that it inherited
	pid := c.Process.Pid
	defer func() {
		syscall.Kill(pid, syscall.SIGKILL)
		c.Wait()
	}()
	dir, err := os.Open(spec.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	o := criuOptions(dir, dir, dumpLog)
	o.Pid = proto.Int32(int32(pid))
	k := gocriu.MakeCriu()
	k.SetCriuPath(spec.CRIU)
	if err := k.Dump(o, nil); err != nil {
		return errorFromLog(filepath.Join(spec.Dir, dumpLog), err)
	}
	c.Wait() // the dump ended it
	o = criuOptions(dir, dir, restoreLog)
	o.RstSibling = proto.Bool(true)
	if err := k.Restore(o, nil); err != nil {
		return errorFromLog(filepath.Join(spec.Dir, restoreLog), err)
	}
	defer func() {
		syscall.Kill(pid, syscall.SIGKILL)
		var status syscall.WaitStatus
		syscall.Wait4(pid, &status, 0, nil)
	}()
	for _, to := range descriptorTargets(pid) {
		if strings.HasPrefix(to, "socket:") {
			return nil
		}
	}
	return errors.New("criu: the process of the self-test came back without its socket")
}
