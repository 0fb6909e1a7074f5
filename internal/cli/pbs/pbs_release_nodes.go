package pbs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func pbsReleaseNodesCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_release_nodes", Group: frame.GroupPBS, Summary: "give back machines of a running job",
		Synopsis: "[-j JOB] (-a | -k NUMBER | -k select=CHUNK[+CHUNK…] | HOST…)",
		RawArgs:  true, MaxOperands: -1, Run: pbsReleaseNodes,
		Description: "Gives back machines that a running job of several chunks no longer needs, while the job goes " +
			"on on the others. What runs there is ended, and other jobs can have the machines. The machine where the " +
			"job's script runs cannot be given back. If the job has to start again, it asks for all of its machines.",
		Examples: []frame.Example{
			{Line: "pbs_release_nodes -j 123 n3 n4", Description: "give two machines back"},
			{Line: "pbs_release_nodes -a",
				Description: "in a job's script: give all back but the one that the script runs on"},
			{Line: "pbs_release_nodes -j 123 -k 2", Description: "keep the first, and two more"},
			{Line: "pbs_release_nodes -j 123 -k select=2:ncpus=4",
				Description: "keep the first chunk, and two of 4 CPUs"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("j", "JOB", "the job, or a task of an array; in a job without it: that job"),
			pbsframe.ShortFlag("a", "", "all machines but the first"),
			pbsframe.ShortFlag("k", "KEEP",
				"all but the first machine and as many more, or but the first chunk and those of a select"),
		},
	}
}

func pbsReleaseNodes(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	o, err := pbsframe.ParseOptions(c.Args, "j:k:a")
	switch {
	case err != nil:
		return pbsframe.PrintUsage(c, err.Error())
	case o.IsSet('a') && o.IsSet('k'):
		return pbsframe.PrintUsage(c, "-a and -k options cannot be used together")
	case o.IsSet('k') && len(o.Operands) > 0:
		return pbsframe.PrintUsage(c, "cannot supply node list with -k option")
	case !o.IsSet('a') && !o.IsSet('k') && len(o.Operands) == 0, o.IsSet('a') && len(o.Operands) > 0:
		return pbsframe.PrintUsage(c, "")
	}
	here := c.Getenv("PBS_JOBID")
	job := strings.TrimSpace(o.Last('j'))
	if job == "" {
		job = here
	}
	if job == "" {
		return pbsframe.PrintUsage(c, "No jobid given")
	}
	if _, ok := pbsframe.ParseID(job); !ok {
		return pbsframe.PrintUsage(c, "illegally formed job identifier: "+qstat.VisibleText(job))
	}
	release, err := nodeRelease(c, &o, job)
	if err != nil {
		return err
	}
	nodeFile := c.Getenv("PBS_NODEFILE")
	if job != here {
		nodeFile = ""
	}
	before, _ := os.ReadFile(nodeFile)
	return eachOperand(c, []string{job}, func(text, id string, s *scheddapi.ScheddClient) int {
		req := &scheddapi.ActRequest{Verb: scheddapi.ActRequest_RELEASE_NODES, Reason: c.Command.Name,
			NodeRelease: release}
		reply, err := actAtSchedd(c, s, req, id)
		for _, r := range reply.GetResults() {
			if r.GetRefusal() == scheddapi.ActReply_NOT_RELEASABLE {
				fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, document.PrintableText(r.GetError()))
				return pbsframe.SystemError
			}
		}
		code := printOperandResult(c, text, reply, err, false)
		if code == 0 && len(before) > 0 {
			awaitFileChange(c, nodeFile, before)
		}
		return code
	})
}

// nodeFilePatience is for how long a job waits until its file of nodes says what it has
// given back.
const nodeFilePatience = 5 * time.Second

// awaitFileChange waits until a file says something else, so that a script can go on with
// it.
func awaitFileChange(c *frame.Invocation, path string, before []byte) {
	for end := time.Now().Add(nodeFilePatience); time.Now().Before(end); {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
			return
		}
		select {
		case <-c.Context.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// nodeRelease reads which machines are to be given back.
func nodeRelease(c *frame.Invocation, o *pbsframe.Options, job string) (*scheddapi.NodeRelease, error) {
	if !o.IsSet('k') {
		return &scheddapi.NodeRelease{Nodes: o.Operands}, nil
	}
	value := strings.TrimSpace(o.Last('k'))
	if selection, ok := strings.CutPrefix(value, "select="); ok {
		return releaseBeyond(c, job, selection)
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return nil, pbsframe.PrintUsage(c, "illegal -k value: it is a number of machines, or select=CHUNK[+CHUNK…]")
	}
	return &scheddapi.NodeRelease{Keep: uint32(n)}, nil
}

// releaseBeyond says which chunks are to be given back so that those of a select are
// left, and the first.
func releaseBeyond(c *frame.Invocation, job, selection string) (*scheddapi.NodeRelease, error) {
	id, _ := pbsframe.ParseID(job)
	s, err := jobs.FindJob(c, id, &scheddapi.QueryRequest{Ads: true})
	if err != nil {
		return nil, frame.ExitError(printOperandError(c, job, err, false))
	}
	if state := document.StateOf(s); state != roost.Running.String() && state != roost.Starting.String() {
		return nil, frame.ExitError(printOperandError(c, job, roost.Conflict, false))
	}
	chunks, err := qsub.ChunksBeyond(heldChunks(c, s), selection)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name,
			document.PrintableText(strings.TrimPrefix(refused.Text, "qsub: ")))
		return nil, frame.ExitError(refused.ExitStatus)
	}
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 { // which the schedd is to refuse, and not to take for all
		return &scheddapi.NodeRelease{Keep: uint32(len(s.GetChunks()))}, nil
	}
	return &scheddapi.NodeRelease{Chunks: chunks}, nil
}

// heldChunks are the chunks that a job has, as a select asks for them.
func heldChunks(c *frame.Invocation, s *scheddapi.JobStatus) (held []qsub.HeldChunk) {
	j, number := newPBSJob(c, s), 0
	var asked []string
	if stated, ok := j.record.Sub("Resource_List"); ok {
		selection, _ := stated.Str("select")
		asked = qsub.ExpandSelect(selection)
	}
	for _, chunk := range s.GetChunks() {
		for range chunk.GetCount() {
			for slices.Contains(s.GetReleased(), uint32(number)) {
				number++
			}
			h := qsub.HeldChunk{Number: number, Node: chunk.GetNode()}
			if number < len(asked) {
				h.Select = asked[number]
			} else {
				r := chunk.GetRequest().Vector()
				h.Select = fmt.Sprintf("ncpus=%d:mem=%s", (chunk.GetRequest().GetMilliCpu()+999)/1000,
					pbsSize(r.Memory))
				if r.GPUs > 0 {
					h.Select += fmt.Sprintf(":ngpus=%d", r.GPUs)
				}
			}
			held, number = append(held, h), number+1
		}
	}
	return held
}
