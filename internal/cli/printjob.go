package cli

import (
	"fmt"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

func printjobCommand() *command {
	return &command{
		name: "printjob", group: groupPBS, summary: "print what is known of a job, or its script",
		synopsis: "[-a | -s] JOB…", rawArgs: true, maxOperands: -1, run: printjob,
		description: "Prints how jobs stand and their attributes, also of those that have ended. There are no files " +
			"of jobs to be read: an operand is the id of a job.",
		examples: []commandExample{
			{"printjob 123", "everything about a job"},
			{"printjob -s 123", "its script, which only its user and administrators see"},
		},
		flags: []ucli.Flag{shortFlag("a", "", "without the attributes"), shortFlag("s", "", "only the script")},
	}
}

func printjob(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "as")
	switch {
	case err != nil:
		return c.pbsUsage(err.Error())
	case len(o.operands) == 0 || o.isSet('a') && o.isSet('s'):
		return c.pbsUsage("")
	}
	code := 0
	for _, text := range o.operands {
		if failed := c.printJob(strings.TrimSpace(text), &o); failed != 0 {
			code = failed
		}
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

// printJob prints one job, and returns the exit status for it.
func (c *invocation) printJob(text string, o *pbsOptions) int {
	id, ok := parsePBSID(text)
	if !ok {
		fmt.Fprintf(c.stderr, "printjob: illegally formed job identifier: %s\n", qstat.VisibleText(text))
		return 1
	}
	s, err := c.findJob(id, &wire.QueryRequest{Ads: true})
	if err != nil {
		return c.printOperandError(text, err, false)
	}
	j := c.newPBSJob(s)
	if o.isSet('s') {
		return c.printScript(j)
	}
	rule := strings.Repeat("-", 51)
	fmt.Fprintf(c.stdout, "%s\njobid:\t\t%s\n%s\n", rule, pbsName(s.GetId(), s.GetArray()), rule)
	for _, line := range [][2]string{{"state:", pbsState(s)}, {"substate:", j.substate()}, {"queue:", pbsQueue(s)},
		{"owner:", s.GetOwner() + "@" + j.host}, {"host:", s.GetNode()}} {
		if line[1] != "" {
			fmt.Fprintf(c.stdout, "%-10s\t%s\n", line[0], qstat.VisibleText(line[1]))
		}
	}
	if o.isSet('a') {
		return 0
	}
	fmt.Fprintln(c.stdout, "--attributes--")
	for _, a := range j.attributes() {
		fmt.Fprintf(c.stdout, "%s = %s\n", strings.TrimSuffix(a.Name+"."+a.Resource, "."), qstat.VisibleText(a.Text()))
	}
	return 0
}

// printScript prints the script of a job, as it was submitted.
func (c *invocation) printScript(j *pbsJob) int {
	id := pbsName(j.GetId(), j.GetArray())
	_, large := j.ad.Str(roost.AttrScriptFile)
	script, has := j.ad.Str(roost.AttrScript)
	switch {
	case large:
		fmt.Fprintf(c.stderr, "printjob: the script of %s is larger than %d KiB, and is not handed out\n", id,
			maxInline>>10)
	case !has:
		fmt.Fprintf(c.stderr, "printjob: %s has no script that you may see: it runs a command, or is somebody else's\n",
			id)
	default:
		fmt.Fprint(c.stdout, script)
		return 0
	}
	return 1
}
