package match

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/script"
)

// applyLaterCommand runs the script commands that are about the future.
func (c *scriptCell) applyLaterCommand(s script.ScriptCommand) string {
	switch s.Command {
	case "now":
		c.snapshot.Now = time.Unix(int64(c.number(s.Args[0])), 0).UTC()
	case "backfill":
		_, pairs, _ := words("x " + strings.Join(s.Args[1:], " "))
		c.snapshot.Backfill = BackfillSettings{Mode: map[string]BackfillMode{"off": BackfillOff, "easy": EASYBackfill,
			"conservative": ConservativeBackfill}[s.Args[0]], Depth: c.number(pairs["depth"])}
		if pairs["patience"] != "" {
			var err error
			c.snapshot.Backfill.MaxWait, err = time.ParseDuration(pairs["patience"])
			c.checkNoError(err)
		}
	case "score":
		score, err := ParseScore(s.Args[0])
		c.checkNoError(err)
		c.snapshot.Score = score
	case "mix":
		c.snapshot.MixBands = s.Args[0] == "on"
	case "domains":
		c.snapshot.FailureDomains = s.Args
	case "reserve":
		c.snapshot.Reservations = nil
		for _, line := range s.Input {
			name, pairs, _ := words(line)
			c.snapshot.Reservations = append(c.snapshot.Reservations, AdvanceReservation{
				Name: name, Users: machineNames(pairs["users"]), Groups: machineNames(pairs["groups"]),
				Nodes:  machineNames(pairs["nodes"]),
				Amount: c.resources(pairs, "", roost.Resources{}), From: c.relativeSecond(pairs["from"]),
				Until: c.relativeSecond(pairs["until"]),
			})
		}
	case "drain":
		c.snapshot.Drains = nil
		for _, line := range s.Input {
			name, pairs, _ := words(line)
			c.snapshot.Drains = append(c.snapshot.Drains, MachineDrain{Node: name, Reason: pairs["reason"],
				From: c.relativeSecond(pairs["from"]), Until: c.relativeSecond(pairs["until"])})
		}
	default:
		return "unknown command"
	}
	return "ok"
}

func machineNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

func (c *scriptCell) relativeSecond(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	return time.Unix(int64(c.number(s)), 0)
}

// claims reads the claims of a machine without units, and subtracts what they hold from
// what is free.
func (c *scriptCell) claims(pairs map[string]string, free *roost.Resources) (list []classad.Value) {
	for _, one := range strings.FieldsFunc(pairs["claims"], func(r rune) bool { return r == ';' }) {
		parts := strings.Split(one, ":")
		list = append(list, c.claimOf(len(list)+1,
			map[string]string{"owner": parts[0], "cpus": parts[1], "ends": parts[2]}, gpu.Placement{}))
		free.CPU -= roost.MilliCPU(c.number(parts[1])) * 1000
	}
	return list
}

// claimOf returns a claim in the form of a machine's ad.
func (c *scriptCell) claimOf(id int, pairs map[string]string, p gpu.Placement) classad.Value {
	r := c.resources(pairs, "", roost.Resources{})
	ad, err := classad.Parse(fmt.Sprintf(`[Id = %d; Owner = "%s"; Band = "batch"; Cpus = %v; Memory = %d; Gpus = %d]`,
		id, pairs["owner"], r.CPU.Cores(), r.Memory/roost.MiB, r.GPUs))
	c.checkNoError(err)
	if pairs["owner"] == "" {
		ad.SetString(roost.AttrOwner, "zoe")
	}
	if ends := c.number(pairs["ends"]); ends > 0 {
		ad.SetInt(roost.AttrEnds, int64(ends))
	}
	p.Describe(ad)
	return classad.AdOf(ad)
}
