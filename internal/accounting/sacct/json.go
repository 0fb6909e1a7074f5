package sacct

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
)

// The members of Slurm's document that Roost has values for, under the names of version
// 0.0.42 of its data parser. Times are seconds since 1970, and 0 if they have not come.
type (
	jsonNumber struct {
		Set      bool  `json:"set"`
		Infinite bool  `json:"infinite"`
		Number   int64 `json:"number"`
	}
	jsonCPUTime struct {
		Seconds      int64 `json:"seconds"`
		Microseconds int64 `json:"microseconds"`
	}
	jsonTimes struct {
		Elapsed    int64       `json:"elapsed"`
		Eligible   int64       `json:"eligible"`
		End        int64       `json:"end"`
		Planned    jsonNumber  `json:"planned"`
		Start      int64       `json:"start"`
		Submission int64       `json:"submission"`
		Suspended  int64       `json:"suspended"`
		System     jsonCPUTime `json:"system"`
		Limit      jsonNumber  `json:"limit"` // minutes
		Total      jsonCPUTime `json:"total"`
		User       jsonCPUTime `json:"user"`
	}
	jsonSignal struct {
		ID   jsonNumber `json:"id"`
		Name string     `json:"name"`
	}
	jsonExitCode struct {
		Status     []string   `json:"status"`
		ReturnCode jsonNumber `json:"return_code"`
		Signal     jsonSignal `json:"signal"`
	}
	jsonAmount struct {
		Type  string `json:"type"`
		Name  string `json:"name"`
		ID    int    `json:"id"`
		Count int64  `json:"count"` // memory in MiB
	}
	jsonAmounts struct {
		Allocated []jsonAmount `json:"allocated"`
		Requested []jsonAmount `json:"requested"`
	}
	jsonArray struct {
		JobID  uint64     `json:"job_id"`
		TaskID jsonNumber `json:"task_id"`
	}
	jsonRequired struct {
		CPUs          int64      `json:"CPUs"`
		MemoryPerNode jsonNumber `json:"memory_per_node"` // MiB
	}
	jsonState struct {
		Current []string `json:"current"`
		Reason  string   `json:"reason"`
	}
	jsonJob struct {
		Account          string       `json:"account"`
		AllocationNodes  int64        `json:"allocation_nodes"`
		Array            jsonArray    `json:"array"`
		Cluster          string       `json:"cluster"`
		ExitCode         jsonExitCode `json:"exit_code"`
		Group            string       `json:"group"`
		JobID            uint64       `json:"job_id"`
		Name             string       `json:"name"`
		Nodes            string       `json:"nodes"`
		Partition        string       `json:"partition"`
		QOS              string       `json:"qos"`
		Required         jsonRequired `json:"required"`
		RestartCount     int64        `json:"restart_cnt"`
		State            jsonState    `json:"state"`
		Steps            []struct{}   `json:"steps"`
		SubmitLine       string       `json:"submit_line"`
		Time             jsonTimes    `json:"time"`
		TRES             jsonAmounts  `json:"tres"`
		User             string       `json:"user"`
		WorkingDirectory string       `json:"working_directory"`
	}
)

// JSONPrinter prints one document like sacct --json, a job at a time.
type JSONPrinter struct {
	out     *bufio.Writer
	buffer  bytes.Buffer
	encoder *json.Encoder
	cluster string
	any     bool // a job was printed
}

// NewJSON returns a printer of JSON.
func NewJSON(w io.Writer, o Options) *JSONPrinter {
	p := &JSONPrinter{out: bufio.NewWriterSize(w, 64<<10), cluster: o.Cluster}
	p.encoder = json.NewEncoder(&p.buffer)
	p.out.WriteString(`{"jobs":[`)
	return p
}

// Print prints a row.
func (p *JSONPrinter) Print(r *accounting.AttemptRecord) error {
	p.buffer.Reset()
	if err := p.encoder.Encode(p.job(r)); err != nil {
		return err
	}
	if p.any {
		p.out.WriteByte(',')
	}
	p.any = true
	p.out.WriteByte('\n')
	_, err := p.out.Write(bytes.TrimSuffix(p.buffer.Bytes(), []byte("\n")))
	return err
}

// Close ends the document.
func (p *JSONPrinter) Close() error {
	name, err := json.Marshal(p.cluster)
	if err != nil {
		return err
	}
	p.out.WriteString("\n],\"meta\":{\"slurm\":{\"cluster\":")
	p.out.Write(name)
	p.out.WriteString("}},\"errors\":[],\"warnings\":[]}\n")
	return p.out.Flush()
}

func (p *JSONPrinter) job(r *accounting.AttemptRecord) *jsonJob {
	state := State(r)
	j, a := r.Job, &r.AttemptEntry
	out := &jsonJob{
		Account: j.Group, AllocationNodes: heldNodes(r), Array: jsonArray{TaskID: jsonNumber{}},
		Cluster: p.cluster, ExitCode: exitCode(a, state), Group: j.UnixGroup, JobID: j.Seq, Name: j.Name,
		Nodes: a.Node, Partition: cmp.Or(j.Queue, roost.DefaultQueueName), QOS: bandName(r),
		RestartCount: max(int64(a.Attempt)-1, 0),
		Required:     jsonRequired{CPUs(j.Request.CPU), number(mebibytes(j.Request.Memory))},
		State:        jsonState{[]string{state}, a.Reason}, Steps: []struct{}{}, SubmitLine: j.Arguments,
		Time: times(r), TRES: jsonAmounts{Allocated: []jsonAmount{}, Requested: amounts(&j.Request)},
		User: j.Owner, WorkingDirectory: j.WorkDir,
	}
	if out.Cluster == "" {
		out.Cluster = j.Host
	}
	if out.Nodes == "" || a.Started == 0 {
		out.Nodes = "None assigned"
	}
	if j.Array {
		out.Array = jsonArray{j.Seq, number(int64(a.Index))}
	}
	if held := heldResources(r); held != nil {
		out.TRES.Allocated = amounts(held)
	}
	return out
}

func number(n int64) jsonNumber { return jsonNumber{Set: true, Number: n} }

func mebibytes(n roost.Bytes) int64 { return int64((max(n, 0) + roost.MiB - 1) / roost.MiB) }

func times(r *accounting.AttemptRecord) jsonTimes {
	j, a := r.Job, &r.AttemptEntry
	cpuTime := func(millis int64) jsonCPUTime { return jsonCPUTime{millis / 1000, millis % 1000 * 1000} }
	limit := number((limitSeconds(r) + 59) / 60)
	if j.Walltime <= 0 {
		limit = jsonNumber{Infinite: true}
	}
	return jsonTimes{
		Elapsed: elapsed(r), Eligible: int64(j.Eligible) / 1000, End: int64(EndTime(r)) / 1000,
		Planned: number(waited(r)), Start: int64(a.Started) / 1000, Submission: int64(j.Submitted) / 1000,
		Suspended: a.Suspended / 1000,
		System:    cpuTime(a.SystemCPU), Limit: limit, Total: cpuTime(a.UserCPU + a.SystemCPU),
		User: cpuTime(a.UserCPU),
	}
}

// amounts lists resources with the numbers that Slurm gives to their kinds.
func amounts(r *roost.Resources) []jsonAmount {
	list := []jsonAmount{{"cpu", "", 1, CPUs(r.CPU)}}
	if r.Memory > 0 {
		list = append(list, jsonAmount{"mem", "", 2, mebibytes(r.Memory)})
	}
	list = append(list, jsonAmount{"node", "", 4, 1})
	if r.GPUs > 0 {
		list = append(list, jsonAmount{"gres", "gpu", 1001, int64(r.GPUs)})
	}
	return list
}

func exitCode(a *accounting.AttemptEntry, state string) jsonExitCode {
	code := jsonExitCode{Status: []string{"SUCCESS"}, ReturnCode: number(int64(a.ExitCode))}
	switch {
	case state == "PENDING" || state == "RUNNING" || state == "SUSPENDED":
		code.Status = []string{"PENDING"}
	case a.Signal != 0:
		code.Status = []string{"SIGNALED"}
		code.Signal.ID = number(int64(a.Signal))
		if names := signalNames(); int(a.Signal) < len(names) && a.Signal > 0 {
			code.Signal.Name = names[a.Signal]
		}
	case state != "COMPLETED":
		code.Status = []string{"ERROR"}
	}
	return code
}

// signalNames are the names of the signals of Linux, by number.
func signalNames() []string {
	return []string{"", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
		"PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
		"VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS"}
}
