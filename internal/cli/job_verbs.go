package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
) // confirmTasks is from how many tasks on a change asks whether it is meant.
const confirmTasks = 100

func yesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask, however many tasks it is"}
}

func rmCommand() *command {
	return &command{
		name: "rm", aliases: []string{"remove", "cancel"}, group: groupChange, summary: "remove jobs from the queue",
		synopsis: "JOB…", minOperands: 1, maxOperands: -1, operandName: "a job",
		run: verbAction(wire.ActRequest_REMOVE, "removed"),
		description: "Removes jobs or single tasks. What runs gets SIGTERM, the job's own notice period, and then " +
			"SIGKILL. Nothing of them starts any more once this command has ended. " + selectors,
		examples: []commandExample{
			{"roost rm 123", "remove a job"},
			{"roost rm --state idle last", "remove the tasks of your newest job that still wait"},
		},
		flags: append(selectionFlags(), yesFlag(),
			&ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "kill what runs at once, without notice"},
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, jsonFlag()),
	}
}

func holdCommand() *command {
	return &command{
		name: "hold", group: groupChange, summary: "keep jobs from starting", synopsis: "JOB…", minOperands: 1,
		maxOperands: -1, operandName: "a job", run: verbAction(wire.ActRequest_HOLD, "held"),
		description: "Holds jobs or single tasks: they stay in the queue and do not start until they are released. " +
			"What runs is stopped and waits to run again. " + selectors,
		examples: []commandExample{
			{"roost hold 123", "hold a job"},
			{"roost hold --reason 'wrong input' @sweep", "hold all your jobs of that name, and say why"},
		},
		flags: append(selectionFlags(), yesFlag(),
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, jsonFlag()),
	}
}

func releaseCommand() *command {
	return &command{
		name: "release", group: groupChange, summary: "let held jobs go on", synopsis: "JOB…", minOperands: 1,
		maxOperands: -1, operandName: "a job", run: verbAction(wire.ActRequest_RELEASE, "released"),
		description: "Releases jobs or single tasks that were held. What an administrator holds of yours, only " +
			"an administrator releases. " + selectors,
		examples: []commandExample{
			{"roost release 123", "release a job"},
			{"roost release all", "release everything of yours"},
		},
		flags: append(selectionFlags(), yesFlag(), jsonFlag()),
	}
}

func retryCommand() *command {
	return &command{
		name: "retry", group: groupChange, summary: "run failed or removed tasks again", synopsis: "JOB…",
		minOperands: 1, maxOperands: -1, operandName: "a job", run: verbAction(wire.ActRequest_RETRY, "to run again"),
		description: "Runs tasks that failed or were removed once more, as new attempts of the same tasks. Tasks " +
			"that succeeded are left alone. " + selectors,
		examples: []commandExample{
			{"roost retry last", "run what failed or was removed of your newest job"},
			{"roost retry --failed 123", "only what failed of it"},
		},
		flags: append(selectionFlags(), yesFlag(),
			&ucli.BoolFlag{Name: "failed", Usage: "only tasks that failed, not those that were removed"}, jsonFlag()),
	}
}

// verbAction returns what a command does that changes jobs.
func verbAction(v wire.ActRequest_Verb, done string) func(*invocation) error {
	return func(c *invocation) error {
		sel, err := c.selection()
		if err != nil {
			return err
		}
		if c.flag("failed") {
			sel.States = append(sel.States, "failed")
		}
		if err := c.confirmChange(sel); err != nil {
			return err
		}
		results, err := c.changeJobs(&wire.ActRequest{Verb: v, Selection: sel, Reason: c.stringFlag("reason"),
			Force: c.flag("force")})
		if err != nil {
			return err
		}
		return c.reportChanges(results, done)
	}
}

// changeJobs asks the schedds whose they are to change jobs.
func (c *invocation) changeJobs(req *wire.ActRequest) (results []*wire.ActReply_Result, err error) {
	hosts, of := selectorsByHost(req.GetSelection().GetSelectors())
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, host := range hosts {
		s, err := c.jobSchedd(host)
		if err != nil {
			return results, err
		}
		one := proto.CloneOf(req)
		one.Selection.Selectors = of[host]
		var reply *wire.ActReply
		if err := c.retry(submitTimeout, func(ctx context.Context, _ func()) (err error) {
			ctx, cancel := context.WithTimeout(ctx, submitTimeout+30*time.Second)
			defer cancel()
			reply, err = s.Act(ctx, one)
			return err
		}); err != nil {
			return results, err
		}
		results = append(results, reply.GetResults()...)
	}
	return results, nil
}

// confirmChange asks whether a change of very many tasks is meant, if there is somebody
// to ask.
func (c *invocation) confirmChange(sel *wire.Selection) error {
	if c.flag("yes") || !c.err.terminal {
		return nil
	}
	whole := &wire.Selection{Selectors: sel.Selectors, Constraint: sel.Constraint, States: sel.States, Mine: true}
	found, err := c.queryJobs(&wire.QueryRequest{Selection: whole})
	if err != nil {
		return nil // the change itself will say what is wrong
	}
	jobs, tasks, all := len(found), 0, false
	for _, s := range found {
		tasks += int(s.GetTasks()) - finishedCount(s)
	}
	for _, s := range sel.Selectors {
		all = all || s == "all"
	}
	if (!all || jobs == 0) && tasks <= confirmTasks {
		return nil
	}
	fmt.Fprintf(c.stderr, "%s %s with %s: are you sure? [y/N] ", c.cmd.name, plural(jobs, "job"), plural(tasks, "task"))
	answer, _ := bufio.NewReader(c.stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		fmt.Fprintln(c.stderr, "nothing was changed")
		return exitError(1)
	}
	return nil
}

// reportChanges prints what became of each job. The exit status is that of the last
// error.
func (c *invocation) reportChanges(results []*wire.ActReply_Result, done string) error {
	if c.wantsJSON() {
		return c.reportChangesJSON(results)
	}
	code := 0
	for _, r := range results {
		if r.GetError() != "" {
			fmt.Fprintf(c.stderr, "%s %s\n", c.err.colourText(red, "roost:"), withSubject(r.GetId(), r.GetError()))
			code = roost.ErrorKind(r.GetKind()).ExitCode()
			continue
		}
		fmt.Fprintf(c.stdout, "%s: %s %s\n", r.GetId(), plural(int(r.GetTasks()), "task"), done)
	}
	if len(results) == 0 {
		fmt.Fprintln(c.stderr, "no jobs match")
		code = roost.NotFound.ExitCode()
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// withSubject puts the id before an error that does not begin with it.
func withSubject(id, text string) string {
	if strings.Contains(text, id) {
		return text
	}
	return id + ": " + text
}

func (c *invocation) reportChangesJSON(results []*wire.ActReply_Result) error {
	type result struct {
		ID    string `json:"id"`
		Tasks uint32 `json:"tasks"`
		Error string `json:"error,omitempty"`
	}
	list, code := make([]result, len(results)), 0
	for i, r := range results {
		list[i] = result{r.GetId(), r.GetTasks(), r.GetError()}
		if r.GetError() != "" {
			code = roost.ErrorKind(r.GetKind()).ExitCode()
		}
	}
	if err := printJSON(c.stdout, jsonDocument{"results": list}); err != nil || code == 0 {
		return err
	}
	return exitError(code)
}

// selectorsByHost gives each selector to the node that it names, in the order in which
// these come.
func selectorsByHost(selectors []string) (hosts []string, of map[string][]string) {
	of = map[string][]string{}
	for _, text := range selectors {
		host := idHost(text)
		if of[host] == nil {
			hosts = append(hosts, host)
		}
		of[host] = append(of[host], text)
	}
	return hosts, of
}
