package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
)

// Bounds on children.
const (
	childTimeout = 15 * time.Second
	maxChildren  = 8 // at once
	maxAnswer    = 64 << 10
)

// boundedBuffer is a buffer that refuses to grow for ever.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}

// ask runs a child: it reads in, and writes an answer in JSON. The child has no
// environment.
func (v *Verifier) ask(ctx context.Context, program []string, in io.Reader, answer any) error {
	select {
	case v.children <- struct{}{}:
		defer func() { <-v.children }()
	default:
		return fmt.Errorf("login: %w: %d others are being checked; try again in a moment", roost.Exhausted, maxChildren)
	}
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Stdin, cmd.Env, cmd.Dir = in, []string{}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	out := &boundedBuffer{}
	cmd.Stdout = out
	err := cmd.Run()
	if err == nil {
		err = json.Unmarshal(out.Bytes(), answer)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("login: %w: %s has not answered in time", roost.Unavailable, filepath.Base(program[0]))
	}
	return fmt.Errorf("login: %w: %s: %w", roost.Unavailable, filepath.Base(program[0]), err)
}
