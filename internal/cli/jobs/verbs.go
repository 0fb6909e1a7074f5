package jobs

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// confirmTasks is from how many tasks on a change asks whether it is meant.
const confirmTasks = 100

func yesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask, however many tasks it is"}
}

// RemoveCommand returns roost rm: remove jobs from the queue.
func RemoveCommand() *frame.Command {
	return &frame.Command{
		Name: "rm", Aliases: []string{"remove", "cancel"}, Group: frame.GroupChange,
		Summary:  "remove jobs from the queue",
		Synopsis: "JOB…", MinOperands: 1, MaxOperands: -1, OperandName: "a job",
		Run: verbAction(scheddapi.ActRequest_REMOVE, "removed"),
		Description: "Removes jobs or single tasks. What runs gets SIGTERM, the job's own notice period, and then " +
			"SIGKILL. Nothing of them starts any more once this command has ended. " + selectors,
		Examples: []frame.Example{
			{Line: "roost rm 123", Description: "remove a job"},
			{Line: "roost rm --state idle last", Description: "remove the tasks of your newest job that still wait"},
		},
		Flags: append(selectionFlags(), yesFlag(),
			&ucli.BoolFlag{Name: "force", Aliases: []string{"f"}, Usage: "kill what runs at once, without notice"},
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, frame.JSONFlag()),
	}
}

// HoldCommand returns roost hold: keep jobs from starting.
func HoldCommand() *frame.Command {
	return &frame.Command{
		Name: "hold", Group: frame.GroupChange, Summary: "keep jobs from starting", Synopsis: "JOB…", MinOperands: 1,
		MaxOperands: -1, OperandName: "a job", Run: holdJobs,
		Description: "Holds jobs or single tasks: they stay in the queue and do not start until they are released. " +
			"What runs is stopped and waits to run again. With --checks the tasks run on, and only the health " +
			"checks of a service are held, for a time. " + selectors,
		Examples: []frame.Example{
			{Line: "roost hold 123", Description: "hold a job"},
			{Line: "roost hold --checks 1h 123", Description: "look into a service without it being started again"},
			{Line: "roost hold --reason 'wrong input' @sweep",
				Description: "hold all your jobs of that name, and say why"},
		},
		Flags: append(selectionFlags(), yesFlag(),
			&ucli.StringFlag{Name: "checks", Usage: "hold only the health checks, for that `DURATION`; 0s ends it"},
			&ucli.StringFlag{Name: "reason", Usage: "a `TEXT` that is kept with the job"}, frame.JSONFlag()),
	}
}

// holdJobs holds jobs, or with --checks only the health checks of their tasks.
func holdJobs(c *frame.Invocation) error {
	text := c.StringFlag("checks")
	if text == "" {
		return verbAction(scheddapi.ActRequest_HOLD, "held")(c)
	}
	period, err := roost.ParseDuration(text)
	if err != nil || period < 0 || period > roost.MaxChecksHold {
		return fmt.Errorf("--checks %s: %w: health checks are held for a time of at most %v, as in --checks 1h; "+
			"--checks 0s has them run again", text, roost.Invalid, roost.MaxChecksHold)
	}
	sel, err := selection(c)
	if err != nil {
		return err
	}
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_HOLD_CHECKS, Selection: sel,
		HoldChecksNs: int64(period)})
	if err != nil {
		return err
	}
	done := "without health checks for " + text
	if period == 0 {
		done = "checked again"
	}
	return reportChanges(c, results, done)
}

// ReleaseCommand returns roost release: let held jobs go on.
func ReleaseCommand() *frame.Command {
	return &frame.Command{
		Name: "release", Group: frame.GroupChange, Summary: "let held jobs go on", Synopsis: "JOB…", MinOperands: 1,
		MaxOperands: -1, OperandName: "a job", Run: verbAction(scheddapi.ActRequest_RELEASE, "released"),
		Description: "Releases jobs or single tasks that were held. What an administrator holds of yours, only " +
			"an administrator releases. " + selectors,
		Examples: []frame.Example{
			{Line: "roost release 123", Description: "release a job"},
			{Line: "roost release all", Description: "release everything of yours"},
		},
		Flags: append(selectionFlags(), yesFlag(), frame.JSONFlag()),
	}
}

// RetryCommand returns roost retry: run failed or removed tasks again.
func RetryCommand() *frame.Command {
	return &frame.Command{
		Name: "retry", Group: frame.GroupChange, Summary: "run failed or removed tasks again", Synopsis: "JOB…",
		MinOperands: 1, MaxOperands: -1, OperandName: "a job", Run: verbAction(scheddapi.ActRequest_RETRY,
			"to run again"),
		Description: "Runs tasks that failed or were removed once more, as new attempts of the same tasks. Tasks " +
			"that succeeded are left alone. " + selectors,
		Examples: []frame.Example{
			{Line: "roost retry last", Description: "run what failed or was removed of your newest job"},
			{Line: "roost retry --failed 123", Description: "only what failed of it"},
		},
		Flags: append(selectionFlags(), yesFlag(),
			&ucli.BoolFlag{Name: "failed", Usage: "only tasks that failed, not those that were removed"},
			frame.JSONFlag()),
	}
}

// verbAction returns what a command does that changes jobs.
func verbAction(v scheddapi.ActRequest_Verb, done string) func(*frame.Invocation) error {
	return func(c *frame.Invocation) error {
		sel, err := selection(c)
		if err != nil {
			return err
		}
		if c.Flag("failed") {
			sel.States = append(sel.States, "failed")
		}
		if err := confirmChange(c, sel); err != nil {
			return err
		}
		results, err := changeJobs(c, &scheddapi.ActRequest{Verb: v, Selection: sel, Reason: c.StringFlag("reason"),
			Force: c.Flag("force")})
		if err != nil {
			return err
		}
		return reportChanges(c, results, done)
	}
}

// changeJobs asks the schedds whose they are to change jobs.
func changeJobs(c *frame.Invocation, req *scheddapi.ActRequest) (results []*scheddapi.ActReply_Result, err error) {
	hosts, of := selectorsByHost(req.GetSelection().GetSelectors())
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	for _, host := range hosts {
		s, err := c.JobSchedd(host)
		if err != nil {
			return results, err
		}
		one := proto.CloneOf(req)
		one.Selection.Selectors = of[host]
		var reply *scheddapi.ActReply
		if err := c.Retry(frame.SubmitTimeout, func(ctx context.Context, _ func()) (err error) {
			ctx, cancel := context.WithTimeout(ctx, frame.SubmitTimeout+30*time.Second)
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
func confirmChange(c *frame.Invocation, sel *scheddapi.Selection) error {
	if c.Flag("yes") || !c.ErrScreen.Terminal {
		return nil
	}
	whole := &scheddapi.Selection{Selectors: sel.Selectors, Constraint: sel.Constraint, States: sel.States, Mine: true}
	found, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: whole})
	if err != nil {
		return nil // the change itself will say what is wrong
	}
	jobs, tasks, all := len(found), 0, false
	for _, s := range found {
		tasks += int(s.GetTasks()) - document.FinishedCount(s)
	}
	for _, s := range sel.Selectors {
		all = all || s == "all"
	}
	if (!all || jobs == 0) && tasks <= confirmTasks {
		return nil
	}
	fmt.Fprintf(c.Stderr, "%s %s with %s: are you sure? [y/N] ", c.Command.Name, document.Plural(jobs, "job"),
		document.Plural(tasks, "task"))
	answer, _ := bufio.NewReader(c.Stdin).ReadString('\n')
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		fmt.Fprintln(c.Stderr, "nothing was changed")
		return frame.ExitError(1)
	}
	return nil
}

// reportChanges prints what became of each job.
func reportChanges(c *frame.Invocation, results []*scheddapi.ActReply_Result, done string) error {
	return reportResults(c, results, func(r *scheddapi.ActReply_Result) []string {
		return []string{document.Plural(int(r.GetTasks()), "task") + " " + done}
	})
}

// reportResults prints the lines or the error of each result. The exit status is that of
// the last error.
func reportResults(c *frame.Invocation, results []*scheddapi.ActReply_Result,
	lines func(*scheddapi.ActReply_Result) []string) error {
	if c.WantsJSON() {
		return reportChangesJSON(c, results)
	}
	code := 0
	for _, r := range results {
		if r.GetError() != "" {
			fmt.Fprintf(c.Stderr, "%s %s\n", c.ErrScreen.ColourText(frame.Red, "roost:"),
				WithSubject(r.GetId(), r.GetError()))
			code = roost.ErrorKind(r.GetKind()).ExitCode()
			continue
		}
		for _, line := range lines(r) {
			fmt.Fprintf(c.Stdout, "%s: %s\n", r.GetId(), line)
		}
	}
	if len(results) == 0 {
		fmt.Fprintln(c.Stderr, "no jobs match")
		code = roost.NotFound.ExitCode()
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// WithSubject puts the id before an error that does not begin with it.
func WithSubject(id, text string) string {
	if strings.Contains(text, id) {
		return text
	}
	return id + ": " + text
}

func reportChangesJSON(c *frame.Invocation, results []*scheddapi.ActReply_Result) error {
	type result struct {
		ID    string   `json:"id"`
		Tasks uint32   `json:"tasks"`
		Error string   `json:"error,omitempty"`
		Code  int      `json:"code,omitempty"`
		Notes []string `json:"notes,omitempty"`
	}
	list, code := make([]result, len(results)), 0
	for i, r := range results {
		list[i] = result{ID: r.GetId(), Tasks: r.GetTasks(), Error: r.GetError(), Notes: r.GetNotes()}
		if r.GetError() != "" {
			code = roost.ErrorKind(r.GetKind()).ExitCode()
			list[i].Code = code
		}
	}
	if err := frame.PrintJSON(c.Stdout, frame.JSONDocument{"results": list}); err != nil || code == 0 {
		return err
	}
	return frame.ExitError(code)
}

// selectorsByHost gives each selector to the node that it names, in the order in which
// these come.
func selectorsByHost(selectors []string) (hosts []string, of map[string][]string) {
	of = map[string][]string{}
	for _, text := range selectors {
		host := frame.IDHost(text)
		if of[host] == nil {
			hosts = append(hosts, host)
		}
		of[host] = append(of[host], text)
	}
	return hosts, of
}
