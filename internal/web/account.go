package web

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/confine"
)

// dropRoot takes on the account of the node file, if root has started the daemon. The
// addresses and the keys of TLS are open by then.
func dropRoot(n *config.Node) error {
	if n.Web.User == "" || os.Geteuid() != 0 {
		return nil
	}
	who, err := user.Lookup(n.Web.User)
	if err != nil {
		return fmt.Errorf("web: %w: user %q: %w", roost.BadConfig, n.Web.User, err)
	}
	uid, uerr := strconv.Atoi(who.Uid)
	gid, gerr := strconv.Atoi(who.Gid)
	if uerr != nil || gerr != nil {
		return fmt.Errorf("web: %w: user %q has uid %q and gid %q", roost.BadConfig, n.Web.User, who.Uid, who.Gid)
	}
	own := []string{n.WebDir()}
	for _, addr := range n.Web.Listen {
		if path, ok := strings.CutPrefix(addr, "unix:"); ok { // a reverse proxy is in the account's group
			own = append(own, path)
		}
	}
	for _, path := range own {
		if err := os.Chown(path, uid, gid); err != nil {
			return fmt.Errorf("web: %w: %w", roost.NoOutput, err)
		}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"groups", func() error { return syscall.Setgroups(nil) }},
		{"gid", func() error { return syscall.Setresgid(gid, gid, gid) }},
		{"uid", func() error { return syscall.Setresuid(uid, uid, uid) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("web: %s of user %s: %w: %w", step.what, n.Web.User, roost.PermissionDenied, err)
		}
	}
	return nil
}

// confine gives up what the daemon does not need, before it serves anybody. It keeps
// sessions of users, so whoever takes it over gets no more than those.
func (d *server) confine() error {
	missing, err := confine.Apply(fileRights(d.node, d.simulator.Program))
	for _, what := range missing {
		d.log.Warn("the kernel lacks " + what)
	}
	return err
}

// fileRights returns the files of the daemon. They are its own directory, the tokens of
// readers of metrics, and the programs beside its own.
func fileRights(n *config.Node, program string) confine.Rights {
	r := confine.Rights{Write: []string{n.WebDir()}, Execute: []string{filepath.Dir(program)}}
	if n.Metrics != nil && n.Metrics.TokenFile != "" {
		r.Read = append(r.Read, n.Metrics.TokenFile)
	}
	return r
}
