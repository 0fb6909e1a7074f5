package cli

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/roost-batch/roost/internal/submit"
)

// submitOptions says who submits and from where.
func (c *invocation) submitOptions() (submit.ParseOptions, error) {
	dir, err := c.workdir()
	if err != nil {
		return submit.ParseOptions{}, err
	}
	return submit.ParseOptions{Dir: dir, Home: c.homeDirectory(), User: loginName(), Environ: c.env, Files: userFiles{},
		Now: c.now()}, nil
}

func (c *invocation) homeDirectory() string {
	if h := c.getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return "/"
}

// loginName is the name of the user; the number where the system knows none.
func loginName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}
