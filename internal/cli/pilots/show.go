package pilots

import (
	"fmt"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/provision"
)

// printJSON prints the document, or of its providers only one.
func printJSON(c *frame.Invocation, d provision.Document, name string) error {
	if name != "" {
		d = only(d, name)
	}
	return frame.PrintJSON(c.Stdout, frame.JSONDocument{"running": d.Running, "planned": d.Planned,
		"problem": d.Problem, "providers": d.Providers, "unmet": d.Unmet})
}

// only returns a document with one of its providers.
func only(d provision.Document, name string) provision.Document {
	providers, unmet := []provision.ProviderDocument{}, []provision.UnmetDocument{}
	for _, p := range d.Providers {
		if p.Name == name {
			providers = append(providers, p)
		}
	}
	for _, u := range d.Unmet {
		if u.Provider == name {
			unmet = append(unmet, u)
		}
	}
	d.Providers, d.Unmet = providers, unmet
	return d
}

// listProviders prints a line for each provider.
func listProviders(c *frame.Invocation, _ []string) error {
	d, err := ask(c, "list", "")
	if err != nil {
		return err
	}
	if c.WantsJSON() {
		return printJSON(c, d, "")
	}
	warn(c, d)
	t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "PROVIDER"}, {Head: "KIND"}, {Head: "STATE"},
		{Head: "QUEUED", RightAligned: true}, {Head: "RUNNING", RightAligned: true},
		{Head: "PILOTS", RightAligned: true}, {Head: "HOURS", RightAligned: true}, {Head: "REASON", MinWidth: 20}}}
	cell := func(text string) frame.TableCell { return frame.TableCell{Text: text} }
	for _, p := range d.Providers {
		t.AddRow(cell(p.Name), cell(p.Kind), cell(p.State), cell(fmt.Sprint(p.Queued)), cell(fmt.Sprint(p.Started)),
			cell(fmt.Sprintf("%d/%d", p.Pilots, p.MaxPilots)), cell(hoursText(p)),
			cell(document.PrintableText(p.Reason)))
	}
	if len(d.Providers) == 0 {
		fmt.Fprintln(c.Stderr, "there are no providers; to add one: roost pilots add NAME --kind KIND --walltime TIME")
		return nil
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

func hoursText(p provision.ProviderDocument) string {
	if p.MaxNodeHours > 0 {
		return fmt.Sprintf("%.1f/%g", p.NodeHours, p.MaxNodeHours)
	}
	return fmt.Sprintf("%.1f", p.NodeHours)
}

// warn says what keeps the provisioner from its work.
func warn(c *frame.Invocation, d provision.Document) {
	if !d.Running {
		fmt.Fprintln(c.Stderr, "no provisioner runs, so nothing is submitted; to start it: roost pilots run")
	}
	if d.Problem != "" {
		fmt.Fprintln(c.Stderr, document.PrintableText(d.Problem))
	}
}

// showProvider prints all about one provider, or about all.
func showProvider(c *frame.Invocation, args []string) error {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	d, err := ask(c, "list", name)
	if err != nil {
		return err
	}
	if name != "" {
		d = only(d, name)
	}
	if c.WantsJSON() {
		return printJSON(c, d, "")
	}
	warn(c, d)
	for i, p := range d.Providers {
		if i > 0 {
			fmt.Fprintln(c.Stdout)
		}
		printProvider(c, p)
		printUnmet(c, d.Unmet, p.Name)
	}
	return nil
}

func printProvider(c *frame.Invocation, p provision.ProviderDocument) {
	say := func(head, format string, args ...any) {
		fmt.Fprintf(c.Stdout, "%-12s %s\n", head, document.PrintableText(fmt.Sprintf(format, args...)))
	}
	say("Provider", "%s (%s), %s", p.Name, p.Kind, p.State)
	if p.Reason != "" {
		say("Now", "%s", p.Reason)
	}
	say("Pilots", "%d of %d at most; %d jobs queued, %d running", p.Pilots, p.MaxPilots, p.Queued, p.Started)
	say("Node-hours", "%s in the last 24 hours, with what running and queued jobs may take", hoursText(p))
	if p.LastError != "" {
		say("Last error", "%s", p.LastError)
	}
	if p.StatusError != "" {
		say("Status", "not known: %s", p.StatusError)
	}
	if len(p.Excluded) > 0 {
		say("Excluded", "%s: pilots failed there; for a day no more are started there", strings.Join(p.Excluded, ", "))
	}
	for _, a := range p.Allocations {
		say("Allocation", "%s", allocationText(c, a))
	}
}

// allocationText describes an allocation in a line.
func allocationText(c *frame.Invocation, a provision.AllocationDocument) string {
	id := a.ID
	if id == "" {
		id = "no id yet"
	}
	text := fmt.Sprintf("%s (%s): %s, %s", a.Key, id, document.Plural(a.Nodes, "node"), a.State)
	at := func(what string, seconds int64) {
		if seconds > 0 {
			text += fmt.Sprintf(", %s %s", what, c.AgoText(time.Unix(seconds, 0).UnixNano()))
		}
	}
	at("asked", a.Asked)
	at("started", a.Started)
	at("ended", a.Ended)
	if a.Outcome != "" {
		text += ", " + a.Outcome
	}
	switch {
	case a.Reason != "":
		text += ": " + a.Reason
	case a.For != "" && a.Ended == 0:
		text += ": " + a.For
	}
	if a.Output != "" {
		text += "; what it printed is in " + a.Output
	}
	return text
}

// maxShownUnmet bounds the jobs that are shown for a provider.
const maxShownUnmet = 20

func printUnmet(c *frame.Invocation, unmet []provision.UnmetDocument, name string) {
	shown := 0
	for _, u := range unmet {
		if u.Provider != name {
			continue
		}
		if shown++; shown > maxShownUnmet {
			fmt.Fprintln(c.Stdout, "             and more jobs; see --json")
			return
		}
		fmt.Fprintf(c.Stdout, "%-12s %s: %s: %s\n", "No pilot for", u.Job, document.Plural(u.Tasks, "task"),
			document.PrintableText(u.Reason))
	}
}
