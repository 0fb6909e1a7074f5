package pbsframe

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/pbs/qsub"
)

// NewCaller is who runs a command of PBS, and how it reaches the outside world.
func NewCaller(c *frame.Invocation) (qsub.QsubCaller, error) {
	opts, err := c.SubmitOptions()
	if err != nil {
		return qsub.QsubCaller{}, err
	}
	return qsub.QsubCaller{
		Dir: opts.Dir, Home: opts.Home, User: opts.User, Group: primaryGroup(), Host: pooldir.HostName(),
		Server: c.DefaultServer(), Environ: c.Env, Now: opts.Now, LookPath: exec.LookPath,
		Inventory: newPoolInventory(c),
		Dialect:   func() roost.PBSDialect { d, _ := Dialect(c); return d },
		Read:      func(path string) ([]byte, error) { return frame.UserFiles{}.Read(path, qsub.MaxScript) },
		Stdin: func() ([]byte, error) {
			if f, ok := c.Stdin.(*os.File); ok && frame.ScreenOf(f).Terminal {
				if c.FallbackProgram != "" { // the script may ask for a terminal
					return nil, c.ExecSibling(c.FallbackProgram)
				}
				fmt.Fprintln(c.Stderr, "Job script will be read from standard input. Submit with CTRL+D.")
			}
			return frame.ReadLimited(c.Stdin, "standard input", qsub.MaxScript)
		},
		IsDir: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		},
	}, nil
}

// primaryGroup is the name of the user's own group.
func primaryGroup() string {
	if name, err := account.GroupName(os.Getgid()); err == nil {
		return name
	}
	return strconv.Itoa(os.Getgid())
}
