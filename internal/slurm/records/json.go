package records

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// number is a number in Slurm's JSON.
type number struct {
	Set      bool  `json:"set"`
	Infinite bool  `json:"infinite"`
	Number   int64 `json:"number"`
}

func set(n int64) number { return number{Set: true, Number: n} }

// unixTime is a time in Slurm's JSON; 0 stands for one that is not known.
func unixTime(t time.Time) number {
	if t.IsZero() || t.UnixNano() == 0 {
		return set(0)
	}
	return set(t.Unix())
}

// exitDocument is an exit code in Slurm's JSON.
type exitDocument struct {
	Status     []string `json:"status"`
	ReturnCode number   `json:"return_code"`
	Signal     struct {
		ID   number `json:"id"`
		Name string `json:"name"`
	} `json:"signal"`
}

// jobDocument is a job in the JSON of squeue, in the form v0.0.42.
type jobDocument struct {
	Account         string         `json:"account"`
	AccrueTime      number         `json:"accrue_time"`
	AllocatingNode  string         `json:"allocating_node"`
	ArrayJobID      number         `json:"array_job_id"`
	ArrayTaskID     number         `json:"array_task_id"`
	ArrayTaskString string         `json:"array_task_string"`
	ArrayMaxTasks   number         `json:"array_max_tasks"`
	BatchFlag       bool           `json:"batch_flag"`
	BatchHost       string         `json:"batch_host"`
	Cluster         string         `json:"cluster"`
	Command         string         `json:"command"`
	Comment         string         `json:"comment"`
	CPUs            number         `json:"cpus"`
	CPUsPerTask     number         `json:"cpus_per_task"`
	CurrentDir      string         `json:"current_working_directory"`
	Dependency      string         `json:"dependency"`
	EligibleTime    number         `json:"eligible_time"`
	EndTime         number         `json:"end_time"`
	ExitCode        exitDocument   `json:"exit_code"`
	Features        string         `json:"features"`
	GroupID         int64          `json:"group_id"`
	GroupName       string         `json:"group_name"`
	HetJobID        number         `json:"het_job_id"`
	Hold            bool           `json:"hold"`
	JobID           uint64         `json:"job_id"`
	JobResources    *nodesDocument `json:"job_resources"`
	JobState        []string       `json:"job_state"`
	Licenses        string         `json:"licenses"`
	MemoryPerNode   number         `json:"memory_per_node"`
	MemoryPerCPU    number         `json:"memory_per_cpu"`
	Name            string         `json:"name"`
	Nodes           string         `json:"nodes"`
	NodeCount       number         `json:"node_count"`
	Partition       string         `json:"partition"`
	Priority        number         `json:"priority"`
	QOS             string         `json:"qos"`
	Requeue         bool           `json:"requeue"`
	RestartCount    int            `json:"restart_cnt"`
	StandardError   string         `json:"standard_error"`
	StandardInput   string         `json:"standard_input"`
	StandardOutput  string         `json:"standard_output"`
	StartTime       number         `json:"start_time"`
	StateReason     string         `json:"state_reason"`
	SubmitTime      number         `json:"submit_time"`
	SuspendTime     number         `json:"suspend_time"`
	Tasks           number         `json:"tasks"`
	TimeLimit       number         `json:"time_limit"`
	TRESPerNode     string         `json:"tres_per_node"`
	TRESRequested   string         `json:"tres_req_str"`
	TRESAllocated   string         `json:"tres_alloc_str"`
	UserID          int64          `json:"user_id"`
	UserName        string         `json:"user_name"`
	Nice            int64          `json:"nice"`
	RequiredNodes   string         `json:"required_nodes"`
	ExcludedNodes   string         `json:"excluded_nodes"`
	ReservationName string         `json:"resv_name"`
	MinimumCPUs     number         `json:"minimum_cpus_per_node"`
	TasksPerNode    number         `json:"tasks_per_node"`
}

// nodesDocument is the machines of a job in Slurm's JSON.
type nodesDocument struct {
	SelectType []string `json:"select_type"`
	Threads    number   `json:"threads_per_core"`
	Nodes      struct {
		SelectType []string         `json:"select_type"`
		Count      int              `json:"count"`
		List       string           `json:"list"`
		Whole      bool             `json:"whole"`
		Allocation []nodeAllocation `json:"allocation"`
	} `json:"nodes"`
	CPUs int64 `json:"cpus"`
}

// nodeAllocation is what a job has of one machine.
type nodeAllocation struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	CPUs  struct {
		Count int64 `json:"count"`
		Used  int64 `json:"used"`
	} `json:"cpus"`
	Memory struct {
		Used      int64 `json:"used"`
		Allocated int64 `json:"allocated"`
	} `json:"memory"`
}

// MarshalJob is the job in the JSON of squeue, in the form v0.0.42.
func (j *Job) MarshalJob(c *Clock) ([]byte, error) {
	text, err := json.Marshal(j.document(c))
	if err != nil {
		return nil, err
	}
	return append(append(append(text[:len(text)-1], ','), jobDefaults...), '}'), nil
}

func (j *Job) document(c *Clock) *jobDocument {
	uid, _ := j.Ad.Int(roost.AttrOwnerUID)
	gid, _ := j.Ad.Int(roost.AttrOwnerGID)
	d := &jobDocument{Account: j.Account(), AccrueTime: unixTime(j.eligible()), AllocatingNode: j.Host, BatchFlag: true,
		Cluster: j.Host, Command: j.Command(), CPUs: set(j.CPUs()), CPUsPerTask: set(j.cpusPerTask()),
		Comment: j.asked("Comment"), Features: j.asked("Features"), Licenses: j.licenses(),
		CurrentDir: j.WorkDir(), Dependency: j.Dependency(), EligibleTime: unixTime(j.eligible()),
		EndTime: unixTime(j.End()), GroupID: gid, GroupName: adText(j, roost.AttrUnixGroup), HetJobID: set(0),
		Hold: strings.HasPrefix(j.Reason(), "JobHeld"), JobID: j.RawNumber(), JobState: []string{j.State},
		MemoryPerNode: set(megabytes(j.nodeMemory())), Name: j.GetName(), Nodes: j.NodeList(),
		NodeCount: set(int64(j.NodeCount())), Partition: j.Partition(), Priority: set(j.Priority()), QOS: "normal",
		Requeue: requeues(j) == 1, RestartCount: j.restarts(), StandardError: j.StdErr(), StandardInput: j.StdIn(),
		StandardOutput: j.StdOut(), StartTime: unixTime(j.Start()), StateReason: j.Reason(),
		SubmitTime: unixTime(time.Unix(0, j.GetSubmitted())), SuspendTime: set(0), Tasks: set(j.Tasks()),
		TimeLimit: number{Infinite: true}, TRESPerNode: j.gres(), TRESRequested: j.TRES(), UserID: uid,
		UserName: j.GetOwner(), Nice: j.nice(), RequiredNodes: j.asked("ReqNodeList"),
		ExcludedNodes: j.asked("ExcNodeList"), ReservationName: j.GetReservation(), MinimumCPUs: set(j.leastCPUs()),
		TasksPerNode: set(j.askedNumber("NtasksPerNode"))}
	if j.Limit() != 0 {
		d.TimeLimit = set(int64((j.Limit() + time.Minute - 1) / time.Minute))
	}
	if d.ArrayJobID = set(0); j.IsArray {
		d.ArrayJobID = set(int64(j.Number))
		if j.IsTask {
			n, _ := strconv.ParseInt(j.Indexes, 10, 64)
			d.ArrayTaskID = set(n)
		} else {
			d.ArrayTaskString = strings.Trim(j.indexText(0), "[]")
		}
	}
	most, _ := j.Ad.Int(roost.AttrMaxRunning)
	d.ArrayMaxTasks = set(most)
	d.ExitCode = j.exitDocument()
	if hosts := j.Hosts(); len(hosts) > 0 {
		d.BatchHost, d.TRESAllocated = hosts[0], j.TRES()
		d.JobResources = j.nodesDocument(hosts)
	}
	return d
}

func (j *Job) exitDocument() (d exitDocument) {
	code, signal := j.ExitCode()
	switch {
	case signal != 0:
		d.Status = []string{"SIGNALED"}
	case code != 0:
		d.Status = []string{"ERROR"}
	default:
		d.Status = []string{"SUCCESS"}
	}
	d.ReturnCode, d.Signal.ID = set(int64(code)), number{Set: signal != 0, Number: int64(signal)}
	if signal != 0 {
		d.Signal.Name = cmp.Or(signalText(signal), "")
	}
	return d
}

func (j *Job) nodesDocument(hosts []string) *nodesDocument {
	d := &nodesDocument{SelectType: []string{"CPU", "MEMORY"}, CPUs: j.CPUs()}
	d.Threads, d.Nodes.SelectType = set(1), []string{"AVAILABLE"}
	d.Nodes.Count, d.Nodes.List = len(hosts), j.NodeList()
	for i, host := range hosts {
		a := nodeAllocation{Index: i, Name: host}
		a.CPUs.Count = j.nodeCPUs()
		a.Memory.Allocated = megabytes(j.nodeMemory())
		d.Nodes.Allocation = append(d.Nodes.Allocation, a)
	}
	return d
}
