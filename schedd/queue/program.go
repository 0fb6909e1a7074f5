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
	"github.com/roost-batch/roost/schedd/queue/eventlog"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// programBuilder makes the program of an attempt.
type programBuilder struct {
	*jobTable
	*runtimePredictor
}

// TaskProgram is what one attempt of one task is to run, with every $(Name) replaced.
type TaskProgram struct {
	Executable       string
	Arguments        []string
	Environment      []string
	Script           string
	ScriptFile       string // in its place: see roost.AttrScriptFile
	ScriptNode       string // of the script's user: see UserScript
	Iwd              string
	In               string
	Out              string // empty: captured
	Err              string
	JoinErr          bool
	SuccessCode      int32  // the exit code of a program that has succeeded
	RemoveOutput     string // of o and e: Out, or Err, goes when the task has succeeded
	Umask            uint32
	Walltime         time.Duration
	Priority         int
	Bounds           jobad.ProcessLimits
	PredictedRuntime time.Duration // that the attempt takes; 0: nobody knows
	NotRerunnable    bool          // the task is not run again if it is interrupted and nothing of it was saved
	Interactive      bool          // it runs on its user's terminal
	Login            bool          // and is a login shell
	NoticePeriod     time.Duration
	Transfer         string // "auto", "always", "never", "store"
	StoredInput      string // of the last of these: see roost.AttrStoredInput
	Domain           string // the submit side's FileSystemDomain
	Inputs           []string
	Outputs          []string
	Name             string
	PBS              string // the task's id as PBS writes it
	Queue            string
	Account          string // the group
	Owner            string
	UID, GID         uint32
	Checkpoint       *jobad.CheckpointPolicy   // nil: none are taken
	Restore          *eventlog.CheckpointImage // what the attempt goes on from
	RestoreKey       []byte                    // of that image, secret
	Rank             int                       // of its task in its gang
	Peers            []string                  // the nodes of its gang by rank; none: it is of no gang
	// of its job's processes, in the order of the file of nodes; none: it has no such
	// file
	Hosts       []HostProcesses
	FromQsub    bool                 // its job came by qsub
	Service     *jobad.ServiceSpec   // nil: its job is no service
	Revision    uint32               // of the service, that the attempt is of
	Secrets     []jobad.SecretSpec   // names of the user's secrets that the attempt gets
	Container   *jobad.ContainerSpec // nil: the attempt sees the files of its machine
	Packages    []jobad.PackageSpec  // that the attempt has
	SubmitHost  string               // whose user submitted the job
	JobTasks    int                  // how many tasks its job has
	Ranks       *GangRanks           // nil: the program runs once
	Slurm       *SlurmProgram        // nil: its job did not come by sbatch
	IsSecondary bool                 // it holds what it has for the first of its gang, or for others inside it
}

// SlurmProgram is what a job of sbatch has beside its program.
type SlurmProgram struct {
	jobad.SlurmSettings
	Number   uint64 // by which Slurm's commands know the task
	Restarts int    // how often the task was begun again
}

// slurmProgram makes it for an attempt. The files of one that was begun before are
// appended to unless it says otherwise (sbatch(1), "--open-mode").
func slurmProgram(j *job, a roost.AttemptID) *SlurmProgram {
	if j.spec.Slurm == nil {
		return nil
	}
	p := &SlurmProgram{SlurmSettings: *j.spec.Slurm, Number: taskNumber(j, a.Task.Index),
		Restarts: max(int(a.Attempt)-1, 0)}
	p.Append = p.Append || p.Restarts > 0 && j.hasRun() && !p.Truncate
	return p
}

// HostProcesses is so many processes that a task of a job is to have on a node.
type HostProcesses struct {
	Attempt   roost.AttemptID
	Node      string
	Processes int
}

// Program materialises the program of an attempt.
func (q programBuilder) Program(a roost.AttemptID) (TaskProgram, error) {
	j := q.jobs[a.Task.Job.Seq]
	if j == nil || a.Task.Index >= len(j.state) {
		return TaskProgram{}, fmt.Errorf("task %v: %w", a.Task, roost.NotFound)
	}
	m, err := q.newSubstituter(j, a)
	if err != nil {
		return TaskProgram{}, err
	}
	own := j.class(a.Task.Index).spec // of the revision that the attempt is of
	p := TaskProgram{
		JobTasks: len(j.state), Executable: m.Text(roost.AttrCmd), Arguments: m.List(roost.AttrArguments),
		Environment: m.List(roost.AttrEnvironment),
		Iwd:         m.Text(roost.AttrIwd), In: m.Text(roost.AttrIn), Out: m.Text(roost.AttrOut),
		Err:    m.Text(roost.AttrErr),
		Inputs: m.List(roost.AttrTransferIn), Outputs: m.List(roost.AttrTransferOut),
		Walltime: own.Walltime, Bounds: own.ProcessLimits,
		PredictedRuntime: q.predictedRuntime(j.class(a.Task.Index).request), NotRerunnable: !j.spec.Rerunnable,
		Priority:     j.spec.Priority,
		NoticePeriod: own.NoticePeriod, Transfer: own.Transfer, Domain: own.Domain, Name: j.texts.name(),
		FromQsub: j.spec.FromQsub, Owner: j.submission.owner, UID: j.submission.uid, GID: j.submission.gid,
		Service: own.Service, Secrets: own.Secrets, Container: own.Container,
		Packages: own.PackageMounts, SubmitHost: j.spec.SubmitHost,
	}
	p.Script, _ = m.Ad.Str(roost.AttrScript)
	p.ScriptFile, _ = m.Ad.Str(roost.AttrScriptFile)
	p.ScriptNode, p.StoredInput = originOf(j, q.host), m.Text(roost.AttrStoredInput)
	if p.Script != "" || p.ScriptFile != "" {
		// which says what runs it
		if p.Executable = m.Text(roost.AttrShell); p.Executable == "" && !strings.HasPrefix(p.Script, "#!") {
			p.Executable = "/bin/sh"
		}
	}
	p.PBS, p.Queue, p.Account = m.pbsID(), cmp.Or(j.spec.Queue, roost.DefaultQueueName), j.spec.Group
	p.Slurm = slurmProgram(j, a)
	if p.Interactive = j.spec.Interactive; p.Interactive {
		_, p.Login = m.Ad.Lookup(roost.AttrShell)
	}
	if t := revisionsOf(j).taskRevision(a.Task.Index); t != nil {
		p.Revision = max(t.Revision, firstRevision)
	}
	p.Rank, p.Peers = q.gangPeers(j, a.Task.Index)
	p.Hosts = q.hostsOf(j, a)
	if own.MPI != "" {
		p.Ranks = ranksOf(q.jobTable, j, a)
	}
	q.addCheckpointing(j, a, &p)
	p.JoinErr, _ = m.Ad.Bool(roost.AttrJoinOutput)
	p.RemoveOutput, _ = m.Ad.Str(roost.AttrRemoveOutput)
	p.SuccessCode = j.spec.SuccessCode
	p.Umask = 0o022
	if n, ok := m.Ad.Int(roost.AttrUmask); ok {
		p.Umask = uint32(n) & 0o777
	}
	switch {
	case j.spec.IsAlloc:
		p.Iwd = "/"
		p.doNothing()
	case j.isSecondary(a.Task.Index):
		p.becomeSecondary()
	}
	return p, m.err
}

// becomeSecondary makes the program one that does nothing, for a task that holds its
// machine for the leader. It sleeps for as long as the leader may run. Its walltime says
// when the machine is free again; the leader's walltime ends the job.
func (p *TaskProgram) becomeSecondary() {
	p.doNothing()
	if p.Walltime > 0 {
		more := p.NoticePeriod + secondarySlack
		p.Walltime += more
		if p.Slurm != nil { // steps have processes here, too
			p.Slurm.Before += more
		}
	}
	if p.Slurm != nil && p.Slurm.ScriptOnly { // the script runs elsewhere
		p.Slurm.Signal = 0
	}
}

// doNothing makes the program one that only holds what its claim has.
func (p *TaskProgram) doNothing() {
	p.Secrets, p.Container, p.Packages = nil, nil, nil
	p.IsSecondary, p.Interactive, p.Executable, p.Arguments, p.Script = true, false, "/bin/sleep",
		[]string{"infinity"}, ""
	p.ScriptFile = ""
	p.In, p.Out, p.Err, p.JoinErr, p.Inputs = "", "/dev/null", "/dev/null", false, nil
	p.StoredInput = ""
}

// secondarySlack is by how much those that follow a leader may outlive its walltime and
// notice.
const secondarySlack = time.Minute

// UserScript is one that the schedd keeps for a user. Node is the user's submit node in
// the queue of the cell, and empty for users of this host.
type UserScript struct {
	Node string
	UID  uint32
	Name string
}

// originOf returns the submit node of a job if it is not the queue's own host.
func originOf(j *job, host string) string {
	if j.spec.SubmitHost != host {
		return j.spec.SubmitHost
	}
	return ""
}

// UserScripts lists those that jobs of the queue name.
func (q *jobTable) UserScripts() (list []UserScript) {
	for _, j := range q.jobs {
		if j.spec.ScriptFile != "" {
			list = append(list, UserScript{originOf(j, q.host), j.submission.uid, j.spec.ScriptFile})
		}
		if j.flow != nil {
			_, scripts := j.flow.contents()
			for _, name := range scripts {
				list = append(list, UserScript{originOf(j, q.host), j.submission.uid, name})
			}
		}
	}
	return list
}

// UsedBlobs lists the digests of the container images and packages of all jobs, each once
// and sorted.
func UsedBlobs(q *Queue) []string {
	used := map[string]bool{}
	for _, j := range q.jobs {
		for _, c := range j.classes {
			for _, digest := range c.spec.ContentDigests() {
				used[digest] = true
			}
		}
		if j.flow != nil {
			digests, _ := j.flow.contents()
			for _, digest := range digests {
				used[digest] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// StoredFiles lists the stored input and output of jobs of the queue.
func StoredFiles(q *Queue) (list []UserScript) {
	for _, j := range q.jobs {
		if j.spec.Transfer != jobad.TransferStore {
			continue
		}
		seen := map[string]bool{"": true}
		add := func(names ...string) {
			for _, name := range names {
				if !seen[name] {
					seen[name] = true
					list = append(list, UserScript{originOf(j, q.host), j.submission.uid, name})
				}
			}
		}
		m, err := q.newSubstituter(j, roost.AttemptID{})
		for i := range j.state {
			if err == nil {
				m.attempt.Task.Index = i
				add(m.Text(roost.AttrStoredInput))
			}
			if r := j.records.Own(i); r != nil && r.Exit != nil {
				add(r.Exit.Stored.Out, r.Exit.Stored.Err, r.Exit.Stored.Files)
			}
		}
	}
	return list
}

// ServiceLogs lists how much output of services is kept, by their jobs.
func (q programBuilder) ServiceLogs() map[uint64]LogSpec {
	all := map[uint64]LogSpec{}
	for seq, j := range q.jobs {
		if j.spec.Service != nil {
			all[seq] = j.spec.Service.Logs
		}
	}
	return all
}

// taskSubstituter replaces $(Name) in the attributes of one task.
type taskSubstituter struct {
	jobad.AdSubstituter
	job     *job
	attempt roost.AttemptID
	err     error
}

func (q programBuilder) newSubstituter(j *job, a roost.AttemptID) (*taskSubstituter, error) {
	if before := j.class(a.Task.Index).oldAd; before != nil {
		if before.parsed == nil {
			ad, err := classad.Parse(before.ad)
			if err != nil {
				return nil, fmt.Errorf("ad of job %v: %w", a.Task.Job, err)
			}
			before.parsed = ad
		}
		return newTaskSubstituter(before.parsed, j, a), nil
	}
	if j.parsedAd != nil {
		return newTaskSubstituter(j.parsedAd, j, a), nil
	}
	ad, err := classad.Parse(j.ad.String())
	if err != nil {
		return nil, fmt.Errorf("ad of job %v: %w", a.Task.Job, err)
	}
	if len(j.state) > 1 { // its other tasks want it, too
		j.ownExtras().parsedAd = ad
	}
	return newTaskSubstituter(ad, j, a), nil
}

func newTaskSubstituter(ad *classad.Ad, j *job, a roost.AttemptID) *taskSubstituter {
	m := &taskSubstituter{job: j, attempt: a}
	m.AdSubstituter = jobad.AdSubstituter{Ad: ad, Value: m.valueOf}
	return m
}

// valueOf is what is written for $(name).
func (m *taskSubstituter) valueOf(name string) string {
	switch name {
	case "TaskIndex":
		return strconv.Itoa(m.attempt.Task.Index / m.job.tasksPerIndex())
	case "JobId":
		return m.attempt.Task.Job.String()
	case "JobSeq":
		return strconv.FormatUint(m.attempt.Task.Job.Seq, 10)
	case "TaskNumber":
		return strconv.FormatUint(taskNumber(m.job, m.attempt.Task.Index), 10)
	case "JobHost":
		return m.attempt.Task.Job.Host
	case "Attempt":
		return strconv.Itoa(int(m.attempt.Attempt))
	case "NodeName":
		if r := m.job.records.Get(m.attempt.Task.Index); r != nil {
			name, _, _ := strings.Cut(r.Node, ".")
			return name
		}
		return ""
	}
	if port, ok := strings.CutPrefix(name, "port."); ok && slices.ContainsFunc(m.job.spec.Ports,
		func(p roost.PortRequest) bool { return p.Name == port }) {
		return roost.PortReference(port) // the machine knows its number
	}
	if c := m.job.columns[name]; c != nil {
		return c.at(m.attempt.Task.Index)
	}
	if name == "ArrayIndex" && m.job.indexes != nil {
		return strconv.Itoa(m.job.names().index(m.attempt.Task.Index))
	}
	if name == "ArrayDigit" { // %b of Slurm
		return strconv.Itoa(m.job.names().index(m.attempt.Task.Index) % 10)
	}
	if m.err == nil {
		m.err = fmt.Errorf("task %s: %w: $(%s) stands for nothing: the job has no such column",
			m.job.names().TaskName(m.attempt.Task), roost.Invalid, name)
	}
	return ""
}

// pbsID is the id of the task as PBS writes it. For a task of an array that is the job's
// id with the index in it.
func (m *taskSubstituter) pbsID() string {
	id := m.attempt.Task
	if !m.job.spec.Array && (len(m.job.state) == 1 || m.job.spec.MPIGang) {
		return id.Job.String()
	}
	id.Index = m.job.names().index(id.Index)
	return id.String()
}

// TaskOutput says where the standard streams of a task go, and on whose behalf, for those
// who read them.
type TaskOutput struct {
	Out, Err string // as in TaskProgram
	Iwd      string
	Join     bool
	UID, GID uint32
	Owner    string
	Attempt  roost.AttemptID // the last one; attempt 0 when there was none
	State    roost.TaskState
	Node     string
	Running  bool // its processes may be writing
	// what is on the checkpoint server of the last attempt, as the user's files of that
	// node; a job with IsStored has its output nowhere else
	IsStored   bool
	Stored     eventlog.StoredOutput
	StoredNode string

	Interactive bool     // it has a terminal
	Command     []string // that runs there; none: a login shell
}

// TaskOutput tells where the streams of a task are.
func (q programBuilder) TaskOutput(t roost.TaskID) (TaskOutput, error) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return TaskOutput{}, fmt.Errorf("task %v: %w", t, roost.NotFound)
	}
	a := roost.AttemptID{Task: t}
	o := TaskOutput{State: j.state[t.Index]}
	if r := j.records.Get(t.Index); r != nil {
		a.Attempt, o.Node, o.Running = r.Attempt, r.Node, r.Live
		if r.Exit != nil && !r.Live {
			o.Stored = r.Exit.Stored
		}
	}
	p, err := q.Program(a)
	o.Out, o.Err, o.Iwd, o.Join, o.UID, o.GID, o.Owner, o.Attempt = p.Out, p.Err, p.Iwd, p.JoinErr, p.UID,
		p.GID, p.Owner, a
	o.IsStored, o.StoredNode = p.Transfer == jobad.TransferStore, p.ScriptNode
	if o.Interactive = p.Interactive; o.Interactive && !p.Login {
		o.Command = append([]string{p.Executable}, p.Arguments...)
	}
	return o, err
}

// OutputSettings is what a job says of the output of all its tasks. The rest is in their
// programs.
type OutputSettings struct {
	Transfer, Domain string // as in TaskProgram
	NamesFiles       bool   // Out or Err is not empty before $(Name) is replaced
	RemovesFiles     bool   // RemoveOutput may not be empty
}

// OutputSettings returns those of the job of a task. It is false if the task is unknown
// or its ad unreadable. It costs much less than Program.
func (q programBuilder) OutputSettings(t roost.TaskID) (OutputSettings, bool) {
	j := q.jobs[t.Job.Seq]
	if j == nil || t.Index < 0 || t.Index >= len(j.state) {
		return OutputSettings{}, false
	}
	m, err := q.newSubstituter(j, roost.AttemptID{Task: t})
	if err != nil {
		return OutputSettings{}, false
	}
	o := OutputSettings{Transfer: j.spec.Transfer, Domain: j.spec.Domain}
	for _, name := range []string{roost.AttrOut, roost.AttrErr} {
		text, _ := m.Ad.Str(name)
		o.NamesFiles = o.NamesFiles || text != ""
	}
	_, o.RemovesFiles = m.Ad.Lookup(roost.AttrRemoveOutput)
	return o, true
}

// AttemptLimits says what a running attempt is held to from now on, where its job was
// altered since it began.
type AttemptLimits struct {
	Attempt  roost.AttemptID
	Walltime time.Duration // of this attempt; 0: none
	CPU      time.Duration // 0: none
}

// AttemptLimits is what a live attempt is held to now; false where that is what it began
// with. What runs of an array goes on as it began.
func (q programBuilder) AttemptLimits(a roost.AttemptID) (AttemptLimits, bool) {
	if !q.IsLive(a) {
		return AttemptLimits{}, false
	}
	j := q.jobs[a.Task.Job.Seq]
	if j.class(a.Task.Index).oldAd == nil || !j.runsWhole() {
		return AttemptLimits{}, false
	}
	return q.markLimits(j, a.Task.Index), true
}

func (q programBuilder) markLimits(j *job, i int) AttemptLimits {
	p := TaskProgram{Walltime: j.classes[j.idleClass(i)].spec.Walltime}
	a := q.attemptOf(j, i)
	q.addCheckpointing(j, a, &p)
	return AttemptLimits{a, p.Walltime, j.spec.ProcessLimits.CPU}
}
