package criu

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/userfiles"
)

// TestMain lets the test binary be the agent's program, the makers of a sandbox, and the
// programs to dump.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if serve, ok := testPrograms()[os.Args[1]]; ok {
			if err := serve(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // restored processes become children of this one
	os.Exit(m.Run())
}

func testPrograms() map[string]func(args []string) error {
	return map[string]func([]string) error{
		AgentName: func([]string) error { return ServeAgent(os.Stdin, os.Stdout, "/proc/self/exe") },
		userfiles.TreeCommand: func(args []string) error {
			return userfiles.ServeTree(args, os.Stdin, os.Stdout, os.NewFile(3, "report"))
		},
		"stage": prepareSandbox,
		"box":   enterSandbox,
		"count": countProgram,
		"hold":  holdMemory,
		"keep":  holdUnsavable,
	}
}
