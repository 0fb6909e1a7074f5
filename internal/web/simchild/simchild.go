// Package simchild runs the simulator in a child of the web daemon. What a question costs
// depends on the pool and on what is asked, so the child has bounds on time and memory,
// and neither environment nor files.
package simchild

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Bounds on the child.
const (
	childTimeout = 30 * time.Second
	childCPU     = 30      // seconds
	childData    = 4 << 30 // bytes of writable memory that end it; Go reserves more than it uses
	childHeap    = "1GiB"  // that its heap should have at most
	childFiles   = 32
	maxOutput    = 8 << 20 // bytes of its answer
)

// Simulator runs a program that has the commands of roost sim.
type Simulator struct{ Program string }

// WhatIf runs roost sim whatif on a checkpoint of a cell and returns its document. flags
// are those of the command, each with its value behind "=". What is wrong with them is an
// error of kind roost.Invalid or roost.NotFound.
func (s Simulator) WhatIf(ctx context.Context, checkpoint []byte, flags []string) ([]byte, error) {
	return s.run(ctx, checkpoint, append(append([]string{"sim", "whatif", "--json"}, flags...), "--", "-"))
}

// Show runs roost sim show on a checkpoint of a cell and returns its document.
func (s Simulator) Show(ctx context.Context, checkpoint []byte) ([]byte, error) {
	return s.run(ctx, checkpoint, []string{"sim", "show", "--json", "--", "-"})
}

func (s Simulator) run(ctx context.Context, checkpoint []byte, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Program, args...)
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(checkpoint), []string{"GOMEMLIMIT=" + childHeap, "GOMAXPROCS=1"}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out, complaint := &boundedBuffer{}, &boundedBuffer{}
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("simulator: %w: %w", roost.Unavailable, err)
	}
	limitErr := limitChild(cmd.Process.Pid)
	if limitErr != nil {
		cancel()
	}
	err := cmd.Wait()
	var ended *exec.ExitError
	switch {
	case limitErr != nil:
		return nil, fmt.Errorf("simulator: %w: %w", roost.Unavailable, limitErr)
	case err == nil:
		return out.Bytes(), nil
	case ctx.Err() == nil && errors.As(err, &ended) && ended.Exited():
		return nil, refusal(complaint.String())
	}
	return nil, fmt.Errorf("simulation: %w: it takes more than %v or too much memory: look less far ahead, or use "+
		"roost sim whatif", roost.Exhausted, childTimeout)
}

// limitChild bounds what a child may use.
func limitChild(pid int) error {
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: childCPU, unix.RLIMIT_DATA: childData,
		unix.RLIMIT_NOFILE: childFiles, unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0} {
		err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: limit, Max: limit}, nil)
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return fmt.Errorf("limits: %w", err)
		}
	}
	return nil
}

// refusal is the error of a command that has printed why it does nothing.
func refusal(complaint string) error {
	text, hint, _ := strings.Cut(strings.TrimSpace(complaint), "\n")
	for _, prefix := range []string{"roost: ", "roost sim: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if hint != "" {
		text += ": " + strings.ReplaceAll(hint, "\n", " ")
	}
	return fmt.Errorf("%w: %s", roost.Invalid, text)
}

// boundedBuffer is a buffer that refuses to grow for ever.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxOutput {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}
