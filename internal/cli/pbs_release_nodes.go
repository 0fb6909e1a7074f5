package cli

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
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
)

func pbsReleaseNodesCommand() *command {
	return &command{
		name: "pbs_release_nodes", group: groupPBS, summary: "give back machines of a running job",
		synopsis: "[-j JOB] (-a | -k NUMBER | -k select=CHUNK[+CHUNK…] | HOST…)",
		rawArgs:  true, maxOperands: -1, run: pbsReleaseNodes,
		description: "Gives back machines that a running job of several chunks needs no more, while it goes on on the " +
			"others. What runs there is ended, and others can have the machines. The machine where the job's script " +
			"runs cannot be given back. If the job has to start again, it asks for all of its machines again.",
		examples: []commandExample{
			{"pbs_release_nodes -j 123 n3 n4", "give two machines back"},
			{"pbs_release_nodes -a", "in a job's script: give all back but the one that the script runs on"},
			{"pbs_release_nodes -j 123 -k 2", "keep the first, and two more"},
			{"pbs_release_nodes -j 123 -k select=2:ncpus=4", "keep the first chunk, and two of 4 CPUs"},
		},
		flags: []ucli.Flag{
			shortFlag("j", "JOB", "the job, or a task of an array; in a job without it: that job"),
			shortFlag("a", "", "all machines but the first"),
			shortFlag("k", "KEEP", "all but the first machine and as many more, or but the first chunk and those of a select"),
		},
	}
}

func pbsReleaseNodes(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	o, err := getopt(c.args, "j:k:a")
	switch {
	case err != nil:
		return c.pbsUsage(err.Error())
	case o.isSet('a') && o.isSet('k'):
		return c.pbsUsage("-a and -k options cannot be used together")
	case o.isSet('k') && len(o.operands) > 0:
		return c.pbsUsage("cannot supply node list with -k option")
	case !o.isSet('a') && !o.isSet('k') && len(o.operands) == 0, o.isSet('a') && len(o.operands) > 0:
		return c.pbsUsage("")
	}
	here := c.getenv("PBS_JOBID")
	job := strings.TrimSpace(o.last('j'))
	if job == "" {
		job = here
	}
	if job == "" {
		return c.pbsUsage("No jobid given")
	}
	if _, ok := parsePBSID(job); !ok {
		return c.pbsUsage("illegally formed job identifier: " + qstat.VisibleText(job))
	}
	release, err := c.nodeRelease(&o, job)
	if err != nil {
		return err
	}
	nodeFile := c.getenv("PBS_NODEFILE")
	if job != here {
		nodeFile = ""
	}
	before, _ := os.ReadFile(nodeFile)
	return c.eachOperand([]string{job}, func(text, id string, s wire.ScheddClient) int {
		req := &wire.ActRequest{Verb: wire.ActRequest_RELEASE_NODES, Reason: c.cmd.name, NodeRelease: release}
		reply, err := c.actAtSchedd(s, req, id)
		for _, r := range reply.GetResults() {
			if r.GetRefusal() == wire.ActReply_NOT_RELEASABLE {
				fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, printableText(r.GetError()))
				return pbsSystem
			}
		}
		code := c.printOperandResult(text, reply, err, false)
		if code == 0 && len(before) > 0 {
			c.awaitFileChange(nodeFile, before)
		}
		return code
	})
}

// nodeFilePatience is for how long a job waits until its file of nodes says what it has
// given back.
const nodeFilePatience = 5 * time.Second

// awaitFileChange waits until a file says something else, so that a script can go on with
// it.
func (c *invocation) awaitFileChange(path string, before []byte) {
	for end := time.Now().Add(nodeFilePatience); time.Now().Before(end); {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
			return
		}
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// nodeRelease reads which machines are to be given back.
func (c *invocation) nodeRelease(o *pbsOptions, job string) (*wire.NodeRelease, error) {
	if !o.isSet('k') {
		return &wire.NodeRelease{Nodes: o.operands}, nil
	}
	value := strings.TrimSpace(o.last('k'))
	if selection, ok := strings.CutPrefix(value, "select="); ok {
		return c.releaseBeyond(job, selection)
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return nil, c.pbsUsage("illegal -k value: it is a number of machines, or select=CHUNK[+CHUNK…]")
	}
	return &wire.NodeRelease{Keep: uint32(n)}, nil
}

// releaseBeyond says which chunks are to be given back so that those of a select are
// left, and the first.
func (c *invocation) releaseBeyond(job, selection string) (*wire.NodeRelease, error) {
	id, _ := parsePBSID(job)
	s, err := c.findJob(id, &wire.QueryRequest{Ads: true})
	if err != nil {
		return nil, exitError(c.printOperandError(job, err, false))
	}
	if state := stateOf(s); state != roost.Running.String() && state != roost.Starting.String() {
		return nil, exitError(c.printOperandError(job, roost.Conflict, false))
	}
	chunks, err := qsub.ChunksBeyond(c.heldChunks(s), selection)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, printableText(strings.TrimPrefix(refused.Text, "qsub: ")))
		return nil, exitError(refused.ExitStatus)
	}
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 { // which the schedd is to refuse, and not to take for all
		return &wire.NodeRelease{Keep: uint32(len(s.GetChunks()))}, nil
	}
	return &wire.NodeRelease{Chunks: chunks}, nil
}

// heldChunks are the chunks that a job has, as a select asks for them.
func (c *invocation) heldChunks(s *wire.JobStatus) (held []qsub.HeldChunk) {
	j, number := c.newPBSJob(s), 0
	var asked []string
	if said, ok := j.record.Sub("Resource_List"); ok {
		selection, _ := said.Str("select")
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
				h.Select = fmt.Sprintf("ncpus=%d:mem=%s", (chunk.GetRequest().GetMilliCpu()+999)/1000, pbsSize(r.Memory))
				if r.GPUs > 0 {
					h.Select += fmt.Sprintf(":ngpus=%d", r.GPUs)
				}
			}
			held, number = append(held, h), number+1
		}
	}
	return held
}
