package frame

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// SubmitOptions is who submits, from which directory, and in which environment.
func (c *Invocation) SubmitOptions() (jobspec.ParseOptions, error) {
	dir, err := c.workdir()
	if err != nil {
		return jobspec.ParseOptions{}, err
	}
	return jobspec.ParseOptions{Dir: dir, Home: c.homeDirectory(), User: LoginName(), Environ: c.Env,
		Files: UserFiles{},
		Now:   c.Now()}, nil
}

func (c *Invocation) homeDirectory() string {
	if h := c.Getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	if u, err := account.CurrentUser(); err == nil {
		return u.HomeDir
	}
	return "/"
}

// LoginName is the name of the user; the number where the system knows none.
func LoginName() string {
	if u, err := account.CurrentUser(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}
