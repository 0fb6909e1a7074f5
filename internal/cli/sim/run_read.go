package sim

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/trace"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/negotiator/cellstate"
)

// readSimPool reads what to run. Two files are the lists of the openb trace; the
// beginning of one file shows what it is.
func readSimPool(c *frame.Invocation, args []string) (from simConfig, err error) {
	file := args[0]
	if len(args) == 2 {
		return readOpenbTrace(c, args)
	}
	var src []byte
	sized := c.IsFlagSet("machines") || c.IsFlagSet("processors")
	err = openMaybeGzip(c, file, func(_ string, r io.Reader) error {
		buffered := bufio.NewReader(r)
		head, _ := buffered.Peek(1024)
		switch {
		case cellstate.IsCheckpoint(head):
			from, err = readSimCheckpoint(c, buffered)
		case bytes.HasPrefix(head, []byte("sn,")), bytes.HasPrefix(head, []byte("name,")):
			err = fmt.Errorf("it is a list of the openb trace, of which both are wanted: roost sim run NODES PODS")
		case isLog(head):
			from, err = readSimLog(c, buffered)
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
		return from, frame.UsageErrorf("%s: it says itself which machines there are; --machines and --processors are "+
			"for logs", document.PrintableText(file))
	case src != nil:
		return readSimMix(c, file, src)
	}
	return from, nil
}

// readOpenbTrace reads the openb trace.
func readOpenbTrace(c *frame.Invocation, args []string) (from simConfig, err error) {
	if c.IsFlagSet("processors") {
		return from, frame.UsageErrorf("%s: it says itself how many processors each node has; --processors is for logs",
			document.PrintableText(args[0]))
	}
	nodes, pods, err := readTrace(c, args)
	if err != nil {
		return from, err
	}
	machines := 0
	if c.IsFlagSet("machines") {
		if machines = c.CountFlag("machines"); machines < 1 {
			return from, frame.UsageErrorf("--machines %d: it is 1 or more", machines)
		}
	}
	if from.config, err = workload.FromTrace(nodes, pods, machines, uint64(c.CountFlag("seed"))); err != nil {
		err = frame.KindErrorf(roost.Invalid, "%s: %s", document.PrintableText(args[1]),
			strings.Replace(err.Error(), roost.Invalid.Error()+": ", "", 1))
	}
	return from, err
}

// readSimCheckpoint reads a checkpoint.
func readSimCheckpoint(c *frame.Invocation, r io.Reader) (from simConfig, err error) {
	p, err := cellstate.ReadText(r)
	if err == nil {
		from.config, from.notes, err = workload.FromCell(p, uint64(c.CountFlag("seed")))
		from.checkpointTime = p.Now
	}
	if err != nil {
		err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
	}
	return from, err
}

// readSimLog reads a log.
func readSimLog(c *frame.Invocation, r io.Reader) (from simConfig, err error) {
	log, err := trace.Read(r)
	if err != nil {
		return from, err
	}
	processors := int64(c.CountFlag("processors"))
	if !c.IsFlagSet("processors") {
		if processors, err = log.Processors(); err != nil {
			return from, fmt.Errorf("%w; say how many processors the machines have with --processors", err)
		}
	}
	machines := 1
	if c.IsFlagSet("machines") {
		machines = c.CountFlag("machines")
	}
	from.config, from.skippedJobs, err = workload.FromLog(log, processors, machines, uint64(c.CountFlag("seed")))
	return from, err
}

// readSimMix reads a mix.
func readSimMix(c *frame.Invocation, file string, src []byte) (from simConfig, err error) {
	shown := document.PrintableText(file)
	if file == "-" {
		shown = "standard input"
	}
	mix, diags := submit.ParseSimPool(src,
		submit.ParseOptions{Filename: shown, Dir: "/", Home: "/", User: "user", Now: time.Unix(0, 0)})
	if diags.HasErrors() {
		width := c.ErrScreen.Width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.Stderr, submit.Format(diags, src, width, c.ErrScreen.Colour))
		return from, frame.ExitError(submit.ExitKind(diags).ExitCode())
	}
	from.config = workload.FromMix(mix, uint64(c.CountFlag("seed")))
	return from, nil
}

// isLog reports whether a text begins as the Standard Workload Format does: with its
// comment or with numbers.
func isLog(head []byte) bool {
	first := bytes.TrimLeft(head, " \t\r\n")
	return len(first) > 0 && (first[0] == ';' || first[0] == '-' || first[0] >= '0' && first[0] <= '9')
}
