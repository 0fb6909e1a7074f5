package condor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// machineStates are the states of machines in the order of the sums.
var machineStates = [...]string{"Owner", "Claimed", "Unclaimed", "Matched", "Preempting", "Drained"}

// MachineTable returns a line for each machine, and the machines by state.
func MachineTable(ads []*classad.Ad, now time.Time, lines bool) string {
	width := len("Name")
	for _, ad := range ads {
		width = max(width, len(oneWord(ad, roost.AttrName)))
	}
	var b strings.Builder
	if lines && len(ads) > 0 {
		fmt.Fprintf(&b, "%-*s %-10s %-6s %-9s %-8s %6s %6s   %s\n\n", width, "Name", "OpSys", "Arch", "State",
			"Activity", "LoadAv", "Mem", "ActvtyTime")
	}
	var counts [len(machineStates)]int
	for _, ad := range ads {
		state, _ := ad.Str(roost.AttrState)
		if i := slices.Index(machineStates[:], state); i >= 0 {
			counts[i]++
		}
		if !lines {
			continue
		}
		load, _ := ad.Real(roost.AttrLoadAvg)
		memory, _ := ad.Int(roost.AttrMemory)
		fmt.Fprintf(&b, "%-*s %-10s %-6s %-9s %-8s %6.3f %6d   %s\n", width, oneWord(ad, roost.AttrName),
			oneWord(ad, roost.AttrOpSys), oneWord(ad, roost.AttrArch), oneWord(ad, roost.AttrState),
			activityOf(ad), load, memory, activityTime(ad, now))
	}
	if lines && len(ads) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("               Total Owner Claimed Unclaimed Matched Preempting  Drain\n\n")
	fmt.Fprintf(&b, "         Total %5d %5d %7d %9d %7d %10d %6d\n", len(ads), counts[0], counts[1], counts[2],
		counts[3], counts[4], counts[5])
	return b.String()
}

// activityOf returns what a machine does; one that does not say is busy if it is claimed.
func activityOf(ad *classad.Ad) string {
	if text, ok := ad.Str(roost.AttrActivity); ok {
		return strings.ReplaceAll(text, " ", "_")
	}
	if state, _ := ad.Str(roost.AttrState); state == "Claimed" {
		return "Busy"
	}
	return "Idle"
}

// activityTime returns for how long it does that.
func activityTime(ad *classad.Ad, now time.Time) string {
	since, ok := ad.Int(roost.AttrEnteredActivity)
	if !ok {
		return "[Unknown]"
	}
	return runTime(now.Unix() - since)
}
