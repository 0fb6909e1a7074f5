package reservation

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// StatusCommand returns pbs_rstat: list reservations.
func StatusCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_rstat", Group: frame.GroupPBS, Summary: "list reservations",
		Synopsis: "[-B | -S | -f | -F] [RESERVATION…]", RawArgs: true, MaxOperands: -1, Run: pbsRstat,
		Description: "Lists the reservations that are not over, whoever has made them and however, or those named: " +
			"CO is one that is to come, RN one that holds now, DJ one whose jobs are being deleted, FN " +
			"one that is over.",
		Examples: []frame.Example{
			{Line: "pbs_rstat", Description: "all that are to come, or hold now"},
			{Line: "pbs_rstat -f R12", Description: "everything about one"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("B", "", "only their names"),
			pbsframe.ShortFlag("f", "", "everything about each, an attribute a line"),
			pbsframe.ShortFlag("F", "", "the same"), pbsframe.ShortFlag("S", "", "one a line, as without an option"),
		},
	}
}

func pbsRstat(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "BfFS")
	if err != nil {
		fmt.Fprintf(c.Stderr, "pbs_rstat: %v\nUsage:\n\tpbs_rstat [-fFBS] [reservation-id]\n\tpbs_rstat --version\n",
			err)
		return frame.ExitError(1)
	}
	all, _, err := admin.Reservations(c)
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	server, err := c.ServerName()
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	chosen, malformed := []admin.AttributedObject[ledger.AdvanceReservation]{}, false
	for _, text := range o.Operands {
		if strings.ContainsFunc(strings.TrimSpace(text), pbsframe.IsInvalidID) || strings.Trim(text, " .@") == "" {
			fmt.Fprintf(c.Stderr, "pbs_rstat: illegally formed reservation identifier: %s\n", qstat.VisibleText(text))
			malformed = true
		} else if r, ok := reservation(c, text, all); ok { // one that there is not is no failure (OpenPBS)
			chosen = append(chosen, r)
		}
	}
	for _, r := range all {
		if len(o.Operands) == 0 && r.Object.Until.After(c.Now()) {
			chosen = append(chosen, r)
		}
	}
	format := byte('S')
	for _, given := range o.Order {
		format = given.Letter // the last counts
	}
	for i := range chosen {
		r := &chosen[i]
		switch format {
		case 'B':
			fmt.Fprintf(c.Stdout, "Resv ID: %s.%s\n", r.Name, server)
		case 'f', 'F':
			fullReservation(c, r, server)
		default:
			reservationLine(c, r, server, i == 0)
		}
	}
	if malformed {
		return frame.ExitError(1)
	}
	return nil
}

// reservationState is what PBS calls it, short and long, and the number of its substate.
func reservationState(r *ledger.AdvanceReservation, now time.Time) (letters, word, substate string) {
	switch {
	case r.Deleting:
		return "DJ", "RESV_DELETING_JOBS", "9"
	case now.Before(r.From):
		return "CO", "RESV_CONFIRMED", "2"
	case now.Before(r.Until):
		return "RN", "RESV_RUNNING", "5"
	}
	return "FN", "RESV_FINISHED", "6"
}

// reservationLine prints one in the columns of OpenPBS, which are cut where they are
// full.
func reservationLine(c *frame.Invocation, r *admin.AttributedObject[ledger.AdvanceReservation], server string,
	first bool) {
	const form = "%-10.10s %-8.8s %-8.8s %-5.5s %17.17s / %s / %-17.17s\n"
	if first {
		fmt.Fprintf(c.Stdout, form, "Resv ID", "Queue", "User", "State", "Start", "Duration", "End")
		fmt.Fprintln(c.Stdout, strings.Repeat("-", 69))
	}
	o := &r.Object
	state, _, _ := reservationState(o, c.Now())
	fmt.Fprintf(c.Stdout, form, r.Name+"."+server, r.Name,
		document.PrintableText(cmp.Or(strings.Join(o.Users, ","), "-")), state,
		shortTime(c, o.From), strconv.FormatInt(int64(o.Until.Sub(o.From)/time.Second), 10), shortTime(c, o.Until))
}

// shortTime is a time as OpenPBS writes it: of today, of this week from Sunday on, or of
// a year.
func shortTime(c *frame.Invocation, t time.Time) string {
	now := c.Now()
	t = t.In(now.Location())
	sunday := now.YearDay() - int(now.Weekday())
	switch {
	case t.Year() != now.Year():
		return t.Format("Mon Jan 02 2006 15:04")
	case t.YearDay() == now.YearDay():
		return t.Format("Today 15:04")
	case t.YearDay() >= sunday && t.YearDay() < sunday+7:
		return t.Format("Mon 15:04")
	}
	return t.Format("Mon Jan 02 15:04")
}

func fullReservation(c *frame.Invocation, r *admin.AttributedObject[ledger.AdvanceReservation], server string) {
	o := &r.Object
	instant := func(t time.Time) string { return t.In(c.Now().Location()).Format("Mon Jan 02 15:04:05 2006") }
	add := func(name, value string) {
		if value != "" {
			fmt.Fprintf(c.Stdout, "%s = %s\n", name, document.PrintableText(value))
		}
	}
	fmt.Fprintf(c.Stdout, "Resv ID: %s.%s\n", r.Name, server)
	_, state, substate := reservationState(o, c.Now())
	add("Reserve_Name", cmp.Or(o.Reason, "NULL"))
	add("Reserve_Owner", r.By)
	add("reserve_state", state)
	add("reserve_substate", substate)
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
	add("Resource_List.select", reservedSelect(o))
	add("Resource_List.walltime", pbsframe.ClockText(o.Until.Sub(o.From)))
	if len(o.Nodes) > 0 {
		add("resv_nodes", "("+strings.Join(o.Nodes, ")+(")+")")
	}
	add("Authorized_Users", strings.Join(o.Users, ","))
	add("Authorized_Groups", strings.Join(o.Groups, ","))
	add("server", server)
	if !r.Made.IsZero() {
		add("ctime", instant(r.Made))
	}
	add("mtime", instant(r.At))
	fmt.Fprintln(c.Stdout)
}

// reservedSelect is a reservation as a select statement. It has a chunk for each whole
// machine, or one chunk of the whole amount, which is reserved wherever it is.
func reservedSelect(o *ledger.AdvanceReservation) string {
	if len(o.Nodes) > 0 {
		return "1:host=" + strings.Join(o.Nodes, "+1:host=")
	}
	if o.Amount == nil {
		return ""
	}
	chunk := "1"
	if n := o.Amount.CPUs; n != nil {
		chunk += ":ncpus=" + roost.MilliCPU(*n).String()
	}
	if n := o.Amount.Memory; n != nil {
		chunk += ":mem=" + strconv.FormatInt(int64(*n/roost.KiB), 10) + "kb"
	}
	if n := o.Amount.GPUs; n != nil {
		chunk += ":ngpus=" + strconv.FormatInt(*n, 10)
	}
	return chunk
}
