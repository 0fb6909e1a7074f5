package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
	"github.com/roost-batch/roost/internal/slurm/sbatch"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func scontrolCommand() *frame.Command {
	return &frame.Command{
		Name: "scontrol", Group: frame.GroupSlurm, Summary: "show and change jobs as Slurm does", RawArgs: true,
		MaxOperands: -1, Run: scontrol,
		Synopsis: "[-o] [show job|node|partition|config|hostnames|hostlist [NAME] | " +
			"hold|release|suspend|resume|requeue|requeuehold|top JOBS | update jobid=JOBS KEY=VALUE… | " +
			"write batch_script JOB [FILE] | wait_job JOB | ping | version]",
		Description: "Shows and changes jobs in the queue of this machine, shows machines and queues, and expands " +
			"and shortens lists of hosts, as scontrol of Slurm does.",
		Examples: []frame.Example{
			{Line: "scontrol show job 12", Description: "everything about a job"},
			{Line: "scontrol show hostnames 'n[1-3]'", Description: "the hosts of a list, one a line"},
			{Line: "scontrol requeue 12", Description: "run a job again"},
		},
	}
}

// scontrolRun is one execution of scontrol.
type scontrolRun struct {
	*frame.Invocation
	oneLine bool
}

func scontrol(c *frame.Invocation) error {
	given, words, answered, err := parseOptions(c, []getopt.Option{{Name: "all", Letter: 'a'},
		{Name: "details", Letter: 'd'}, {Name: "hide"}, {Name: "future", Letter: 'F'}, {Name: "local"},
		{Name: "clusters", Letter: 'M', Argument: getopt.Required}, {Name: "oneliner", Letter: 'o'},
		{Name: "quiet", Letter: 'Q'}, {Name: "verbose", Letter: 'v'}, {Name: "sibling"}, {Name: "federation"},
		{Name: "uid", Letter: 'u', Argument: getopt.Required}})
	if err != nil || answered {
		return err
	}
	r := &scontrolRun{Invocation: c, oneLine: has(given, "oneliner")}
	if len(words) == 0 {
		return r.exit("too few arguments for keyword:scontrol")
	}
	verb, rest := strings.ToLower(words[0]), words[1:]
	switch verb {
	case "show":
		return r.show(rest)
	case "ping":
		return r.ping()
	case "version":
		fmt.Fprintln(c.Stdout, "slurm "+slurmVersion)
		return nil
	case "write":
		return r.write(rest)
	case "wait_job":
		return r.wait(rest)
	case "update":
		return r.update(rest)
	case "top":
		return r.top(rest)
	}
	if req, isSuspend := jobAction(verb); req != nil {
		return r.act(verb, req, isSuspend, rest)
	}
	return r.exit("invalid keyword: " + words[0])
}

// exit prints what is wrong with the words of the command line.
func (r *scontrolRun) exit(text string) error {
	fmt.Fprintln(r.Stderr, text)
	return frame.ExitError(failure)
}

// show prints what the words name.
func (r *scontrolRun) show(words []string) error {
	if len(words) == 0 {
		return r.exit("too few arguments for keyword:show")
	}
	if len(words) > 2 {
		return r.exit("too many arguments for keyword:show")
	}
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	kind, value, has := strings.Cut(strings.ToLower(words[0]), "=")
	if has {
		name = value
	}
	begins := func(word string, least int) bool { return len(kind) >= least && strings.HasPrefix(word, kind) }
	switch {
	case begins("jobs", 1), kind == "jobid":
		return r.showJobs(name)
	case begins("hostnames", 5), begins("hostlistsorted", 5):
		return r.showHosts(kind, name)
	case begins("nodes", 1):
		return r.showNodes(name)
	case begins("partitions", 1), kind == "partitionname":
		return r.showPartitions(name)
	case begins("config", 1):
		return r.showConfig()
	case begins("licenses", 2):
		return r.showLicenses(name)
	case begins("reservations", 1):
		return r.showReservations(name)
	case begins("steps", 2):
		return r.showSteps(name)
	}
	return r.exit("invalid entity:" + words[0] + " for keyword:show ")
}

// showHosts expands a list of hosts or shortens it. It asks nobody.
func (r *scontrolRun) showHosts(kind, text string) error {
	if text = cmp.Or(text, r.Getenv("SLURM_JOB_NODELIST"), r.Getenv("SLURM_NODELIST")); text == "" {
		return r.exit("host list is empty")
	}
	hosts, err := hostlist.Expand(text)
	if err != nil {
		return r.exit("Invalid hostlist: " + text)
	}
	switch {
	case strings.HasPrefix("hostnames", kind):
		fmt.Fprintln(r.Stdout, strings.Join(hosts, "\n"))
	case len(kind) > len("hostlist"):
		fmt.Fprintln(r.Stdout, hostlist.Compress(hostlist.Sort(hosts)))
	default:
		fmt.Fprintln(r.Stdout, hostlist.Compress(hosts))
	}
	return nil
}

// errNoJobID is a word that is no id of a job.
var errNoJobID = fmt.Errorf("%w: it is no id of a job", roost.NotFound)

// find asks for the jobs of a list of ids, or for all.
func (r *scontrolRun) find(ids string, each bool) ([]*records.Job, error) {
	q := &jobQuery{ended: true, ads: true, each: each, since: r.Now().Add(-records.MinJobAge).UnixNano()}
	for _, text := range splitIDs(ids) {
		id, ok := parseJobID(text)
		if !ok {
			return nil, errNoJobID
		}
		q.ids = append(q.ids, id)
	}
	return q.find(r.Invocation)
}

// isRecent reports whether Slurm would still list a job.
func (r *scontrolRun) isRecent(j *records.Job) bool {
	return !j.IsFinal() || r.Now().Sub(time.Unix(0, j.GetEnded())) <= records.MinJobAge
}

func (r *scontrolRun) showJobs(ids string) error {
	jobs, err := r.find(ids, false)
	switch {
	case errors.Is(err, errNoJobID):
		return r.exit("scontrol_print_job error: Invalid job id specified")
	case err != nil && !errors.Is(err, roost.NotFound):
		return failWith(r.Invocation, err)
	}
	now, printed := clock(r.Invocation), 0
	for _, j := range jobs {
		if !r.isRecent(j) {
			continue
		}
		printed++
		fmt.Fprint(r.Stdout, j.Show(now, r.oneLine))
	}
	switch {
	case printed == 0 && ids != "":
		return r.exit("slurm_load_jobs error: Invalid job id specified")
	case printed == 0:
		fmt.Fprintln(r.Stdout, "No jobs in the system")
	}
	return nil
}

// showSteps prints the steps that run: all, those of a job, or one.
func (r *scontrolRun) showSteps(ids string) error {
	jobs, err := r.find(ids, false)
	switch {
	case errors.Is(err, errNoJobID):
		return r.exit("Invalid step id: " + ids)
	case err != nil && !errors.Is(err, roost.NotFound):
		return failWith(r.Invocation, err)
	}
	var wanted []jobID
	for _, text := range splitIDs(ids) {
		id, _ := parseJobID(text)
		wanted = append(wanted, id)
	}
	now, printed := clock(r.Invocation), 0
	for _, j := range jobs {
		names := wantedSteps(wanted, j)
		for _, s := range j.Steps() {
			if s.IsRunning() && (len(names) == 0 || slices.Contains(names, s.StepName)) {
				printed++
				fmt.Fprint(r.Stdout, s.Show(now, r.oneLine))
			}
		}
	}
	switch {
	case printed == 0 && ids != "":
		return r.exit("Job step " + ids + " not found")
	case printed == 0:
		fmt.Fprintln(r.Stdout, "No job steps in the system")
	}
	return nil
}

func (r *scontrolRun) ping() error {
	node, err := r.ServerName()
	if err != nil {
		fmt.Fprintln(r.Stdout, "Slurmctld(primary) at localhost is DOWN")
		return frame.ExitError(failure)
	}
	fmt.Fprintf(r.Stdout, "Slurmctld(primary) at %s is UP\n", node)
	return nil
}

func (r *scontrolRun) showConfig() error {
	node, err := r.ServerName()
	if err != nil {
		return failWith(r.Invocation, err)
	}
	fmt.Fprintf(r.Stdout, "Configuration data as of %s\n", clock(r.Invocation).Time(r.Now(), ""))
	for _, pair := range [][2]string{
		{"AccountingStorageType", "accounting_storage/roost"}, {"ClusterName", node},
		{"MaxArraySize", strconv.Itoa(sbatch.MaxArraySize)},
		{"MinJobAge", "300 sec"}, {"PriorityType", "priority/multifactor"},
		{"SLURM_VERSION", slurmVersion}, {"SlurmctldHost[0]", node},
	} {
		fmt.Fprintf(r.Stdout, "%-23s = %s\n", pair[0], pair[1])
	}
	fmt.Fprintf(r.Stdout, "\nSlurmctld(primary) at %s is UP\n", node)
	return nil
}

// write prints the script of a job, or writes it to a file.
func (r *scontrolRun) write(words []string) error {
	if len(words) < 2 || !strings.EqualFold(words[0], "batch_script") {
		return r.exit("invalid write_batch argument")
	}
	q := &jobQuery{ended: true, ads: true, script: true}
	id, ok := parseJobID(words[1])
	if q.ids = []jobID{id}; !ok {
		return r.exit("job script retrieval failed: Invalid job id specified")
	}
	jobs, err := q.find(r.Invocation)
	if err != nil {
		return failWith(r.Invocation, err)
	}
	if len(jobs) == 0 {
		return r.exit("job script retrieval failed: Invalid job id specified")
	}
	script, _ := jobs[0].Ad.Str(roost.AttrScript)
	if script == "" {
		return r.exit("job script retrieval failed: Job/step already completing or completed")
	}
	file := fmt.Sprintf("slurm-%d.sh", id.number)
	if len(words) > 2 {
		file = words[2]
	}
	if file == "-" {
		fmt.Fprint(r.Stdout, script)
		return nil
	}
	if err := os.WriteFile(r.AbsolutePath(file), []byte(script), 0o600); err != nil {
		return r.exit(fmt.Sprintf("failed to open file `%s`: %v", file, err))
	}
	fmt.Fprintf(r.Stdout, "batch script for job %d written to %s\n", id.number, file)
	return nil
}

// waitInterval is how often wait_job asks.
const waitInterval = 500 * time.Millisecond

// wait returns when a job has its machines, or has ended.
func (r *scontrolRun) wait(words []string) error {
	if len(words) != 1 {
		return r.exit("wait_job requires a job id")
	}
	for {
		jobs, err := r.find(words[0], false)
		if err != nil && !errors.Is(err, roost.NotFound) {
			return failWith(r.Invocation, err)
		}
		if len(jobs) == 0 {
			return r.exit("scontrol: Problem running job " + words[0])
		}
		switch jobs[0].State {
		case "PENDING", "CONFIGURING":
		default:
			return nil
		}
		timer := time.NewTimer(waitInterval)
		select {
		case <-r.Context.Done():
			timer.Stop()
			return r.Context.Err()
		case <-timer.C:
		}
	}
}

// jobAction is what a word asks of the schedd; nil: the word is none of them. Slurm
// reports errors of some as errors of suspend.
func jobAction(verb string) (req *scheddapi.ActRequest, isSuspend bool) {
	reason := "via scontrol " + verb
	switch verb {
	case "hold", "holdu", "uhold":
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_HOLD, Reason: reason, Again: true}, false
	case "release":
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RELEASE, Again: true}, false
	case "suspend":
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_SUSPEND, Reason: reason}, true
	case "resume":
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RESUME}, true
	case "requeue", "requeuehold":
		return &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RERUN, Reason: reason}, false
	}
	return nil, false
}

// act does an action to each job of the words. A failure does not stop the rest.
func (r *scontrolRun) act(verb string, req *scheddapi.ActRequest, isSuspend bool, words []string) error {
	if len(words) == 0 {
		return r.exit("too few arguments for keyword:" + verb)
	}
	failed, reason := false, ""
	for _, text := range splitIDs(strings.Join(words, ",")) {
		text = withoutPrefix(text, "jobid=")
		if err := r.actOn(verb, req, text); err != nil {
			failed, reason = true, err.Error()
			fmt.Fprintf(r.Stderr, "%s for job %s\n", err, text)
		}
	}
	switch {
	case failed && (isSuspend || strings.HasSuffix(verb, "hold") || verb == "release"):
		return r.exit("slurm_suspend error: " + reason)
	case failed:
		return frame.ExitError(failure)
	}
	return nil
}

// withoutPrefix takes a prefix in any case off a text.
func withoutPrefix(text, prefix string) string {
	if len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix) {
		return text[len(prefix):]
	}
	return text
}

// actOn does an action to what one id names. A job that has ended is run again by another
// verb.
func (r *scontrolRun) actOn(verb string, req *scheddapi.ActRequest, text string) error {
	id, ok := parseJobID(text)
	if !ok {
		return errors.New("Invalid job id specified")
	}
	selectors := id.selectors()
	if strings.HasSuffix(verb, "hold") && verb != "requeuehold" || verb == "holdu" {
		return r.holdWaiting(req, text, selectors)
	}
	err := r.actAt(req, selectors)
	if strings.HasPrefix(verb, "requeue") {
		if err != nil { // it does not run: it has ended, or waits
			err = r.actAt(&scheddapi.ActRequest{Verb: scheddapi.ActRequest_RETRY}, selectors)
		}
		if verb == "requeuehold" && err == nil {
			err = r.actAt(&scheddapi.ActRequest{Verb: scheddapi.ActRequest_HOLD, Reason: "via scontrol requeuehold",
				Again: true}, selectors)
		}
	}
	return err
}

// holdWaiting holds what waits of what an id names. What runs goes on: a hold of Slurm is
// about the next start.
func (r *scontrolRun) holdWaiting(req *scheddapi.ActRequest, text string, selectors []string) error {
	jobs, err := r.find(text, true)
	if err != nil {
		return r.actAt(req, selectors) // whose answer says why
	}
	for _, j := range jobs {
		if j.State == "PENDING" || j.IsFinal() {
			continue
		}
		var waiting []string
		for _, w := range jobs {
			if w.State == "PENDING" {
				waiting = append(waiting, fmt.Sprintf("%d[%s]", w.Number, w.Indexes))
			}
		}
		if len(waiting) == 0 {
			return nil
		}
		return r.actAt(req, waiting)
	}
	return r.actAt(req, selectors)
}

// actAt asks the schedd for an action, and returns its refusal in Slurm's words.
func (r *scontrolRun) actAt(req *scheddapi.ActRequest, selectors []string) error {
	one := &scheddapi.ActRequest{Verb: req.GetVerb(), Reason: req.GetReason(), Again: req.GetAgain(),
		Selection: &scheddapi.Selection{Selectors: selectors}}
	var reply *scheddapi.ActReply
	err := r.CallSchedd(frame.SubmitTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		reply, err = s.Act(ctx, one)
		return frame.DecodeError(err)
	})
	if err != nil {
		return errors.New(strings.Join(strings.Fields(frame.ErrorText(err)), " "))
	}
	return refusalOf(reply)
}

// refusalOf is the first refusal of an answer in Slurm's words.
func refusalOf(reply *scheddapi.ActReply) error {
	for _, result := range reply.GetResults() {
		if result.GetError() == "" {
			continue
		}
		switch roost.ErrorKind(result.GetKind()) {
		case roost.NotFound:
			return errors.New("Invalid job id specified")
		case roost.Finished:
			return errors.New("Job has already finished")
		case roost.PermissionDenied:
			return errors.New("Access/permission denied")
		}
		return errors.New(result.GetError())
	}
	return nil
}

// top puts jobs before the others of their user that wait.
func (r *scontrolRun) top(words []string) error {
	if len(words) == 0 {
		return r.exit("too few arguments for keyword:top")
	}
	ids := withoutPrefix(strings.Join(words, ","), "jobid=")
	jobs, err := r.find(ids, false)
	if err != nil && !errors.Is(err, roost.NotFound) {
		return failWith(r.Invocation, err)
	}
	all, err := r.find("", false)
	if err != nil {
		return failWith(r.Invocation, err)
	}
	highest := map[string]int64{}
	for _, j := range all {
		if j.State == "PENDING" {
			highest[j.GetOwner()] = max(highest[j.GetOwner()], j.Priority())
		}
	}
	value := strconv.FormatInt(records.BasePriority, 10)
	if len(jobs) > 0 {
		value = strconv.FormatInt(max(highest[jobs[0].GetOwner()], records.BasePriority)+1, 10)
	}
	return r.updateEach(ids, jobs, [][2]string{{"priority", value}})
}
