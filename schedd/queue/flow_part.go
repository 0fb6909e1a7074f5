package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/flow"
	"github.com/roost-batch/roost/schedd/flow/graph"
	"github.com/roost-batch/roost/schedd/flow/plan"
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// FlowPart is the part of a node that a job runs.
type FlowPart struct {
	Flow    uint64 // the number of its job
	Run     int    // how often the flow was begun
	Node    graph.NodeID
	Attempt int
	Part    flow.NodePart
	Again   int // how often a script was run again because of DEFER

	isListed bool  // its job is in the list of those that have changed
	heldAt   int64 // a task was held then, and the HOLD script was not run for it; unix nanoseconds
}

// flowKeyPrefix begins the submit keys of parts of flows. Those of users begin with their
// uid.
const flowKeyPrefix = "flow:"

// key is the submit key of the part's job.
func (p *FlowPart) key() string {
	b := append(make([]byte, 0, 48), flowKeyPrefix...)
	b = append(strconv.AppendUint(b, p.Flow, 10), ':')
	for _, n := range []int{p.Run, int(p.Node), p.Attempt, int(p.Part)} {
		b = append(strconv.AppendInt(b, int64(n), 10), ':')
	}
	return string(strconv.AppendInt(b, int64(p.Again), 10))
}

// FlowPartOfKey returns of which part a job is, by its submit key.
func FlowPartOfKey(key string) (p FlowPart, ok bool) {
	text, ok := strings.CutPrefix(key, flowKeyPrefix)
	if !ok {
		return FlowPart{}, false
	}
	var numbers [6]uint64
	for i := range numbers {
		word, rest, more := strings.Cut(text, ":")
		n, err := strconv.ParseUint(word, 10, 63)
		if err != nil || more != (i < len(numbers)-1) {
			return FlowPart{}, false
		}
		numbers[i], text = n, rest
	}
	if numbers[4] > uint64(flow.PostPart) {
		return FlowPart{}, false
	}
	return FlowPart{Flow: numbers[0], Run: int(numbers[1]), Node: graph.NodeID(numbers[2]), Attempt: int(numbers[3]),
		Part: flow.NodePart(numbers[4]), Again: int(numbers[5])}, true
}

// partSpec is the job of a part of a node.
func (d *flowDecision) partSpec(p FlowPart) jobad.SubmitSpec {
	f, j, host := d.flow, d.job, d.host
	var spec jobad.SubmitSpec
	if p.Part == flow.JobPart {
		spec = f.nodeJob(j, p, host)
	} else {
		spec = d.scriptJob(p)
	}
	d.addPartAttributes(&spec, p, p.Part.String())
	return spec
}

// addPartAttributes says in the ad of a job for which node it runs.
func (d *flowDecision) addPartAttributes(spec *jobad.SubmitSpec, p FlowPart, part string) {
	spec.DeferredAdmission = true
	spec.Ad.SetString(roost.AttrFlowID, d.job.id(d.host).String())
	spec.Ad.SetString(roost.AttrFlowNode, d.flow.plan.Graph.Name(p.Node))
	spec.Ad.SetString(roost.AttrFlowPart, part)
	spec.Ad.SetInt(roost.AttrFlowRetry, int64(p.Attempt))
}

// nodeJob is the job of a node.
func (f *jobFlow) nodeJob(j *job, p FlowPart, host string) jobad.SubmitSpec {
	n := f.plan.Graph.Node(p.Node)
	t := f.plan.Template(p.Node)
	spec := jobad.SubmitSpec{Ad: f.parsed[n.Description].Copy(), Count: t.Count}
	for _, c := range f.plan.ColumnsOf(p.Node) {
		spec.Columns = append(spec.Columns, jobad.TaskColumn(c))
	}
	for _, name := range t.NodeColumns {
		text := f.nodeColumn(j, p, name)
		c := jobad.TaskColumn{Name: name, Values: make([]string, t.Count)}
		for i := range c.Values {
			c.Values[i] = text
		}
		spec.Columns = append(spec.Columns, c)
	}
	if f.specs[n.Description].SubmitNodeTask {
		runAtSubmitNode(spec.Ad, j, host)
	}
	if n.Priority != 0 {
		own := int64(f.specs[n.Description].Priority)
		spec.Ad.SetInt(roost.AttrPriority, min(max(own+int64(n.Priority), roost.MinPriority), roost.MaxPriority))
	}
	return spec
}

// nodeColumn is the value of a column that is known when a node begins.
func (f *jobFlow) nodeColumn(j *job, p FlowPart, name string) string {
	switch name {
	case plan.ColumnNode:
		return f.plan.Graph.Name(p.Node)
	case plan.ColumnRetry:
		return strconv.Itoa(p.Attempt)
	case plan.ColumnMost:
		return strconv.Itoa(int(f.plan.Graph.Node(p.Node).Retry))
	case plan.ColumnFlow:
		return strconv.FormatUint(j.seq, 10)
	case plan.ColumnStatus:
		status, _ := f.run.Status()
		return strconv.Itoa(int(status))
	case plan.ColumnFailures:
		return strconv.Itoa(f.run.Counts()[flow.Failed])
	case plan.ColumnParents:
		return strings.Join(f.plan.ParentNames(p.Node), ",")
	}
	return ""
}

// scriptJob is the job of a script of a node. It runs at the submit node.
func (d *flowDecision) scriptJob(p FlowPart) jobad.SubmitSpec {
	s := d.flow.plan.SettingsOf(p.Node)
	if p.Part == flow.PostPart {
		return d.runScript(p, &d.flow.plan.Scripts[s.Post], p.Part.String())
	}
	return d.runScript(p, &d.flow.plan.Scripts[s.Pre], p.Part.String())
}

// runScript is the job of one of the scripts of a node.
func (d *flowDecision) runScript(p FlowPart, script *plan.NodeScript, kind string) jobad.SubmitSpec {
	f, j, host := d.flow, d.job, d.host
	words := f.plan.ScriptWords(script, func(macro string) (string, bool) { return d.scriptMacro(p, macro) })
	ad := classad.New()
	ad.SetString(roost.AttrJobName, f.plan.Graph.Name(p.Node)+"."+kind)
	ad.SetString(roost.AttrCmd, escapeReferences(words[0]))
	arguments := make([]string, len(words)-1)
	for i, w := range words[1:] {
		arguments[i] = escapeReferences(w)
	}
	ad.SetStrings(roost.AttrArguments, arguments)
	environment := make([]string, len(f.plan.Environment))
	for i, v := range f.plan.Environment {
		environment[i] = escapeReferences(v)
	}
	ad.SetStrings(roost.AttrEnvironment, environment)
	ad.SetString(roost.AttrIwd, escapeReferences(f.plan.ScriptDirectory(p.Node)))
	ad.SetString(roost.AttrTransfer, "never")
	out, err := "/dev/null", "/dev/null"
	if file := f.plan.DebugFile(p.Node, script); file != "" {
		file = escapeReferences(file)
		if script.DebugOutput&plan.DebugStdout != 0 {
			out = file
		}
		if script.DebugOutput&plan.DebugStderr != 0 {
			err = file
		}
	}
	ad.SetString(roost.AttrOut, out)
	ad.SetString(roost.AttrErr, err)
	runAtSubmitNode(ad, j, host)
	ad.SetReal(roost.AttrRequestCpus, scriptCores)
	ad.SetInt(roost.AttrRequestMemory, scriptMemory)
	if j.spec.Group != "" {
		ad.SetString(roost.AttrGroup, j.spec.Group)
	}
	ad.SetString(roost.AttrBand, j.spec.Band.String())
	if p.Again > 0 {
		ad.SetInt(roost.AttrStartAfter, d.now.Unix()+int64(script.DeferSeconds))
	}
	return jobad.SubmitSpec{Ad: ad, Count: 1}
}

// runAtSubmitNode has a task run at the submit node of a flow.
func runAtSubmitNode(ad *classad.Ad, j *job, host string) {
	ad.SetBool(roost.AttrSubmitNodeTask, true)
	machine := classad.StringValue(cmp.Or(j.spec.SubmitHost, host)).Expr()
	if err := ad.SetExpr(roost.AttrRequirements, "TARGET."+roost.AttrMachine+" == "+machine.String()); err != nil {
		panic(err) // a text in quotes
	}
}

// escapeReferences doubles the dollar signs of a text, which then has no references to
// columns.
func escapeReferences(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// What a script asks for: cores and MiB.
const (
	scriptCores  = 0.1
	scriptMemory = 64
)

// scriptMacro is the value of a macro in the arguments of a script. The macros are those
// of HTCondor's manual, chapter DAGMan Workflows.
func (d *flowDecision) scriptMacro(p FlowPart, name string) (string, bool) {
	f, j := d.flow, d.job
	counts := f.run.Counts()
	switch strings.TrimPrefix(strings.ToUpper(name), "$") {
	case "NODE", "JOB":
		return f.plan.Graph.Name(p.Node), true
	case "NODE_COUNT":
		total := 0
		for _, n := range counts {
			total += n
		}
		return strconv.Itoa(total), true
	case "QUEUED_COUNT":
		return strconv.Itoa(counts[flow.JobRuns]), true
	case "DONE_COUNT":
		return strconv.Itoa(counts[flow.Done]), true
	case "FUTILE_COUNT":
		return strconv.Itoa(counts[flow.Futile]), true
	case "DAGID":
		return strconv.FormatUint(j.seq, 10), true
	case "RETRY", "MAX_RETRIES", "DAG_STATUS", "FAILED_COUNT":
		return f.nodeColumn(j, p, strings.TrimPrefix(strings.ToUpper(name), "$")), true
	}
	if p.Part == flow.PrePart {
		return "", false
	}
	return d.jobMacro(p, strings.TrimPrefix(strings.ToUpper(name), "$"))
}

// jobMacro is the value of a macro about the job of a node, which POST and HOLD scripts
// have.
func (d *flowDecision) jobMacro(p FlowPart, name string) (string, bool) {
	f := d.flow
	pre, result := f.run.Result(p.Node)
	own := p
	own.Part, own.Again = flow.JobPart, 0
	var seq uint64
	if ids := d.submissionJobs(own.key(), d.limits); len(ids) > 0 {
		seq = ids[0].Seq
	}
	switch name {
	case "RETURN":
		return strconv.Itoa(result), true
	case "PRE_SCRIPT_RETURN":
		if f.plan.SettingsOf(p.Node).Pre == 0 {
			pre = -1
		}
		return strconv.Itoa(pre), true
	case "CLUSTERID", "JOBID":
		if seq == 0 {
			return "-1", true
		}
		number := strconv.FormatUint(seq, 10)
		if name == "JOBID" {
			number += ".0"
		}
		return number, true
	case "JOB_COUNT":
		return strconv.Itoa(f.plan.Template(p.Node).Count), true
	case "SUCCESS":
		return map[bool]string{true: "True", false: "False"}[result == 0], true
	case "JOB_ABORT_COUNT":
		if j := d.jobs[seq]; j != nil {
			return strconv.Itoa(int(j.counts[roost.Removed])), true
		}
		return "0", true
	case "EXIT_CODES", "EXIT_CODE_LIST", "EXIT_CODE_COUNTS":
		return describeCodes(taskCodes(d.jobs[seq]), name), true
	}
	return "", false
}

// taskCodes are the exit codes of the tasks that have ended by themselves, in the order
// of the tasks. A signal is its negative number.
func taskCodes(j *job) (codes []int) {
	if j == nil {
		return nil
	}
	for i, s := range j.state {
		switch r := j.records.Get(i); {
		case s != roost.Completed:
		case r == nil || r.Exit == nil:
			codes = append(codes, 0)
		case r.Exit.Signal != 0:
			codes = append(codes, -int(r.Exit.Signal))
		default:
			codes = append(codes, int(r.Exit.Code))
		}
	}
	return codes
}

// maxCodeText bounds the bytes of an argument of a script with exit codes.
const maxCodeText = 64 << 10

// describeCodes writes exit codes as DAGMan does. EXIT_CODE_LIST has each of them,
// EXIT_CODES each value once, and EXIT_CODE_COUNTS also how often it was.
func describeCodes(codes []int, macro string) string {
	numbers := map[int]int{}
	for _, code := range codes {
		numbers[code]++
	}
	if macro != "EXIT_CODE_LIST" {
		codes = slices.Sorted(maps.Keys(numbers))
	}
	var b strings.Builder
	for i, code := range codes {
		if b.Len() > maxCodeText {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(code))
		if macro == "EXIT_CODE_COUNTS" {
			fmt.Fprintf(&b, ":%d", numbers[code])
		}
	}
	return b.String()
}

// holdKeyPrefix begins the submit keys of HOLD scripts.
const holdKeyPrefix = "flow-hold:"

// holdScript submits the HOLD script of a node of which a task was held. Nothing waits
// for it, and a script that cannot be submitted is left out.
func (q *flowIndex) holdScript(now time.Time, j *job, limits SubmitLimits) []eventlog.JobEvent {
	p, owner := j.part, q.jobs[j.part.Flow]
	key := fmt.Sprintf("%s%d:%d", holdKeyPrefix, j.seq, p.heldAt)
	p.heldAt = 0
	if owner == nil || owner.flow == nil || owner.flow.run == nil {
		return nil
	}
	f := owner.flow
	script := f.plan.SettingsOf(p.Node).Hold
	if script == 0 || f.run.Phase() >= flow.Stopping || len(q.submissionJobs(key, limits)) > 0 {
		return nil
	}
	d := flowDecision{flowIndex: q, job: owner, flow: f, now: now, limits: limits}
	spec := d.runScript(*p, &f.plan.Scripts[script], "hold")
	d.addPartAttributes(&spec, *p, "hold")
	who := CallerIdentity{User: owner.submission.owner, UID: owner.submission.uid, GID: owner.submission.gid,
		Origin: originOf(owner, q.host)}
	if d.checkOpenLimit(who, 1, limits) != nil {
		return nil
	}
	seq := max(q.lastSeq, limits.LastSeq) + 1
	submitted, err := q.checkSubmission(now, who, &spec, &dependencyResolver{jobTable: q.jobTable, caller: who,
		jobNumber: seq, limits: limits})
	if err != nil {
		return nil
	}
	submitted.Submission.Key, submitted.Submission.PartCount = key, 1
	return []eventlog.JobEvent{submitted}
}

// partResult is the code of a part whose job has ended, and why it failed. A script or a
// job that was removed by somebody else has failed.
func (f *jobFlow) partResult(j *job) (code int, reason string) {
	failed, removed, first := 0, 0, -1
	for i, s := range j.state {
		ok := s == roost.Completed && j.records.HasSucceeded(i)
		if s == roost.Removed {
			removed++
		}
		if !ok {
			if failed++; first < 0 || j.state[first] == roost.Removed && s != roost.Removed {
				first = i
			}
		}
	}
	tolerated := 0
	if j.part.Part == flow.JobPart {
		tolerated = f.plan.SettingsOf(j.part.Node).Tolerated(len(j.state))
	}
	if failed <= tolerated {
		return 0, ""
	}
	if removed == failed {
		return flow.JobRemoved, cmp.Or(j.stateReason(first), "its job was removed")
	}
	var exit *eventlog.AttemptExit
	if r := j.records.Get(first); r != nil {
		exit = r.Exit
	}
	switch {
	case exit == nil:
		return 1, "how its job ended is not known"
	case exit.Signal != 0:
		return -int(exit.Signal), exit.Describe()
	case exit.Code != 0:
		return int(exit.Code), exit.Describe()
	}
	return 1, exit.Describe()
}

// outcome says in a line how a flow ended that failed.
func (f *jobFlow) outcome() string {
	status, code := f.run.Status()
	counts := f.run.Counts()
	switch status {
	case flow.StatusNodeFailed:
		if len(f.failures) > 0 {
			first := f.failures[0]
			return fmt.Sprintf("%d of its nodes failed and %d could not run, the first one: node %s: %s",
				counts[flow.Failed], counts[flow.Futile], f.plan.Graph.Name(graph.NodeID(first.Node)), first.Reason)
		}
		return fmt.Sprintf("%d of its nodes failed and %d could not run", counts[flow.Failed], counts[flow.Futile])
	case flow.StatusAborted:
		return fmt.Sprintf("a node had it aborted, with %d", code)
	case flow.StatusRemoved:
		return "it was removed"
	}
	return "its PROVISIONER node has ended"
}

// checkFlow refuses a flow without a plan, and a plan that is of no flow. It refuses a
// flow of whose jobs one could not be submitted as it is.
func (q *submissionIndex) checkFlow(now time.Time, who CallerIdentity, spec *jobad.SubmitSpec, p *jobad.JobSpec,
	r *dependencyResolver) error {
	f := spec.Flow
	switch {
	case p.IsFlow != (f != nil):
		return fmt.Errorf("attribute %s: %w: a flow is submitted with its plan, as roost flow submit does, and "+
			"nothing else has one", roost.AttrIsFlow, roost.Invalid)
	case f == nil:
		return nil
	case spec.Count != 1 || len(f.Ads) != len(f.Plan.Templates):
		return fmt.Errorf("%w: a flow with %d tasks, %d templates and %d ads of these", roost.Invalid, spec.Count,
			len(f.Plan.Templates), len(f.Ads))
	}
	checked := make([]bool, len(f.Ads))
	for id, n := range f.Plan.Graph.Nodes() {
		if checked[n.Description] || n.Description == 0 {
			continue
		}
		checked[n.Description] = true
		t := f.Plan.Templates[n.Description]
		one := jobad.SubmitSpec{Ad: f.Ads[n.Description], Count: t.Count}
		for _, c := range f.Plan.ColumnsOf(id) {
			one.Columns = append(one.Columns, jobad.TaskColumn(c))
		}
		for _, name := range t.NodeColumns {
			one.Columns = append(one.Columns, jobad.TaskColumn{Name: name, Values: make([]string, t.Count)})
		}
		e, err := q.checkSubmission(now, who, &one, &dependencyResolver{jobTable: r.jobTable, caller: who,
			jobNumber: r.jobNumber, limits: r.limits})
		switch {
		case err == nil && e.Submission.Flow != nil:
			err = fmt.Errorf("%w: it is a flow itself", roost.Invalid)
		case err == nil && lastNumber(r.jobTable, &e) != e.Job:
			err = fmt.Errorf("%w: it is an array of sbatch", roost.Invalid)
		}
		if err != nil {
			return fmt.Errorf("node %s, the jobs of %s: %w", f.Plan.Graph.Name(id), t.Source, err)
		}
	}
	return nil
}
