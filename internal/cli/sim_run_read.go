package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

// readSimPool reads what is to be run: two files are the lists of the openb trace, and
// what one is shows at its beginning.
func (c *invocation) readSimPool(args []string) (from simConfig, err error) {
	file := args[0]
	if len(args) == 2 {
		return c.readOpenbTrace(args)
	}
	var src []byte
	sized := c.isFlagSet("machines") || c.isFlagSet("processors")
	err = c.openMaybeGzip(file, func(_ string, r io.Reader) error {
		buffered := bufio.NewReader(r)
		head, _ := buffered.Peek(1024)
		switch {
		case cellstate.IsCheckpoint(head):
			from, err = c.readSimCheckpoint(buffered)
		case bytes.HasPrefix(head, []byte("sn,")), bytes.HasPrefix(head, []byte("name,")):
			err = fmt.Errorf("it is a list of the openb trace, of which both are wanted: roost sim run NODES PODS")
		case isLog(head):
			from, err = c.readSimLog(buffered)
		default:
			src, err = io.ReadAll(io.LimitReader(buffered, roost.MaxJobFileBytes+1))
			if err == nil && len(src) > roost.MaxJobFileBytes {
				err = fmt.Errorf("%w: it has more than %d bytes, which is the most", roost.Exhausted,
					roost.MaxJobFileBytes)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return from, err
	case sized && (src != nil || !from.checkpointTime.IsZero()):
		return from, usageErrorf("%s: it says itself which machines there are; --machines and --processors are "+
			"for logs", printableText(file))
	case src != nil:
		return c.readSimMix(file, src)
	}
	return from, nil
}

// readOpenbTrace reads the openb trace.
func (c *invocation) readOpenbTrace(args []string) (from simConfig, err error) {
	if c.isFlagSet("processors") {
		return from, usageErrorf("%s: it says itself how many processors each node has; --processors is for logs",
			printableText(args[0]))
	}
	nodes, pods, err := c.readTrace(args)
	if err != nil {
		return from, err
	}
	machines := 0
	if c.isFlagSet("machines") {
		if machines = c.countFlag("machines"); machines < 1 {
			return from, usageErrorf("--machines %d: it is 1 or more", machines)
		}
	}
	if from.config, err = workload.FromTrace(nodes, pods, machines, uint64(c.countFlag("seed"))); err != nil {
		err = kindErrorf(roost.Invalid, "%s: %s", printableText(args[1]),
			strings.Replace(err.Error(), roost.Invalid.Error()+": ", "", 1))
	}
	return from, err
}

// readSimCheckpoint reads a checkpoint.
func (c *invocation) readSimCheckpoint(r io.Reader) (from simConfig, err error) {
	p, err := cellstate.ReadText(r)
	if err == nil {
		from.config, from.notes, err = workload.FromCell(p, uint64(c.countFlag("seed")))
		from.checkpointTime = p.Now
	}
	if err != nil {
		err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
	}
	return from, err
}

// readSimLog reads a log.
func (c *invocation) readSimLog(r io.Reader) (from simConfig, err error) {
	log, err := swf.Read(r)
	if err != nil {
		return from, err
	}
	processors := int64(c.countFlag("processors"))
	if !c.isFlagSet("processors") {
		if processors, err = log.Processors(); err != nil {
			return from, fmt.Errorf("%w; say how many processors the machines have with --processors", err)
		}
	}
	machines := 1
	if c.isFlagSet("machines") {
		machines = c.countFlag("machines")
	}
	from.config, from.skippedJobs, err = workload.FromLog(log, processors, machines, uint64(c.countFlag("seed")))
	return from, err
}

// readSimMix reads a mix.
func (c *invocation) readSimMix(file string, src []byte) (from simConfig, err error) {
	shown := printableText(file)
	if file == "-" {
		shown = "standard input"
	}
	mix, diags := submit.ParseSimPool(src,
		submit.ParseOptions{Filename: shown, Dir: "/", Home: "/", User: "user", Now: time.Unix(0, 0)})
	if diags.HasErrors() {
		width := c.err.width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.stderr, submit.Format(diags, src, width, c.err.colour))
		return from, exitError(submit.ExitKind(diags).ExitCode())
	}
	from.config = workload.FromMix(mix, uint64(c.countFlag("seed")))
	return from, nil
}

// isLog reports whether a text begins as a log in the Standard Workload Format does: with
// a comment of its kind, or with numbers.
func isLog(head []byte) bool {
	first := bytes.TrimLeft(head, " \t\r\n")
	return len(first) > 0 && (first[0] == ';' || first[0] == '-' || first[0] >= '0' && first[0] <= '9')
}
