package guard

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/config"
)

// ownerRuleFile identifies the version of the owner's file that was read.
type ownerRuleFile struct {
	read bool
	size int64 // -1: the file did not exist
	at   time.Time
}

// readRules reads the owner's file if it has changed. An error in it makes the machine
// unavailable, as the owner's intention is unknown.
func (g *daemonContext) readRules() {
	now := ownerRuleFile{read: true, size: -1}
	if st, err := os.Stat(g.node.Owner.File); err == nil {
		now.size, now.at = st.Size(), st.ModTime()
	}
	if now == g.rulesRead {
		return
	}
	g.rulesRead = now
	r, err := config.LoadOwner(g.node.Owner.File)
	next := ownerRules{version: g.state.rules.version + 1, pausedByFile: r.Paused, pauseUsers: r.Owners,
		foreignCPU: r.ForeignCPU.Cores(), runsOnBattery: r.OnBattery, exclusive: r.Exclusive}
	if err != nil {
		// The users who may pause stay the same: the user who must fix the error needs
		// that right.
		next.pauseUsers, next.foreignCPU, next.exclusive = g.state.rules.pauseUsers, g.state.rules.foreignCPU,
			g.state.rules.exclusive
		next.fileError = firstLine(err.Error())
		g.log.Error("the owner's file has a mistake: the machine is not lent", "err", next.fileError)
	}
	g.state.rules = next
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// exclusivePrograms returns the programs for which the owner needs the whole machine.
func (g *daemonContext) exclusivePrograms() (names []string) {
	if g.call(context.Background(), func() { names = slices.Clone(g.state.rules.exclusive) }) != nil {
		return nil
	}
	return names
}

// policyNames returns the names of the machine's owner policies, for people.
func (g *daemonContext) policyNames() string {
	var all, each []string
	for i := range g.node.Startds {
		d := &g.node.Startds[i]
		name := d.Policy.Preset
		if name == "" {
			name = "always"
		}
		all, each = append(all, name), append(each, name+" ("+d.Name+")")
	}
	if all = slices.Compact(all); len(all) == 1 {
		return all[0]
	}
	return strings.Join(each, ", ")
}

// ignoresPresence reports whether a startd's policy ignores people, like that of a
// server. Then only a pause freezes its tasks.
func (g *daemonContext) ignoresPresence(name string) bool {
	d, ok := g.node.Startd(name)
	return ok && !d.NeedsGuard()
}
