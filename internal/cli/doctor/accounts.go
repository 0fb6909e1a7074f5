package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"syscall"

	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
)

// examineAccounts tells which accounts run the tasks of others on this node, and what is
// wrong with their numbers. That is a question only where the startd runs as root, and
// where there are others.
func examineAccounts(c *frame.Invocation, n *config.Node) (findings []checkResult) {
	if n == nil || n.TLS == nil || !isRootOwned(n.Dir) {
		return nil
	}
	for i := range n.Startds {
		findings = append(findings, examineAccountsOf(&n.Startds[i], "/etc")...)
	}
	return findings
}

// isRootOwned reports whether a directory is root's, as that of a node whose daemons run
// as root.
func isRootOwned(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}

func examineAccountsOf(d *config.StartdSettings, etc string) (findings []checkResult) {
	const check = "accounts"
	a := d.Accounts
	text := d.Name + ": tasks that come from other nodes run as "
	switch a.Users {
	case config.SlotUser:
		text += fmt.Sprintf("slot users, %v", a.SlotUIDs)
	case config.DirectoryUser:
		text += "their users, if this machine's directory knows them"
	default:
		text += "their users"
	}
	cure := ""
	switch {
	case len(a.Trust) > 0:
		text += fmt.Sprintf("; whom %d trust blocks name run as themselves", len(a.Trust))
	case a.Users != config.SlotUser:
		text += ", whoever they are: the word of every submit node of the pool counts"
		cure = "a trust block in accounts says which submit nodes may name which users; see roost-node(5)"
	}
	findings = append(findings, checkResult{check, levelOK, text, cure})
	const another = "choose another range for slot_uids, in accounts of the node file"
	for _, h := range account.IDHolders(etc, a.SlotUIDs) {
		findings = append(findings, checkResult{check, levelError,
			fmt.Sprintf("%s: slot users %v: %s gives %v to %s, whose files and processes they could reach", d.Name,
				a.SlotUIDs, h.File, h.IDs, h.Name), another})
	}
	for _, file := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if r := a.SlotUIDs; r != (account.IDRange{}) &&
			!slices.ContainsFunc(account.MappedRanges(file), func(m account.IDRange) bool {
				return m.Contains(r.First) && m.Contains(r.Last)
			}) {
			findings = append(findings, checkResult{check, levelError,
				fmt.Sprintf("%s: slot users %v are none in this container (%s)", d.Name, r, file), another})
		}
	}
	for _, t := range a.Trust {
		for _, name := range t.Users {
			if _, err := account.ParseRange(name); err == nil || name == "*" {
				continue
			}
			if _, err := user.Lookup(name); errors.As(err, new(user.UnknownUserError)) {
				findings = append(findings, checkResult{check, levelWarning,
					fmt.Sprintf("%s: trust %q names %s, whom this machine's directory does not know", d.Name, t.Node,
						name), "nobody is trusted by that name until it does: is it misspelt?"})
			}
		}
	}
	return findings
}
