package names

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxPatience is how long a watch waits for a schedd that does not answer: for ever.
const maxPatience = time.Duration(1<<63 - 1)

// NamesCommand returns roost names: list and watch where services are reached.
func NamesCommand() *frame.Command {
	return &frame.Command{
		Name: "names", Group: frame.GroupSee, Summary: "list and watch where services are reached", Synopsis: "[JOB]",
		MaxOperands: 1, OperandName: "a service", Run: runNames,
		Description: "Lists the tasks of services with their states, addresses and ports. JOB is the name of one of " +
			"your services, hub.ann for that of another user, or an id as 123.POOL.",
		Examples: []frame.Example{
			{Line: "roost names hub", Description: "where the tasks of your service hub are reached"},
			{Line: "roost names hub --watch", Description: "and each change of it, until Ctrl-C"},
			{Line: "roost names hub --targets http --watch --out /etc/prometheus/hub.json",
				Description: "a file of targets for Prometheus that is always up to date"},
			{Line: "roost names hub --watch --template hub.tmpl --out hub.conf --run 'systemctl reload nginx'",
				Description: "the configuration of a load balancer"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "watch", Usage: "go on and print each change"},
			&ucli.StringFlag{Name: "template", Usage: "write the Go template `FILE`, filled in, instead of a list"},
			&ucli.StringFlag{Name: "targets", Usage: "write the addresses of port `NAME` as Prometheus reads them"},
			&ucli.StringFlag{Name: "out", Usage: "write to `FILE`, which is replaced at once"},
			&ucli.StringFlag{Name: "run", Usage: "run the shell `COMMAND` after each change of the file"},
			frame.JSONFlag(),
		},
	}
}

func runNames(c *frame.Invocation) error {
	q := &scheddapi.NamesQuery{}
	if len(c.Args) > 0 {
		var err error
		if q, err = parseJob(c.Args[0]); err != nil {
			return err
		}
	}
	q.Watch = c.Flag("watch")
	w, err := newOutputWriter(c)
	if err != nil {
		return err
	}
	if w != nil {
		return w.follow(c, q)
	}
	first := true
	return followNames(c, q, func(t endpointTable, u *scheddapi.NamesUpdate) error {
		defer func() { first = false }()
		switch {
		case c.WantsJSON():
			return printDocument(c, q, t)
		case first:
			return printTable(c, t)
		}
		return printChanges(c, u)
	})
}

// printDocument prints the endpoints as JSON: in a watch one document in a line.
func printDocument(c *frame.Invocation, q *scheddapi.NamesQuery, t endpointTable) error {
	doc := frame.JSONDocument{"endpoints": documentsOf(t)}
	if !q.GetWatch() {
		return frame.PrintJSON(c.Stdout, doc)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "%s\n", text)
	return err
}

func documentsOf(t endpointTable) []document.Endpoint {
	all := []document.Endpoint{}
	for _, e := range t.list() {
		all = append(all, document.EndpointOf(e))
	}
	return all
}

func printTable(c *frame.Invocation, endpoints endpointTable) error {
	if len(endpoints) == 0 {
		fmt.Fprintln(c.Stderr, "no task of such a service is reached now; roost why JOB says why a task waits")
		return nil
	}
	t := frame.TextTable{Columns: []frame.TableColumn{{Head: "NAME"}, {Head: "JOB", DropPriority: 2}, {Head: "STATE"},
		{Head: "ADDRESS"}, {Head: "PORTS"}, {Head: "MACHINE", DropPriority: 1}}}
	for _, e := range endpoints.list() {
		t.AddRow(frame.TableCell{Text: shortName(e.GetKey())}, frame.TableCell{Text: e.GetKey().GetJob()},
			frame.TableCell{Text: e.GetState()}, frame.TableCell{Text: e.GetAddress()},
			frame.TableCell{Text: portsText(e)}, frame.TableCell{Text: e.GetMachine()})
	}
	t.Print(c.Stdout, c.OutScreen)
	return nil
}

// shortName is the name of a task without the domain of the pool.
func shortName(k *scheddapi.EndpointKey) string {
	return fmt.Sprintf("%d.%s.%s", k.GetIndex(), k.GetName(), k.GetOwner())
}

func portsText(e *scheddapi.ServiceEndpoint) string {
	var parts []string
	for _, p := range e.GetPorts() {
		parts = append(parts, fmt.Sprintf("%s=%d", p.GetName(), p.GetNumber()))
	}
	return strings.Join(parts, " ")
}

// printChanges prints a line for each change.
func printChanges(c *frame.Invocation, u *scheddapi.NamesUpdate) error {
	for _, e := range u.GetEndpoints() {
		fmt.Fprintln(c.Stdout, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", shortName(e.GetKey()), e.GetState(),
			e.GetAddress(), portsText(e))))
	}
	for _, k := range u.GetRemoved() {
		fmt.Fprintln(c.Stdout, shortName(k), "gone")
	}
	return nil
}

// targetsText returns the ready tasks as Prometheus reads targets from files and over
// HTTP.
func targetsText(t endpointTable, port string) ([]byte, error) {
	groups := []document.ScrapeTarget{}
	for _, e := range documentsOf(t) {
		if target, ok := document.TargetOf(e, port); ok && e.State == "ready" {
			groups = append(groups, target)
		}
	}
	text, err := json.MarshalIndent(groups, "", "  ")
	if err != nil {
		return nil, frame.KindErrorf(roost.Internal, "targets: %v", err)
	}
	return append(text, '\n'), nil
}
