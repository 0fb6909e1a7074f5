package oidc

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/identity/proof"
)

// Bounds on the child.
const (
	childCPU    = 5         // seconds
	childMemory = 64 << 20  // bytes that its heap should have at most
	childData   = 512 << 20 // bytes of writable memory that end it; Go reserves more than it uses
	maxQuestion = 16 << 20
	nobody      = 65534
)

// RunChild is the child: it reads a question and writes the answer. It returns the exit
// status.
func RunChild(in io.Reader, out io.Writer) int {
	debug.SetMemoryLimit(childMemory)
	if giveUpRights() != nil {
		return 1
	}
	var q proof.Question
	if json.NewDecoder(io.LimitReader(in, maxQuestion)).Decode(&q) != nil {
		return 1
	}
	if json.NewEncoder(out).Encode(AnswerQuestion(context.Background(), &q)) != nil {
		return 1
	}
	return 0
}

// giveUpRights takes from the process what it does not need: root, new rights, and files
// that it could write. Others cannot look into it, because it has the client's secret.
func giveUpRights() error {
	for resource, limit := range map[int]uint64{unix.RLIMIT_CPU: childCPU, unix.RLIMIT_DATA: childData,
		unix.RLIMIT_CORE: 0, unix.RLIMIT_FSIZE: 0} {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		for _, drop := range []func() error{
			func() error { return syscall.Setgroups(nil) },
			func() error { return syscall.Setresgid(nobody, nobody, nobody) },
			func() error { return syscall.Setresuid(nobody, nobody, nobody) },
		} {
			if err := drop(); err != nil {
				return err
			}
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
