package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"syscall"

	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/sitescript"
)

// siteScript is a program of the site that a node file names.
type siteScript struct {
	setting string // that names it, with the daemon's name where a node has several
	path    string
	user    string // whose rights it has if the daemon is root's; empty: those of the daemon
}

// siteScripts lists the programs of the site that a node file names.
func siteScripts(n *config.Node) (all []siteScript) {
	if s := n.Schedd; s != nil {
		all = append(all, siteScript{"submit_filter", s.Filter.Program, s.Filter.User},
			siteScript{"job_hooks start", s.Hooks.Start, s.Hooks.User},
			siteScript{"job_hooks end", s.Hooks.End, s.Hooks.User})
	}
	for i := range n.Startds {
		d := &n.Startds[i]
		all = append(all, siteScript{"prologue of " + d.Name, d.Scripts.Prologue, d.Scripts.User},
			siteScript{"epilogue of " + d.Name, d.Scripts.Epilogue, d.Scripts.User})
	}
	return all
}

// examineSiteScripts says whether the programs of the site would be run. They must be
// there, have been written by nobody else, and be executable.
func examineSiteScripts(n *config.Node) (findings []checkResult) {
	if n == nil {
		return nil
	}
	daemon := os.Geteuid()
	if info, err := os.Stat(n.Dir); err == nil {
		daemon = int(info.Sys().(*syscall.Stat_t).Uid)
	}
	for _, s := range siteScripts(n) {
		if s.path != "" {
			findings = append(findings, s.examine(daemon))
		}
	}
	return findings
}

// examine looks at one program, for a daemon of a user.
func (s siteScript) examine(daemon int) checkResult {
	const check = "site scripts"
	if err := sitescript.UntrustedReasonFor(s.path, daemon); err != nil {
		cure := "chown it, and chmod 755: a program that others could have written is not run; see roost-node(5)"
		if errors.Is(err, os.ErrNotExist) {
			cure = "put the program there, or take the setting out of the node file: until then it fails what it is for"
		}
		return checkResult{check, levelError, fmt.Sprintf("%s: %v", s.setting, err), cure}
	}
	if daemon != 0 || s.user == "" || s.user == config.ScriptUserJob {
		return checkResult{check, levelOK, fmt.Sprintf("%s: %s", s.setting, s.path), ""}
	}
	if _, err := user.Lookup(s.user); err != nil {
		return checkResult{check, levelError, fmt.Sprintf("%s: %s runs as %s: %v", s.setting, s.path, s.user, err),
			"name an account of this machine in user"}
	}
	if info, err := os.Stat(s.path); err == nil && s.user != "root" && info.Mode().Perm()&0o055 != 0o055 {
		return checkResult{check, levelWarning,
			fmt.Sprintf("%s: %s has mode %v, and runs as %s", s.setting, s.path, info.Mode().Perm(), s.user),
			"chmod 755, unless its group has this user"}
	}
	return checkResult{check, levelOK, fmt.Sprintf("%s: %s, as %s", s.setting, s.path, s.user), ""}
}
