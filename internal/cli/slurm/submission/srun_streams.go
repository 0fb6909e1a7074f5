package submission

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/cli/terminal"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// srun with standard input, outside of a job, is an allocation in which it runs like srun
// of salloc: its streams are connected with those of the tasks while they run. The job
// waits meanwhile, and ends with the status of the tasks.

// stepHolder is the script of that job. It ends with the status of the step when USR1
// says that this one has ended, or when its process is gone without a word. Both meet in
// a directory whose name nobody else knows.
const stepHolder = `dir="${TMPDIR:-/tmp}/.srun-%[1]s"
mkdir -m 700 "$dir" || exit 1
finish() { status=$(cat "$dir/status" 2>/dev/null || echo 143); rm -rf "$dir"; exit "$status"; }
trap finish USR1
while :; do
  sleep 2 & wait $!
  [ ! -e "$dir/pid" ] || kill -0 "$(cat "$dir/pid")" 2>/dev/null || finish
done`

// stepRunner runs the step in the job.
const stepRunner = `dir="${TMPDIR:-/tmp}/.srun-%[1]s"
n=0
until [ -d "$dir" ] || [ $n = 200 ]; do sleep 0.05; n=$((n+1)); done
echo $$ >"$dir/pid"
srun "$@"
status=$?
echo $status >"$dir/status"
exit $status`

// streamsInput reports whether srun has standard input for its tasks. That is a file, a
// pipe, or a terminal in whose foreground it is.
func streamsInput(c *frame.Invocation, given []getopt.Given) bool {
	if text, ok := getopt.Last(given, "input"); ok && text != "all" {
		return false
	}
	if _, ok := c.Stdin.(*os.File); !ok {
		return c.Stdin != nil
	}
	f := c.Stdin.(*os.File)
	info, err := f.Stat()
	switch {
	case err != nil:
		return false
	case info.Mode()&os.ModeCharDevice == 0:
		return true
	}
	return frame.IsForegroundTerminal(f)
}

// runWithStreams is srun with standard input or a terminal.
func runWithStreams(c *frame.Invocation, given []getopt.Given, command []string) error {
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return failWith(c, err)
	}
	nonce := rand.Text()
	result, err := sbatch.Parse(append(jobArguments(given, command), "--wrap="+fmt.Sprintf(stepHolder, nonce)), caller)
	if err != nil {
		return parseRefused(c, err)
	}
	markStepsOnly(&result)
	result.Job.Ad.SetString(roost.AttrOut, os.DevNull)
	signals, release := c.NotifyInterrupts()
	defer release()
	reply, err := jobs.SubmitJobs(c, []jobspec.Job{result.Job}, "", nil)
	if err != nil {
		return submitRefused(c, &result, err)
	}
	a := &allocation{c: c, id: reply.GetIds()[0], quiet: result.Quiet}
	a.number, _, _ = strings.Cut(a.id, ".")
	if err := a.await(signals); err != nil {
		a.cancel("srun has ended")
		return err
	}
	release()
	k := terminal.LocalTerminal{}
	words := []string{"sh", "-c", fmt.Sprintf(stepRunner, nonce), "srun"}
	for _, g := range given {
		if slices.Contains(stepOnly(), g.Name) || g.Name == "pty" {
			words = append(words, optionWord(g))
		}
	}
	if _, wantsTerminal := getopt.Last(given, "pty"); wantsTerminal {
		k = terminal.OpenTerminal(c)
	}
	first := &scheddapi.ShellInput{Task: a.firstTask(), Command: append(append(words, "--"), command...),
		Terminal: k.In != nil, Term: c.Getenv("TERM")}
	first.Rows, first.Columns = k.WindowSize()
	err = terminal.RunRemoteShell(c, first, k)
	a.finish()
	return err
}

// parseRefused prints why srun cannot read its options.
func parseRefused(c *frame.Invocation, err error) error {
	var failure *sbatch.Failure
	if !errors.As(err, &failure) {
		return failWith(c, err)
	}
	if c.Command.Name == "sbatch" {
		io.WriteString(c.Stderr, failure.Text)
		return exitWith(c, failure.Status)
	}
	io.WriteString(c.Stderr, strings.NewReplacer("sbatch: ", "srun: ", "\"sbatch ", "\"srun ",
		"Batch job submission failed", "Unable to allocate resources").Replace(failure.Text))
	return exitWith(c, failure.Status)
}

// firstTask is the id of the task on the job's first machine.
func (a *allocation) firstTask() string {
	_, host, _ := strings.Cut(a.id, ".")
	return fmt.Sprintf("%s[0].%s", a.number, host)
}

// endTimeout is how long a job has to end by itself when its step has ended.
const endTimeout = 3 * time.Second

// finish has the job end, and waits for that. It cancels it if the end does not come.
func (a *allocation) finish() {
	r := &cancellation{c: a.c}
	r.act(&scheddapi.ActRequest{Verb: scheddapi.ActRequest_SIGNAL, Signal: "USR1"}, []string{a.id})
	for began := a.c.Now(); a.c.Now().Sub(began) < endTimeout; {
		list, err := a.c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{a.id}},
			History: true})
		if err != nil || len(list) == 0 || document.IsFinal(list[0]) {
			return
		}
		<-time.After(pollInterval / 2)
	}
	a.cancel("its step has ended")
}
