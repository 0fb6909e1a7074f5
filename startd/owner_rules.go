package startd

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
	"github.com/roost-batch/roost/internal/config"
)

// ruleFile remembers how the owner's file was when it was read.
type ruleFile struct {
	version uint64 // as the guard counts
	read    bool
	size    int64 // -1: it was not there
	at      time.Time
}

// reloadRules reads the owner's own file if it has changed since. Where there is a guard,
// it says so itself, and sooner.
func (l *machineLoop) reloadRules() {
	now := ruleFile{version: l.ownerState.rules.version, read: true, size: -1}
	if st, err := os.Stat(l.host.node.Owner.File); err == nil {
		now.size, now.at = st.Size(), st.ModTime()
	}
	if now != l.ownerState.rules {
		l.ownerState.rules = now
		l.readRules(boottime.Now())
	}
}

// readRules reads the owner's own file. While there is a mistake in it nothing is lent,
// and how much that would be stays as it was.
func (l *machineLoop) readRules(now roost.BootTime) {
	if l.host.node.Owner.File == "" {
		return
	}
	rules, err := config.LoadOwner(l.host.node.Owner.File)
	l.ownerState.SetRules(now, rules.PolicyRules(), err)
	if err != nil {
		l.host.log.Error("the owner's file cannot be read: the machine is not lent", "err", err)
		return
	}
	l.table.SetOwnerLimits(now, rules.CPU, rules.Memory, l.host.ownerLimitsReason(rules.CPU, rules.Memory))
	l.host.groups.SetCPUMax(rules.CPU)
}

// ownerLimitsReason says to those who have to go what the owner lends.
func (m *startdHost) ownerLimitsReason(cpu roost.MilliCPU, memory roost.Bytes) string {
	var what []string
	if cpu > 0 {
		cpus := "cpus"
		if cpu == 1000 {
			cpus = "cpu"
		}
		what = append(what, fmt.Sprintf("%v %s", cpu, cpus))
	}
	if memory > 0 {
		what = append(what, memory.String())
	}
	return fmt.Sprintf("the owner of %s lends no more than %s of it", m.config.Name, strings.Join(what, " and "))
}
