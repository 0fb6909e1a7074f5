package criu

import (
	"context"
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

// Check tests whether the CRIU at path works on this machine. "criu check" is not
// sufficient: versions before 4.2 pass it on Linux 6.16 and fail on the first TCP socket.
// So an agent dumps and restores a process that listens on TCP, in a directory below dir.
// That takes a third of a second of a core. The result is stored in the file cache, such
// as MachineCache, and nothing is run as long as the stored one is valid. Without a file
// the test is made each time.
func Check(ctx context.Context, exe, path, dir, cache string) CheckResult {
	v := CheckResult{Path: path}
	if os.Geteuid() != 0 {
		v.Why = "only root can dump and restore"
		return v
	}
	key, err := newCheckKey(path)
	if err == nil {
		err = checkRootOwned(path)
	}
	if err == nil && cache != "" {
		if last, ok := readCheck(cache, key, time.Now()); ok {
			return last
		}
	}
	if err == nil {
		v.Version, err = criuVersion(ctx, path)
	}
	if err != nil {
		v.Why = err.Error()
		return v
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
	if ctx.Err() == nil && cache != "" {
		writeCheck(cache, key, time.Now(), v)
	}
	return v
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
