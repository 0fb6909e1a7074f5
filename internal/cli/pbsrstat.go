package cli

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func pbsRstatCommand() *command {
	return &command{
		name: "pbs_rstat", group: groupPBS, brief: "list reservations", args: "[-B | -S | -f | -F] [RESERVATION…]", raw: true, most: -1, do: pbsRstat,
		about: "Lists the reservations that are not over, whoever has made them and however, or those named: CO is one that is to come, RN one that holds now, FN one that is over.",
		examples: []example{
			{"pbs_rstat", "all that are to come, or hold now"},
			{"pbs_rstat -f R12", "everything about one"},
		},
		flags: []ucli.Flag{
			short("B", "", "only their names"), short("f", "", "everything about each, an attribute a line"), short("F", "", "the same"), short("S", "", "one a line, as without an option"),
		},
	}
}

func pbsRstat(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "BfFS")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	all, err := c.reservations()
	if err != nil {
		return c.pbsFail(err)
	}
	server, err := c.serverName()
	if err != nil {
		return c.pbsFail(err)
	}
	chosen, code := []entered[ledger.Reservation]{}, 0
	for _, text := range o.operands {
		if r, ok := c.reservation(text, all); ok {
			chosen = append(chosen, r)
		} else {
			code = pbsUnknownJob
		}
	}
	for _, r := range all {
		if len(o.operands) == 0 && r.Object.Until.After(c.now()) {
			chosen = append(chosen, r)
		}
	}
	for i := range chosen {
		r := &chosen[i]
		switch {
		case o.has('B'):
			fmt.Fprintf(c.stdout, "Resv ID: %s.%s\n", r.Name, server)
		case o.has('f') || o.has('F'):
			c.fullReservation(r, server)
		default:
			c.reservationLine(r, server, i == 0)
		}
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}

// reservationState is what PBS calls it, short and long.
func reservationState(r *ledger.Reservation, now time.Time) (letters, word string) {
	switch {
	case now.Before(r.From):
		return "CO", "RESV_CONFIRMED"
	case now.Before(r.Until):
		return "RN", "RESV_RUNNING"
	}
	return "FN", "RESV_FINISHED"
}

func (c *call) reservationLine(r *entered[ledger.Reservation], server string, first bool) {
	const form = "%-15s %-9s %-15s %-5s %s\n"
	if first {
		fmt.Fprintf(c.stdout, form, "Resv ID", "Queue", "User", "State", "Start / Duration / End")
		fmt.Fprintln(c.stdout, strings.Repeat("-", 85))
	}
	o := &r.Object
	state, _ := reservationState(o, c.now())
	fmt.Fprintf(c.stdout, form, r.Name+"."+server, r.Name, printable(cmp.Or(r.By, "-")), state,
		fmt.Sprintf("%s / %d / %s", c.dayTime(o.From), int64(o.Until.Sub(o.From)/time.Second), c.dayTime(o.Until)))
}

// dayTime is a time of today, or with its day.
func (c *call) dayTime(t time.Time) string {
	now := c.now()
	t = t.In(now.Location())
	switch {
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("Today 15:04")
	case t.Year() == now.Year():
		return t.Format("Mon Jan 02 15:04")
	}
	return t.Format("Mon Jan 02 2006 15:04")
}

func (c *call) fullReservation(r *entered[ledger.Reservation], server string) {
	o := &r.Object
	instant := func(t time.Time) string { return t.In(c.now().Location()).Format("Mon Jan _2 15:04:05 2006") }
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(c.stdout, "%s = %s\n", name, printable(value))
		}
	}
	fmt.Fprintf(c.stdout, "Resv ID: %s.%s\n", r.Name, server)
	_, state := reservationState(o, c.now())
	add("Reserve_Name", cmp.Or(o.Reason, "NULL"))
	add("Reserve_Owner", r.By)
	add("reserve_state", state)
	add("reserve_start", instant(o.From))
	add("reserve_end", instant(o.Until))
	add("reserve_duration", strconv.FormatInt(int64(o.Until.Sub(o.From)/time.Second), 10))
	add("queue", r.Name)
	if a := o.Amount; a != nil {
		if a.CPUs != nil {
			add("Resource_List.ncpus", roost.MilliCPU(*a.CPUs).String())
		}
		if a.Memory != nil {
			add("Resource_List.mem", strconv.FormatInt(int64(*a.Memory/roost.KiB), 10)+"kb")
		}
		if a.GPUs != nil {
			add("Resource_List.ngpus", strconv.FormatInt(*a.GPUs, 10))
		}
	}
	add("Resource_List.walltime", clock(o.Until.Sub(o.From)))
	if len(o.Nodes) > 0 {
		add("resv_nodes", "("+strings.Join(o.Nodes, ")+(")+")")
	}
	add("Authorized_Users", strings.Join(o.Users, ","))
	add("Authorized_Groups", strings.Join(o.Groups, ","))
	add("mtime", instant(r.At))
	add("server", server)
	fmt.Fprintln(c.stdout)
}
