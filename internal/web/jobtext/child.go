package jobtext

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Bounds on the child.
const (
	childCPU     = 2         // seconds
	childMemory  = 64 << 20  // bytes that its heap should have at most
	childData    = 512 << 20 // bytes of writable memory that end it; Go reserves more than it uses
	childFiles   = 16
	childTimeout = 10 * time.Second // the machine may be busy
	maxResult    = 64 << 20         // bytes of its answer
)

// Role is the first argument with which a program runs the child.
const Role = "job-text-agent"

// Parser reads job files in children of a program.
type Parser struct{ Program string }

// Parse reads a job file. Mistakes of the file are in the result, and not an error.
func (p Parser) Parse(ctx context.Context, s Source) (r Result, err error) {
	if err := s.check(); err != nil {
		return r, err
	}
	in, err := json.Marshal(s)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.Program, Role)
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(in), []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out := &boundedBuffer{}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		var ended *exec.ExitError
		if errors.As(err, &ended) || ctx.Err() != nil {
			return r, fmt.Errorf("job file: %w: reading it takes more than %d seconds or %v of memory: make it "+
				"smaller, or submit it with roost submit", roost.Exhausted, childCPU, roost.Bytes(childMemory))
		}
		return r, fmt.Errorf("job file: %w", err)
	}
	return r, json.Unmarshal(out.Bytes(), &r)
}

// boundedBuffer is a buffer that refuses to grow for ever.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxResult {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}

// RunChild is the child: it reads a source and writes the result. It returns the exit
// status.
func RunChild(in io.Reader, out io.Writer) int {
	debug.SetMemoryLimit(childMemory)
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: childCPU, unix.RLIMIT_DATA: childData,
		unix.RLIMIT_NOFILE: childFiles, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return 1
		}
	}
	var s Source
	if json.NewDecoder(io.LimitReader(in, 8*MaxText)).Decode(&s) != nil {
		return 1
	}
	if json.NewEncoder(out).Encode(Parse(s)) != nil {
		return 1
	}
	return 0
}
