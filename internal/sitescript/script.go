package sitescript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// Script is one call of a program.
type Script struct {
	Path        string   // absolute
	Arguments   []string // without the name of the program
	Environment []string // all of it
	Input       []byte   // its standard input
	// whose rights it has; nil: those of the daemon
	Credential *syscall.Credential
	MaxOutput  int // bytes that are retained of each output; what is beyond is dropped
	// its standard error goes where its standard output goes, in the order of writing
	Merged bool
	// what it leaves as it ends in time is not killed, so that a prologue can start a
	// service that its epilogue ends
	Lingers bool
	Groups  *Groups // where its processes are contained; nil: by their marks alone
}

// Output is what a program has printed.
type Output struct {
	Text      []byte // its standard output
	Errors    []byte // its standard error, unless merged
	Truncated bool   // it printed more than is retained
}

// Line returns what a program has printed in one line: its standard error, or else its
// standard output. It is empty if the program has printed nothing.
func (o Output) Line() string {
	for _, text := range [][]byte{o.Errors, o.Text} {
		if line := OneLine(strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))); line != "" {
			return line
		}
	}
	return ""
}

// BaseEnvironment is the environment that every script has, to which its caller adds.
func BaseEnvironment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/",
		"SHELL=/bin/sh"}
}

// Run runs a script until it ends, or until the context does. Then all processes that it
// has started are killed, whatever session they are in, and whether they ignore signals.
// [Groups] says what holds where. An exit status other than 0 is an *exec.ExitError. That
// the script left processes behind, or did not read its input, is no error.
func Run(ctx context.Context, s Script) (Output, error) {
	if err := UntrustedReason(s.Path); err != nil {
		return Output{}, err
	}
	holder, err := s.Groups.open(s.Lingers)
	if err != nil {
		return Output{}, fmt.Errorf("%s: %w: %w", s.Path, roost.Unavailable, err)
	}
	defer holder.close()
	out, errs := &boundedBuffer{most: s.MaxOutput}, &boundedBuffer{most: s.MaxOutput}
	cmd := exec.CommandContext(ctx, s.Path, s.Arguments...)
	cmd.Dir, cmd.Env, cmd.Stdin = "/", append(slices.Clone(s.Environment), holder.mark), bytes.NewReader(s.Input)
	cmd.Stdout, cmd.Stderr = out, errs
	if s.Merged {
		cmd.Stderr = out // one writer for both, so that lines do not mix
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: s.Credential}
	holder.prepare(cmd.SysProcAttr)
	cmd.Cancel = func() error { return holder.kill(cmd.Process.Pid) }
	cmd.WaitDelay = time.Second
	if err = cmd.Start(); err == nil {
		holder.add(cmd.Process.Pid)
		awaitExit(cmd.Process.Pid)
		holder.finish(cmd.Process.Pid, ctx.Err() != nil) // before its pid can be that of another process
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	case errors.Is(err, exec.ErrWaitDelay), err != nil && !errors.As(err, &exit) && cmd.ProcessState != nil &&
		cmd.ProcessState.Success(): // it left a process behind, or did not read all of its input
		err = nil
	}
	return Output{Text: out.text, Errors: errs.text, Truncated: out.dropped || errs.dropped}, err
}

// awaitExit waits for the end of a child, and leaves it for another call to reap.
func awaitExit(pid int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}

// ExitCode returns the exit status in an error of [Run]. It is 0 for no error, and -1 for
// another one or a signal.
func ExitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// OneLine returns text that can stand in a line of a log and in a variable.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// boundedBuffer retains the beginning of what is written. It is no bytes.Buffer, whose
// ReadFrom would read without a bound.
type boundedBuffer struct {
	text    []byte
	most    int
	dropped bool
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := max(b.most-len(b.text), 0)
	b.dropped = b.dropped || len(p) > room
	b.text = append(b.text, p[:min(len(p), room)]...)
	return len(p), nil
}

// UntrustedReason returns why a script must not be run with a daemon's rights, nil if it
// may. Somebody else than root and the daemon's user could have written it, or put
// another one in its place.
func UntrustedReason(path string) error { return UntrustedReasonFor(path, os.Geteuid()) }

// UntrustedReasonFor is UntrustedReason for a daemon of the user with a number.
func UntrustedReasonFor(path string, daemon int) error {
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return fmt.Errorf("%w: %w", roost.BadConfig, err)
		}
		owner := info.Sys().(*syscall.Stat_t).Uid
		open := info.Mode().Perm()&0o022 != 0
		switch {
		case owner != 0 && int(owner) != daemon:
			return fmt.Errorf("%s: %w: it belongs to uid %d, who could have anything run by that", at,
				roost.PermissionDenied, owner)
		case at == path && !info.Mode().IsRegular():
			return fmt.Errorf("%s: %w: it is no regular file", at, roost.BadConfig)
		case at == path && info.Mode()&0o111 == 0:
			return fmt.Errorf("%s: %w: it cannot be executed: %w", at, roost.BadConfig, fs.ErrPermission)
		case open && (at == path || info.Mode()&fs.ModeSticky == 0):
			return fmt.Errorf("%s: %w: others may write there", at, roost.PermissionDenied)
		}
		if at == "/" {
			return nil
		}
	}
}
